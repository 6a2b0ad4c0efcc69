// The table of all experiments: sorted, filtered, its columns chosen, its rows opened.

import { COLUMNS, DEFAULT, SETS, why } from "./cells.mjs";
import { detail } from "./detail.mjs";
import { html, save, switches } from "./element.mjs";
import { csvCell, sorted } from "./order.mjs";

export class Table {
  constructor(model, state, runs) {
    Object.assign(this, { model, state, runs, columns: DEFAULT, sort: null, opened: new Map() });
    this.table = document.getElementById("experiments");
    this.body = this.table.tBodies[0];
    this.rows = [...this.body.rows];
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
    const sets = Object.keys(SETS).map((key) => [key, key[0].toUpperCase() + key.slice(1)]);
    this.sets = switches("Columns", sets, "essential", (key) => this.choose(SETS[key]));
    const boxes = html("fieldset", { hidden: true, id: "columns" }, html("legend", {}, "Columns"));
    for (const [key, column] of Object.entries(COLUMNS)) {
      const box = html("input", { type: "checkbox", value: key, on: { change: () => this.choose(this.checked()) } });
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
    return [...this.boxes.querySelectorAll("input:checked")].map((box) => box.value);
  }

  check() {
    for (const box of this.boxes.querySelectorAll("input")) box.checked = this.columns.includes(box.value);
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
      const value = place ? (line) => this.model.campaigns[line.c] : (line) => line.name;
      this.sortable(head, head.textContent, `head${place}`, value);
    });
    const made = this.columns.map((key) => {
      const { head, small, value } = COLUMNS[key];
      const cell = html("th", { scope: "col" });
      this.sortable(cell, head, key, (line) => value(line, this.state.domain));
      if (small) cell.append(html("small", {}, small));
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
    const fixed = Boolean(sort && COLUMNS[sort.key]?.energy && this.mark);
    const order = sort ? sorted(model.lines, sort.value, sort.descending, fixed) : model.lines.map((_, n) => n);
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

  /** Every cell anew: other columns, or another domain. */
  fill() {
    this.head();
    const { domain } = this.state;
    this.rows.forEach((row, place) => {
      const line = this.model.lines[place];
      while (row.cells.length > this.first) row.lastElementChild.remove();
      row.append(...this.columns.map((key) => {
        const { text, small, kind } = COLUMNS[key].cell(line, domain, this.mark);
        return html("td", { class: kind || null }, text, small ? html("small", {}, small) : "");
      }));
      const reason = why(line, domain);
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
