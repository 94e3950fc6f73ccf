// Stacked bars: the parts of a whole, one bar for each row, all on one scale that starts at zero.

import { h } from "./dom";
import { RESOLUTION, measured, tick } from "./format";
import { COLOURS } from "./look";

export interface Segment {
  kind: string;
  value: number;
}

export interface Bar {
  head: Node | string;
  segments: Segment[];
  /** The reference for the whole: a mark on the same scale. */
  mark?: { value: number; name: string } | undefined;
  /** Text after the total. */
  note?: string;
}

/** A step of 1, 2, 2.5 or 5 times a power of ten that divides a length into at most this number of parts. */
export function niceStep(largest: number, most: number): number {
  const rough = largest / most;
  const power = 10 ** Math.floor(Math.log10(rough));
  return ([1, 2, 2.5, 5, 10].find((lead) => lead * power >= rough) ?? 10) * power;
}

function kindsOf(bars: Bar[]): string[] {
  return [...new Set(bars.flatMap(({ segments }) => segments.map(({ kind }) => kind)))];
}

/** A lighter colour of an engine, so that text on it is readable. Each kind has one colour. */
function paint(kinds: string[], kind: string): string {
  const index = kinds.indexOf(kind);
  return `--kind: var(--e${index % COLOURS}); --thin: ${index < COLOURS ? 38 : 18}%`;
}

/** A table of bars; `unit` names the stacked quantity and the better direction. */
export function stack(label: string, rowHead: string, unit: string, bars: Bar[]): HTMLElement {
  const kinds = kindsOf(bars);
  const total = ({ segments }: Bar) => segments.reduce((sum, { value }) => sum + value, 0);
  const largest = Math.max(...bars.flatMap((bar) => [total(bar), bar.mark?.value ?? 0]), 5 * RESOLUTION);
  const step = niceStep(largest, 4);
  const end = Math.ceil((largest * 1.02) / step) * step;
  const share = (value: number) => `${((100 * value) / end).toFixed(2)}%`;
  const body = bars.map((bar) => {
    const pieces = bar.segments.map(({ kind, value }) => {
      const title = `${kind}: ${measured(value)}`;
      const named = value / end > (kind.length + 2) * 0.011;
      return h("span", { class: "piece", style: `width: ${share(value)}; ${paint(kinds, kind)}`, title }, named && h("span", {}, kind), h("span", { class: "visually-hidden" }, `${title}; `));
    });
    const mark = bar.mark && h("span", { class: "stack-mark", style: `left: ${share(bar.mark.value)}`, title: `${bar.mark.name}: ${measured(bar.mark.value)}` }, h("span", { class: "visually-hidden" }, `${bar.mark.name}: ${measured(bar.mark.value)}`));
    return h(
      "tr",
      {},
      h("th", { scope: "row" }, bar.head),
      h("td", { class: "stack-bar" }, h("span", { class: "stack-track" }, ...pieces, mark)),
      h("td", { class: "stack-total" }, measured(total(bar)), bar.note !== undefined && h("span", { class: "unit" }, bar.note)),
    );
  });
  const ticks = Array.from({ length: Math.round(end / step) + 1 }, (_, index) => index * step);
  const scale = h("span", { class: "stack-scale", "aria-hidden": "true" }, ...ticks.map((at) => h("span", { class: "tick", style: `left: ${share(at)}` }, tick(at))));
  const head = h("tr", {}, h("th", { scope: "col" }, rowHead), h("th", { scope: "col", class: "stack-unit" }, unit, scale), h("th", { scope: "col" }, "in all"));
  const key = h("ul", { class: "kinds", "aria-label": "kinds" }, ...kinds.map((kind) => h("li", {}, h("span", { class: "swatch", style: paint(kinds, kind) }), kind)));
  return h("div", {}, key, h("table", { class: "stack", "aria-label": label }, h("thead", {}, head), h("tbody", {}, ...body)));
}
