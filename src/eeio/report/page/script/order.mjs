// Which lines are shown, and in which order.

import { NONE } from "./number.mjs";

/** Whether a line passes the filters: {campaign, levels: [place|null, ...], words}. */
export function wanted(line, filter) {
  if (filter.campaign !== null && line.c !== filter.campaign) return false;
  if (filter.levels.some((level, factor) => level !== null && line.levels[factor] !== level)) return false;
  if (!filter.words) return true;
  const text = `${line.name} ${line.more}`.toLowerCase();
  return filter.words.toLowerCase().split(/\s+/).every((word) => text.includes(word));
}

/** The number of a cell's text (`±1.2 %`: 1.2); other text as it is, null for none. */
export function figure(text) {
  const found = /^±?(-?[\d.]+)(?: %)?$/.exec(text);
  return found ? Number(found[1]) : text === NONE ? null : text;
}

/**
 * Places of lines sorted by a column; lines without a value are last, in their order. `fixed` keeps
 * all in place: estimates are never ranked.
 */
export function sorted(places, value, descending, fixed = false) {
  if (fixed) return places;
  const key = (place) => value(place) ?? null;
  return [...places].sort((a, b) => {
    const [x, y] = [key(a), key(b)];
    if (x === null || y === null) return (x === null) - (y === null) || a - b;
    const order = typeof x === "string" ? x.localeCompare(y) : x - y;
    return (descending ? -order : order) || a - b;
  });
}

/** A cell of a CSV file; text that a spreadsheet would run begins with an apostrophe. */
export function csvCell(text) {
  const number = /^[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?$/.test(text);
  const harmless = /^[=+\-@\t\r]/.test(text) && !number ? `'${text}` : text;
  return /[",\n]/.test(harmless) ? `"${harmless.replaceAll('"', '""')}"` : harmless;
}
