// Bandwidth against power, both axes logarithmic, with lines of equal MB/J.

import { label, svg } from "./element.mjs";
import { kinds, level, shape, stamp } from "./marks.mjs";
import { number, plain } from "./number.mjs";
import { logarithmic, steps } from "./scale.mjs";

const [LEFT, TOP, BOTTOM] = [46, 34, 46];
// Pixels of a letter of a name, and how many names are tried.
const [LETTER, LABELLED] = [6, 40];

/** The places of lines that have both figures. */
export function drawable(model, places, domain) {
  return places.filter((place) => {
    const line = model.lines[place];
    return line.mbs?.[1] > 0 && line.d[domain]?.w?.[1] > 0;
  });
}

/** Gives [svg element, [[mark, place], ...]]. */
export function scatter(model, places, domain, width, height) {
  const chart = svg("svg", { class: "chart", width, height, viewBox: `0 0 ${width} ${height}` });
  const right = width - (width < 500 ? 24 : 66);
  const lines = places.map((place) => model.lines[place]);
  const across = logarithmic(lines.flatMap((line) => line.mbs.slice(1)), LEFT, right);
  const up = logarithmic(lines.flatMap((line) => line.d[domain].w.slice(1)), height - BOTTOM, TOP);
  const area = { across, up, right, width, height };
  chart.append(...axes(model, domain, area), ...equal(area), ...idle(model, domain, area));
  chart.append(...stamp(model, domain, width, height));
  const estimate = model.domains[domain].estimate;
  // From left to right, so that the arrow keys go where the eye does.
  const ordered = [...places].sort((a, b) => model.lines[a].mbs[0] - model.lines[b].mbs[0]);
  const marks = ordered.map((place) => [mark(model, model.lines[place], domain, area, estimate), place]);
  chart.append(...marks.map(([element]) => element), ...labels(model, places, domain, area));
  return [chart, marks];
}

/** Names beside the marks, the best experiments first; a name that would overprint a mark or another name is left out. */
function labels(model, places, domain, { across, up, right, height }) {
  const points = places.map((place) => {
    const line = model.lines[place];
    return [across.at(line.mbs[0]), up.at(line.d[domain].w[0]), line.name];
  });
  const taken = points.map(([x, y]) => [x - 6, y - 6, x + 6, y + 6]);
  const found = [];
  for (const [x, y, name] of points.slice(0, LABELLED)) {
    const size = LETTER * name.length;
    for (const [begin, end] of [[x + 9, x + 9 + size], [x - 9 - size, x - 9]]) {
      const box = [begin, y - 15, end, y - 2];
      if (begin < LEFT || end > right || y < TOP + 15 || y > height - BOTTOM) continue;
      if (taken.some((one) => box[0] < one[2] && one[0] < box[2] && box[1] < one[3] && one[1] < box[3])) continue;
      taken.push(box);
      found.push(label(begin, y - 5, "label", name));
      break;
    }
  }
  return found;
}

function axes(model, domain, { across, up, right, height }) {
  const found = [];
  for (const value of across.ticks()) {
    const x = across.at(value);
    found.push(svg("path", { class: "grid", d: `M${x} ${TOP}V${height - BOTTOM}` }));
    found.push(label(x, height - BOTTOM + 16, "tick middle", plain(value)));
  }
  for (const value of up.ticks()) {
    const y = up.at(value);
    found.push(svg("path", { class: "grid", d: `M${LEFT} ${y}H${right}` }));
    found.push(label(LEFT - 6, y + 4, "tick end", plain(value)));
  }
  found.push(label(LEFT, height - 8, "title", "Bandwidth (MB/s, logarithmic)"));
  found.push(label(6, 14, "title", `Power (W, logarithmic), ${model.domains[domain].label}`));
  return found;
}

// W = (MB/s) / (MB/J): a straight line where both axes are logarithmic.
function equal({ across, up, right, width }) {
  const found = [];
  let lastEnd = null;
  for (const value of steps(across.low / up.high, across.high / up.low)) {
    const [x1, x2] = [Math.max(across.low, value * up.low), Math.min(across.high, value * up.high)];
    if (x1 >= x2) continue;
    const end = [across.at(x2), up.at(x2 / value)];
    const d = `M${across.at(x1)} ${up.at(x1 / value)}L${end[0]} ${end[1]}`;
    found.push(svg("path", { class: "equal", d }));
    const top = Math.abs(end[1] - TOP) < 1;
    if (lastEnd && Math.hypot(end[0] - lastEnd[0], end[1] - lastEnd[1]) < (top ? 64 : 16)) continue;
    if (top && end[0] > right - 20) continue;
    if (!top && right > 0 && across.at(across.high) < right - 1) continue;
    const words = `${plain(value)} MB/J`;
    if (!top && end[0] + 4 + LETTER * words.length > width) continue;
    lastEnd = end;
    if (top) found.push(label(end[0], end[1] - 5, "iso middle", words));
    else found.push(label(end[0] + 4, end[1] + 4, "iso", words));
  }
  return found;
}

function idle(model, domain, { up, right }) {
  return [...new Set(model.domains[domain].idle)]
    .filter((power) => power !== null && power >= up.low && power <= up.high)
    .flatMap((power) => [
      svg("path", { class: "idle", d: `M${LEFT} ${up.at(power)}H${right}` }),
      label(right - 4, up.at(power) - 4, "iso end", `idle ${number(power)} W`),
    ]);
}

function mark(model, line, domain, { across, up }, estimate) {
  const [x, x1, x3] = line.mbs.map(across.at);
  const [y, y1, y3] = line.d[domain].w.map(up.at);
  return svg("g", { class: kinds(model, line, estimate) },
    svg("path", { class: "whisker", d: `M${x1} ${y}H${x3}M${x} ${y1}V${y3}` }),
    svg("path", { d: shape(level(model, line, "Operation").split(" ")[0]), transform: `translate(${x} ${y})` }));
}
