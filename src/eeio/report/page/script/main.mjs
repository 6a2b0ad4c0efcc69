// Adds interaction to the page, which already contains tables and a still chart.

import { Chart } from "./chart.mjs";
import { data } from "./data.mjs";
import { filters } from "./filters.mjs";
import { map } from "./map.mjs";
import { site } from "./site.mjs";
import { Table } from "./table.mjs";

async function main() {
  const guideline = document.getElementById("map");
  if (guideline) map(guideline);
  else if (document.getElementById("site")) site();
  else if (document.getElementById("model")) await report();
  // For programs that check the page: everything is drawn.
  document.documentElement.dataset.ready = "all";
  performance.mark("drawn");
}

async function report() {
  const model = await data("model");
  const state = { places: model.lines.map((_, place) => place), domain: 0 };
  let unpacked;
  const runs = () => (unpacked ??= data("runs"));
  const table = new Table(model, state, runs);
  const chart = new Chart(model, state, runs, (place) => table.toggle(place, true));
  filters(model, state, (domain) => {
    if (domain) table.fill();
    else table.arrange();
    chart.draw();
  });
  document.documentElement.dataset.ready = "";
  await chart.draw();
}

main().catch((error) => {
  // The page remains usable without the script.
  document.documentElement.dataset.failed = String(error);
  throw error;
});
