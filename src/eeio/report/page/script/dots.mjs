// One line an experiment: each valid repetition a dot, the median a bar, the quartiles a line.

import { label, svg } from "./element.mjs";
import { kinds, stamp } from "./marks.mjs";
import { plain, quartiles } from "./number.mjs";
import { logarithmic } from "./scale.mjs";

/** key -> {name, energy, of(repetition, domain)}: figures of repetitions. */
export const METRICS = {
  jgb: { name: "J/GB", energy: true, of: (run, domain) => run.d?.[domain]?.jgb },
  mbj: { name: "MB/J", energy: true, of: (run, domain) => run.d?.[domain]?.mbj },
  mbs: { name: "MB/s", of: (run) => run.mbs },
  w: { name: "W", energy: true, of: (run, domain) => run.d?.[domain]?.w },
  iops: { name: "IOPS", of: (run) => run.iops },
  p99: { name: "p99 latency, ms", of: (run) => run.ms?.[2] },
};

const [ROW, TOP, BOTTOM, MOST] = [24, 26, 44, 200];

/**
 * The values of each place that has some: [[place, values], ...], sorted by the median. Estimates are
 * not; measured energy that may not be ranked is below, in its original order.
 */
export function values(runs, places, metric, domain, estimate, unranked = () => false) {
  const { of, energy } = METRICS[metric];
  const found = [];
  for (const place of places) {
    const known = runs[place]
      .filter((run) => !run.bad)
      .map((run) => of(run, domain))
      .filter((value) => typeof value === "number" && value > 0);
    if (known.length) found.push([place, known]);
  }
  if (energy && estimate) return found;
  const below = (one) => Boolean(energy && unranked(one[0]));
  return [
    ...found.filter((one) => !below(one)).sort((a, b) => quartiles(a[1])[0] - quartiles(b[1])[0]),
    ...found.filter(below),
  ];
}

/** Gives [svg element, [[mark, place], ...], how many lines were left out]. */
export function dots(model, found, metric, domain, width) {
  const shown = found.slice(0, MOST);
  const height = TOP + BOTTOM + ROW * shown.length;
  const left = Math.min(280, width * 0.42);
  const axis = logarithmic(shown.flatMap(([, known]) => known), left + 12, width - 16);
  const chart = svg("svg", { class: "chart", width, height, viewBox: `0 0 ${width} ${height}` });
  const estimate = METRICS[metric].energy && model.domains[domain]?.estimate;
  for (const value of axis.ticks()) {
    const x = axis.at(value);
    chart.append(svg("path", { class: "grid", d: `M${x} ${TOP}V${height - BOTTOM}` }));
    chart.append(label(x, height - BOTTOM + 16, "tick middle", plain(value)));
  }
  const said = METRICS[metric].energy ? `, ${model.domains[domain]?.label}` : "";
  chart.append(label(left, height - 8, "title", `${METRICS[metric].name} (logarithmic)${said}`));
  const marks = shown.map(([place, known], row) => {
    const y = TOP + ROW * (row + 0.5);
    const line = model.lines[place];
    chart.append(label(left, y + 4, "name end", clipped(lineName(model, line, METRICS[metric].energy && line.d[domain]?.unranked), left)));
    const [middle, low, high] = quartiles(known).map(axis.at);
    const group = svg("g", { class: kinds(model, line, estimate) },
      svg("path", { class: "whisker", d: `M${low} ${y}H${high}` }),
      svg("path", { class: "median", d: `M${middle} ${y - 7}V${y + 7}` }),
      ...known.map((value) => svg("circle", { cx: axis.at(value), cy: y, r: 3.2 })));
    chart.append(group);
    return [group, place];
  });
  chart.append(...stamp(model, domain, width + left, Math.max(height, 110)));
  return [chart, marks, found.length - shown.length];
}

function lineName(model, line, unranked) {
  const campaign = model.campaigns.length > 1 ? `${model.campaigns[line.c]}: ` : "";
  return `${unranked ? "not ranked: " : ""}${campaign}${line.name}${line.more ? `, ${line.more}` : ""}`;
}

function clipped(words, pixels) {
  const most = Math.floor(pixels / 6.4);
  return words.length > most ? `${words.slice(0, most - 1)}…` : words;
}
