import assert from "node:assert/strict";
import { test } from "node:test";

import { csvCell, sorted, wanted } from "../../../result-parsers/eeio_results/report/page/script/order.mjs";

const line = (name, value, c = 0, levels = [0]) => ({ name, more: "buffer cache off", c, levels, value });
const value = (one) => one.value;

test("sorted up and down, what has no value last, equal ones in their order", () => {
  const lines = [line("a", 2), line("b", null), line("c", 1), line("d", 2)];
  assert.deepEqual(sorted(lines, value, false), [2, 0, 3, 1]);
  assert.deepEqual(sorted(lines, value, true), [0, 3, 2, 1]);
});

test("estimates stay in their order", () => {
  assert.deepEqual(sorted([line("a", 1), line("b", 9)], value, true, true), [0, 1]);
});

test("words are sorted as words", () => {
  assert.deepEqual(sorted([line("b", "b"), line("a", "a")], value, false), [1, 0]);
});

test("filters by campaign, level and words", () => {
  const all = { campaign: null, levels: [null], words: "" };
  const one = line("random read · 4 KiB", 1, 1, [2]);
  assert.ok(wanted(one, all));
  assert.ok(!wanted(one, { ...all, campaign: 0 }));
  assert.ok(wanted(one, { ...all, levels: [2] }) && !wanted(one, { ...all, levels: [0] }));
  assert.ok(wanted(one, { ...all, words: "READ  off" }) && !wanted(one, { ...all, words: "write" }));
});

test("no cell of a spreadsheet is a formula", () => {
  assert.equal(csvCell("=1+1"), "'=1+1");
  assert.equal(csvCell("-5.2"), "-5.2");
  assert.equal(csvCell('a,"b"'), '"a,""b"""');
});
