/*
 * Axes: round numbers below and above, linear or logarithmic, and how numbers
 * are written.
 */

const STEPS = [1, 2, 2.5, 5, 10];

function niceStep(rough, whole) {
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = power * STEPS.find((s) => s * power >= rough * 0.999);

  return whole ? Math.max(1, Math.ceil(step)) : step;
}

/* from 0 to at least max: { top, ticks, at(value) as a part of 1 } */
export function linear(max, { least = 4, whole = true } = {}) {
  const step = niceStep(Math.max(max, least) / 4, whole);
  const top = step * Math.ceil(Math.max(max, least) / step);
  const ticks = [];

  for (let tick = 0; tick <= top + step / 2; tick += step) {
    ticks.push(tick);
  }
  return { ticks, at: (value) => value / top };
}

/* decades from low to at least max */
export function logarithmic(max, low) {
  const first = Math.log10(low);
  const last = Math.max(first + 1, Math.ceil(Math.log10(Math.max(max, low * 10)) - 1e-9));
  const ticks = [];

  for (let power = first; power <= last; power += 1) {
    ticks.push(10 ** power);
  }
  return { ticks, at: (value) => (Math.log10(Math.max(value, low)) - first) / (last - first) };
}

export function formatCount(value) {
  if (value >= 1e6) {
    return `${+(value / 1e6).toFixed(1)}M`;
  }
  if (value >= 1e4) {
    return `${+(value / 1e3).toFixed(1)}k`;
  }
  return String(+value.toFixed(value < 10 ? 1 : 0));
}

/* the lowest bound of the histograms stands for all below it */
export const formatLatency = (value) => (value <= 1 ? '≤1 ms' : formatMs(value));

export function formatMs(value) {
  if (value >= 1000) {
    return `${+(value / 1000).toFixed(1)} s`;
  }
  return `${+value.toFixed(value < 10 ? 1 : 0)} ms`;
}
