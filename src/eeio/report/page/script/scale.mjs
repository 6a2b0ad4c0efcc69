// Axes: from values to pixels, and the positions of ticks.

/** 1-2-5 steps between two positive values; full decades if they are far apart. */
export function steps(low, high, all = true) {
  const found = [];
  for (let decade = Math.floor(Math.log10(low)); decade <= Math.ceil(Math.log10(high)); decade += 1) {
    for (const step of all ? [1, 2, 5] : [1]) {
      const value = Number(`${step}e${decade}`);
      if (value >= low && value <= high) found.push(value);
    }
  }
  return found;
}

/** A logarithmic axis that contains all of some positive values, with a margin. */
export function logarithmic(values, begin, end) {
  let low = Math.min(...bounds(values)) / 1.15;
  let high = Math.max(...bounds(values)) * 1.15;
  if (high / low < 1.5) {
    low /= 1.2;
    high *= 1.2;
  }
  const at = (value) => begin + (Math.log(value / low) / Math.log(high / low)) * (end - begin);
  return { at, low, high, ticks: () => thinned(spaced(low, high), at) };
}

// A narrow axis has no decade to step through.
function spaced(low, high) {
  return high / low < 6 ? even(low, high) : steps(low, high, high / low < 300);
}

/** A linear axis from 0 (or another least value) to above the greatest. */
export function linear(least, greatest, begin, end) {
  const high = greatest > least ? greatest : least + 1;
  const at = (value) => begin + ((value - least) / (high - least)) * (end - begin);
  return { at, low: least, high, ticks: () => even(least, high) };
}

// Spreading a long list into Math.min would overflow the stack.
function bounds(values) {
  let low = Infinity;
  let high = -Infinity;
  for (const value of values) {
    if (value < low) low = value;
    if (value > high) high = value;
  }
  return [low, high];
}

/** Three to six even steps. */
function even(low, high) {
  const raw = (high - low) / 4;
  const decade = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map((n) => n * decade).find((n) => n >= raw);
  const found = [];
  for (let n = Math.ceil(low / step); n * step <= high + step * 1e-9; n += 1) {
    found.push(Number((n * step).toPrecision(12)));
  }
  return found;
}

const LEAST_PIXELS = 26;

function thinned(values, at) {
  let last = null;
  return values.filter((value) => {
    const place = at(value);
    if (last !== null && Math.abs(place - last) < LEAST_PIXELS) return false;
    last = place;
    return true;
  });
}
