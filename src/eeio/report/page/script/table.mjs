// The table of all experiments: sorted, filtered, its columns chosen, its rows opened.

import { detail } from "./detail.mjs";
import { html, save, switches } from "./element.mjs";
import { NONE } from "./number.mjs";
import { csvCell, figure, sorted } from "./order.mjs";

const SETS = ["essential", "energy", "latency", "all"];

/** The columns of a set, as the page's data has them. */
function ofSet(model, name) {
  return model.columns.filter((column) => name === "all" || column.sets.includes(name));
}

export class Table {
  constructor(model, state, runs) {
    Object.assign(this, { model, state, runs, columns: ofSet(model, "essential"), sort: null, opened: new Map() });
    this.table = document.getElementById("experiments");
    this.body = this.table.tBodies[0];
    this.rows = [...this.body.rows];
    // The cells that the page opens with are in its HTML only: column -> cells.
    this.made = new Map(this.columns.map((column, place) => [column.key, this.rows.map((row) => row.cells[this.first + place])]));
    this.rows.forEach((row, place) => this.opener(row, place));
    this.tools();
    this.head();
  }

  get mark() {
    return this.model.domains[this.state.domain]?.mark ?? "";
  }

  // The name of an experiment becomes the button that opens its row.
  opener(row, place) {
    const head = row.cells[0];
    const name = head.firstChild;
    const button = html("button", { type: "button", "aria-expanded": "false", on: { click: () => this.toggle(place) } }, name);
    head.prepend(button);
  }

  tools() {
    const sets = SETS.map((key) => [key, key[0].toUpperCase() + key.slice(1)]);
    this.sets = switches("Columns", sets, "essential", (key) => this.choose(ofSet(this.model, key)));
    const boxes = html("fieldset", { hidden: true, id: "columns" }, html("legend", {}, "Columns"));
    for (const column of this.model.columns) {
      const box = html("input", { type: "checkbox", value: column.key, on: { change: () => this.choose(this.checked()) } });
      boxes.append(html("label", {}, box, ` ${column.head}${column.small ? ` (${column.small})` : ""}`));
    }
    this.boxes = boxes;
    const more = html("button", { type: "button", "aria-expanded": "false", "aria-controls": "columns" }, "Columns…");
    more.addEventListener("click", () => {
      boxes.hidden = !boxes.hidden;
      more.setAttribute("aria-expanded", String(!boxes.hidden));
    });
    const close = () => [...this.opened.keys()].forEach((place) => this.toggle(place));
    document.getElementById("table-tools").append(
      this.sets, more,
      html("button", { type: "button", on: { click: () => this.csv() } }, "CSV"),
      html("button", { type: "button", on: { click: close } }, "Close all"),
      boxes,
    );
    this.check();
  }

  checked() {
    const keys = [...this.boxes.querySelectorAll("input:checked")].map((box) => box.value);
    return this.model.columns.filter((column) => keys.includes(column.key));
  }

  check() {
    for (const box of this.boxes.querySelectorAll("input")) box.checked = this.columns.some((column) => column.key === box.value);
  }

  choose(columns) {
    this.columns = columns;
    this.check();
    this.fill();
  }

  get first() {
    return this.model.campaigns.length > 1 ? 2 : 1;
  }

  head() {
    const row = this.table.tHead.rows[0];
    const heads = [...row.cells].slice(0, this.first);
    heads.forEach((head, place) => {
      if (head.querySelector("button")) return;
      const { lines, campaigns } = this.model;
      const value = place ? (at) => campaigns[lines[at].c] : (at) => lines[at].name;
      this.sortable(head, head.textContent, `head${place}`, value);
    });
    const made = this.columns.map((column) => {
      const cell = html("th", { scope: "col" });
      this.sortable(cell, column.head, column.key, (place) => figure(this.text(column, place)));
      if (column.small) cell.append(html("small", {}, column.small));
      return cell;
    });
    row.replaceChildren(...heads, ...made);
  }

  sortable(cell, words, key, value) {
    cell.replaceChildren(html("button", { type: "button", on: { click: () => this.order(key, value) } }, words));
    cell.dataset.key = key;
    if (this.sort?.key === key) cell.setAttribute("aria-sort", this.sort.descending ? "descending" : "ascending");
    else cell.removeAttribute("aria-sort");
  }

