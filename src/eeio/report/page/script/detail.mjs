// The details of a row: one card per repetition, with power over time, and a card of latencies.

import { html, label, svg } from "./element.mjs";
import { NONE, number, plain } from "./number.mjs";
import { linear, logarithmic } from "./scale.mjs";

const [WIDTH, HEIGHT, LEFT, TOP, BOTTOM] = [340, 150, 44, 20, 34];
const LATENCIES = ["p50", "p95", "p99", "p99.9", "max"];

/** The cards of a line. */
export function detail(model, line, runs) {
  if (!runs.length) return html("p", {}, "No run of this experiment is in the campaign.");
  const cards = html("div", { class: "cards" });
  const latencies = latencyCard(runs);
  if (latencies) cards.append(latencies);
  const axes = shared(runs);
  for (const run of runs) cards.append(card(model, line, run, axes));
  return cards;
}

/** The ends of steps, stored as a list, or as from, step and to if they are even. */
export function ends([times, values]) {
  if (Array.isArray(times)) return times;
  return values.map((_, place) => (place === values.length - 1 ? times.to : times.from + place * times.step));
}

// Every card of a row has the same axes.
function shared(runs) {
  const axes = { begin: 0, end: 1, watts: 0, moved: 0 };
  for (const run of runs) {
    if (run.window) axes.end = Math.max(axes.end, run.window[1]);
    for (const steps of run.power ?? []) {
      if (!steps) continue;
      const known = ends(steps);
      axes.begin = Math.min(axes.begin, known[0]);
      axes.end = Math.max(axes.end, known.at(-1));
      for (const watt of steps[1]) axes.watts = Math.max(axes.watts, watt ?? 0);
    }
    for (const rate of run.moved?.[1] ?? []) axes.moved = Math.max(axes.moved, rate ?? 0);
  }
  return axes;
}

function card(model, line, run, axes) {
  const state = run.bad ? ["why", "invalid"] : ["", "valid"];
  const found = html("article", { class: "card" },
    html("h3", {}, `Repetition ${run.r}`,
      html("span", {}, `run ${run.place}, ${run.utc} UTC`),
      html("span", { class: `tag ${state[0]}` }, state[1])));
  for (const why of run.bad ?? []) found.append(html("p", { class: "why" }, why));
  if (run.power) {
    found.append(timeline(model, run, axes, run.power, axes.watts, "Power (W)", model.stamp));
    const series = model.domains.filter((_, place) => run.power[place]).map((domain) => domain.label);
    found.append(html("small", {}, `Lines: ${series.join(", ")}. Shaded: the window of the energy. Dashed: idle.`));
  } else if (!run.bad) found.append(html("small", {}, "No power samples of this run are in the page."));
  if (run.moved) {
    // fio's log counts from the start of its I/O, which is where the window begins.
    const shift = run.window[0];
    const moved = [ends(run.moved).map((at) => at + shift), run.moved[1]];
    found.append(timeline(model, run, axes, [moved], axes.moved, "Bandwidth (MB/s), the tool's log", ""));
  }
  found.append(figures(model, run), raw(run));
  return found;
}

// Next to the page, as `eeio run` writes both; a record may contain anything.
function raw(run) {
  const path = html("code", {}, run.raw);
  return /^raw\/[\w.-]+$/.test(run.raw) ? html("a", { href: `${run.raw}/` }, path) : path;
}

function figures(model, run) {
  const list = html("dl");
  const add = (name, text) => list.append(html("dt", {}, name), html("dd", {}, text));
  const unit = (value, words) => (value === undefined ? NONE : `${number(value)} ${words}`);
  add("Bandwidth", unit(run.mbs, "MB/s"));
  add("Moved", `${unit(run.mb, "MB")} in ${unit(run.s, "s")}`);
  if (run.iops !== undefined) add("Requests", unit(run.iops, "IOPS"));
  (run.d ?? []).forEach((reading, place) => {
    if (!reading) return;
    const { label: name } = model.domains[place];
    if (reading.w === undefined) {
      add(name, (reading.why ?? ["no reading"]).join("; "));
      return;
    }
    const sure = reading.limit === undefined ? "" : ` ± ${number(reading.limit)}`;
    add(name, `${number(reading.w)} W, ${number(reading.j)}${sure} J, ${unit(reading.mbj, "MB/J")}`);
    add("", `${number(100 * reading.seen)} % seen, ${reading.samples} samples`);
  });
  if (run.ms) {
    add("Latency", LATENCIES.map((name, place) => `${name} ${number(run.ms[place])}`).join(", ") + " ms");
  }
  return list;
}

