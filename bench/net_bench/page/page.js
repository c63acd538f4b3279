// The script of net_bench --report: tables of the runs' figures, and plots of those that go over sizes or connections.
"use strict";

// Okabe and Ito's colours, which the colour-blind can distinguish; each series also has its own dash and mark.
const LIGHT = { plugin: "#0072b2", floor: "#d55e00", each: "#8a5a00", vs: "#007a5a", text: "#1c1e21", grid: "#e2e5ea" };
const DARK = { plugin: "#56b4e9", floor: "#f08a3c", each: "#f0e442", vs: "#30c59b", text: "#e4e6ea", grid: "#33383f" };
const FORM = { plugin: [], floor: [8, 4], each: [2, 4], vs: [12, 3, 2, 3] };
const MARK = { plugin: "disc", floor: "square", each: "cross", vs: "triangle" };
const WORDS = { "raw-1": "one bare socket", "raw-2": "two bare sockets", "raw-4": "four bare sockets",
  "raw-each-way": "a bare socket each way", plugin: "plugin", vs: "second plugin", "isend-irecv": "isend and irecv" };

const dark = window.matchMedia("(prefers-color-scheme: dark)");
let printing = false;
const colours = () => (dark.matches && !printing ? DARK : LIGHT);
const charts = []; // { figure, chart, plot }, for redrawing and for who wants to look
window.netBenchCharts = charts;

function element(name, attributes, ...children) {
  const made = Object.assign(document.createElement(name), attributes);
  made.append(...children);
  return made;
}

const sizeText = (bytes) => {
  for (const [unit, power] of [["G", 30], ["M", 20], ["K", 10]]) {
    if (bytes >= 2 ** power && bytes % 2 ** power === 0) return bytes / 2 ** power + unit;
  }
  return String(bytes);
};
const number = (value) => (value === undefined || !isFinite(value) ? "-" : Number(value.toPrecision(4)).toString());

function table(caption, heads, rows) {
  const cells = (kind, row) => element("tr", {}, ...row.map((text) => element(kind, {}, String(text))));
  return element("table", { className: "figures" }, element("caption", {}, caption),
    element("thead", {}, cells("th", heads)), element("tbody", {}, ...rows.map((row) => cells("td", row))));
}

// Objects of one form as a table: what has no plot.
function plainTable(caption, list) {
  const keys = Object.keys(list[0]);
  const text = (key, value) => (key === "bytes" ? sizeText(value) : typeof value === "number" ? number(value) : value);
  return table(caption, keys.map((key) => key.replaceAll("_", " ")),
    list.map((row) => keys.map((key) => text(key, row[key]))));
}

// The ticks of a linear axis: about six, at multiples of 1, 2 or 5 times a power of ten.
function evenTicks(low, high) {
  const power = 10 ** Math.floor(Math.log10((high - low) / 6));
  const step = power * [1, 2, 5, 10].find((times) => (high - low) / (power * times) <= 7);
  const first = Math.ceil(low / step);
  return Array.from({ length: Math.floor(high / step) - first + 1 },
    (_, at) => Number(((first + at) * step).toPrecision(6)));
}

// 1, 2, 5 times powers of ten, within a range.
function ticks(low, high) {
  const found = [];
  for (let power = Math.floor(Math.log10(low)); power <= Math.ceil(Math.log10(high)); ++power) {
    for (const step of [1, 2, 5]) found.push(step * 10 ** power);
  }
  return found.filter((value) => value >= low && value <= high);
}

function drawMark(ctx, form, x, y, size) {
  ctx.beginPath();
  if (form === "disc") ctx.arc(x, y, size, 0, 2 * Math.PI);
  else if (form === "square") ctx.rect(x - size, y - size, 2 * size, 2 * size);
  else if (form === "triangle")
    ctx.moveTo(x, y - 1.3 * size), ctx.lineTo(x + 1.3 * size, y + size), ctx.lineTo(x - 1.3 * size, y + size);
  else
    for (const [dx, dy] of [[-1, -0.4], [-0.4, -1], [1, 0.4], [0.4, 1]])
      ctx.lineTo(x + 1.5 * size * dx, y + 1.5 * size * dy);
  ctx.closePath();
  ctx.fill();
}

