// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

// Draws the charts of the page with uPlot, and lets them be read and zoomed by keyboard.
(() => {
  "use strict";

  const colors = 7;
  const dashes = [{ line: [], border: "solid" }, { line: [8, 4], border: "dashed" }, { line: [2, 3], border: "dotted" }];
  const height = 260;
  const paper = 680; // what A4 and Letter have between their margins, so that the browser does not shrink the text
  const intervals = [0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 20, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600,
    43200, 86400, 172800, 604800, 1209600, 2419200];

  const color = (name) => getComputedStyle(document.documentElement).getPropertyValue("--" + name).trim();
  // dash tells series of one color apart, and steps that are equal, of which one would hide the other.
  const dash = (chart, series) =>
    dashes[(Math.floor(series / colors) + (chart.series[series].step ? series : 0)) % dashes.length];
  const ink = (series) => `var(--series-${series % colors})`;
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

  // align puts the series of the charts of one start on one time axis, so that their cursors meet, and returns the data
  // of each chart. A step keeps its value; a line has undefined where it has no point.
  const align = (group) => {
    const start = group[0].start ?? 0;
    const series = group.flatMap((chart) => chart.series);
    const [times, ...values] = uPlot.join(series.map((s) => [s.seconds.map((x) => start + x), s.values]));
    series.forEach((s, i) => {
      for (let at = 1; s.step && at < times.length; at++) {
        if (values[i][at] === undefined) values[i][at] = values[i][at - 1];
      }
    });
    return group.map((chart) => [times, ...chart.series.map((s) => values[series.indexOf(s)])]);
  };

  // latest has, for each point of the axis, the index of the series' last value at or before it. After the last of a
  // line there is none, which is undefined at that point itself.
  const latest = (values) => {
    const end = values.findLastIndex((value) => value !== undefined);
    let last = 0;
    return values.map((value, at) => {
      if (value !== undefined) last = at;
      return at > end ? at : last;
    });
  };

  const text = (value, unit) => {
    if (value === null) return "unknown";
    return value === undefined ? "no value" : number(value) + (unit ? " " + unit : "");
  };

  // ticks are in 24 hours, with the day where it begins.
  const ticks = (u, splits, axis, space, increment) =>
    splits.map((x, i) => {
      const [day, clock] = [instant(x).slice(0, 10), instant(x).slice(11, increment < 60 ? 19 : 16)];
      if (increment >= 86400) return day.slice(5);
      return i > 0 && instant(splits[i - 1]).slice(0, 10) === day ? clock : clock + "\n" + day;
    });

  const options = (chart, data, width, onScale) => ({
    width, height,
    cursor: {
      y: false, points: { fill: (u, i) => ink(i - 1), stroke: (u, i) => ink(i - 1) },
      drag: { x: true, y: false, dist: 4 }, sync: { key: String(chart.start) },
      dataIdx: (u, series, at) => (series === 0 || at == null ? at : data.latest[series][at]),
    },
    legend: {
      markers: { stroke: (u, i) => ink(i - 1), fill: () => "", dash: (u, i) => dash(chart, i - 1).border },
    },
    scales: {
      x: { time: chart.start !== null },
      y: { range: (u, low, high) => uPlot.rangeNum(Math.min(0, low ?? 0), Math.max(high ?? 1, 1e-9), 0.1, true) },
    },
    tzDate: (seconds) => uPlot.tzDate(new Date(seconds * 1000), "Etc/UTC"),
    axes: [
      {
        stroke: () => color("slate"), grid: { stroke: () => color("faint") }, ticks: { stroke: () => color("line") },
        ...(chart.start === null
          ? { incrs: intervals, values: (u, splits) => splits.map(elapsed) }
          : { space: 80, values: ticks }),
      },
      {
        stroke: () => color("slate"), grid: { stroke: () => color("faint") }, ticks: { stroke: () => color("line") },
        size: 64,
      },
    ],
    series: [
      { label: chart.start === null ? "Time since the start" : "Time", value: (u, x) => (x == null ? "–" : data.time(x)) },
      ...chart.series.map((s, i) => ({
        label: s.name, stroke: () => color("series-" + (i % colors)), width: 2,
        dash: dash(chart, i).line,
        paths: s.step ? uPlot.paths.stepped({ align: 1 }) : uPlot.paths.linear(),
        points: { show: s.values.length === 1 },
        value: (u, value, series, at) => (at == null ? "–" : text(value, "")),
      })),
    ],
    hooks: { setScale: [(u, key) => key === "x" && onScale(u)] },
  });

  const all = [];
  const groups = new Map(charts.map((chart) => [chart.start, charts.filter((other) => other.start === chart.start)]));
  const aligned = new Map([...groups.values()].flatMap((group) => {
    const data = align(group);
    return group.map((chart, i) => [chart, data[i]]);
  }));

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
    const points = aligned.get(chart);
    const data = { latest: points.map(latest), time: chart.start === null ? elapsed : instant };
    const plot = new uPlot(options(chart, data, element.clientWidth, follow(chart.start)), points, element);
    all.push({ key: chart.start, chart, element, plot, data, at: null, reading: element.nextElementSibling });
  });

  const whole = (one) => {
    const x = one.plot.data[0];
    return { min: x[0], max: x[x.length - 1] };
  };

  const zoomOut = (one) => one.plot.setScale("x", whole(one));

  // zoom keeps what the cursor is on, else the middle.
  const zoom = (one, factor) => {
    const { min, max } = one.plot.scales.x;
    const { min: first, max: last } = whole(one);
    const on = one.at === null ? min : one.plot.data[0][one.at];
    const center = on > min && on < max ? on : (min + max) / 2;
    const length = Math.min(Math.max((max - min) * factor, 0.1), last - first);
    const from = Math.min(Math.max(center - length / 2, first), last - length);
    one.plot.setScale("x", { min: from, max: from + length });
  };

  // read moves the cursor to a point, and says its values.
  const read = (one, at) => {
    const { plot, chart, data } = one;
    const { min, max } = plot.scales.x;
    const x = plot.data[0];
    const first = x.findIndex((v) => v >= min);
    let last = x.length - 1;
    while (last > first && x[last] > max) last--;
    one.at = Math.min(Math.max(at, first), last);
    plot.setCursor({ left: plot.valToPos(x[one.at], "x"), top: 10 });
    const values = chart.series.map((s, i) =>
      `${s.name} ${text(plot.data[i + 1][data.latest[i + 1][one.at]], chart.unit)}`);
    one.reading.textContent = `${data.time(x[one.at])}: ${values.join(", ")}`;
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
    for (const { plot, element } of all) {
      plot.setSize({ width: on ? Math.min(paper, element.clientWidth) : element.clientWidth, height });
    }
    redraw();
  };
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
  addEventListener("beforeprint", () => print(true));
  addEventListener("afterprint", () => print(false));
})();