/** Steps over time; `all` is a list of [[ends], [values]] or null, one a series. */
function timeline(model, run, axes, all, greatest, title, word) {
  const across = linear(axes.begin, axes.end, LEFT, WIDTH - 8);
  const up = linear(0, greatest * 1.08, HEIGHT - BOTTOM, TOP);
  const chart = svg("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", "aria-label": `${title} over time` });
  if (run.window) {
    const [from, to] = run.window.map(across.at);
    chart.append(svg("rect", { class: "shade", x: from, y: TOP, width: Math.max(1, to - from), height: HEIGHT - BOTTOM - TOP }));
  }
  for (const value of up.ticks()) {
    chart.append(svg("path", { class: "grid", d: `M${LEFT} ${up.at(value)}H${WIDTH - 8}` }));
    chart.append(label(LEFT - 5, up.at(value) + 4, "tick end", plain(value)));
  }
  for (const value of across.ticks()) {
    chart.append(label(across.at(value), HEIGHT - BOTTOM + 14, "tick middle", plain(value)));
  }
  chart.append(label(4, 12, "title", title), label(WIDTH - 8, HEIGHT - 4, "end", "Time from the start of the run (s)"));
  if (word) chart.append(svg("text", { class: "stamp", x: WIDTH / 2, y: HEIGHT / 2 }, word));
  all.forEach((steps, place) => {
    if (!steps) return;
    const idle = title.startsWith("Power") ? model.domains[place].idle[0] : null;
    if (idle && model.campaigns.length === 1) {
      chart.append(svg("path", { class: "idle", d: `M${LEFT} ${up.at(idle)}H${WIDTH - 8}` }));
    }
    chart.append(svg("path", { class: `curve s${place % 4}`, d: stepPath(steps, across, up) }));
  });
  return chart;
}

/** A value applies from the previous end to its end; null breaks the line. */
export function stepPath(steps, across, up) {
  const [times, values] = [ends(steps), steps[1]];
  let path = "";
  let drawn = false;
  for (let place = 1; place < times.length; place += 1) {
    const value = values[place];
    if (value === null) {
      drawn = false;
      continue;
    }
    const y = up.at(value).toFixed(1);
    path += drawn ? `V${y}` : `M${across.at(times[place - 1]).toFixed(1)} ${y}`;
    path += `H${across.at(times[place]).toFixed(1)}`;
    drawn = true;
  }
  return path;
}

function latencyCard(runs) {
  const known = runs.filter((run) => run.ms && !run.bad);
  const all = known.flatMap((run) => run.ms).filter((value) => value > 0);
  if (!all.length) return null;
  const up = logarithmic(all, HEIGHT - BOTTOM, TOP);
  const x = (place) => LEFT + 20 + (place * (WIDTH - LEFT - 50)) / (LATENCIES.length - 1);
  const chart = svg("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", "aria-label": "Latency percentiles of each repetition" });
  for (const value of up.ticks()) {
    chart.append(svg("path", { class: "grid", d: `M${LEFT} ${up.at(value)}H${WIDTH - 8}` }));
    chart.append(label(LEFT - 5, up.at(value) + 4, "tick end", plain(value)));
  }
  LATENCIES.forEach((name, place) => chart.append(label(x(place), HEIGHT - BOTTOM + 14, "tick middle", name)));
  chart.append(label(4, 12, "title", "Latency of requests (ms, logarithmic)"));
  for (const run of known) {
    const points = run.ms.map((value, place) => (value > 0 ? `${x(place).toFixed(1)} ${up.at(value).toFixed(1)}` : null));
    chart.append(svg("path", { class: "curve", d: `M${points.filter(Boolean).join("L")}` }));
  }
  return html("article", { class: "card" }, html("h3", {}, "Latency", html("span", {}, "each repetition a line")), chart);
}
