// The page of many bundles: rows sorted within their groups, and filtered.

import { choice, html } from "./element.mjs";
import { figure, sorted } from "./order.mjs";

const LABELS = { drive: "Drive", level: "Level", domain: "Power of", bundle: "Bundle" };

/** Whether a row with these values passes: levels by name, a largest price, a text. */
export function passes(values, text, filter) {
  if (Object.entries(filter.levels).some(([name, level]) => level !== "" && values[name] !== level)) return false;
  if (filter.publishable && values.publishable !== "yes") return false;
  if (filter.price !== null && !(values.price !== "" && Number(values.price) <= filter.price)) return false;
  return filter.words.toLowerCase().split(/\s+/).every((word) => text.toLowerCase().includes(word));
}

export function site() {
  const table = document.getElementById("results");
  const groups = [...table.tBodies].map((body) => ({ body, head: body.rows[0], rows: [...body.rows].slice(1) }));
  filters(table, groups);
  sorting(table, groups);
}

function filters(table, groups) {
  const bar = document.getElementById("filters");
  const every = groups.flatMap((group) => group.rows);
  const filter = { levels: {}, publishable: false, price: null, words: "" };
  const count = html("output", { "aria-live": "polite" });
  const apply = () => {
    let shown = 0;
    for (const { head, rows } of groups) {
      for (const row of rows) row.hidden = !passes(row.dataset, row.textContent, filter);
      const left = rows.filter((row) => !row.hidden).length;
      head.hidden = left === 0;
      shown += left;
    }
    count.textContent = `${shown} of ${every.length} rows`;
  };
  for (const name of table.dataset.filters.split(" ")) {
    const levels = [...new Set(every.map((row) => row.dataset[name]))].sort();
    if (levels.length < 2) continue;
    bar.append(choice(LABELS[name], [["", "all"], ...levels.map((level) => [level, level])], "", (value) => {
      filter.levels[name] = value;
      apply();
    }));
  }
  if (every.some((row) => row.dataset.price !== "")) {
    const most = html("input", { type: "number", min: 0, size: 6 });
    most.addEventListener("input", () => {
      filter.price = most.value === "" ? null : Number(most.value);
      apply();
    });
    bar.append(html("label", {}, "Price at most", most));
  }
  const only = html("input", { type: "checkbox" });
  only.addEventListener("change", () => {
    filter.publishable = only.checked;
    apply();
  });
  const search = html("input", { type: "search", placeholder: "random 4", size: 10 });
  search.addEventListener("input", () => {
    filter.words = search.value.trim();
    apply();
  });
  bar.append(html("label", {}, only, "publishable only"), html("label", {}, "Find", search), count);
  bar.addEventListener("submit", (event) => event.preventDefault());
  apply();
}

function sorting(table, groups) {
  const heads = [...table.tHead.rows[0].cells];
  heads.forEach((head, column) => {
    const button = html("button", { type: "button" }, head.firstChild.textContent);
    button.addEventListener("click", () => {
      const before = head.getAttribute("aria-sort");
      const descending = before === null ? !head.classList.contains("words") : before === "ascending";
      for (const other of heads) other.removeAttribute("aria-sort");
      head.setAttribute("aria-sort", descending ? "descending" : "ascending");
      const text = (row) => row.cells[column].firstChild.textContent;
      const value = head.classList.contains("words") ? text : (row) => figure(text(row));
      arrange(groups, value, descending, "energy" in head.dataset);
    });
    head.firstChild.replaceWith(button);
  });
}

/** Sorts within each group. By energy, groups without ranked rows keep their order. */
function arrange(groups, value, descending, energy) {
  for (const { body, head, rows } of groups) {
    const places = rows.map((_, place) => place);
    const order = sorted(places, (place) => value(rows[place]), descending, energy && "unranked" in body.dataset);
    body.replaceChildren(head, ...order.map((place) => rows[place]));
  }
}
