// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

// Draws a dashboard's panels with recorded answers. A script of the page, after uPlot and format.js.

const powersOfTwo = Array.from({ length: 40 }, (_, i) => 2 ** i);
const font = '11px sans-serif';
const unitHeight = 38;
const top0 = 62;

function element(parent, tag, className, text) {
  const made = document.createElement(tag);
  if (className) made.className = className;
  if (text !== undefined) made.textContent = text;
  parent.append(made);
  return made;
}

const clock = (seconds) => new Date(seconds * 1000).toISOString().slice(11, 19);

/** The series of a panel with their legends: {name, labels, values}. */
function seriesOf(panel, recorded) {
  return panel.targets.flatMap((target) => (recorded.panels[panel.id]?.[target.refId] ?? [])
    .map(({ labels, values }) => ({ name: legendOf(target.legendFormat, labels), labels, values })));
}

function nothing(box, panel) {
  element(box, 'div', 'nothing', panel.fieldConfig.defaults.noValue ?? 'No data');
}

/** Puts samples on the common time axis; null where there is none. */
function aligned(series, recorded) {
  const times = [];
  for (let t = recorded.from; t <= recorded.to; t += recorded.step) times.push(t);
  return [times, ...series.map(({ values }) => {
    const at = new Map(values.map(([t, v]) => [Math.round((t - recorded.from) / recorded.step), v]));
    return times.map((_, i) => at.get(i) ?? null);
  })];
}

function marks(recorded) {
  return {
    hooks: {
      draw: [(u) => recorded.annotations.forEach(({ color, times }) => times.forEach((t) => {
        const x = u.valToPos(t, 'x', true);
        u.ctx.save();
        u.ctx.strokeStyle = colorOf(color);
        u.ctx.setLineDash([3, 3]);
        u.ctx.beginPath();
        u.ctx.moveTo(x, u.bbox.top);
        u.ctx.lineTo(x, u.bbox.top + u.bbox.height);
        u.ctx.stroke();
        u.ctx.restore();
      }))],
    },
  };
}

function lineStyle(panel, name, i) {
  const custom = panel.fieldConfig.defaults.custom;
  const own = overridden(panel, name);
  return {
    color: own.color ? colorOf(own.color.fixedColor) : palette[i % palette.length],
    dash: own['custom.lineStyle']?.dash, width: own['custom.lineWidth'] ?? custom.lineWidth ?? 1,
    fillBelow: own['custom.fillBelowTo'],
  };
}

function stack(data) {
  const sums = data[0].map(() => 0);
  const known = data[0].map((_, i) => data.slice(1).some((values) => values[i] !== null));
  return [data[0], ...data.slice(1).map((values) => values.map((v, i) => (known[i] ? (sums[i] += v ?? 0) : null)))];
}

function drawLines(box, panel, recorded, size) {
  const series = seriesOf(panel, recorded);
  if (series.length === 0) return nothing(box, panel);
  const { unit, decimals, min, max, custom } = panel.fieldConfig.defaults;
  const styles = series.map(({ name }, i) => lineStyle(panel, name, i));
  const isStacked = custom.stacking?.mode === 'normal';
  const data = isStacked ? stack(aligned(series, recorded)) : aligned(series, recorded);
  const paths = custom.lineInterpolation === 'stepAfter' ? uPlot.paths.stepped({ align: 1 }) : undefined;
  const bands = series.flatMap(({ name }, i) => {
    const below = series.findIndex((other) => other.name === styles[i].fillBelow);
    if (isStacked && i > 0) return [{ series: [i + 1, i], fill: `${styles[i].color}40` }];
    return below < 0 ? [] : [{ series: [i + 1, below + 1], fill: `${styles[i].color}30` }];
  });
  const legend = element(box, 'div', 'legend');
  series.forEach(({ name }, i) => {
    const entry = element(legend, 'span');
    element(entry, 'i').style.background = styles[i].color;
    entry.append(name);
  });
  const chart = {
    width: size.width - 18, height: size.height - 30 - legend.offsetHeight, bands, plugins: [marks(recorded)],
    cursor: { show: false }, legend: { show: false },
    scales: { y: { range: (_, low, high) => [min ?? low, max ?? (high > 0 ? high * 1.08 : 1)] } },
    axes: [{ font, space: 70, values: (_, splits) => splits.map(clock) }, {
      font, size: 74, ...(unit === 'bytes' && { incrs: powersOfTwo }),
      values: (_, splits) => splits.map((v) => (decimals === 0 && v % 1 ? '' : write(v, unit, decimals))),
    }],
    series: [{}, ...styles.map(({ color, dash, width }, i) => ({
      stroke: color, dash, width, paths, points: { show: false },
      fill: isStacked && i === 0 ? `${color}40` : undefined }))],
  };
  const plot = new uPlot(chart, data, element(box, 'div'));
  box.append(legend);
  return plot;
}

