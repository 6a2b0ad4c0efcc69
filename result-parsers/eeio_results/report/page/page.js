// The script of eeio's report page. Made by ci/page/build of the modules in script/, with esbuild as
// ci/page/package-lock.json pins it: change those, not this. All of it is eeio's own.
// Copyright the eeio authors. SPDX-License-Identifier: GPL-3.0-or-later
(() => {
  // element.mjs
  var SVG = "http://www.w3.org/2000/svg";
  function fill(element, attributes, children) {
    for (const [name, value] of Object.entries(attributes)) {
      if (name === "on") for (const [type, run] of Object.entries(value)) element.addEventListener(type, run);
      else if (value !== null && value !== void 0 && value !== false) {
        element.setAttribute(name, value === true ? "" : value);
      }
    }
    element.append(...children.filter((child) => child !== null && child !== void 0 && child !== ""));
    return element;
  }
  function html(name, attributes = {}, ...children) {
    return fill(document.createElement(name), attributes, children);
  }
  function svg(name, attributes = {}, ...children) {
    return fill(document.createElementNS(SVG, name), attributes, children);
  }
  function label(x, y, kind, words2) {
    return svg("text", { x: x.toFixed(1), y: y.toFixed(1), class: kind }, words2);
  }
  function choice(words2, options, chosen, run) {
    const select = html("select", { on: { change: () => run(select.value) } });
    for (const [value, said] of options) {
      select.append(html("option", { value, selected: value === chosen }, said));
    }
    return html("label", {}, words2, select);
  }
  function switches(words2, options, chosen, run) {
    const group = html("span", { role: "group", "aria-label": words2, class: "switches" });
    const press = (value) => {
      for (const button of group.children) {
        button.setAttribute("aria-pressed", String(button.dataset.value === value));
      }
    };
    for (const [value, said] of options) {
      const click = () => {
        press(value);
        run(value);
      };
      group.append(html("button", { type: "button", "data-value": value, on: { click } }, said), " ");
    }
    press(chosen);
    return group;
  }
  function save(name, type, text) {
    const url = URL.createObjectURL(new Blob([text], { type }));
    const link = html("a", { href: url, download: name });
    link.click();
    setTimeout(() => URL.revokeObjectURL(url), 1e4);
  }

  // marks.mjs
  var SHAPES = {
    read: "M-5 0a5 5 0 1 0 10 0a5 5 0 1 0 -10 0z",
    write: "M0 -6L5.5 4.5L-5.5 4.5z"
  };
  var OTHER = "M0 -6L6 0L0 6L-6 0z";
  function shape(operation) {
    return SHAPES[operation] ?? OTHER;
  }
  function level(model, line, factor) {
    const place = model.factors.findIndex((one2) => one2.name === factor);
    return model.factors[place].levels[line.levels[place]];
  }
  function kinds(model, line, estimate) {
    return [
      "mark",
      level(model, line, "Buffer cache") === "on" ? "buffered" : "direct",
      estimate && "estimate",
      line.c % 2 && "other"
    ].filter(Boolean).join(" ");
  }
  function stamp(model, domain, width, height) {
    const word = [
      model.stamp.includes("QUICK") && "QUICK",
      model.domains[domain]?.estimate && "ESTIMATE"
    ].filter(Boolean).join(" ");
    return word ? [svg("text", { class: "stamp", x: width / 2, y: height / 2 + 20 }, word)] : [];
  }
  function walkable(chart, items, told, tip, open) {
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

  // number.mjs
  var NONE = "–";
  function number(value) {
    if (value === null || value === void 0) return NONE;
    if (value === 0) return "0";
    const rounded = threeDigits(value);
    let size = Math.abs(rounded);
    if (size >= 100) return evenly(value).toFixed(0);
    let places = 2;
    while (size < 1 && places < 9) {
      size *= 10;
      places += 1;
    }
    if (size >= 10) places -= 1;
    return rounded.toFixed(places);
  }
  function threeDigits(value) {
    const [digits, exponent] = Math.abs(value).toExponential(20).replace(".", "").split("e");
    const half = /^..[02468]50*$/.test(digits);
    const size = half ? Number(`${digits[0]}.${digits.slice(1, 3)}e${exponent}`) : Number(Math.abs(value).toPrecision(3));
    return Math.sign(value) * size;
  }
  function evenly(value) {
    const below = Math.floor(value);
    if (value - below !== 0.5) return value;
    return below % 2 === 0 ? below : below + 1;
  }
  function plain(value) {
    return String(Number(value.toPrecision(6)));
  }
  function quartiles(values2) {
    if (!values2.length) return null;
    const ordered = [...values2].sort((a, b) => a - b);
    const at = (share) => {
      const place = share * (ordered.length - 1);
      const below = Math.floor(place);
      const above = Math.min(below + 1, ordered.length - 1);
      return ordered[below] + (place - below) * (ordered[above] - ordered[below]);
    };
    return [at(0.5), at(0.25), at(0.75)];
  }

  // scale.mjs
  function steps(low, high, all = true) {
    const found = [];
    for (let decade = Math.floor(Math.log10(low)); decade <= Math.ceil(Math.log10(high)); decade += 1) {
      for (const step of all ? [1, 2, 5] : [1]) {
        const value = Number(`${step}e${decade}`);
        if (value >= low && value <= high) found.push(value);
      }
    }
    return found;
  }
  function logarithmic(values2, begin, end) {
    let low = Math.min(...bounds(values2)) / 1.15;
    let high = Math.max(...bounds(values2)) * 1.15;
    if (high / low < 1.5) {
      low /= 1.2;
      high *= 1.2;
    }
    const at = (value) => begin + Math.log(value / low) / Math.log(high / low) * (end - begin);
    return { at, low, high, ticks: () => thinned(spaced(low, high), at) };
  }
  function spaced(low, high) {
    return high / low < 6 ? even(low, high) : steps(low, high, high / low < 300);
  }
  function linear(least, greatest, begin, end) {
    const high = greatest > least ? greatest : least + 1;
    const at = (value) => begin + (value - least) / (high - least) * (end - begin);
    return { at, low: least, high, ticks: () => even(least, high) };
  }
  function bounds(values2) {
    let low = Infinity;
    let high = -Infinity;
    for (const value of values2) {
      if (value < low) low = value;
      if (value > high) high = value;
    }
    return [low, high];
  }
  function even(low, high) {
    const raw2 = (high - low) / 4;
    const decade = 10 ** Math.floor(Math.log10(raw2));
    const step = [1, 2, 5, 10].map((n) => n * decade).find((n) => n >= raw2);
    const found = [];
    for (let n = Math.ceil(low / step); n * step <= high + step * 1e-9; n += 1) {
      found.push(Number((n * step).toPrecision(12)));
    }
    return found;
  }
  var LEAST_PIXELS = 26;
  function thinned(values2, at) {
    let last = null;
    return values2.filter((value) => {
      const place = at(value);
      if (last !== null && Math.abs(place - last) < LEAST_PIXELS) return false;
      last = place;
      return true;
    });
  }

  // dots.mjs
  var METRICS = {
    jgb: { name: "J/GB", energy: true, of: (run, domain) => run.d?.[domain]?.jgb },
    mbj: { name: "MB/J", energy: true, of: (run, domain) => run.d?.[domain]?.mbj },
    mbs: { name: "MB/s", of: (run) => run.mbs },
    w: { name: "W", energy: true, of: (run, domain) => run.d?.[domain]?.w },
    iops: { name: "IOPS", of: (run) => run.iops },
    p99: { name: "p99 latency, ms", of: (run) => run.ms?.[2] }
  };
  var [ROW, TOP, BOTTOM, MOST] = [24, 26, 44, 200];
  function values(runs, places, metric, domain, estimate, unranked = () => false) {
    const { of, energy: energy2 } = METRICS[metric];
    const found = [];
    for (const place of places) {
      const known = runs[place].filter((run) => !run.bad).map((run) => of(run, domain)).filter((value) => typeof value === "number" && value > 0);
      if (known.length) found.push([place, known]);
    }
    if (energy2 && estimate) return found;
    const below = (one2) => Boolean(energy2 && unranked(one2[0]));
    return [
      ...found.filter((one2) => !below(one2)).sort((a, b) => quartiles(a[1])[0] - quartiles(b[1])[0]),
      ...found.filter(below)
    ];
  }
  function dots(model, found, metric, domain, width) {
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
      const group = svg(
        "g",
        { class: kinds(model, line, estimate) },
        svg("path", { class: "whisker", d: `M${low} ${y}H${high}` }),
        svg("path", { class: "median", d: `M${middle} ${y - 7}V${y + 7}` }),
        ...known.map((value) => svg("circle", { cx: axis.at(value), cy: y, r: 3.2 }))
      );
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
  function clipped(words2, pixels) {
    const most = Math.floor(pixels / 6.4);
    return words2.length > most ? `${words2.slice(0, most - 1)}…` : words2;
  }

  // scatter.mjs
  var [LEFT, TOP2, BOTTOM2] = [46, 34, 46];
  function drawable(model, places, domain) {
    return places.filter((place) => {
      const line = model.lines[place];
      return line.mbs?.[1] > 0 && line.d[domain]?.w?.[1] > 0;
    });
  }
  function scatter(model, places, domain, width, height) {
    const chart = svg("svg", { class: "chart", width, height, viewBox: `0 0 ${width} ${height}` });
    const right = width - (width < 500 ? 24 : 66);
    const lines = places.map((place) => model.lines[place]);
    const across = logarithmic(lines.flatMap((line) => line.mbs.slice(1)), LEFT, right);
    const up = logarithmic(lines.flatMap((line) => line.d[domain].w.slice(1)), height - BOTTOM2, TOP2);
    const area = { across, up, right, width, height };
    chart.append(...axes(model, domain, area), ...equal(area), ...idle(model, domain, area));
    chart.append(...stamp(model, domain, width, height));
    const estimate = model.domains[domain].estimate;
    const ordered = [...places].sort((a, b) => model.lines[a].mbs[0] - model.lines[b].mbs[0]);
    const marks = ordered.map((place) => [mark(model, model.lines[place], domain, area, estimate), place]);
    chart.append(...marks.map(([element]) => element));
    return [chart, marks];
  }
  function axes(model, domain, { across, up, right, height }) {
    const found = [];
    for (const value of across.ticks()) {
      const x = across.at(value);
      found.push(svg("path", { class: "grid", d: `M${x} ${TOP2}V${height - BOTTOM2}` }));
      found.push(label(x, height - BOTTOM2 + 16, "tick middle", plain(value)));
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
  function equal({ across, up, right }) {
    const found = [];
    let lastEnd = null;
    for (const value of steps(across.low / up.high, across.high / up.low)) {
      const [x1, x2] = [Math.max(across.low, value * up.low), Math.min(across.high, value * up.high)];
      if (x1 >= x2) continue;
      const end = [across.at(x2), up.at(x2 / value)];
      const d = `M${across.at(x1)} ${up.at(x1 / value)}L${end[0]} ${end[1]}`;
      found.push(svg("path", { class: "equal", d }));
      const top = Math.abs(end[1] - TOP2) < 1;
      if (lastEnd && Math.hypot(end[0] - lastEnd[0], end[1] - lastEnd[1]) < (top ? 64 : 16)) continue;
      if (top && end[0] > right - 20) continue;
      if (!top && right > 0 && across.at(across.high) < right - 1) continue;
      lastEnd = end;
      const words2 = `${plain(value)} MB/J`;
      if (top) found.push(label(end[0], end[1] - 5, "iso middle", words2));
      else found.push(label(end[0] + 4, end[1] + 4, "iso", words2));
    }
    return found;
  }
  function idle(model, domain, { up, right }) {
    return [...new Set(model.domains[domain].idle)].filter((power) => power !== null && power >= up.low && power <= up.high).flatMap((power) => [
      svg("path", { class: "idle", d: `M${LEFT} ${up.at(power)}H${right}` }),
      label(right - 4, up.at(power) - 4, "iso end", `idle ${number(power)} W`)
    ]);
  }
  function mark(model, line, domain, { across, up }, estimate) {
    const [x, x1, x3] = line.mbs.map(across.at);
    const [y, y1, y3] = line.d[domain].w.map(up.at);
    return svg(
      "g",
      { class: kinds(model, line, estimate) },
      svg("path", { class: "whisker", d: `M${x1} ${y}H${x3}M${x} ${y1}V${y3}` }),
      svg("path", { d: shape(level(model, line, "Operation").split(" ")[0]), transform: `translate(${x} ${y})` })
    );
  }

  // tip.mjs
  function placed(tip, figure, mark2) {
    tip.hidden = false;
    const [outer, inner] = [figure.getBoundingClientRect(), mark2.getBoundingClientRect()];
    const x = inner.left + inner.width / 2 - outer.left;
    const left = Math.max(4, Math.min(x - tip.offsetWidth / 2, outer.width - tip.offsetWidth - 4));
    const below = inner.bottom - outer.top + 8;
    const fits = below + tip.offsetHeight < outer.height;
    tip.style.left = `${left}px`;
    tip.style.top = `${Math.max(2, fits ? below : inner.top - outer.top - tip.offsetHeight - 8)}px`;
  }

  // chart.mjs
  var EMPTY = "No experiment that is shown has both bandwidth and power in this domain.";
  var Chart = class {
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
        html("button", { type: "button", on: { click: () => this.save() } }, "Save as SVG")
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
    /** Draws what the state asks for. The latest call wins, as data may have to be unpacked first. */
    async draw(width = Math.max(280, Math.round(this.figure.clientWidth - 14))) {
      this.width = Math.round(this.figure.clientWidth - 14);
      const turn = this.turn = (this.turn ?? 0) + 1;
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
        const words2 = `Chart of ${marks.length} experiments: arrow keys walk, Enter opens a row`;
        for (const [name, value] of [["tabindex", 0], ["role", "application"], ["aria-roledescription", "chart"], ["aria-label", words2]]) {
          chart.setAttribute(name, value);
        }
        walkable(chart, marks, (place) => this.tip.words(place), this.tip, this.open);
      }
      const below = !chart || this.view === "dots" && note ? [html("p", { class: "note" }, note)] : [];
      this.figure.replaceChildren(...chart ? [chart] : [], ...below, this.tip.element);
    }
    /** The chart as a file of its own, with the colours it has on screen. */
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
  };
  var Tip = class {
    constructor(model, state, figure) {
      Object.assign(this, { model, state, figure });
      this.element = html("div", { class: "tip", hidden: true });
    }
    figures(place) {
      const line = this.model.lines[place];
      const figures2 = line.d[this.state.domain];
      const spread2 = (values2, unit) => values2 ? `${number(values2[0])} [${number(values2[1])} – ${number(values2[2])}] ${unit}` : NONE;
      return [
        ["Bandwidth", spread2(line.mbs, "MB/s")],
        ["Power", spread2(figures2?.w, "W")],
        ["Cost", spread2(figures2?.jgb, "J/GB")],
        ["Efficiency", spread2(figures2?.mbj, "MB/J")],
        ["Limit of error", figures2?.limit === void 0 ? "not stated" : `±${number(figures2.limit)} %`],
        ["Valid runs", `${line.n}${line.invalid ? `, ${line.invalid} invalid` : ""}`]
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
    show(place, mark2) {
      const list = html("dl");
      for (const [name, text] of this.figures(place)) list.append(html("dt", {}, name), html("dd", {}, text));
      const unranked = this.model.lines[place].d[this.state.domain]?.unranked;
      this.element.replaceChildren(
        html("b", {}, this.title(place)),
        list,
        html("p", {}, this.model.domains[this.state.domain]?.label ?? "no power"),
        unranked ? html("p", { class: "why" }, `not ranked: ${unranked}`) : ""
      );
      placed(this.element, this.figure, mark2);
    }
    hide() {
      this.element.hidden = true;
    }
  };

  // data.mjs
  var TOO_OLD = "This browser cannot unpack gzip (Chromium 80, Firefox 113, Safari 16.4 and newer can): eeio report --format json has the same data.";
  async function data(name) {
    const element = document.getElementById(name);
    if (element.type === "application/json") return JSON.parse(element.textContent);
    if (typeof DecompressionStream === "undefined") throw new Error(TOO_OLD);
    const packed = Uint8Array.from(atob(element.textContent.trim()), (c) => c.charCodeAt(0));
    const unpacked = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
    return JSON.parse(await new Response(unpacked).text());
  }

  // order.mjs
  function wanted(line, filter) {
    if (filter.campaign !== null && line.c !== filter.campaign) return false;
    if (filter.levels.some((level2, factor) => level2 !== null && line.levels[factor] !== level2)) return false;
    if (!filter.words) return true;
    const text = `${line.name} ${line.more}`.toLowerCase();
    return filter.words.toLowerCase().split(/\s+/).every((word) => text.includes(word));
  }
  function sorted(lines, value, descending, fixed = false) {
    const places = lines.map((_, place) => place);
    if (fixed) return places;
    const key = (place) => value(lines[place]) ?? null;
    return places.sort((a, b) => {
      const [x, y] = [key(a), key(b)];
      if (x === null || y === null) return (x === null) - (y === null) || a - b;
      const order = typeof x === "string" ? x.localeCompare(y) : x - y;
      return (descending ? -order : order) || a - b;
    });
  }
  function csvCell(text) {
    const number2 = /^[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?$/.test(text);
    const harmless = /^[=+\-@\t\r]/.test(text) && !number2 ? `'${text}` : text;
    return /[",\n]/.test(harmless) ? `"${harmless.replaceAll('"', '""')}"` : harmless;
  }

  // filters.mjs
  function filters(model, state, changed) {
    const bar = document.getElementById("filters");
    const filter = { campaign: null, levels: model.factors.map(() => null), words: "" };
    const count = html("output", { "aria-live": "polite" });
    const apply = (domain = false) => {
      state.places = model.lines.map((_, place) => place).filter((place) => wanted(model.lines[place], filter));
      count.textContent = `${state.places.length} of ${model.lines.length} experiments`;
      changed(domain);
    };
    const chosen = (value) => value === "" ? null : Number(value);
    const all = (levels) => [["", "all"], ...levels.map((level2, place) => [String(place), level2])];
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
      search.focus();
    });
    count.textContent = `${model.lines.length} of ${model.lines.length} experiments`;
  }

  // map.mjs
  function map(figure) {
    const chart = figure.querySelector("svg");
    if (!chart) return;
    const items = [...chart.querySelectorAll("g.mark")].map((mark2) => [mark2, Number(mark2.dataset.place)]);
    const said = items.map(([mark2]) => {
      const title = mark2.querySelector("title");
      const words3 = title.textContent;
      title.remove();
      return words3;
    });
    const element = html("div", { class: "tip", hidden: true });
    figure.append(element);
    const tip = {
      show(place, mark2) {
        const [name, ...figures2] = said[place].split("; ");
        element.replaceChildren(html("b", {}, name), ...figures2.map((words3) => html("p", {}, words3)));
        placed(element, figure, mark2);
      },
      hide() {
        element.hidden = true;
      }
    };
    const words2 = `${chart.getAttribute("aria-label")} Arrow keys walk, Enter goes to the row.`;
    for (const [name, value] of [["tabindex", 0], ["role", "application"], ["aria-roledescription", "chart"], ["aria-label", words2]]) {
      chart.setAttribute(name, value);
    }
    walkable(chart, items, (place) => said[place], tip, (place) => {
      const row = document.getElementById(`p${place}`);
      row.scrollIntoView({ block: "center" });
      row.focus();
    });
  }

  // cells.mjs
  var EMPTY2 = { text: NONE, small: "", kind: "" };
  function cell(text, small = "", kind = "") {
    return { text, small, kind };
  }
  function spread(values2, small = "", kind = "") {
    if (!values2) return EMPTY2;
    const [middle, low, high] = values2.map(number);
    return cell(middle, `${low === high ? "" : `${low}–${high}`} ${small}`.trim(), kind);
  }
  function energy(make) {
    return (line, domain, mark2) => {
      const figures2 = line.d[domain];
      if (!figures2) return EMPTY2;
      return { ...make(figures2, mark2, line), kind: mark2 ? "estimate" : "" };
    };
  }
  function powerMarks(figures2, word, line) {
    const some = figures2.n === line.n || !line.n ? "" : `n ${figures2.n}`;
    return [word || some, figures2.doubts && "doubtful"].filter(Boolean).join(", ");
  }
  function one(value, small = "") {
    return value === void 0 || value === null ? cell(NONE) : cell(number(value), small);
  }
  function limit(figures2) {
    return figures2.limit === void 0 ? "" : `±${number(figures2.limit)} %`;
  }
  function efficiencyMarks(figures2, word) {
    return [
      word,
      figures2.doubts && "doubtful",
      figures2.part && "without drives",
      figures2.unranked && !word && "not ranked"
    ].filter(Boolean).join(", ");
  }
  var ms = (place) => (line) => one(line.ms?.[place]);
  var words = (value) => cell(value ?? NONE, "", "words");
  var COLUMNS = {
    n: {
      head: "n",
      small: "valid runs",
      value: (line) => line.n,
      cell: (line) => cell(String(line.n), line.invalid ? `${line.invalid} invalid` : "")
    },
    mbs: {
      head: "MB/s",
      small: "median, quartiles",
      value: (line) => line.mbs?.[0],
      cell: (line) => spread(line.mbs)
    },
    w: {
      head: "W",
      small: "power",
      energy: true,
      value: (line, domain) => line.d[domain]?.w?.[0],
      cell: energy((d, word, line) => spread(d.w, powerMarks(d, word, line)))
    },
    jgb: {
      head: "J/GB",
      small: "less is cheaper",
      energy: true,
      value: (line, domain) => line.d[domain]?.jgb?.[0],
      cell: energy((d, word) => one(d.jgb?.[0], [limit(d), word].filter(Boolean).join(" ")))
    },
    mbj: {
      head: "MB/J",
      small: "more is better",
      energy: true,
      value: (line, domain) => line.d[domain]?.mbj?.[0],
      cell: energy((d, word) => spread(d.mbj, efficiencyMarks(d, word)))
    },
    iopsw: {
      head: "IOPS/W",
      small: "median",
      energy: true,
      value: (line, domain) => line.d[domain]?.iopsw,
      cell: energy((d, word) => one(d.iopsw, word))
    },
    p99: { head: "p99", small: "latency, ms", value: (line) => line.ms?.[2], cell: ms(2) },
    j: {
      head: "J",
      small: "energy",
      energy: true,
      value: (line, domain) => line.d[domain]?.j,
      cell: energy((d, word) => one(d.j, [limit(d), word].filter(Boolean).join(" ")))
    },
    wabove: {
      head: "W above idle",
      small: "",
      energy: true,
      value: (line, domain) => line.d[domain]?.above[0],
      cell: energy((d, word) => one(d.above[0], word))
    },
    jgbabove: {
      head: "J/GB above idle",
      small: "",
      energy: true,
      value: (line, domain) => line.d[domain]?.above[1],
      cell: energy((d, word) => one(d.above[1], word))
    },
    mbjabove: {
      head: "MB/J above idle",
      small: "",
      energy: true,
      value: (line, domain) => line.d[domain]?.above[2],
      cell: energy((d, word) => one(d.above[2], word))
    },
    unranked: {
      head: "Why not ranked",
      small: "",
      energy: true,
      value: (line, domain) => line.d[domain]?.unranked ?? null,
      cell: (line, domain) => words(line.d[domain]?.unranked)
    },
    iops: { head: "IOPS", small: "median", value: (line) => line.iops, cell: (line) => one(line.iops) },
    p50: { head: "p50", small: "latency, ms", value: (line) => line.ms?.[0], cell: ms(0) },
    p95: { head: "p95", small: "latency, ms", value: (line) => line.ms?.[1], cell: ms(1) },
    p999: { head: "p99.9", small: "latency, ms", value: (line) => line.ms?.[3], cell: ms(3) },
    max: { head: "max", small: "latency, ms", value: (line) => line.ms?.[4], cell: ms(4) },
    s: { head: "Time", small: "s", value: (line) => line.s, cell: (line) => one(line.s) },
    mb: { head: "MB", small: "moved", value: (line) => line.mb, cell: (line) => one(line.mb) },
    cached: {
      head: "MB/s",
      small: "into the page cache",
      value: (line) => line.cached,
      cell: (line) => one(line.cached)
    },
    seen: { head: "Order seen", small: "", value: (line) => line.seen, cell: (line) => words(line.seen) },
    drive: { head: "Drive", small: "", value: (line) => line.drive, cell: (line) => words(line.drive) }
  };
  var DEFAULT = ["n", "mbs", "w", "jgb", "mbj", "iopsw", "p99"];
  var SETS = {
    essential: DEFAULT,
    energy: ["n", "w", "j", "jgb", "mbj", "wabove", "jgbabove", "mbjabove", "unranked"],
    latency: ["n", "mbs", "iops", "p50", "p95", "p99", "p999", "max"],
    all: Object.keys(COLUMNS)
  };
  function why(line, domain) {
    return line.why?.[domain] ?? "";
  }

  // detail.mjs
  var [WIDTH, HEIGHT, LEFT2, TOP3, BOTTOM3] = [340, 150, 44, 20, 34];
  var LATENCIES = ["p50", "p95", "p99", "p99.9", "max"];
  function detail(model, line, runs) {
    if (!runs.length) return html("p", {}, "No run of this experiment is in the campaign.");
    const cards = html("div", { class: "cards" });
    const latencies = latencyCard(runs);
    if (latencies) cards.append(latencies);
    const axes2 = shared(runs);
    for (const run of runs) cards.append(card(model, line, run, axes2));
    return cards;
  }
  function ends([times, values2]) {
    if (Array.isArray(times)) return times;
    return values2.map((_, place) => place === values2.length - 1 ? times.to : times.from + place * times.step);
  }
  function shared(runs) {
    const axes2 = { begin: 0, end: 1, watts: 0, moved: 0 };
    for (const run of runs) {
      if (run.window) axes2.end = Math.max(axes2.end, run.window[1]);
      for (const steps2 of run.power ?? []) {
        if (!steps2) continue;
        const known = ends(steps2);
        axes2.begin = Math.min(axes2.begin, known[0]);
        axes2.end = Math.max(axes2.end, known.at(-1));
        for (const watt of steps2[1]) axes2.watts = Math.max(axes2.watts, watt ?? 0);
      }
      for (const rate of run.moved?.[1] ?? []) axes2.moved = Math.max(axes2.moved, rate ?? 0);
    }
    return axes2;
  }
  function card(model, line, run, axes2) {
    const state = run.bad ? ["why", "invalid"] : ["", "valid"];
    const found = html(
      "article",
      { class: "card" },
      html(
        "h3",
        {},
        `Repetition ${run.r}`,
        html("span", {}, `run ${run.place}, ${run.utc} UTC`),
        html("span", { class: `tag ${state[0]}` }, state[1])
      )
    );
    for (const why2 of run.bad ?? []) found.append(html("p", { class: "why" }, why2));
    if (run.power) {
      found.append(timeline(model, run, axes2, run.power, axes2.watts, "Power (W)", model.stamp));
      const series = model.domains.filter((_, place) => run.power[place]).map((domain) => domain.label);
      found.append(html("small", {}, `Lines: ${series.join(", ")}. Shaded: the window of the energy. Dashed: idle.`));
    } else if (!run.bad) found.append(html("small", {}, "No power samples of this run are in the page."));
    if (run.moved) {
      const shift = run.window[0];
      const moved = [ends(run.moved).map((at) => at + shift), run.moved[1]];
      found.append(timeline(model, run, axes2, [moved], axes2.moved, "Bandwidth (MB/s), the tool's log", ""));
    }
    found.append(figures(model, run), raw(run));
    return found;
  }
  function raw(run) {
    const path = html("code", {}, run.raw);
    return /^raw\/[\w.-]+$/.test(run.raw) ? html("a", { href: `${run.raw}/` }, path) : path;
  }
  function figures(model, run) {
    const list = html("dl");
    const add = (name, text) => list.append(html("dt", {}, name), html("dd", {}, text));
    const unit = (value, words2) => value === void 0 ? NONE : `${number(value)} ${words2}`;
    add("Bandwidth", unit(run.mbs, "MB/s"));
    add("Moved", `${unit(run.mb, "MB")} in ${unit(run.s, "s")}`);
    if (run.iops !== void 0) add("Requests", unit(run.iops, "IOPS"));
    (run.d ?? []).forEach((reading, place) => {
      if (!reading) return;
      const { label: name } = model.domains[place];
      if (reading.w === void 0) {
        add(name, (reading.why ?? ["no reading"]).join("; "));
        return;
      }
      const sure = reading.limit === void 0 ? "" : ` ± ${number(reading.limit)}`;
      add(name, `${number(reading.w)} W, ${number(reading.j)}${sure} J, ${unit(reading.mbj, "MB/J")}`);
      add("", `${number(100 * reading.seen)} % seen, ${reading.samples} samples`);
    });
    if (run.ms) {
      add("Latency", LATENCIES.map((name, place) => `${name} ${number(run.ms[place])}`).join(", ") + " ms");
    }
    return list;
  }
  function timeline(model, run, axes2, all, greatest, title, word) {
    const across = linear(axes2.begin, axes2.end, LEFT2, WIDTH - 8);
    const up = linear(0, greatest * 1.08, HEIGHT - BOTTOM3, TOP3);
    const chart = svg("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", "aria-label": `${title} over time` });
    if (run.window) {
      const [from, to] = run.window.map(across.at);
      chart.append(svg("rect", { class: "shade", x: from, y: TOP3, width: Math.max(1, to - from), height: HEIGHT - BOTTOM3 - TOP3 }));
    }
    for (const value of up.ticks()) {
      chart.append(svg("path", { class: "grid", d: `M${LEFT2} ${up.at(value)}H${WIDTH - 8}` }));
      chart.append(label(LEFT2 - 5, up.at(value) + 4, "tick end", plain(value)));
    }
    for (const value of across.ticks()) {
      chart.append(label(across.at(value), HEIGHT - BOTTOM3 + 14, "tick middle", plain(value)));
    }
    chart.append(label(4, 12, "title", title), label(WIDTH - 8, HEIGHT - 4, "end", "Time from the start of the run (s)"));
    if (word) chart.append(svg("text", { class: "stamp", x: WIDTH / 2, y: HEIGHT / 2 }, word));
    all.forEach((steps2, place) => {
      if (!steps2) return;
      const idle2 = title.startsWith("Power") ? model.domains[place].idle[0] : null;
      if (idle2 && model.campaigns.length === 1) {
        chart.append(svg("path", { class: "idle", d: `M${LEFT2} ${up.at(idle2)}H${WIDTH - 8}` }));
      }
      chart.append(svg("path", { class: `curve s${place % 4}`, d: stepPath(steps2, across, up) }));
    });
    return chart;
  }
  function stepPath(steps2, across, up) {
    const [times, values2] = [ends(steps2), steps2[1]];
    let path = "";
    let drawn = false;
    for (let place = 1; place < times.length; place += 1) {
      const value = values2[place];
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
    const up = logarithmic(all, HEIGHT - BOTTOM3, TOP3);
    const x = (place) => LEFT2 + 20 + place * (WIDTH - LEFT2 - 50) / (LATENCIES.length - 1);
    const chart = svg("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", "aria-label": "Latency percentiles of each repetition" });
    for (const value of up.ticks()) {
      chart.append(svg("path", { class: "grid", d: `M${LEFT2} ${up.at(value)}H${WIDTH - 8}` }));
      chart.append(label(LEFT2 - 5, up.at(value) + 4, "tick end", plain(value)));
    }
    LATENCIES.forEach((name, place) => chart.append(label(x(place), HEIGHT - BOTTOM3 + 14, "tick middle", name)));
    chart.append(label(4, 12, "title", "Latency of requests (ms, logarithmic)"));
    for (const run of known) {
      const points = run.ms.map((value, place) => value > 0 ? `${x(place).toFixed(1)} ${up.at(value).toFixed(1)}` : null);
      chart.append(svg("path", { class: "curve", d: `M${points.filter(Boolean).join("L")}` }));
    }
    return html("article", { class: "card" }, html("h3", {}, "Latency", html("span", {}, "each repetition a line")), chart);
  }

  // table.mjs
  var Table = class {
    constructor(model, state, runs) {
      Object.assign(this, { model, state, runs, columns: DEFAULT, sort: null, opened: /* @__PURE__ */ new Map() });
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
        this.sets,
        more,
        html("button", { type: "button", on: { click: () => this.csv() } }, "CSV"),
        html("button", { type: "button", on: { click: close } }, "Close all"),
        boxes
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
        const cell2 = html("th", { scope: "col" });
        this.sortable(cell2, head, key, (line) => value(line, this.state.domain));
        if (small) cell2.append(html("small", {}, small));
        return cell2;
      });
      row.replaceChildren(...heads, ...made);
    }
    sortable(cell2, words2, key, value) {
      cell2.replaceChildren(html("button", { type: "button", on: { click: () => this.order(key, value) } }, words2));
      cell2.dataset.key = key;
      if (this.sort?.key === key) cell2.setAttribute("aria-sort", this.sort.descending ? "descending" : "ascending");
      else cell2.removeAttribute("aria-sort");
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
        const cell2 = html("td", { colspan: this.first + this.columns.length }, "…");
        const made = html("tr", { class: "detail" }, cell2);
        this.opened.set(place, made);
        row.after(made);
        button.setAttribute("aria-expanded", "true");
        try {
          const runs = await this.runs();
          cell2.replaceChildren(detail(this.model, this.model.lines[place], runs[place]));
        } catch (error) {
          cell2.replaceChildren(html("p", { class: "why" }, error.message));
        }
      }
      if (scroll) {
        row.scrollIntoView({ block: "center" });
        button.focus();
      }
    }
    csv() {
      const heads = [...this.table.tHead.rows[0].cells].map((cell2) => cell2.textContent.trim());
      const rows = [...this.body.rows].filter((row) => !row.hidden && !row.classList.contains("detail"));
      const text = (cell2) => {
        const main2 = (cell2.querySelector("button") ?? cell2.firstChild)?.textContent ?? "";
        return [main2, ...[...cell2.querySelectorAll("small")].map((small) => `(${small.textContent})`)].join(" ").trim();
      };
      const lines = [heads, ...rows.map((row) => [...row.cells].map(text))];
      save("eeio.csv", "text/csv", lines.map((cells) => cells.map(csvCell).join(",")).join("\n") + "\n");
    }
  };

  // main.mjs
  async function main() {
    const guideline = document.getElementById("map");
    if (guideline) map(guideline);
    else await report();
    document.documentElement.dataset.ready = "all";
    performance.mark("drawn");
  }
  async function report() {
    const model = await data("model");
    const state = { places: model.lines.map((_, place) => place), domain: 0 };
    let unpacked;
    const runs = () => unpacked ?? (unpacked = data("runs"));
    const table = new Table(model, state, runs);
    const chart = new Chart(model, state, runs, (place) => table.toggle(place, true));
    filters(model, state, (domain) => {
      if (domain) table.fill();
      else table.arrange();
      chart.draw();
    });
    document.documentElement.dataset.ready = "";
    await chart.draw();
  }
  main().catch((error) => {
    document.documentElement.dataset.failed = String(error);
    throw error;
  });
})();