// Marks, and a bar from quartile to quartile where they are known; a line at `chart.line`.
function drawMarks(plot, chart) {
  const { ctx } = plot;
  const ratio = window.devicePixelRatio || 1;
  ctx.save();
  ctx.setLineDash([]);
  if (chart.line !== undefined) {
    const y = plot.valToPos(chart.line, "y", true);
    Object.assign(ctx, { strokeStyle: colours().text, lineWidth: ratio });
    ctx.beginPath(), ctx.moveTo(plot.bbox.left, y), ctx.lineTo(plot.bbox.left + plot.bbox.width, y), ctx.stroke();
  }
  for (const one of chart.series) {
    Object.assign(ctx, { strokeStyle: colours()[one.style], fillStyle: colours()[one.style], lineWidth: 2 * ratio });
    one.values.forEach((value, at) => {
      if (value === null) return;
      const x = plot.valToPos(at, "x", true);
      const bar = one.bars?.[at];
      if (bar) {
        const [low, high] = bar.map((end) => plot.valToPos(end, "y", true));
        ctx.beginPath(), ctx.moveTo(x, low), ctx.lineTo(x, high), ctx.stroke();
      }
      drawMark(ctx, MARK[one.style], x, plot.valToPos(value, "y", true), 4 * ratio);
    });
  }
  ctx.restore();
}

// A sample of each series' line and mark, and its name.
function legend(chart) {
  const entry = (one) => {
    const canvas = Object.assign(document.createElement("canvas"), { width: 112, height: 40 });
    const ctx = canvas.getContext("2d");
    Object.assign(ctx, { strokeStyle: colours()[one.style], fillStyle: colours()[one.style], lineWidth: 4 });
    ctx.setLineDash(FORM[one.style].map((length) => 2 * length));
    ctx.beginPath(), ctx.moveTo(0, 20), ctx.lineTo(112, 20), ctx.stroke();
    drawMark(ctx, MARK[one.style], 56, 20, 8);
    return element("span", {}, canvas, one.name);
  };
  return element("div", { className: "legend" }, ...chart.series.map(entry));
}

function yRange(chart) {
  const values =
    chart.series.flatMap((one) => [...one.values, ...(one.bars ?? []).flat()]).filter((value) => value > 0);
  if (chart.line !== undefined) values.push(chart.line);
  const [low, high] = [Math.min(...values), Math.max(...values)];
  const margin = 0.1 * (high - low + 0.2);
  return chart.line === undefined ? [low / 1.25, high * 1.25] : [low - margin, high + margin];
}

function plotOf(chart, target) {
  const colour = colours();
  const [low, high] = yRange(chart);
  const axis = { stroke: colour.text, grid: { stroke: colour.grid, width: 1 }, ticks: { stroke: colour.grid },
    font: "12px system-ui" };
  return new uPlot({
    width: 540, height: 300, padding: [8, 12, 0, 0],
    scales: { x: { time: false, range: () => [-0.3, chart.labels.length - 0.7] },
      y: { distr: chart.line === undefined ? 3 : 1, range: () => [low, high] } },
    axes: [
      { ...axis, label: chart.across, labelFont: "12px system-ui", splits: () => chart.labels.map((_, at) => at),
        values: () => chart.labels },
      { ...axis, label: chart.up, labelFont: "12px system-ui",
        splits: () => (chart.line === undefined ? ticks : evenTicks)(low, high), filter: (_, splits) => splits,
        values: (_, splits) => splits.map(number) },
    ],
    series: [{}, ...chart.series.map((one) => ({ label: one.name, stroke: colour[one.style], width: 2,
      dash: FORM[one.style], points: { show: false }, spanGaps: true }))],
    legend: { show: false },
    cursor: { show: false },
    hooks: { draw: [(plot) => drawMarks(plot, chart)] },
  }, [chart.labels.map((_, at) => at), ...chart.series.map((one) => one.values)], target);
}

