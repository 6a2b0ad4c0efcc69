// Numbers as the page shows them: the twin of eeio/units/number_text.py, `page_number`.

export const NONE = "–";

/** Three significant digits, more before the point, no exponent: 0.0123, 1.20, 12300. */
export function number(value) {
  if (value === null || value === undefined) return NONE;
  if (value === 0) return "0";
  const rounded = threeDigits(value);
  let size = Math.abs(rounded);
  if (size >= 100) return evenly(value).toFixed(0);
  let places = 2;
  while (size < 1 && places < 15) {
    size *= 10;
    places += 1;
  }
  if (size >= 10) places -= 1;
  return rounded.toFixed(places);
}

// JavaScript takes the half away from zero, Python to the even neighbour.
function threeDigits(value) {
  const [digits, exponent] = Math.abs(value).toExponential(20).replace(".", "").split("e");
  const half = /^..[02468]50*$/.test(digits);
  const size = half
    ? Number(`${digits[0]}.${digits.slice(1, 3)}e${exponent}`)
    : Number(Math.abs(value).toPrecision(3));
  return Math.sign(value) * size;
}

// Halves go to the even neighbour, as in Python.
function evenly(value) {
  const below = Math.floor(value);
  if (value - below !== 0.5) return value;
  return below % 2 === 0 ? below : below + 1;
}

/** A tick's label: no more digits than it needs. */
export function plain(value) {
  return String(Number(value.toPrecision(6)));
}

/** Median of numbers, null without any. */
export function median(values) {
  return quartiles(values)?.[0] ?? null;
}

/** [median, q1, q3], linear between order statistics (R's type 7); null without values. */
export function quartiles(values) {
  if (!values.length) return null;
  const ordered = [...values].sort((a, b) => a - b);
  const at = (share) => {
    const place = share * (ordered.length - 1);
    const below = Math.floor(place);
    const above = Math.min(below + 1, ordered.length - 1);
    return ordered[below] + (place - below) * (ordered[above] - ordered[below]);
  };
  return [at(0.5), at(0.25), at(0.75)];
}
