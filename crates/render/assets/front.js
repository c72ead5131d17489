// The settings of a search by two figures: a point each, and the front of those that no other beats.
"use strict";

const FORMATS = { latency, rate, bandwidth, place: (value) => String(Math.round(value)) };
// Axes are logarithmic where values differ by more than this.
const WIDE = 20;
// Pixels within which a point is meant.
const NEAR = 24;

// What a point is, the last that holds; with colour, size and whether it is filled.
const KINDS = [
  { key: "--c7", name: "tried", size: 6, is: (point) => point.holds },
  { key: "--worst", name: "misses a condition", size: 6, is: (point) => !point.holds, hollow: true },
  { key: "--c0", name: "on the front", size: 8, is: (point) => point.on_front, line: true },
  { key: "--c1", name: "the default", size: 14, is: (point) => point.is_default, hollow: true },
  { key: "--best", name: "recommended", size: 14, is: (point) => point.is_best, hollow: true },
];

// A point for each setting that has both figures, from left to right.
function placed(data, across) {
  const of = (point, place) => (across < 0 && place < 0 ? point.place : point.values[place]);
  return data.points
    .map((point, number) => ({ ...point, number, x: of(point, across), y: point.values[0] }))
    .filter((point) => point.x != null && point.y != null)
    .sort((a, b) => a.x - b.x || a.y - b.y);
}

function axisOf(points, column, figure) {
  const values = points.map((point) => point[column]);
  const low = Math.min(...values), high = Math.max(...values);
  const isLog = low > 0 && high / low > WIDE && figure.unit !== "place";
  const pad = high > low ? (high - low) * 0.08 : high * 0.1 || 1;
  const range = isLog ? [low * 0.8, high * 1.25] : [Math.max(low - pad, low >= 0 ? 0 : low - pad), high + pad];
  const format = FORMATS[figure.unit];
  const scale = isLog ? { time: false, distr: 3, range } : { time: false, range };
  const shown = { label: figure.label, labelSize: 22, labelFont: "13px system-ui, sans-serif", values: labels(format) };
  // Of what is seen 1, 2 and 5 of each decade; of many only the decades.
  const steps = (_, __, min, max) => {
    const first = Math.floor(Math.log10(min)), count = Math.ceil(Math.log10(max)) - first;
    const decades = Array.from({ length: count + 1 }, (_, number) => 10 ** (first + number));
    const all = decades.flatMap((one) => (count > 3 ? [one] : [one, 2 * one, 5 * one]));
    return all.filter((value) => value >= min && value <= max);
  };
  return { scale, axis: axis(isLog ? { ...shown, splits: steps, filter: (_, splits) => splits } : shown) };
}

// Draws it into a place; `tell` hears of the point that is pointed at, or clicked on.
function drawFront(place, data, across, tell) {
  if (place.chart) place.chart.destroy();
  const points = placed(data, across);
  const figureAcross = across < 0 ? { label: "settings, the best first", unit: "place" } : data.figures[across];
  const x = axisOf(points, "x", figureAcross), y = axisOf(points, "y", data.figures[0]);
  const columns = KINDS.map((kind) => points.map((point) => (kind.is(point) ? point.y : null)));
  const series = KINDS.map((kind) => {
    const stroke = colour(kind.key);
    const isJoined = kind.line && across >= 0;
    const dots = { show: true, size: kind.size, width: kind.hollow ? 2.5 : 1, stroke, fill: kind.hollow ? "transparent" : stroke };
    return { label: kind.name, stroke, width: 1.6, spanGaps: true, points: dots, ...(isJoined ? {} : { paths: () => null }) };
  });
  place.points = points;
  place.chart = new uPlot(
    {
      width: place.clientWidth, height: 380, legend: { show: false }, cursor: { points: { show: false }, drag: { x: true, y: true } },
      scales: { x: x.scale, y: y.scale }, axes: [x.axis, { ...y.axis, size: 70 }], series: [{}, ...series],
    },
    [points.map((point) => point.x), ...columns],
    place,
  );
  const over = place.chart.over;
  const nearest = (event) => {
    const away = (point) =>
      Math.hypot(place.chart.valToPos(point.x, "x") - event.offsetX, place.chart.valToPos(point.y, "y") - event.offsetY);
    const found = points.reduce((best, point) => (best && away(best) <= away(point) ? best : point), null);
    return found && away(found) <= NEAR ? found : null;
  };
  over.addEventListener("mousemove", (event) => { const point = nearest(event); if (point) tell(point); });
  over.addEventListener("click", (event) => { const point = nearest(event); if (point) tell(point); });
}
