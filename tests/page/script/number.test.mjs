import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

import { median, number, plain, quartiles } from "../../../src/eeio/report/page/script/number.mjs";

test("a thousand numbers are as Python writes them", () => {
  const rows = JSON.parse(readFileSync(new URL("../../data/number_texts.json", import.meta.url)));
  assert.equal(rows.length, 1000);
  for (const { value, page } of rows) assert.equal(number(Number(value.toPrecision(5))), page);
});

test("three digits, no exponent, a dash for what is missing", () => {
  const cases = [
    [0, "0"], [0.000123, "0.000123"], [0.0123, "0.0123"], [0.5, "0.500"], [1.2, "1.20"],
    [12.34, "12.3"], [99.96, "100"], [123.4, "123"], [12345, "12345"], [null, "–"], [undefined, "–"],
  ];
  for (const [value, text] of cases) assert.equal(number(value), text);
});

test("halves go to the even neighbour, as in Python", () => {
  for (const [value, text] of [[1.125, "1.12"], [1.375, "1.38"], [112.5, "112"], [113.5, "114"], [2.5e-3, "0.00250"]]) {
    assert.equal(number(value), text);
  }
});

test("a tick has no more digits than it needs", () => {
  for (const [value, text] of [[0.1, "0.1"], [0.30000000000000004, "0.3"], [2000, "2000"]]) {
    assert.equal(plain(value), text);
  }
});

test("quartiles are linear between order statistics", () => {
  assert.deepEqual(quartiles([4, 1, 3, 2]), [2.5, 1.75, 3.25]);
  assert.deepEqual(quartiles([7]), [7, 7, 7]);
  assert.equal(quartiles([]), null);
  assert.equal(median([3, 1, 2]), 2);
});
