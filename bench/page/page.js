// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

// Draws the charts of the page with uPlot, and lets them be read and zoomed by keyboard.
(() => {
  "use strict";

  const colors = 7;
  const dashes = [[], [8, 4], [2, 3]];
  const height = 260;
  const intervals = [0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 20, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600,
    43200, 86400, 172800, 604800, 1209600, 2419200];

  const color = (name) => getComputedStyle(document.documentElement).getPropertyValue("--" + name).trim();
  const charts = JSON.parse(document.getElementById("curves").textContent)
    .filter((chart) => chart.series.some((s) => s.seconds.length > 0));

  // number and elapsed write as the tables do.
  const number = (value) =>
    Math.abs(value) >= 1000 ? value.toFixed(0) : String(Number(value.toPrecision(4)));

  const elapsed = (seconds) => {
    const tenths = Math.round(Math.abs(seconds) * 10);
    const two = (n) => String(n).padStart(2, "0");
    const whole = Math.floor(tenths / 10);
    const hours = Math.floor(whole / 3600);
    const minutes = Math.floor(whole / 60) % 60;
    return (seconds < 0 ? "-" : "") + (hours > 0 ? hours + ":" + two(minutes) : minutes) + ":" + two(whole % 60) +
      (tenths % 10 > 0 ? "." + (tenths % 10) : "");
  };

  const instant = (seconds) => new Date(seconds * 1000).toISOString().replace("T", " ").slice(0, 19) + " UTC";

  // align puts all series on one time axis. A step keeps its value; a line has undefined where it has no point.
  const align = (chart) => {
    const start = chart.start ?? 0;
    const data = uPlot.join(chart.series.map((s) => [s.seconds.map((x) => start + x), s.values]));
    chart.series.forEach((s, i) => {
      const values = data[i + 1];
      for (let at = 1; s.step && at < values.length; at++) {
        if (values[at] === undefined) values[at] = values[at - 1];
      }
    });
    return data;
  };

  // latest is the index of the last point at or before an index, as what is read there; after its last a line has none.
  const latest = (u, series, at) => {
    const values = u.data[series];
    if (at == null || values[at] !== undefined) return at;
    if (!values.slice(at).some((value) => value !== undefined)) return at;
    while (at > 0 && values[at] === undefined) at--;
    return at;
  };

  const text = (value, unit) => {
    if (value === null) return "unknown";
    return value === undefined ? "no value" : number(value) + (unit ? " " + unit : "");
  };

  const options = (chart, width, time, onScale) => ({
    width, height,
    cursor: {
      y: false, drag: { x: true, y: false, dist: 4 }, sync: { key: String(chart.start) },
      dataIdx: (u, series, at) => (series === 0 ? at : latest(u, series, at)),
    },
    legend: { live: true, markers: { stroke: (u, i) => `var(--series-${(i - 1) % colors})`, fill: () => "" } },
    scales: {
      x: { time: chart.start !== null },
      y: { range: (u, low, high) => uPlot.rangeNum(Math.min(0, low ?? 0), Math.max(high ?? 1, 1e-9), 0.1, true) },
    },
    tzDate: (seconds) => uPlot.tzDate(new Date(seconds * 1000), "Etc/UTC"),
    axes: [
      {
        stroke: () => color("slate"), grid: { stroke: () => color("faint") }, ticks: { stroke: () => color("line") },
        ...(chart.start === null ? { incrs: intervals, values: (u, splits) => splits.map(elapsed) } : {}),
      },
      {
        stroke: () => color("slate"), grid: { stroke: () => color("faint") }, ticks: { stroke: () => color("line") },
        size: 64,
      },
    ],
    series: [
      { label: chart.start === null ? "Time since the start" : "Time", value: (u, x) => (x == null ? "–" : time(x)) },
      ...chart.series.map((s, i) => ({
        label: s.name, stroke: () => color("series-" + (i % colors)), width: 2,
        dash: dashes[Math.floor(i / colors) % dashes.length],
        paths: s.step ? uPlot.paths.stepped({ align: 1 }) : uPlot.paths.linear(),
        points: { show: s.values.length === 1 },
        value: (u, value, series, at) => (at == null ? "–" : text(value, "")),
      })),
    ],
    hooks: { setScale: [(u, key) => key === "x" && onScale(u)] },
  });

  const all = [];

  // follow zooms the charts of the same start alike.
  const follow = (key) => (u) => {
    const { min, max } = u.scales.x;
    for (const other of all) {
      const x = other.plot.scales.x;
      if (other.key === key && other.plot !== u && (x.min !== min || x.max !== max)) {
        other.plot.setScale("x", { min, max });
      }
    }
  };

  document.querySelectorAll(".plot").forEach((element, n) => {
    const chart = charts[n];
    const time = chart.start === null ? elapsed : instant;
    const plot = new uPlot(options(chart, element.clientWidth, time, follow(chart.start)), align(chart), element);
    all.push({ key: chart.start, chart, element, plot, time, at: null, reading: element.nextElementSibling });
  });

  const range = (key) => {
    const own = all.filter((one) => one.key === key).map((one) => one.plot.data[0]);
    return { min: Math.min(...own.map((x) => x[0])), max: Math.max(...own.map((x) => x[x.length - 1])) };
  };

  const zoomOut = (one) => one.plot.setScale("x", range(one.key));

  // zoom keeps what the cursor is on, else the middle.
  const zoom = (one, factor) => {
    const { min, max } = one.plot.scales.x;
    const whole = range(one.key);
    const center = one.at === null ? (min + max) / 2 : one.plot.data[0][one.at];
    const half = Math.max((max - min) * factor / 2, 0.05);
    one.plot.setScale("x", { min: Math.max(whole.min, center - half), max: Math.min(whole.max, center + half) });
  };

  // read moves the cursor to a point, and says its values.
  const read = (one, at) => {
    const { plot, chart } = one;
    const { min, max } = plot.scales.x;
    const x = plot.data[0];
    const first = x.findIndex((v) => v >= min);
    let last = x.length - 1;
    while (last > first && x[last] > max) last--;
    one.at = Math.min(Math.max(at, first), last);
    plot.setCursor({ left: plot.valToPos(x[one.at], "x"), top: 10 });
    const values = chart.series.map((s, i) =>
      `${s.name} ${text(plot.data[i + 1][latest(plot, i + 1, one.at)], chart.unit)}`);
    one.reading.textContent = `${one.time(x[one.at])}: ${values.join(", ")}`;
  };

  const stride = (one) => {
    const { min, max } = one.plot.scales.x;
    return Math.max(1, Math.round(one.plot.data[0].filter((x) => x >= min && x <= max).length / 100));
  };

  const press = (one, event) => {
    const end = one.plot.data[0].length - 1;
    const from = one.at;
    const fast = event.shiftKey ? 10 : 1;
    const keys = {
      ArrowRight: () => read(one, from === null ? 0 : from + fast * stride(one)),
      ArrowLeft: () => read(one, from === null ? end : from - fast * stride(one)),
      Home: () => read(one, 0), End: () => read(one, end),
      "+": () => zoom(one, 0.5), "=": () => zoom(one, 0.5), "-": () => zoom(one, 2),
      Escape: () => zoomOut(one),
    };
    if (event.ctrlKey || event.metaKey || event.altKey || event.target !== one.element || !keys[event.key]) return;
    event.preventDefault();
    keys[event.key]();
  };

  // A legend's entry is a button that hides its series.
  const makeButtons = (one) => {
    one.plot.root.querySelectorAll(".u-series").forEach((row, i) => {
      if (i === 0) return;
      const label = row.querySelector("th");
      const told = () => label.setAttribute("aria-pressed", String(one.plot.series[i].show));
      label.tabIndex = 0;
      label.setAttribute("role", "button");
      label.addEventListener("click", told);
      label.addEventListener("keydown", (event) => {
        if (event.key !== "Enter" && event.key !== " ") return;
        event.preventDefault();
        one.plot.setSeries(i, { show: !one.plot.series[i].show });
        told();
      });
      told();
    });
  };

  for (const one of all) {
    zoomOut(one);
    makeButtons(one);
    one.element.addEventListener("keydown", (event) => press(one, event));
    one.plot.over.addEventListener("dblclick", () => zoomOut(one));
    new ResizeObserver(() => one.plot.setSize({ width: one.element.clientWidth, height })).observe(one.element);
  }

  const redraw = () => all.forEach((one) => one.plot.redraw(false));
  const print = (on) => {
    document.documentElement.classList.toggle("print", on);
    redraw();
  };
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
  addEventListener("beforeprint", () => print(true));
  addEventListener("afterprint", () => print(false));
})();