function draw(one) {
  one.plot?.destroy();
  one.figure.querySelector(".legend")?.remove();
  one.plot = plotOf(one.chart, one.figure);
  one.figure.append(legend(one.chart));
}
const redraw = () => charts.forEach(draw);

function addChart(box, chart) {
  chart.series = chart.series.filter((one) => one.values.some((value) => value !== null));
  if (chart.labels.length < 2 || chart.series.length === 0) return;
  const figure = element("figure", {}, element("figcaption", {}, chart.title));
  box.append(figure);
  const drawn = { figure, chart };
  charts.push(drawn);
  draw(drawn);
}


// Figures of one mode in its main phase: rows by size and connections, each with what was measured there.
function rowsOf(run, mode) {
  const rows = new Map();
  const rowFor = (at) => {
    const key = at.bytes + " " + at.connections;
    if (!rows.has(key)) rows.set(key, { bytes: at.bytes, connections: at.connections, by: {}, ratios: {} });
    return rows.get(key);
  };
  const ours = (at) => at.mode === mode.mode && at.phase === mode.phase;
  for (const result of run.results.filter(ours)) rowFor(result).by[result.implementation] = result;
  for (const ratio of run.ratios.filter(ours)) {
    const row = rowFor(ratio);
    if (ratio.floor === "vs") row.ratios.vs = ratio;
    else Object.assign(row.ratios, { floor: ratio }), (row.floor = row.by[ratio.floor]);
  }
  for (const row of rows.values()) row.floor ??= row.by["raw-1"];
  return [...rows.values()];
}

const short = (value) => Number(value.toPrecision(3)).toString();
const figure = (result) =>
  (result ? `${number(result.median)} [${short(result.lower_quartile)}, ${short(result.upper_quartile)}]` : "-");
const ratioText = (ratio) => (ratio ? ratio.ratio.toFixed(2) + (ratio.enough_samples ? "" : "?") : "-");

function modeTable(mode, rows) {
  const has = (name) => rows.some((row) => row.by[name]);
  const columns = [["size", (row) => sizeText(row.bytes)], ["connections", (row) => row.connections]];
  if (has("plugin")) columns.push(["plugin", (row) => figure(row.by.plugin)]);
  if (rows.some((row) => row.floor)) columns.push(["floor", (row) => figure(row.floor)],
    ["which", (row) => WORDS[row.floor?.implementation] ?? "-"],
    ["ratio", (row) => ratioText(row.ratios.floor)]);
  if (has("raw-each-way")) columns.push(["a bare socket each way", (row) => figure(row.by["raw-each-way"])]);
  if (has("vs")) columns.push(["second plugin", (row) => figure(row.by.vs)],
    ["ratio to it", (row) => ratioText(row.ratios.vs)]);
  if (mode.mode === "latency") columns.push(["p99", (row) => number(row.by.plugin?.p99)],
    ["p99 of the floor", (row) => number(row.floor?.p99)]);
  columns.push(["samples", (row) => (row.by.plugin ?? row.floor)?.kept ?? "-"]);
  const unit = Object.values(rows[0].by)[0].unit;
  return table(`Medians [quartiles] in ${unit}; ? marks a ratio of few samples; CPUs: ${mode.phase}`,
    columns.map(([head]) => head),
    rows.map((row) => columns.map(([, text]) => text(row))));
}

