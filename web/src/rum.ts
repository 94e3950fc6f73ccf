// Read, update, memory: one dot per repeat on axes that start at zero.

import type { Context } from "./context";
import type { PhaseFigures, Row } from "./data";
import { h, section } from "./dom";
import { Footnotes } from "./footnotes";
import { saveButtons } from "./picture";
import { type Dots, strip } from "./strip";

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

/** In a suite, one row has the load and others have the runs. Each row is shown for its own part. */
function concerns(context: Context, shown: Strip, row: Row): boolean {
  const isSuite = context.data.summary.rows.some((other) => other.test !== undefined);
  return !isSuite || shown.pick(row) !== null || row.broken.length > 0;
}

function dotsOf(context: Context, shown: Strip): Dots[] {
  const rows = context.rows().filter((row) => context.shown(row.engine) && concerns(context, shown, row));
  return rows.map((row) => ({ engine: row.engine, label: context.label(row.engine), look: context.look(row.engine), figure: shown.pick(row)?.metrics[shown.metric] }));
}

export function rumSection(context: Context): HTMLElement {
  const footnotes = new Footnotes();
  return section(
    "rum",
    "Which trade-off does each engine make?",
    "Each mark is a repeat, and the line ends at the median. Axes begin at zero: shorter is cheaper.",
    saveButtons(context, "rum", "read, update, memory"),
    h("div", { class: "strips" }, ...STRIPS.map((shown) => strip([h("strong", {}, shown.letter), ` ${shown.title}`], dotsOf(context, shown), footnotes))),
    footnotes.list(),
  );
}
