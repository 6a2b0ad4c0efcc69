import assert from "node:assert/strict";
import { test } from "node:test";

import { csvCell, figure, sorted, wanted } from "../../../src/eeio/report/page/script/order.mjs";

const line = (name, value, c = 0, levels = [0]) => ({ name, more: "buffer cache off", c, levels, value });
const of = (values) => (place) => values[place];
const places = [0, 1, 2, 3];

test("sorted up and down, what has no value last, equal ones in their order", () => {
  const value = of([2, null, 1, 2]);
  assert.deepEqual(sorted(places, value, false), [2, 0, 3, 1]);
  assert.deepEqual(sorted(places, value, true), [0, 3, 2, 1]);
});

test("estimates stay in their order", () => {
  assert.deepEqual(sorted([0, 1], of([1, 9]), true, true), [0, 1]);
});

test("words are sorted as words", () => {
  assert.deepEqual(sorted([0, 1], of(["b", "a"]), false), [1, 0]);
});

test("a cell's text is sorted by its number", () => {
  const texts = ["12300", "0.0123", "-5.2", "±1.20 %", "–", "sequential"];
  assert.deepEqual(texts.map(figure), [12300, 0.0123, -5.2, 1.2, null, "sequential"]);
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
