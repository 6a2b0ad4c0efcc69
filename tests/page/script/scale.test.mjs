import assert from "node:assert/strict";
import { test } from "node:test";

import { linear, logarithmic, steps } from "../../../src/eeio/report/page/script/scale.mjs";

test("steps of 1, 2 and 5, or whole decades", () => {
  assert.deepEqual(steps(0.9, 25), [1, 2, 5, 10, 20]);
  assert.deepEqual(steps(1, 1000, false), [1, 10, 100, 1000]);
});

test("a logarithmic axis holds its values and rises", () => {
  const axis = logarithmic([10, 100, 1000], 50, 450);
  assert.ok(axis.at(10) > 50 && axis.at(1000) < 450);
  assert.ok(Math.abs(axis.at(100) - (axis.at(10) + axis.at(1000)) / 2) < 1e-9);
  assert.ok(axis.ticks().length >= 4);
});

test("a narrow axis has ticks, too", () => {
  assert.ok(logarithmic([23, 26], 400, 0).ticks().length >= 2);
  assert.ok(logarithmic([5], 400, 0).ticks().length >= 2);
});

test("a hundred thousand values are no problem", () => {
  const axis = logarithmic(Array.from({ length: 200000 }, (_, n) => n + 1), 0, 100);
  assert.ok(axis.low < 1 && axis.high > 200000);
});

test("a linear axis begins at 0 and survives nothing but zeros", () => {
  assert.deepEqual(linear(0, 40, 0, 100).ticks(), [0, 10, 20, 30, 40]);
  assert.ok(linear(0, 0, 0, 100).ticks().length > 1);
});
