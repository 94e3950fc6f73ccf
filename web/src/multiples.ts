// Small multiples: a metric of each test of a suite, all engines and sizes side by side.

import type { Context } from "./context";
import { type Row, alone, figureOf } from "./data";
import { h, section } from "./dom";
import { Footnotes } from "./footnotes";
import { bytes, measured, milliseconds } from "./format";
import { lookOf } from "./look";
import { isBytes, metricName, unitAndDirection } from "./names";
import { saveButtons } from "./picture";
import { pickers } from "./scaling";
import { current } from "./state";
import { strip } from "./strip";

/** The minimum number of tests of a suite. */
const FEWEST = 2;

export function multiplesSection(context: Context): HTMLElement | null {
  const rows = context.rows().filter((row) => row.test !== undefined && row.run !== null && context.shown(row.engine));
  const tests = [...new Set(rows.flatMap(({ test }) => test ?? []))];
  if (tests.length < FEWEST) return null;
  const { ladder: metric, op } = current();
  const footnotes = new Footnotes();
  const shown = (of: string) => (of.endsWith(".p99_ms") ? milliseconds : isBytes(context, of) ? bytes : measured);
  const dots = (row: Row, of: string) => {
    const engine = alone(row);
    // An engine has the same look in every test.
    return { engine, label: context.label(engine), look: lookOf(Math.max(0, context.alone.indexOf(engine))), figure: figureOf(row, of) };
  };
  const grid = (of: string) => {
    const strips = tests.map((test) => strip([h("strong", {}, test)], rows.filter((row) => row.test === test).map((row) => dots(row, of)), footnotes, shown(of)));
    return h("div", {}, h("h3", {}, metricName(of), h("span", { class: "unit" }, unitAndDirection(context, of))), h("div", { class: "strips multiples" }, ...strips));
  };
  const hasTimes = rows.some((row) => figureOf(row, `${op}.p99_ms`) !== undefined);
  return section(
    "multiples",
    "Which engine leads in which test?",
    "Each test has its own axis, which begins at zero. A mark is a repeat, and the line ends at the median.",
    saveButtons(context, "multiples", "all tests"),
    pickers(context),
    grid(metric),
    hasTimes && grid(`${op}.p99_ms`),
    footnotes.list(),
  );
}
