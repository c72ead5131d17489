// Figures in words, as the tables write them: three digits and a unit.
"use strict";

function threeDigits(value) {
  const size = Math.abs(value);
  return value.toFixed(size === 0 ? 0 : size < 9.995 ? 2 : size < 99.95 ? 1 : 0);
}

function scaled(value, step, units) {
  let unit = 0;
  // Half a unit less, as that would be rounded up to the step.
  while (Math.abs(value) >= step - 0.5 && unit < units.length - 1) {
    value /= step;
    unit += 1;
  }
  return threeDigits(value) + units[unit];
}

const latency = (ns) => scaled(ns, 1000, [" ns", " µs", " ms", " s"]);
const bandwidth = (bytesPerSecond) => scaled(bytesPerSecond, 1024, [" B/s", " KiB/s", " MiB/s", " GiB/s"]);
const rate = (perSecond) => scaled(perSecond, 1000, ["", " k", " M", " G"]);

// Of an axis: as short as it can be, without zeros that say nothing.
const short = (text) => text.replace(/\.0+(?= |$)/, "").replace(/(\.\d*[1-9])0+(?= |$)/, "$1");

// Times of a timeline are axes' times, so that they keep all digits that differ on the screen.
function time(ns, spanNs) {
  const [unit, name] = spanNs > 2e9 ? [1e9, "s"] : spanNs > 2e6 ? [1e6, "ms"] : [1e3, "µs"];
  const decimals = Math.max(0, Math.min(6, Math.ceil(-Math.log10(spanNs / unit)) + 2));
  return `${(ns / unit).toFixed(decimals)} ${name}`;
}
