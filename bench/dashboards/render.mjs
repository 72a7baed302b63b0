// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

// Draws the dashboards as pictures, with the answers that a real Prometheus gave in a test, to see whether a person can
// read them. It is no Grafana: layout, legends, units, colors and lines are those of the JSON, the look is its own.
//
//   go test ./test/e2e -run Observability -args -answers <folder>   records the answers
//   export CHROME=$(go run ../../test/browser/path)   finds or brings a Chromium
//   npm ci && node render.mjs <folder of answers> <folder of pictures>   draws them

import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import puppeteer from 'puppeteer-core';

const [answers, pictures] = process.argv.slice(2);
if (!answers || !pictures || !process.env.CHROME) {
  console.error('usage: CHROME=<path of a Chromium> node render.mjs <folder of answers> <folder of pictures>');
  process.exit(2);
}

const read = (path) => readFileSync(path, 'utf8');
const uplot = createRequire(import.meta.url).resolve('uplot/dist/uPlot.iife.min.js');
const here = (name) => new URL(name, import.meta.url);
const width = 1400;

const browser = await puppeteer.launch({
  executablePath: process.env.CHROME, args: ['--no-sandbox', '--disable-gpu'],
});
try {
  for (const name of ['fleet', 'function', 'autoscaler']) {
    const page = await browser.newPage();
    page.on('pageerror', (error) => { throw error; });
    await page.setViewport({ width, height: 1000 });
    await page.setContent(`<!doctype html><style>${read(uplot.replace('uPlot.iife.min.js', 'uPlot.min.css'))}
      ${read(here('page.css'))}</style><div id="dashboard"></div>`);
    await page.addScriptTag({ path: uplot });
    await page.addScriptTag({ content: read(here('format.js')) });
    await page.addScriptTag({ content: read(here('page.js')) });
    await page.evaluate((dashboard, recorded) => window.draw(dashboard, recorded),
      JSON.parse(read(here(`../../deploy/monitoring/dashboards/${name}.json`))),
      JSON.parse(read(join(answers, `${name}.json`))));
    await page.screenshot({ path: join(pictures, `dashboard-${name}.png`), fullPage: true });
    await page.close();
  }
} finally {
  await browser.close();
}
