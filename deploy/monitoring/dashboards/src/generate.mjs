// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

// Writes the dashboards beside this folder, and generated.sum with the checksums of dashboards and sources. By these a
// test without npm finds a source that was not generated, or a dashboard that was edited.

import { createHash } from 'node:crypto';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';

import { autoscaler } from './autoscaler.mjs';
import { fleet } from './fleet.mjs';
import { oneFunction } from './function.mjs';

const root = new URL('../', import.meta.url);

// What an import needs. It asks for nothing, since the data source is a variable: files are imported unchanged, and
// Grafana's sidecar takes the same ones.
const needs = {
  __inputs: [],
  __requires: [
    { type: 'grafana', id: 'grafana', name: 'Grafana', version: '12.0.0' },
    { type: 'datasource', id: 'prometheus', name: 'Prometheus', version: '1.0.0' },
  ],
};

/** The dashboard as Grafana imports it: its panels are numbered, and links and marks are in sight, not in a menu. */
function finish(dashboard) {
  dashboard.panels.forEach((panel, i) => { panel.id = i + 1; });
  [...dashboard.links, ...(dashboard.annotations?.list ?? [])].forEach((shown) => { delete shown.placement; });
  return `${JSON.stringify({ ...needs, ...dashboard }, null, 1)}\n`;
}

const dashboards = { 'fleet.json': fleet(), 'function.json': oneFunction(), 'autoscaler.json': autoscaler() };
for (const [name, builder] of Object.entries(dashboards)) {
  writeFileSync(new URL(name, root), finish(builder.build()));
}

const sources = readdirSync(new URL('src/', root)).map((name) => `src/${name}`);
const sums = [...Object.keys(dashboards), ...sources, 'package.json', 'package-lock.json'].sort()
  .map((name) => `${createHash('sha256').update(readFileSync(new URL(name, root))).digest('hex')}  ${name}`);
writeFileSync(new URL('generated.sum', root), `${sums.join('\n')}\n`);
