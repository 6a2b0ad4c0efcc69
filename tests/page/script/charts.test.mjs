import assert from "node:assert/strict";
import { test } from "node:test";

import { ends, stepPath } from "../../../src/eeio/report/page/script/detail.mjs";
import { values } from "../../../src/eeio/report/page/script/dots.mjs";
import { drawable } from "../../../src/eeio/report/page/script/scatter.mjs";

const same = { at: (value) => value };

test("a value holds from the end before it to its own, and a gap is a gap", () => {
  assert.equal(stepPath([[0, 1, 2, 3, 4], [null, 5, 6, null, 7]], same, same), "M0.0 5.0H1.0V6.0H2.0M3.0 7.0H4.0");
});

test("even steps stand as from, step and to", () => {
  assert.deepEqual(ends([{ from: 1, step: 0.5, to: 2.2 }, [null, 1, 2, 3]]), [1, 1.5, 2, 2.2]);
});

test("repetitions: without invalid ones, by the median, estimates in their own order", () => {
  const of = (...all) => all.map((value) => ({ d: [{ jgb: value }] }));
  const runs = [of(9, 9), [...of(1), { bad: ["failed"], d: [{ jgb: 99 }] }], [{ bad: ["failed"] }]];
  assert.deepEqual(values(runs, [0, 1, 2], "jgb", 0, false), [[1, [1]], [0, [9, 9]]]);
  assert.deepEqual(values(runs, [0, 1, 2], "jgb", 0, true), [[0, [9, 9]], [1, [1]]]);
});

test("what may not be ranked stands below, but not where no energy is shown", () => {
  const of = (value) => [{ mbs: value, d: [{ jgb: value }] }];
  const [runs, first] = [[of(1), of(9), of(5)], (place) => place === 0];
  assert.deepEqual(values(runs, [0, 1, 2], "jgb", 0, false, first).map(([place]) => place), [2, 1, 0]);
  assert.deepEqual(values(runs, [0, 1, 2], "mbs", 0, false, first).map(([place]) => place), [0, 2, 1]);
});

test("only lines with bandwidth and power are drawn", () => {
  const lines = [{ mbs: [1, 1, 1], d: [{ w: [2, 2, 2] }] }, { mbs: [1, 1, 1], d: [null] }, { d: [{ w: [2, 2, 2] }] }];
  assert.deepEqual(drawable({ lines }, [0, 1, 2], 0), [0]);
});
