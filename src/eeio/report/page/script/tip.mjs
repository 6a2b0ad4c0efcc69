// Places the tip of a mark next to it, within its figure.

export function placed(tip, figure, mark) {
  tip.hidden = false;
  const [outer, inner] = [figure.getBoundingClientRect(), mark.getBoundingClientRect()];
  const x = inner.left + inner.width / 2 - outer.left;
  const left = Math.max(4, Math.min(x - tip.offsetWidth / 2, outer.width - tip.offsetWidth - 4));
  const below = inner.bottom - outer.top + 8;
  const fits = below + tip.offsetHeight < outer.height;
  tip.style.left = `${left}px`;
  tip.style.top = `${Math.max(2, fits ? below : inner.top - outer.top - tip.offsetHeight - 8)}px`;
}
