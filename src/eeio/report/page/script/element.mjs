// Making elements. Text is always set as text: names and reasons may hold anything.

const SVG = "http://www.w3.org/2000/svg";

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (name === "on") for (const [type, run] of Object.entries(value)) element.addEventListener(type, run);
    else if (value !== null && value !== undefined && value !== false) {
      element.setAttribute(name, value === true ? "" : value);
    }
  }
  element.append(...children.filter((child) => child !== null && child !== undefined && child !== ""));
  return element;
}

/** An HTML element: html("p", {class: "note"}, "text", ...). */
export function html(name, attributes = {}, ...children) {
  return fill(document.createElement(name), attributes, children);
}

/** An SVG element. */
export function svg(name, attributes = {}, ...children) {
  return fill(document.createElementNS(SVG, name), attributes, children);
}

/** An SVG text at a place. */
export function label(x, y, kind, words) {
  return svg("text", { x: x.toFixed(1), y: y.toFixed(1), class: kind }, words);
}

/** A labelled select; `options` are [value, label]. */
export function choice(words, options, chosen, run) {
  const select = html("select", { on: { change: () => run(select.value) } });
  for (const [value, said] of options) {
    select.append(html("option", { value, selected: value === chosen }, said));
  }
  return html("label", {}, words, select);
}

/** Buttons of which one is pressed; `options` are [value, label]. */
export function switches(words, options, chosen, run) {
  const group = html("span", { role: "group", "aria-label": words, class: "switches" });
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

/** Offers text as a file. */
export function save(name, type, text) {
  const url = URL.createObjectURL(new Blob([text], { type }));
  const link = html("a", { href: url, download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 10000);
}
