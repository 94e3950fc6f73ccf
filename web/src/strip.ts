// A strip: one dot per repeat on an axis that starts at zero, and a line to the median, for each of several engines.

import { type Figure, numbers, reason, value } from "./data";
import { h } from "./dom";
import type { Footnotes } from "./footnotes";
import { RESOLUTION, measured, significant, tick } from "./format";
import { type Look, marker } from "./look";
import { niceStep } from "./stack";

export interface Dots {
  /** The complete text, for the tooltip. */
  engine: string;
  label: string;
  look: Look;
  figure: Figure | undefined;
}

/** The strip below its caption; `shown` formats a median. */
export function strip(caption: (Node | string)[], all: Dots[], footnotes: Footnotes, shown: (number: number) => string = measured): HTMLElement {
  // Values that cannot be distinguished from zero must not fill the axis.
  const largest = Math.max(...all.flatMap(({ figure }) => numbers(figure)), 5 * RESOLUTION);
  const by = niceStep(largest, 4);
  const end = Math.max(by, Math.ceil((largest * 1.02) / by) * by);
  const place = (number: number) => `${((100 * number) / end).toFixed(2)}%`;
  const lines = all.map(({ engine, label, look, figure }) => {
    const median = value(figure?.median);
    const dots = numbers(figure).map((number) => h("span", { class: "dot", style: `left: ${place(number)}`, title: `${label}: ${significant(number)}` }, marker(look)));
    return h(
      "div",
      { class: "dots" },
      h("span", { class: "dots-name", title: engine }, label),
      h("span", { class: "dots-track" }, median !== null && h("span", { class: "stem", style: `width: ${place(median)}; background: ${look.colour}` }), ...dots),
      h("span", { class: "dots-value" }, median === null ? footnotes.dash(reason(figure?.median)) : shown(median)),
    );
  });
  const ticks = Array.from({ length: Math.round(end / by) + 1 }, (_, index) => index * by);
  const scale = h(
    "div",
    { class: "dots scale", "aria-hidden": "true" },
    h("span", { class: "dots-name" }),
    h("span", { class: "dots-track" }, ...ticks.map((at) => h("span", { class: "tick", style: `left: ${place(at)}` }, tick(at)))),
    h("span", { class: "dots-value" }),
  );
  return h("figure", { class: "strip" }, h("figcaption", {}, ...caption), ...lines, scale);
}
