// The main chart: two views of the lines that the filters leave, redrawn to the window's width.

import { dots, METRICS, values } from "./dots.mjs";
import { choice, html, save, switches } from "./element.mjs";
import { walkable } from "./marks.mjs";
import { NONE, number } from "./number.mjs";
import { drawable, scatter } from "./scatter.mjs";
import { placed } from "./tip.mjs";

const EMPTY = "No experiment that is shown has both bandwidth and power in this domain.";

/** `state` has places and domain; `runs()` gives the repetitions; `open(place)` opens a row. */
export class Chart {
  constructor(model, state, runs, open) {
    Object.assign(this, { model, state, runs, open, view: "scatter", metric: "jgb" });
    this.figure = document.getElementById("chart");
    this.tip = new Tip(model, state, this.figure);
    const views = [["scatter", "Bandwidth × power"], ["dots", "Repetitions"]];
    const metrics = Object.entries(METRICS).map(([key, metric]) => [key, metric.name]);
    this.metrics = choice("of", metrics, this.metric, (key) => this.set({ metric: key }));
    this.metrics.hidden = true;
    document.getElementById("chart-tools").append(
      switches("View", views, this.view, (view) => this.set({ view })),
      this.metrics,
      html("button", { type: "button", on: { click: () => this.save() } }, "Save as SVG"),
    );
    addEventListener("beforeprint", () => this.draw(1040));
    addEventListener("afterprint", () => this.draw());
    new ResizeObserver(([entry]) => {
      const width = Math.round(entry.contentRect.width);
      if (width === this.width || matchMedia("print").matches) return;
      this.draw();
    }).observe(this.figure);
  }

  set(change) {
    Object.assign(this, change);
    this.metrics.hidden = this.view !== "dots";
    return this.draw();
  }

  /** Draws the current state. The latest call wins, as data may have to be unpacked first. */
  async draw(width = Math.max(280, Math.round(this.figure.clientWidth - 14))) {
    this.width = Math.round(this.figure.clientWidth - 14);
    const turn = (this.turn = (this.turn ?? 0) + 1);
    const { model, state } = this;
    let [chart, marks, note] = [null, [], EMPTY];
    if (this.view === "scatter") {
      const places = drawable(model, state.places, state.domain);
      if (places.length) [chart, marks] = scatter(model, places, state.domain, width, width < 500 ? 380 : 480);
    } else {
      try {
        const estimate = model.domains[state.domain]?.estimate;
        const unranked = (place) => model.lines[place].d[state.domain]?.unranked;
        const found = values(await this.runs(), state.places, this.metric, state.domain, estimate, unranked);
        if (found.length) {
          const [made, of, left] = dots(model, found, this.metric, state.domain, width);
          [chart, marks] = [made, of];
          note = left ? `${left} more experiments are in the table: filter to draw them.` : "";
        } else note = `No valid repetition has ${METRICS[this.metric].name}.`;
      } catch (error) {
        note = error.message;
      }
    }
    if (turn !== this.turn) return;
    this.tip.hide();
    if (chart) {
      const words = `Chart of ${marks.length} experiments: arrow keys walk, Enter opens a row`;
      for (const [name, value] of [["tabindex", 0], ["role", "application"], ["aria-roledescription", "chart"], ["aria-label", words]]) {
        chart.setAttribute(name, value);
      }
      walkable(chart, marks, (place) => this.tip.words(place), this.tip, this.open);
    }
    const below = !chart || (this.view === "dots" && note) ? [html("p", { class: "note" }, note)] : [];
    this.figure.replaceChildren(...(chart ? [chart] : []), ...below, this.tip.element);
  }

  /** The chart as a separate file, with its colours on screen. */
  save() {
    const chart = this.figure.querySelector("svg");
    if (!chart) return;
    const copy = chart.cloneNode(true);
    const named = ["fill", "stroke", "stroke-width", "stroke-dasharray", "font", "text-anchor", "opacity", "letter-spacing"];
    const originals = chart.querySelectorAll("*");
    copy.querySelectorAll("*").forEach((element, place) => {
      const style = getComputedStyle(originals[place]);
      element.setAttribute("style", named.map((name) => `${name}:${style.getPropertyValue(name)}`).join(";"));
      element.removeAttribute("class");
    });
    copy.setAttribute("xmlns", "http://www.w3.org/2000/svg");
    copy.setAttribute("style", `background:${getComputedStyle(document.body).backgroundColor}`);
    save("eeio.svg", "image/svg+xml", new XMLSerializer().serializeToString(copy));
  }
}

/** The description of a mark, next to it. */
class Tip {
  constructor(model, state, figure) {
    Object.assign(this, { model, state, figure });
    this.element = html("div", { class: "tip", hidden: true });
  }

  figures(place) {
    const line = this.model.lines[place];
    const figures = line.d[this.state.domain];
    const spread = (values, unit) =>
      values ? `${number(values[0])} [${number(values[1])} – ${number(values[2])}] ${unit}` : NONE;
    return [
      ["Bandwidth", spread(line.mbs, "MB/s")],
      ["Power", spread(figures?.w, "W")],
      ["Cost", spread(figures?.jgb, "J/GB")],
      ["Efficiency", spread(figures?.mbj, "MB/J")],
      ["Limit of error", figures?.limit === undefined ? "not stated" : `±${number(figures.limit)} %`],
      ["Valid runs", `${line.n}${line.invalid ? `, ${line.invalid} invalid` : ""}`],
    ];
  }

  title(place) {
    const line = this.model.lines[place];
    const campaign = this.model.campaigns.length > 1 ? ` (${this.model.campaigns[line.c]})` : "";
    return `${line.name}${line.more ? `, ${line.more}` : ""}${campaign}`;
  }

  words(place) {
    return [this.title(place), ...this.figures(place).map(([name, text]) => `${name} ${text}`)].join("; ");
  }

  show(place, mark) {
    const list = html("dl");
    for (const [name, text] of this.figures(place)) list.append(html("dt", {}, name), html("dd", {}, text));
    const unranked = this.model.lines[place].d[this.state.domain]?.unranked;
    this.element.replaceChildren(
      html("b", {}, this.title(place)),
      list,
      html("p", {}, this.model.domains[this.state.domain]?.label ?? "no power"),
      unranked ? html("p", { class: "why" }, `not ranked: ${unranked}`) : "",
    );
    placed(this.element, this.figure, mark);
  }

  hide() {
    this.element.hidden = true;
  }
}
