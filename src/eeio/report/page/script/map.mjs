// A guideline's map: its points can be pointed at, walked, and lead to their rows.

import { html } from "./element.mjs";
import { walkable } from "./marks.mjs";
import { placed } from "./tip.mjs";

export function map(figure) {
  const chart = figure.querySelector("svg");
  if (!chart) return;
  const items = [...chart.querySelectorAll("g.mark")].map((mark) => [mark, Number(mark.dataset.place)]);
  const said = items.map(([mark]) => {
    const title = mark.querySelector("title");
    const words = title.textContent;
    // The browser would show it a second time.
    title.remove();
    return words;
  });
  const element = html("div", { class: "tip", hidden: true });
  figure.append(element);
  const tip = {
    show(place, mark) {
      const [name, ...figures] = said[place].split("; ");
      element.replaceChildren(html("b", {}, name), ...figures.map((words) => html("p", {}, words)));
      placed(element, figure, mark);
    },
    hide() {
      element.hidden = true;
    },
  };
  const words = `${chart.getAttribute("aria-label")} Arrow keys walk, Enter goes to the row.`;
  for (const [name, value] of [["tabindex", 0], ["role", "application"], ["aria-roledescription", "chart"], ["aria-label", words]]) {
    chart.setAttribute(name, value);
  }
  walkable(chart, items, (place) => said[place], tip, (place) => {
    const row = document.getElementById(`p${place}`);
    row.scrollIntoView({ block: "center" });
    row.focus();
  });
}
