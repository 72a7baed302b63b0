// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

// Parts of the three dashboards. Each panel has a title, a description, a unit and queries.

import * as common from '@grafana/grafana-foundation-sdk/common';
import * as grafana from '@grafana/grafana-foundation-sdk/dashboard';
import { DataqueryBuilder, PromQueryFormat } from '@grafana/grafana-foundation-sdk/prometheus';
import { PanelBuilder as StatBuilder } from '@grafana/grafana-foundation-sdk/stat';
import { PanelBuilder as StateTimelineBuilder } from '@grafana/grafana-foundation-sdk/statetimeline';
import { PanelBuilder as TableBuilder } from '@grafana/grafana-foundation-sdk/table';
import { PanelBuilder as TimeSeriesBuilder } from '@grafana/grafana-foundation-sdk/timeseries';

const tag = 'pulsar-autoscaler';

const datasource = { type: 'prometheus', uid: '${datasource}' };

const runbook = 'https://github.com/pulsar-autoscaler/pulsar-autoscaler/blob/main/docs/runbook.md';

/** Units by Grafana's names. */
export const units = {
  count: 'short', seconds: 's', share: 'percentunit', bytes: 'bytes', text: 'string',
  perSecond: 'ops', messages: 'mps', requests: 'reqps',
};

/** A dashboard with the parts that all share: the data source, and links to the others and to the runbook. */
export function dashboard({ uid, title, about, variables, annotations = [] }) {
  const builder = new grafana.DashboardBuilder(title)
    .uid(uid).description(about).tags([tag]).timezone('browser').refresh('30s').time({ from: 'now-1h', to: 'now' })
    .tooltip(grafana.DashboardCursorSync.Crosshair)
    .link(new grafana.DashboardLinkBuilder('Pulsar autoscaler').type(grafana.DashboardLinkType.Dashboards)
      .tags([tag]).keepTime(true).includeVars(true))
    .link(new grafana.DashboardLinkBuilder('Runbook').type(grafana.DashboardLinkType.Link).url(runbook)
      .tooltip('Meaning, check and fix of each alert and each reason').targetBlank(true))
    .withVariable(new grafana.DatasourceVariableBuilder('datasource').label('Data source').type('prometheus'));
  variables.forEach((variable) => builder.withVariable(variable));
  annotations.forEach((annotation) => builder.annotation(annotation));
  return builder;
}

/** A variable with the values of a label. With `all`, several may be chosen, and the default is all. */
export function labelVariable({ name, label, query, all = false }) {
  const builder = new grafana.QueryVariableBuilder(name).label(label).datasource(datasource)
    .query({ query, refId: name }).definition(query)
    .refresh(grafana.VariableRefresh.OnTimeRangeChanged).sort(grafana.VariableSort.AlphabeticalAsc);
  return all
    ? builder.multi(true).includeAll(true).allValue('.*').current({ text: ['All'], value: ['$__all'] })
    : builder;
}

/** A mark in all panels at each sample of the query. */
export function annotation({ name, color, expr, title }) {
  return new grafana.AnnotationQueryBuilder().name(name).datasource(datasource).enable(true).iconColor(color)
    .expr(expr).titleFormat(title).step('15s');
}

export const row = (title) => new grafana.RowBuilder(title);

function queries(panel, list, { instant = false, format } = {}) {
  list.forEach(([expr, legend], i) => {
    const query = new DataqueryBuilder().datasource(datasource).expr(expr).legendFormat(legend)
      .refId(String.fromCharCode('A'.charCodeAt(0) + i));
    if (format) query.format(format);
    panel.withTarget(instant ? query.instant() : query.range());
  });
  return panel;
}

function begin(builder, { title, about, unit, width, height }) {
  return builder.title(title).description(about).datasource(datasource).unit(unit).span(width).height(height);
}

/** Lines over time. Styles are by legend: a color, and true for a limit, which is dashed. */
export function lines({ title, about, unit, width = 8, height = 8, list, styles = {}, stacked = false, steps = false,
  min = 0, max, decimals, fillBelow, zeroLine }) {
  const panel = begin(new TimeSeriesBuilder(), { title, about, unit, width, height })
    .lineWidth(2).fillOpacity(stacked ? 30 : 0).showPoints(common.VisibilityMode.Never).spanNulls(false)
    .lineInterpolation(steps ? common.LineInterpolation.StepAfter : common.LineInterpolation.Linear)
    .legend(new common.VizLegendOptionsBuilder().showLegend(true)
      .displayMode(common.LegendDisplayMode.List).placement(common.LegendPlacement.Bottom))
    .tooltip(new common.VizTooltipOptionsBuilder().mode(common.TooltipDisplayMode.Multi)
      .sort(common.SortOrder.Descending));
  if (min !== null) panel.min(min);
  if (max !== undefined) panel.max(max);
  if (zeroLine !== undefined) panel.axisSoftMax(zeroLine);
  if (decimals !== undefined) panel.decimals(decimals);
  if (stacked) panel.stacking(new common.StackingConfigBuilder().mode(common.StackingMode.Normal));
  for (const [legend, [color, isLimit]] of Object.entries(styles)) {
    const properties = [{ id: 'color', value: { mode: 'fixed', fixedColor: color } }];
    if (isLimit) {
      properties.push({ id: 'custom.lineStyle', value: { fill: 'dash', dash: [8, 6] } },
        { id: 'custom.lineWidth', value: 1 });
    }
    if (fillBelow && legend === fillBelow[0]) {
      properties.push({ id: 'custom.fillBelowTo', value: fillBelow[1] }, { id: 'custom.fillOpacity', value: 15 });
    }
    panel.overrideByName(legend, properties);
  }
  return queries(panel, list);
}

