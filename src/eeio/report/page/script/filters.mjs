// The bar of filters: campaign, every factor with two or more levels, power domain, text.

import { choice, html } from "./element.mjs";
import { wanted } from "./order.mjs";

/** Fills the bar; `changed(domain)` is called after each change, with whether the domain is another. */
export function filters(model, state, changed) {
  const bar = document.getElementById("filters");
  const box = document.getElementById("filter-box");
  // On a phone they would push the chart off the screen.
  box.open = matchMedia("(min-width: 601px)").matches;
  const filter = { campaign: null, levels: model.factors.map(() => null), words: "" };
  const count = html("output", { "aria-live": "polite" });
  const apply = (domain = false) => {
    state.places = model.lines.map((_, place) => place).filter((place) => wanted(model.lines[place], filter));
    count.textContent = `${state.places.length} of ${model.lines.length} experiments`;
    changed(domain);
  };
  const chosen = (value) => (value === "" ? null : Number(value));
  const all = (levels) => [["", "all"], ...levels.map((level, place) => [String(place), level])];
  if (model.campaigns.length > 1) {
    bar.append(choice("Campaign", all(model.campaigns), "", (value) => {
      filter.campaign = chosen(value);
      apply();
    }));
  }
  model.factors.forEach(({ name, levels }, factor) => {
    if (levels.length < 2) return;
    bar.append(choice(name, all(levels), "", (value) => {
      filter.levels[factor] = chosen(value);
      apply();
    }));
  });
  if (model.domains.length > 1) {
    const domains = model.domains.map((domain, place) => [String(place), domain.label]);
    bar.append(choice("Power of", domains, "0", (value) => {
      state.domain = Number(value);
      apply(true);
    }));
  }
  const search = html("input", { type: "search", placeholder: "random 4", size: 10 });
  search.addEventListener("input", () => {
    filter.words = search.value.trim();
    apply();
  });
  bar.append(html("label", {}, "Find", search), count);
  bar.addEventListener("submit", (event) => event.preventDefault());
  addEventListener("keydown", (event) => {
    if (event.key !== "/" || /^(INPUT|SELECT|TEXTAREA)$/.test(document.activeElement.tagName)) return;
    event.preventDefault();
    box.open = true;
    search.focus();
  });
  count.textContent = `${model.lines.length} of ${model.lines.length} experiments`;
}
