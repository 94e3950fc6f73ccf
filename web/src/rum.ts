// Read, update, memory: one dot per repeat on axes that begin at zero.

import type { Context } from "./context";
import { type PhaseFigures, type Row, numbers, reason, value } from "./data";
import { h, section } from "./dom";
import { Footnotes } from "./footnotes";
import { RESOLUTION, measured, significant, tick } from "./format";
import { marker } from "./look";
import { saveButtons } from "./picture";
import { niceStep } from "./stack";

interface Strip {
  letter: string;
  title: string;
  metric: string;
  pick: (row: Row) => PhaseFigures | null;
}

const STRIPS: Strip[] = [
  { letter: "Read", title: "KB read from the device per operation", metric: "rkb_per_op", pick: (row) => row.run },
  { letter: "Update", title: "KB written per operation, drain charged", metric: "wkb_per_op_with_drain", pick: (row) => row.run },
  { letter: "Update", title: "write amplification of the load, settle charged", metric: "write_amp_with_settle", pick: (row) => row.load },
  { letter: "Memory", title: "space amplification: bytes on disk per byte of data", metric: "space_amp", pick: (row) => row.run ?? row.load },
];

/** Of a suite one row has the load and others have the runs: each is shown where it has figures, or should have. */
function concerns(context: Context, shown: Strip, row: Row): boolean {
  const isSuite = context.data.summary.rows.some((other) => other.test !== undefined);
  return !isSuite || shown.pick(row) !== null || row.broken.length > 0;
}

function strip(context: Context, shown: Strip, footnotes: Footnotes): HTMLElement {
  const rows = context.rows().filter((row) => context.shown(row.engine) && concerns(context, shown, row));
  const all = rows.flatMap((row) => numbers(shown.pick(row)?.metrics[shown.metric]));
  // What cannot be told from zero must not fill the axis.
  const largest = Math.max(...all, 5 * RESOLUTION);
  const by = niceStep(largest, 4);
  const end = Math.max(by, Math.ceil((largest * 1.02) / by) * by);
  const place = (number: number) => `${((100 * number) / end).toFixed(2)}%`;
  const lines = rows.map((row) => {
    const figure = shown.pick(row)?.metrics[shown.metric];
    const look = context.look(row.engine);
    const median = value(figure?.median);
    const dots = numbers(figure).map((number) =>
      h("span", { class: "dot", style: `left: ${place(number)}`, title: `${row.engine}: ${significant(number)}` }, marker(look)),
    );
    return h(
      "div",
      { class: "dots" },
      h("span", { class: "dots-name" }, row.engine),
      h("span", { class: "dots-track" }, median !== null && h("span", { class: "stem", style: `width: ${place(median)}; background: ${look.colour}` }), ...dots),
      h("span", { class: "dots-value" }, median === null ? footnotes.dash(reason(figure?.median)) : measured(median)),
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
  return h("figure", { class: "strip" }, h("figcaption", {}, h("strong", {}, shown.letter), ` ${shown.title}`), ...lines, scale);
}

export function rumSection(context: Context): HTMLElement {
  const footnotes = new Footnotes();
  return section(
    "rum",
    "Read, update, memory",
    "What each engine pays with. One mark per repeat, the line ends at the median, axes begin at zero: shorter is cheaper.",
    saveButtons(context, "rum", "read, update, memory"),
    h("div", { class: "strips" }, ...STRIPS.map((shown) => strip(context, shown, footnotes))),
    footnotes.list(),
  );
}