/** Steps of a color scale, from the lowest: [from, color], the first from null. */
function thresholds(steps) {
  return new grafana.ThresholdsConfigBuilder().mode(grafana.ThresholdsMode.Absolute)
    .steps(steps.map(([value, color]) => ({ value, color })));
}

/** One current number. With `names` it shows the legends of the existing series instead of their values. */
export function number({ title, about, unit, width = 4, height = 4, expr, legend, steps = [[null, 'text']], none,
  decimals, names = false }) {
  const panel = begin(new StatBuilder(), { title, about, unit, width, height })
    .thresholds(thresholds(steps))
    .colorScheme(new grafana.FieldColorBuilder().mode(grafana.FieldColorModeId.Thresholds))
    .reduceOptions(new common.ReduceDataOptionsBuilder().calcs(['lastNotNull']).values(false))
    .colorMode(common.BigValueColorMode.Value).graphMode(common.BigValueGraphMode.None)
    .textMode(names ? common.BigValueTextMode.Name : common.BigValueTextMode.Value);
  if (none !== undefined) panel.noValue(none);
  if (decimals !== undefined) panel.decimals(decimals);
  return queries(panel, [[expr, legend]], { instant: true });
}

/** States over time. They are by the beginning of a legend: the name of a value, and its color. */
export function timeline({ title, about, width = 24, height = 8, list, states }) {
  const panel = begin(new StateTimelineBuilder(), { title, about, unit: units.text, width, height })
    .showValue(common.VisibilityMode.Auto).rowHeight(0.8).mergeValues(true).fillOpacity(75).lineWidth(0)
    .legend(new common.VizLegendOptionsBuilder().showLegend(false)
      .displayMode(common.LegendDisplayMode.List).placement(common.LegendPlacement.Bottom))
    .tooltip(new common.VizTooltipOptionsBuilder().mode(common.TooltipDisplayMode.Multi).sort(common.SortOrder.None));
  for (const [start, values] of Object.entries(states)) {
    const options = Object.fromEntries(Object.entries(values)
      .map(([value, [text, color]], index) => [value, { text, color, index }]));
    panel.overrideByRegexp(`/^${start}/`, [
      { id: 'mappings', value: [{ type: grafana.MappingType.ValueToText, options }] },
    ]);
  }
  return queries(panel, list);
}

/**
 * A table of current values, a row for each set of labels. Each column has a query, a unit and perhaps a link. Labels
 * that are not in `labels` are hidden. Rows are sorted by the first column of values, the largest first.
 */
export function table({ title, about, width = 24, height = 9, labels, columns, linkOn, link, hide = [], none }) {
  const panel = begin(new TableBuilder(), { title, about, unit: units.count, width, height }).showHeader(true);
  if (none !== undefined) panel.noValue(none);
  const values = columns.map((_, i) => `Value #${String.fromCharCode('A'.charCodeAt(0) + i)}`);
  // A single query has no letter.
  const names = columns.length === 1 ? ['Value'] : values;
  panel.withTransformation({ id: 'merge', options: {} });
  panel.withTransformation({
    id: 'organize',
    options: {
      excludeByName: Object.fromEntries(['Time', ...hide].map((name) => [name, true])),
      indexByName: Object.fromEntries([...Object.keys(labels), ...names].map((name, i) => [name, i])),
      renameByName: { ...labels, ...Object.fromEntries(columns.map((column, i) => [names[i], column.name])) },
    },
  });
  columns.forEach((column) => {
    const properties = [{ id: 'unit', value: column.unit }];
    if (column.decimals !== undefined) properties.push({ id: 'decimals', value: column.decimals });
    if (column.values) {
      properties.push({ id: 'mappings', value: [{ type: grafana.MappingType.ValueToText, options: column.values }] });
    }
    panel.overrideByName(column.name, properties);
  });
  if (link) panel.overrideByName(linkOn, [{ id: 'links', value: [link] }]);
  if (columns[0].name && !hide.includes(names[0])) {
    panel.sortBy([new common.TableSortByFieldStateBuilder().displayName(columns[0].name).desc(true)]);
  }
  return queries(panel, columns.map((column) => [column.expr, column.name]),
    { instant: true, format: PromQueryFormat.Table });
}