  order(key, value) {
    const descending = this.sort?.key === key ? !this.sort.descending : !key.startsWith("head");
    this.sort = { key, value, descending };
    for (const head of this.table.tHead.rows[0].cells) {
      if (head.dataset.key === key) head.setAttribute("aria-sort", descending ? "descending" : "ascending");
      else head.removeAttribute("aria-sort");
    }
    this.arrange();
  }

  /** Rows in their order, those that the filters leave; opened ones below theirs. */
  arrange() {
    const { sort, model } = this;
    const energy = sort && model.columns.find((column) => column.key === sort.key)?.energy;
    const fixed = Boolean(energy && this.mark);
    const places = model.lines.map((_, place) => place);
    const order = sort ? sorted(places, sort.value, sort.descending, fixed) : places;
    const shown = new Set(this.state.places);
    const rows = [];
    for (const place of order) {
      this.rows[place].hidden = !shown.has(place);
      rows.push(this.rows[place]);
      const below = this.opened.get(place);
      if (below) {
        below.hidden = !shown.has(place);
        rows.push(below);
      }
    }
    this.body.replaceChildren(...rows);
  }

  /** The cells of a column in the domain that is shown; null where the page's HTML has them. */
  cells(column) {
    return column.cells[column.energy ? this.state.domain : 0] ?? null;
  }

  text(column, place) {
    const cells = this.cells(column);
    if (cells === null) return this.made.get(column.key)[place].firstChild.textContent;
    return [cells[place] ?? NONE].flat()[0];
  }

  cell(column, place) {
    const cells = this.cells(column);
    if (cells === null) return this.made.get(column.key)[place];
    const [text, small] = [cells[place] ?? NONE].flat();
    const words = figure(text) === null && text !== NONE;
    const kind = words ? "words" : column.energy && this.mark && text !== NONE ? "estimate" : null;
    return html("td", { class: kind }, text, small ? html("small", {}, small) : "");
  }

  /** Other columns, or another domain. */
  fill() {
    this.head();
    const { domain } = this.state;
    this.rows.forEach((row, place) => {
      const line = this.model.lines[place];
      while (row.cells.length > this.first) row.lastElementChild.remove();
      row.append(...this.columns.map((column) => this.cell(column, place)));
      const reason = line.why?.[domain] ?? "";
      const old = row.cells[0].querySelector(".why");
      if (old) old.remove();
      if (reason) row.cells[0].append(html("small", { class: "why" }, reason));
    });
    for (const below of this.opened.values()) below.cells[0].colSpan = this.first + this.columns.length;
    this.arrange();
  }

  /** Opens or closes a row. */
  async toggle(place, scroll = false) {
    const row = this.rows[place];
    const button = row.cells[0].querySelector("button");
    const below = this.opened.get(place);
    if (below && !scroll) {
      below.remove();
      this.opened.delete(place);
      button.setAttribute("aria-expanded", "false");
      return;
    }
    if (!below) {
      const cell = html("td", { colspan: this.first + this.columns.length }, "…");
      const made = html("tr", { class: "detail" }, cell);
      this.opened.set(place, made);
      row.after(made);
      button.setAttribute("aria-expanded", "true");
      try {
        const runs = await this.runs();
        cell.replaceChildren(detail(this.model, this.model.lines[place], runs[place]));
      } catch (error) {
        cell.replaceChildren(html("p", { class: "why" }, error.message));
      }
    }
    if (scroll) {
      row.scrollIntoView({ block: "center" });
      button.focus();
    }
  }

  csv() {
    const heads = [...this.table.tHead.rows[0].cells].map((cell) => cell.textContent.trim());
    const rows = [...this.body.rows].filter((row) => !row.hidden && !row.classList.contains("detail"));
    const text = (cell) => {
      const main = (cell.querySelector("button") ?? cell.firstChild)?.textContent ?? "";
      return [main, ...[...cell.querySelectorAll("small")].map((small) => `(${small.textContent})`)].join(" ").trim();
    };
    const lines = [heads, ...rows.map((row) => [...row.cells].map(text))];
    save("eeio.csv", "text/csv", lines.map((cells) => cells.map(csvCell).join(",")).join("\n") + "\n");
  }
}
