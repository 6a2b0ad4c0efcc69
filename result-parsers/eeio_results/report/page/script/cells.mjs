// The columns of the table: head, small print, and the cell of a line in a power domain.
// Those of DEFAULT are what table.py writes into the page, cell by cell: a test holds both together.

import { NONE, number } from "./number.mjs";

const EMPTY = { text: NONE, small: "", kind: "" };

function cell(text, small = "", kind = "") {
  return { text, small, kind };
}

function spread(values, small = "", kind = "") {
  if (!values) return EMPTY;
  const [middle, low, high] = values.map(number);
  // One repetition has no range.
  return cell(middle, `${low === high ? "" : `${low}–${high}`} ${small}`.trim(), kind);
}

// Cells of power that was not measured are tinted and have its mark, ESTIMATE or DEMO.
function energy(make) {
  return (line, domain, mark) => {
    const figures = line.d[domain];
    if (!figures) return EMPTY;
    return { ...make(figures, mark, line), kind: mark ? "estimate" : "" };
  };
}

function powerMarks(figures, word, line) {
  const some = figures.n === line.n || !line.n ? "" : `n ${figures.n}`;
  return [word || some, figures.doubts && "doubtful"].filter(Boolean).join(", ");
}

function one(value, small = "") {
  return value === undefined || value === null ? cell(NONE) : cell(number(value), small);
}

function limit(figures) {
  return figures.limit === undefined ? "" : `±${number(figures.limit)} %`;
}

function efficiencyMarks(figures, word) {
  return [
    word,
    figures.doubts && "doubtful",
    figures.part && "without drives",
    figures.unranked && !word && "not ranked",
  ].filter(Boolean).join(", ");
}

const ms = (place) => (line) => one(line.ms?.[place]);
const words = (value) => cell(value ?? NONE, "", "words");

/** key -> {head, small, value, cell}; `value` is what is sorted by, null without one. */
export const COLUMNS = {
  n: {
    head: "n", small: "valid runs",
    value: (line) => line.n,
    cell: (line) => cell(String(line.n), line.invalid ? `${line.invalid} invalid` : ""),
  },
  mbs: {
    head: "MB/s", small: "median, quartiles",
    value: (line) => line.mbs?.[0],
    cell: (line) => spread(line.mbs),
  },
  w: {
    head: "W", small: "power", energy: true,
    value: (line, domain) => line.d[domain]?.w?.[0],
    cell: energy((d, word, line) => spread(d.w, powerMarks(d, word, line))),
  },
  jgb: {
    head: "J/GB", small: "less is cheaper", energy: true,
    value: (line, domain) => line.d[domain]?.jgb?.[0],
    cell: energy((d, word) => one(d.jgb?.[0], [limit(d), word].filter(Boolean).join(" "))),
  },
  mbj: {
    head: "MB/J", small: "more is better", energy: true,
    value: (line, domain) => line.d[domain]?.mbj?.[0],
    cell: energy((d, word) => spread(d.mbj, efficiencyMarks(d, word))),
  },
  iopsw: {
    head: "IOPS/W", small: "median", energy: true,
    value: (line, domain) => line.d[domain]?.iopsw,
    cell: energy((d, word) => one(d.iopsw, word)),
  },
  p99: { head: "p99", small: "latency, ms", value: (line) => line.ms?.[2], cell: ms(2) },
  j: {
    head: "J", small: "energy", energy: true,
    value: (line, domain) => line.d[domain]?.j,
    cell: energy((d, word) => one(d.j, [limit(d), word].filter(Boolean).join(" "))),
  },
  wabove: {
    head: "W above idle", small: "", energy: true,
    value: (line, domain) => line.d[domain]?.above[0],
    cell: energy((d, word) => one(d.above[0], word)),
  },
  jgbabove: {
    head: "J/GB above idle", small: "", energy: true,
    value: (line, domain) => line.d[domain]?.above[1],
    cell: energy((d, word) => one(d.above[1], word)),
  },
  mbjabove: {
    head: "MB/J above idle", small: "", energy: true,
    value: (line, domain) => line.d[domain]?.above[2],
    cell: energy((d, word) => one(d.above[2], word)),
  },
  unranked: {
    head: "Why not ranked", small: "", energy: true,
    value: (line, domain) => line.d[domain]?.unranked ?? null,
    cell: (line, domain) => words(line.d[domain]?.unranked),
  },
  iops: { head: "IOPS", small: "median", value: (line) => line.iops, cell: (line) => one(line.iops) },
  p50: { head: "p50", small: "latency, ms", value: (line) => line.ms?.[0], cell: ms(0) },
  p95: { head: "p95", small: "latency, ms", value: (line) => line.ms?.[1], cell: ms(1) },
  p999: { head: "p99.9", small: "latency, ms", value: (line) => line.ms?.[3], cell: ms(3) },
  max: { head: "max", small: "latency, ms", value: (line) => line.ms?.[4], cell: ms(4) },
  s: { head: "Time", small: "s", value: (line) => line.s, cell: (line) => one(line.s) },
  mb: { head: "MB", small: "moved", value: (line) => line.mb, cell: (line) => one(line.mb) },
  cached: {
    head: "MB/s", small: "into the page cache",
    value: (line) => line.cached, cell: (line) => one(line.cached),
  },
  seen: { head: "Order seen", small: "", value: (line) => line.seen, cell: (line) => words(line.seen) },
  drive: { head: "Drive", small: "", value: (line) => line.drive, cell: (line) => words(line.drive) },
};

export const DEFAULT = ["n", "mbs", "w", "jgb", "mbj", "iopsw", "p99"];

export const SETS = {
  essential: DEFAULT,
  energy: ["n", "w", "j", "jgb", "mbj", "wabove", "jgbabove", "mbjabove", "unranked"],
  latency: ["n", "mbs", "iops", "p50", "p95", "p99", "p999", "max"],
  all: Object.keys(COLUMNS),
};

/** Why a line has no power in a domain, where not all have the same reason. */
export function why(line, domain) {
  return line.why?.[domain] ?? "";
}
