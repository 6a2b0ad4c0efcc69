import assert from "node:assert/strict";
import { test } from "node:test";

import { passes } from "../../../src/eeio/report/page/script/site.mjs";

const every = { levels: {}, publishable: false, price: null, words: "" };
const values = { drive: "SSD", level: "device", publishable: "no", price: "90" };

test("without filters every row passes", () => {
  assert.ok(passes(values, "fio read", every));
  assert.ok(passes({ ...values, price: "" }, "", { ...every, levels: { drive: "" } }));
});

test("levels, publishable and words", () => {
  assert.ok(passes(values, "", { ...every, levels: { drive: "SSD", level: "device" } }));
  assert.ok(!passes(values, "", { ...every, levels: { drive: "SSD", level: "library" } }));
  assert.ok(!passes(values, "", { ...every, publishable: true }));
  assert.ok(passes(values, "fio Random read 4 KiB", { ...every, words: "READ 4" }));
  assert.ok(!passes(values, "fio Random read 4 KiB", { ...every, words: "read 8" }));
});

test("a row without a price is above every price", () => {
  assert.ok(passes(values, "", { ...every, price: 90 }));
  assert.ok(!passes(values, "", { ...every, price: 89.5 }));
  assert.ok(!passes({ ...values, price: "" }, "", { ...every, price: 1e9 }));
});
