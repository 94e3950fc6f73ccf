// The look of an engine: a colour (after Okabe and Ito, safe for colour-blind readers; style.css has variants for light and
// dark backgrounds), a dash and a marker. Colour is never the only distinction.

import { constant } from "./dom";

export interface Look {
  /** The colour as a CSS value. */
  colour: string;
  /** The name of its CSS variable, for a canvas. */
  ink: string;
  dash: number[];
  marker: string;
}

/** The number of `--e…` variables in style.css. */
export const COLOURS = 7;
const DASHES = [[], [7, 3], [2, 2.5], [9, 3, 2, 3], [12, 4], [5, 2, 1, 2, 1, 2], [1, 3]];
const MARKERS = [
  '<circle cx="6" cy="6" r="4.2"/>',
  '<rect x="2" y="2" width="8" height="8"/>',
  '<path d="M6 1.2 11 10.4H1z"/>',
  '<path d="M6 .8 11.2 6 6 11.2 .8 6z"/>',
  '<path d="M6 10.8 1 1.6h10z"/>',
  '<path d="M4.4 1h3.2v3.4H11v3.2H7.6V11H4.4V7.6H1V4.4h3.4z"/>',
  '<path d="M3 1 6 4l3-3 2 2-3 3 3 3-2 2-3-3-3 3-2-2 3-3-3-3z"/>',
];

/** The look of the engine at this position of the experiment. */
export function lookOf(index: number): Look {
  const turn = Math.floor(index / COLOURS);
  const at = (list: unknown[], shift: number) => (index + shift) % list.length;
  const ink = `--e${index % COLOURS}`;
  return {
    colour: `var(${ink})`,
    ink,
    dash: DASHES[at(DASHES, turn)] ?? [],
    marker: MARKERS[at(MARKERS, turn)] ?? "",
  };
}

/** The engine's marker; `hollow` for figures of incomplete trials. */
export function marker(look: Look, hollow = false): Element {
  const paint = hollow ? `fill: none; stroke: ${look.colour}; stroke-width: 1.5` : `fill: ${look.colour}`;
  return constant(`<svg class="marker" viewBox="0 0 12 12" aria-hidden="true" style="${paint}">${look.marker}</svg>`);
}

/** A sample of the engine's line with its marker. */
export function sample(look: Look): Element {
  const line = `<path d="M0 6H30" fill="none" style="stroke: ${look.colour}" stroke-width="2" stroke-dasharray="${look.dash}"/>`;
  const mark = `<g transform="translate(9 0)" style="fill: ${look.colour}">${look.marker}</g>`;
  return constant(`<svg class="sample" viewBox="0 0 30 12" aria-hidden="true">${line}${mark}</svg>`);
}
