// The colour and texture of each polyp: the same as in the report (report/colours.py).

import { draw, make, setAttribute, setText } from "./dom.js";

const COLOURS = ["#00528c", "#b93a00", "#009e73", "#c96ba6", "#bf8400", "#3a97d4", "#3d3d3d"];
const TEXTURES = ["", "stripes", "bars", "dots"];
const INKS = ["#ffffff", "#111111"];

/** The colour of tracklets that are not counted. */
export const NOT_COUNTED = "#a0a0a0";

function luminance(colour) {
  const linear = [1, 3, 5].map((start) => {
    const share = parseInt(colour.slice(start, start + 2), 16) / 255;
    return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2];
}

// As WCAG 2 defines it: (lighter luminance + 0.05) / (darker luminance + 0.05).
function contrast(first, second) {
  const [darker, lighter] = [luminance(first), luminance(second)].sort((a, b) => a - b);
  return (lighter + 0.05) / (darker + 0.05);
}

const marks = COLOURS.map((colour) => ({
  colour,
  ink: INKS.reduce((best, ink) => (contrast(ink, colour) > contrast(best, colour) ? ink : best)),
}));

/** How polyp 1, 2, ... is marked: {colour, ink, texture}; grey for null. From the eighth polyp on, a texture is added. */
export function markOf(number) {
  if (number === null || number === undefined) return { colour: NOT_COUNTED, ink: "#111111", texture: "" };
  const turn = Math.floor((number - 1) / COLOURS.length);
  return { ...marks[(number - 1) % COLOURS.length], texture: TEXTURES[turn % TEXTURES.length] };
}

/** A small coloured sign with the number of a polyp. */
export function badge(number) {
  return paintBadge(make("span", { class: "badge" }), number);
}

/** Gives a badge the number and colour of a polyp. */
export function paintBadge(node, number) {
  const mark = markOf(number);
  setText(node, number ?? "–");
  node.style.backgroundColor = mark.colour;
  node.style.color = mark.ink;
  return node;
}

/** The patterns that `texture` names, to be put into the page once. */
export function textureDefinitions() {
  const pattern = (id, size, shape, turned = null) =>
    draw("pattern", { id, width: size, height: size, patternUnits: "userSpaceOnUse", patternTransform: turned }, shape);
  return draw("svg", { class: "textures", "aria-hidden": "true", focusable: "false" }, draw("defs", {},
    pattern("stripes", 6, draw("rect", { width: 2.5, height: 6, fill: "#fff" }), "rotate(45)"),
    pattern("bars", 6, draw("rect", { width: 6, height: 2, fill: "#fff" })),
    pattern("dots", 5, draw("circle", { cx: 2.5, cy: 2.5, r: 1.3, fill: "#fff" })),
    pattern("nothing-seen", 8, draw("rect", { class: "nothing-seen", width: 1, height: 8 }), "rotate(45)"),
  ));
}

/** Fills a shape with the colour of a polyp. */
export function paintShape(node, number) {
  setAttribute(node, "fill", markOf(number).colour);
}
