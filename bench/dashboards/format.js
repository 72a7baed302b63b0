// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

// How Grafana writes numbers and legends, as far as the dashboards use it. A script of the page.

const colors = { red: '#e02f44', orange: '#ff780a', yellow: '#e0b400', green: '#37872d', 'dark-green': '#19730e',
  blue: '#3274d9', purple: '#8f3bb8', text: '#7b8087' };
const palette = ['#73bf69', '#f2cc0c', '#5794f2', '#ff9830', '#f2495c', '#b877d9', '#37872d', '#3274d9', '#8f3bb8'];

const colorOf = (name) => colors[name] ?? name;

function legendOf(format, labels) {
  return format.replace(/\{\{\s*(\w+)\s*\}\}/g, (_, label) => labels[label] ?? '');
}

function rounded(value, decimals) {
  if (decimals !== undefined) return value.toFixed(decimals);
  const size = Math.abs(value);
  return String(Number(value.toFixed(size >= 100 ? 0 : size >= 10 ? 1 : size >= 1 ? 2 : 3)));
}

function scaled(value, decimals, steps) {
  const [divisor, suffix] = steps.findLast(([from]) => Math.abs(value) >= from) ?? steps[0];
  return rounded(value / (divisor || 1), decimals) + suffix;
}

function write(value, unit, decimals) {
  switch (unit) {
    case 's': return Math.abs(value) < 1 && value !== 0
      ? scaled(value * 1000, decimals, [[0, ' ms'], [1, ' ms']])
      : scaled(value, decimals, [[0, ' s'], [60, ' min'], [3600, ' hours'], [86400, ' days']]);
    case 'percentunit': return `${rounded(value * 100, decimals)}%`;
    case 'bytes': return scaled(value, decimals, [[0, ' B'], [1024, ' KiB'], [1024 ** 2, ' MiB'], [1024 ** 3, ' GiB']]);
    case 'ops': return `${rounded(value, decimals)} ops/s`;
    case 'mps': return `${rounded(value, decimals)} msg/s`;
    case 'reqps': return `${rounded(value, decimals)} req/s`;
    default: return scaled(value, decimals, [[0, ''], [1e3, ' K'], [1e6, ' Mil']]);
  }
}

/** The properties that overrides give a series or a column. */
function overridden(panel, name) {
  const found = {};
  for (const { matcher, properties } of panel.fieldConfig.overrides) {
    const hits = matcher.id === 'byName' ? matcher.options === name
      : new RegExp(matcher.options.replace(/^\/|\/$/g, '')).test(name);
    if (hits) properties.forEach(({ id, value }) => { found[id] = value; });
  }
  return found;
}