function chartsOf(box, mode, rows, labels, across, where) {
  const line = (name, style, pick, bars) => ({ name, style, values: rows.map((row) => pick(row) ?? null),
    bars: bars && rows.map((row) => bars(row))
      .map((result) => (result ? [result.lower_quartile, result.upper_quartile] : null)) });
  const each = (name, style, of) => line(name, style, (row) => of(row)?.median, of);
  const unit = Object.values(rows[0].by)[0].unit;
  const isLatency = mode.mode === "latency";
  const title = (text) => `${mode.mode}${where}: ${text}`;
  addChart(box, { title: title(isLatency ? "half round trip, median and quartiles" : "median and quartiles"), up: unit,
    across, labels,
    series: [each("plugin", "plugin", (row) => row.by.plugin), each("floor: bare sockets", "floor", (row) => row.floor),
      each("a bare socket each way", "each", (row) => row.by["raw-each-way"]), 
      each("second plugin", "vs", (row) => row.by.vs)] });
  if (isLatency) {
    const p99 = (name, style, of) => line(name, style, (row) => of(row)?.p99);
    addChart(box, { title: title("99th percentile"), up: unit, across, labels,
      series: [p99("plugin", "plugin", (row) => row.by.plugin),
      p99("floor: bare sockets", "floor", (row) => row.floor), p99("second plugin", "vs", (row) => row.by.vs)] });
  }
  addChart(box, { title: title(isLatency ? "ratio, below 1 is faster" : "ratio, above 1 is faster"), up: "ratio",
    across, labels, line: 1,
    series: [line("plugin / floor", "floor", (row) => row.ratios.floor?.ratio),
      line("plugin / second plugin", "vs", (row) => row.ratios.vs?.ratio)] });
}

function showMode(place, run, mode) {
  const rows = rowsOf(run, mode).filter((row) => Object.keys(row.by).length > 0);
  if (rows.length === 0) return;
  const box = element("div", { className: "plots" });
  place.append(element("h3", {}, mode.mode), box, modeTable(mode, rows));
  const connections = [...new Set(rows.map((row) => row.connections))];
  const sizes = [...new Set(rows.map((row) => row.bytes))];
  if (sizes.length > 1) {
    for (const count of connections) {
      const those = rows.filter((row) => row.connections === count);
      const where = connections.length > 1 ? `, ${count} connections` : "";
      chartsOf(box, mode, those, those.map((row) => sizeText(row.bytes)), "size of a message", where);
    }
  } else {
    chartsOf(box, mode, rows, rows.map((row) => String(row.connections)), "connections", `, ${sizeText(sizes[0])}`);
  }
}

function showAllreduce(place, list) {
  const box = element("div", { className: "plots" });
  place.append(element("h3", {}, "allreduce"), box, plainTable("Ring, float sum, in place", list));
  addChart(box, { title: "allreduce: bus bandwidth", up: "GB/s", across: "size",
    labels: list.map((row) => sizeText(row.bytes)),
    series: [{ name: "plugin", style: "plugin", values: list.map((row) => row.busbw_gbps) }] });
}

// For the run of a program that says itself what it plots.
function showAny(place, plots, tables) {
  const box = element("div", { className: "plots" });
  place.append(box);
  plots.forEach((plot) => addChart(box, plot));
  tables.forEach((one) => place.append(plainTable(one.caption, one.rows)));
}

function showRun(main, run, index) {
  const note = run.configuration.find(([name]) => name === "note")?.[1];
  const place = element("section", {}, element("h2", {}, note ?? (index === 0 ? "This run" : `Another run, ${index}`)));
  main.append(place);
  place.append(element("table", { className: "configuration" },
    ...run.configuration.map(([name, text]) => element("tr", {}, element("th", {}, name), element("td", {}, text)))));
  for (const mode of run.modes) showMode(place, run, mode);
  if (run.allreduce.length) showAllreduce(place, run.allreduce);
  if (run.costs.length) place.append(plainTable("What connections cost", run.costs));
  if (run.optional_recv.length) place.append(plainTable("Receives with NCCL's hint and without", run.optional_recv));
  if (run.mixed.length) place.append(plainTable("A ping-pong next to a stream", run.mixed));
  showAny(place, run.plots ?? [], run.tables ?? []);
}

JSON.parse(document.getElementById("runs").textContent)
  .forEach((run, index) => showRun(document.querySelector("main"), run, index));
dark.addEventListener("change", redraw);
window.addEventListener("beforeprint", () => ((printing = true), redraw()));
window.addEventListener("afterprint", () => ((printing = false), redraw()));
