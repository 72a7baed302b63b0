// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

// Draws the charts of the page with uPlot, and lets them be read and zoomed by keyboard.
(() => {
  "use strict";

  const dashes = [[], [], [8, 4], [2, 3]]; // of the grey series
  const sizes = { screen: { chart: 200, panel: 150 }, print: { chart: 120, panel: 92 } };
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

  // scale is the same for all panels, and for each zoom: from 0 to the largest value, with the objective.
  const scale = (chart) => {
    const values = chart.series.flatMap((s) => s.values.filter((value) => value !== null));
    const most = values.reduce((a, b) => Math.max(a, b), chart.objective ?? 0);
    return uPlot.rangeNum(values.reduce((a, b) => Math.min(a, b), 0), Math.max(most, 1e-9), 0.1, true);
  };

  const font = () => `${12 * devicePixelRatio}px ${getComputedStyle(document.body).fontFamily}`;

  // write draws a text that stays readable on lines.
  const write = (u, text, x, y, ink) => {
    Object.assign(u.ctx, {
      font: font(), textAlign: "left", textBaseline: "middle", lineJoin: "round", lineWidth: 4 * devicePixelRatio,
      strokeStyle: color("paper"), fillStyle: ink,
    });
    u.ctx.setLineDash([]);
    u.ctx.strokeText(text, x, y);
    u.ctx.fillText(text, x, y);
  };

  // drawBand shows where values should be: below the objective.
  const drawBand = (chart) => (u) => {
    if (chart.objective === null) return;
    const top = u.valToPos(chart.objective, "y", true);
    u.ctx.fillStyle = color("band");
    u.ctx.fillRect(u.bbox.left, top, u.bbox.width, u.valToPos(0, "y", true) - top);
  };

  // drawLabels writes the name of each series where its curve is alone, and that of the band.
  const drawLabels = (chart, shown, data) => (u) => {
    const value = (i, x) => {
      const at = u.posToIdx((x - u.bbox.left) / devicePixelRatio);
      return u.data[i + 1][data.latest[shown[i]][at]];
    };
    const high = 16 * devicePixelRatio;
    const { left, top, width: all, height: deep } = u.bbox;
    u.ctx.save();
    u.ctx.font = font();
    const placed = [];
    const room = (box, curve) => {
      let least = Infinity;
      for (let k = 0; k <= 8; k++) {
        shown.forEach((n, i) => {
          const near = value(i, box.x + box.width * k / 8);
          if (i === curve || near === null || near === undefined) return;
          least = Math.min(least, Math.abs(u.valToPos(near, "y", true) - box.y));
        });
      }
      for (const other of placed) {
        const apart = Math.max(box.x - other.x - other.width, other.x - box.x - box.width);
        if (apart < high) least = Math.min(least, Math.max(0, Math.abs(box.y - other.y) - high));
      }
      return Math.min(least, 4 * high);
    };
    shown.forEach((n, i) => {
      const name = chart.series[n].name;
      const width = u.ctx.measureText(name).width;
      let best = null;
      for (let k = 0; k < 40; k++) {
        const x = left + (all - width) * k / 39;
        const values = [];
        for (let j = 0; j <= 8; j++) values.push(value(i, x + width * j / 8));
        if (values.some((one) => one === null || one === undefined)) continue;
        const edges = values.map((one) => u.valToPos(one, "y", true));
        for (const y of [Math.min(...edges) - high * 0.7, Math.max(...edges) + high * 0.7]) {
          if (y < top + high / 2 || y > top + deep - high / 2) continue;
          const box = { x, y, width };
          const score = room(box, i) - (Math.max(...edges) - Math.min(...edges)) / 2;
          if (best === null || score > best.score) best = { score, box };
        }
      }
      if (best === null) return;
      placed.push(best.box);
      write(u, name, best.box.x, best.box.y, color(n === 0 ? "first" : "other"));
    });
    u.ctx.restore();
  };

  const options = (chart, shown, data, hooks) => ({
    width: 100, height: 100, legend: { show: false },
    padding: [null, chart.start === null ? null : 40, null, null], // half a day's name
    cursor: {
      y: false, drag: { x: true, y: false, dist: 4 }, sync: { key: String(chart.start) },
      points: { fill: (u, i) => color(shown[i - 1] === 0 ? "first" : "other"), stroke: "transparent", size: 7 },
      dataIdx: (u, series, at) => (series === 0 || at == null ? at : data.latest[shown[series - 1]][at]),
    },
    scales: { x: { time: chart.start !== null }, y: { range: () => scale(chart) } },
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
        size: 60, space: 24,
      },
    ],
    series: [
      {},
      ...shown.map((n) => {
        const s = chart.series[n];
        return {
          label: s.name, width: 2, dash: chart.panels ? [] : dashes[(n > 0 && s.step ? n + 1 : n) % dashes.length],
          stroke: () => color(n === 0 ? "first" : "other"),
          fill: () => (n === 0 && (shown.length === 1 || !chart.panels) ? color("area") : undefined),
          paths: s.step ? uPlot.paths.stepped({ align: 1 }) : uPlot.paths.linear(),
          points: { show: s.values.length === 1 },
        };
      }),
    ],
    hooks: {
      drawClear: [drawBand(chart)], draw: chart.panels || shown.length === 1 ? [] : [drawLabels(chart, shown, data)], ...hooks,
    },
  });

  const all = [];
  const groups = new Map(charts.map((chart) => [chart.start, charts.filter((other) => other.start === chart.start)]));
  const aligned = new Map([...groups.values()].flatMap((group) => {
    const data = align(group);
    return group.map((chart, i) => [chart, data[i]]);
  }));

  // follow zooms the charts of the same start alike.
  const follow = (key) => (u, scale) => {
    const { min, max } = u.scales.x;
    for (const other of all.filter((other) => scale === "x" && other.key === key).flatMap((other) => other.plots)) {
      const x = other.scales.x;
      if (other !== u && (x.min !== min || x.max !== max)) other.setScale("x", { min, max });
    }
  };

  // sentence has the values of a chart at a point of its axis.
  const sentence = ({ chart, data }, at) => {
    const values = chart.series.map((s, i) => `${s.name} ${text(data.points[i + 1][data.latest[i][at]], chart.unit)}`);
    return `${data.time(data.points[0][at])}: ${values.join(", ")}`;
  };

  // panel is the element of a plot, with the name of its series above.
  const panel = (one, n) => {
    const box = document.createElement("div");
    box.className = "panel";
    if (one.chart.panels) {
      const label = document.createElement("p");
      label.textContent = one.chart.series[n].name;
      label.className = n === 0 ? "first" : "other";
      box.append(label);
    }
    one.element.append(box);
    return box;
  };

  document.querySelectorAll(".plot").forEach((element, n) => {
    const chart = charts[n];
    const points = aligned.get(chart);
    const data = { points, latest: points.slice(1).map(latest), time: chart.start === null ? elapsed : instant };
    const one = { key: chart.start, chart, element, data, at: null, reading: element.nextElementSibling };
    const every = chart.series.map((s, i) => i);
    one.plots = (chart.panels ? every.map((i) => (i === 0 ? [0] : [i, 0])) : [every]).map((shown, i) => {
      const hooks = { setScale: [follow(chart.start)] };
      if (i === 0) {
        hooks.setCursor = [(u) => {
          one.reading.textContent = u.cursor.idx == null ? "" : sentence(one, u.cursor.idx);
        }];
      }
      return new uPlot(options(chart, shown, data, hooks), [points[0], ...shown.map((k) => points[k + 1])], panel(one, i));
    });
    all.push(one);
  });

  const whole = ({ data: { points: [x] } }) => ({ min: x[0], max: x[x.length - 1] });

  const zoomOut = (one) => one.plots.forEach((plot) => plot.setScale("x", whole(one)));

  // zoom keeps what the cursor is on, else the middle.
  const zoom = (one, factor) => {
    const { min, max } = one.plots[0].scales.x;
    const { min: first, max: last } = whole(one);
    const on = one.at === null ? min : one.data.points[0][one.at];
    const center = on > min && on < max ? on : (min + max) / 2;
    const length = Math.min(Math.max((max - min) * factor, 0.1), last - first);
    const from = Math.min(Math.max(center - length / 2, first), last - length);
    one.plots.forEach((plot) => plot.setScale("x", { min: from, max: from + length }));
  };

  // read moves the cursor to a point, and says its values.
  const read = (one, at) => {
    const [plot] = one.plots;
    const { min, max } = plot.scales.x;
    const [x] = one.data.points;
    const first = x.findIndex((v) => v >= min);
    let last = x.length - 1;
    while (last > first && x[last] > max) last--;
    one.at = Math.min(Math.max(at, first), last);
    one.plots.forEach((other) => other.setCursor({ left: other.valToPos(x[one.at], "x"), top: 10 }));
    one.reading.textContent = sentence(one, one.at);
  };

  const stride = (one) => {
    const { min, max } = one.plots[0].scales.x;
    return Math.max(1, Math.round(one.data.points[0].filter((x) => x >= min && x <= max).length / 100));
  };

  const press = (one, event) => {
    const end = one.data.points[0].length - 1;
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

  // fit draws with the size that the page has on the screen or on paper.
  const fit = (one) => {
    const size = sizes[document.documentElement.classList.contains("print") ? "print" : "screen"];
    for (const plot of one.plots) {
      plot.setSize({ width: plot.root.parentElement.clientWidth, height: size[one.chart.panels ? "panel" : "chart"] });
    }
  };

  for (const one of all) {
    fit(one);
    zoomOut(one);
    one.element.addEventListener("keydown", (event) => press(one, event));
    one.plots.forEach((plot) => plot.over.addEventListener("dblclick", () => zoomOut(one)));
    new ResizeObserver(() => fit(one)).observe(one.element);
  }

  const redraw = () => all.flatMap((one) => one.plots).forEach((plot) => plot.redraw(false));
  const print = (on) => {
    document.documentElement.classList.toggle("print", on);
    all.forEach(fit);
    redraw();
  };
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
  addEventListener("beforeprint", () => print(true));
  addEventListener("afterprint", () => print(false));
})();
