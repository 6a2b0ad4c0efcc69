import assert from "node:assert/strict";
import { test } from "node:test";

import { COLUMNS, DEFAULT, SETS } from "../../../result-parsers/eeio_results/report/page/script/cells.mjs";

const FIGURES = { n: 3, w: [40, 39, 41], j: 400, jgb: [20, 19, 21], mbj: [50, 48, 52], limit: 2, above: [5, null, null] };
const LINE = { n: 3, mbs: [2000, 1900, 2100], ms: [1, 2, 3, 4, 5], d: [FIGURES, null] };

test("every set names columns that there are", () => {
  for (const keys of Object.values(SETS)) for (const key of keys) assert.ok(COLUMNS[key], key);
  assert.equal(SETS.essential, DEFAULT);
});

test("a figure with its quartiles and its limit of error", () => {
  assert.deepEqual(COLUMNS.mbs.cell(LINE), { text: "2000", small: "1900–2100", kind: "" });
  assert.deepEqual(COLUMNS.jgb.cell(LINE, 0, ""), { text: "20.0", small: "±2.00 %", kind: "" });
});

test("one repetition has no range", () => {
  const line = { ...LINE, mbs: [2000, 2000, 2000], d: [{ ...FIGURES, w: [40, 40, 40], doubts: true }] };
  assert.deepEqual(COLUMNS.mbs.cell(line), { text: "2000", small: "", kind: "" });
  assert.deepEqual(COLUMNS.w.cell(line, 0, "DEMO"), { text: "40.0", small: "DEMO, doubtful", kind: "estimate" });
});

test("an estimate says so in each of its cells", () => {
  const cells = DEFAULT.filter((key) => COLUMNS[key].energy).map((key) => COLUMNS[key].cell(LINE, 0, "ESTIMATE"));
  assert.ok(cells.every((cell) => cell.kind === "estimate"));
  assert.ok(cells.filter((cell) => cell.text !== "–").every((cell) => cell.small.includes("ESTIMATE")));
});

test("what is missing is a dash in every column", () => {
  const bare = { n: 0, d: [null] };
  for (const [key, column] of Object.entries(COLUMNS)) {
    assert.equal(column.cell(bare, 0, "").text, key === "n" ? "0" : "–", key);
  }
});

test("why a figure is not among the ranked", () => {
  const line = { ...LINE, d: [{ ...FIGURES, unranked: "too short", part: true }] };
  assert.equal(COLUMNS.mbj.cell(line, 0, "").small, "48.0–52.0 without drives, not ranked");
  assert.equal(COLUMNS.unranked.cell(line, 0, "").text, "too short");
});
