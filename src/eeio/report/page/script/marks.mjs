// Common parts of charts: shapes, the stamp, and marks that can be pointed at, walked and opened.

import { svg } from "./element.mjs";

const SHAPES = {
  read: "M-5 0a5 5 0 1 0 10 0a5 5 0 1 0 -10 0z",
  write: "M0 -6L5.5 4.5L-5.5 4.5z",
};
const OTHER = "M0 -6L6 0L0 6L-6 0z";

export function shape(operation) {
  return SHAPES[operation] ?? OTHER;
}

/** The level of a line in a factor, as text. */
export function level(model, line, factor) {
  const place = model.factors.findIndex((one) => one.name === factor);
  return model.factors[place].levels[line.levels[place]];
}

export function kinds(model, line, estimate) {
  return [
    "mark",
    level(model, line, "Buffer cache") === "on" ? "buffered" : "direct",
    estimate && "estimate",
    line.c % 2 && "other",
  ].filter(Boolean).join(" ");
}

/** QUICK or ESTIMATE across the chart, so that a cropped picture still carries it. */
export function stamp(model, domain, width, height) {
  const word = [
    model.stamp.includes("QUICK") && "QUICK",
    model.domains[domain]?.estimate && "ESTIMATE",
  ].filter(Boolean).join(" ");
  return word ? [svg("text", { class: "stamp", x: width / 2, y: height / 2 + 20 }, word)] : [];
}

/**
 * Marks become one stop of the keyboard: arrows, Home and End walk, Enter opens, Escape closes the
 * tip. `items` are [element, line place]; `told(place)` names a mark; `tip` shows and hides.
 */
export function walkable(chart, items, told, tip, open) {
  let current = 0;
  const show = (index) => {
    items[current]?.[0].classList.remove("current");
    current = Math.max(0, Math.min(items.length - 1, index));
    const [element, place] = items[current];
    element.classList.add("current");
    chart.setAttribute("aria-label", told(place));
    tip.show(place, element);
  };
  const walk = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1, PageDown: 10, PageUp: -10 };
  chart.addEventListener("keydown", (event) => {
    if (!items.length) return;
    if (event.key in walk) show(current + walk[event.key]);
    else if (event.key === "Home") show(0);
    else if (event.key === "End") show(items.length - 1);
    else if (event.key === "Enter" || event.key === " ") open(items[current][1]);
    else if (event.key === "Escape") tip.hide();
    else return;
    event.preventDefault();
  });
  chart.addEventListener("focus", () => items.length && chart.matches(":focus-visible") && show(current));
  chart.addEventListener("blur", () => {
    items[current]?.[0].classList.remove("current");
    tip.hide();
  });
  items.forEach(([element, place]) => {
    element.addEventListener("mouseenter", () => tip.show(place, element));
    element.addEventListener("mouseleave", () => tip.hide());
    element.addEventListener("click", () => open(place));
  });
}