function drawNumber(box, panel, recorded) {
  const series = seriesOf(panel, recorded);
  const { unit, decimals, thresholds, noValue } = panel.fieldConfig.defaults;
  if (series.length === 0) return noValue ? element(box, 'div', 'number', noValue) : nothing(box, panel);
  const isName = panel.options.textMode === 'name';
  const value = series[0].values.at(-1)[1];
  const step = thresholds.steps.findLast((s) => s.value === null || value >= s.value);
  const text = isName ? series.map(({ name }) => name).join(', ') : write(value, unit, decimals);
  const shown = element(box, 'div', text.length > 12 ? 'number long' : 'number', text);
  shown.style.color = step.color === 'text' ? '' : colorOf(step.color);
  return shown;
}

function drawTimeline(box, panel, recorded, size) {
  const series = seriesOf(panel, recorded);
  const canvas = element(box, 'canvas');
  canvas.width = size.width - 18;
  canvas.height = size.height - 34;
  const context = canvas.getContext('2d');
  const left = 260;
  const perRow = Math.min(34, (canvas.height - 18) / series.length);
  const [times, ...rows] = aligned(series, recorded);
  const x = (i) => left + ((canvas.width - left) * i) / times.length;
  context.font = font;
  context.textBaseline = 'middle';
  rows.forEach((values, row) => {
    const y = row * perRow;
    const mapping = overridden(panel, series[row].name).mappings?.[0].options ?? {};
    context.fillStyle = '#24292e';
    context.textAlign = 'right';
    context.fillText(series[row].name, left - 8, y + perRow / 2);
    for (let begin = 0; begin < values.length;) {
      let end = begin + 1;
      while (end < values.length && values[end] === values[begin]) end += 1;
      const state = values[begin] === null ? undefined : mapping[values[begin]];
      if (state) {
        context.fillStyle = `${colorOf(state.color)}c0`;
        context.fillRect(x(begin), y + perRow * 0.1, x(end) - x(begin), perRow * 0.8);
        context.fillStyle = '#fff';
        context.textAlign = 'center';
        if (x(end) - x(begin) > 46) context.fillText(state.text, (x(begin) + x(end)) / 2, y + perRow / 2);
      }
      begin = end;
    }
  });
  context.fillStyle = '#57606a';
  for (let i = 0; i < times.length; i += Math.ceil(times.length / 8)) {
    context.textAlign = 'left';
    context.fillText(clock(times[i]), x(i), rows.length * perRow + 10);
  }
}

function drawTable(box, panel, recorded) {
  const organize = panel.transformations.find(({ id }) => id === 'organize').options;
  const rows = new Map();
  panel.targets.forEach(({ refId }) => (recorded.panels[panel.id]?.[refId] ?? []).forEach(({ labels, values }) => {
    const key = JSON.stringify(Object.entries(labels).sort());
    const column = panel.targets.length === 1 ? 'Value' : `Value #${refId}`;
    rows.set(key, { ...rows.get(key), ...labels, [column]: values.at(-1)[1] });
  }));
  if (rows.size === 0) return nothing(box, panel);
  const columns = Object.keys(organize.indexByName).filter((name) => !organize.excludeByName[name]);
  const table = element(box, 'table');
  const head = element(table, 'tr');
  const nameOf = (column) => organize.renameByName[column] ?? column;
  columns.forEach((column) => element(head, 'th', '', nameOf(column)));
  const sortBy = panel.options.sortBy?.[0];
  const by = columns.find((column) => nameOf(column) === sortBy?.displayName);
  [...rows.values()].sort((a, b) => (by ? b[by] - a[by] : 0)).forEach((row) => {
    const line = element(table, 'tr');
    columns.forEach((column) => {
      const own = overridden(panel, nameOf(column));
      const value = row[column];
      const text = typeof value === 'number' ? write(value, own.unit, own.decimals) : value ?? '';
      element(line, 'td', own.links ? 'link' : '', text);
    });
  });
  return table;
}

window.draw = (dashboard, recorded) => {
  const root = document.getElementById('dashboard');
  element(root, 'h1', '', dashboard.title);
  element(root, 'div', 'choice', Object.entries(recorded.variables).map((pair) => pair.join(': ')).join('   '));
  const width = document.body.clientWidth;
  const drawers = { timeseries: drawLines, stat: drawNumber, 'state-timeline': drawTimeline, table: drawTable };
  let bottom = 0;
  dashboard.panels.forEach((panel) => {
    const { x, y, w, h } = panel.gridPos;
    const size = { width: (width * w) / 24 - 6, height: h * unitHeight - 6 };
    const box = element(root, 'div', panel.type === 'row' ? 'heading' : 'panel');
    Object.assign(box.style, { left: `${(width * x) / 24 + 3}px`, top: `${top0 + y * unitHeight}px`,
      width: `${size.width}px`, height: `${size.height}px` });
    bottom = Math.max(bottom, top0 + (y + h) * unitHeight);
    if (panel.type === 'row') {
      box.textContent = panel.title;
      return;
    }
    element(box, 'h2', '', panel.title);
    drawers[panel.type](box, panel, recorded, size);
  });
  root.style.height = `${bottom + 6}px`;
};
