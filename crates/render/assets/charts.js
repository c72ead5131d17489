// Charts of an operation: latencies by percentile, I/Os a second and mean latency over time; a line for each variant.
"use strict";

const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const COLOURS = 8;
// So that lines can be told apart without colours, and beyond the colours that there are.
const DASHES = [[], [8, 4], [2, 3], [10, 3, 2, 3], [5, 5], [14, 4], [1, 5], [8, 2, 1, 2, 1, 2]];
const keyOf = (number) => `--c${number % COLOURS}`;
const dashOf = (number) => DASHES[(number + Math.floor(number / COLOURS)) % DASHES.length];

const RECORDED = "recorded";

function line(label, number, value) {
  if (label === RECORDED) return { label, stroke: colour("--fore"), width: 3, points: { show: false }, spanGaps: true, value };
  return { label, stroke: colour(keyOf(number)), width: 1.6, dash: dashOf(number), points: { show: false }, spanGaps: true, value };
}

function axis(more) {
  return { stroke: colour("--soft"), grid: { stroke: colour("--line"), width: 1 }, ticks: { stroke: colour("--line"), width: 1 }, ...more };
}

// Percentiles lie by how few are slower: p90, p99 and p99.9 at the same distances.
const nines = (percent) => -Math.log10(Math.max(1 - percent / 100, 1e-9));
const NAMED = [0, 50, 90, 99, 99.9, 99.99];

// Values of several lines over one axis: where a line has no point there is none.
function joined(lines) {
  const xs = [...new Set(lines.flatMap((points) => (points ? points.map(([x]) => x) : [])))].sort((a, b) => a - b);
  const columns = lines.map((points) => {
    const known = new Map(points || []);
    return xs.map((x) => known.get(x) ?? null);
  });
  return [xs, ...columns];
}

const shown = (format) => (_, value) => (value == null ? "-" : format(value));
// Of a logarithmic axis only what has a label has a line.
const labels = (format) => (_, splits) => splits.map((value) => (value == null ? "" : short(format(value))));

// Shades what was left out before the measured time.
const shade = (seconds) => (chart) => {
  const begin = chart.valToPos(chart.scales.x.min, "x", true);
  const end = chart.valToPos(Math.min(seconds, chart.scales.x.max), "x", true);
  if (end <= begin) return;
  const { ctx, bbox } = chart;
  ctx.save();
  ctx.globalAlpha = 0.15;
  ctx.fillStyle = colour("--soft");
  ctx.fillRect(begin, bbox.top, end - begin, bbox.height);
  ctx.restore();
};

function chartOf(kind, operation, variants, leftOut) {
  const latencyAxis = axis({ size: 66, values: labels(latency) });
  if (kind === "latency") {
    const lines = operation.curves.map((curve) => curve && curve.percent.map((percent, at) => [nines(percent), Math.max(curve.lat_ns[at], 1)]));
    const percentName = (x) => {
      const percent = 100 - 100 * 10 ** -x;
      return "p" + String(Number(percent.toFixed(percent < 99 ? 1 : 3)));
    };
    const last = Math.max(...lines.flatMap((points) => (points ? points.map(([x]) => x) : [0])));
    const named = NAMED.map(nines).filter((x) => x <= last + 1e-6);
    return {
      data: joined(lines),
      scales: { x: { time: false, range: [0, Math.max(last, 1)] }, y: { distr: 3 } },
      axes: [axis({ splits: () => named, values: (_, splits) => splits.map(percentName) }), latencyAxis],
      series: [{ label: "percentile", value: shown(percentName) }, ...variants.map((name, number) => line(name, number, shown(latency)))],
    };
  }
  const [column, format] = kind === "iops" ? ["iops", rate] : ["mean_lat_ns", latency];
  // Recorded series are drawn beside those of the runs.
  const names = operation.recorded ? [...variants, RECORDED] : variants;
  const all = operation.recorded ? [...operation.series, operation.recorded] : operation.series;
  const lines = all.map((series) => series && series[column].map((value, at) => [leftOut + (at + 0.5) * series.interval_seconds, value]));
  const seconds = (value) => `${threeDigits(value)} s`;
  const points = joined(lines);
  // Zoomed out, the axis begins with the load.
  const fromStart = (_, min, max) => [leftOut && min === points[0][0] ? 0 : min, max];
  return {
    data: points,
    hooks: leftOut ? { drawClear: [shade(leftOut)] } : {},
    scales: { x: { time: false, range: fromStart }, y: kind === "iops" ? { range: (_, min, max) => [0, (max || 1) * 1.05] } : { distr: 3 } },
    axes: [axis({ values: labels(seconds) }), kind === "iops" ? axis({ size: 66, values: labels(rate) }) : latencyAxis],
    series: [{ label: "time", value: shown(seconds) }, ...names.map((name, number) => line(name, number, shown(format)))],
  };
}

// Draws all charts of a part of the page that are seen.
function drawCharts(part, data) {
  const operation = data.operations[Number(part.dataset.operation)];
  for (const place of part.querySelectorAll(".chart")) {
    if (place.chart) place.chart.destroy();
    const { data: points, ...options } = chartOf(place.dataset.kind, operation, data.variants, data.left_out_seconds);
    place.chart = new uPlot({ width: place.clientWidth, height: 260, cursor: { points: { size: 6 } }, ...options }, points, place);
  }
}

function legend(place, entries, kind = "line") {
  place.replaceChildren(
    ...entries.map(([name, key]) => {
      const entry = document.createElement("span");
      entry.textContent = name;
      entry.className = kind;
      entry.style.setProperty("--key", `var(${key})`);
      return entry;
    }),
  );
}
