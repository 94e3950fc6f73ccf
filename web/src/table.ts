// Tables of figures per engine: the absolute value, a bar from zero, and its
// ratio to the baseline.

import type { Context } from "./context";
import { type Figure, type PhaseFigures, type Ratio, type Row, alone, numbers, reason, value } from "./data";
import { h, scrolling } from "./dom";
import { Footnotes } from "./footnotes";
import { RESOLUTION, bytes, counted, measured, percent, ratio, significant, sizeUnit } from "./format";
import { marker } from "./look";
import { choose, current } from "./state";

export interface Column {
  head: string;
  metric: string;
  /** A unit that replaces the metric's own; for a size, the words after it: `MB on disk`. */
  unit?: string;
  /** A share of the previous column, which has no winner of its own. */
  share?: boolean;
}

/** The name of an engine with its marker; a click makes it the baseline. */
function engineHead(context: Context, row: Row, group: string): HTMLElement {
  const chosen = current().baseline === alone(row);
  const radio = h("input", {
    type: "radio",
    name: `baseline-${group}-${row.test ?? ""}`,
    value: row.engine,
    checked: chosen,
    change: () => choose({ baseline: alone(row) }),
  });
  const unsound = row.unsound ?? [];
  // A failed verification is more serious than an interrupted one.
  const isBroken = row.broken.length > 0 || unsound.some(({ proof }) => proof !== "cut-off");
  const reasons = [...unsound.map(({ repeat, reason }) => `repeat ${repeat}: ${reason}`), ...(row.run?.notes ?? [])].join("; ");
  const words = isBroken ? "data inconsistent" : unsound.length > 0 ? "verification cut off" : row.run?.partial ? "partial figures" : "";
  const flag = words !== "" && h("span", { class: "flag", title: reasons }, words);
  return h(
    "th",
    { scope: "row" },
    h("label", { class: "engine", title: "compare with this engine" }, radio, marker(context.look(row.engine)), context.label(row.engine), flag),
  );
}

/** A table of medians with ratios to the baseline. */
export function figureTable(
  context: Context,
  group: string,
  columns: Column[],
  pick: (row: Row) => PhaseFigures | null,
): HTMLElement {
  const rows = context.rows().filter((row) => pick(row) !== null);
  const footnotes = new Footnotes();
  const median = (row: Row, column: Column) => value(pick(row)?.metrics[column.metric]?.median);
  const isSize = (column: Column) => context.unit(column.metric) === "B";
  // Negative sizes count by their absolute value.
  const size = sizeUnit(Math.max(0, ...columns.filter(isSize).flatMap((column) => rows.map((row) => Math.abs(median(row, column) ?? 0)))));
  const heads = columns.map((column) => {
    const own = column.unit ?? context.unit(column.metric);
    const unit = isSize(column) ? `${size.name} ${own}` : own;
    return h("th", { scope: "col", title: context.help(column.metric) }, column.head, h("span", { class: "unit" }, unit));
  });
  const body = rows.map((row) => {
    // Each test of a suite is a separate comparison.
    const peers = rows.filter((other) => other.test === row.test);
    const base = peers.find((other) => alone(other) === current().baseline);
    const cells = columns.map((column) => {
      const measures = peers.filter((other) => context.keepsData(other.engine));
      const largest = Math.max(...(measures.length > 0 ? measures : peers).map((other) => median(other, column) ?? 0));
      const figure = pick(row)?.metrics[column.metric];
      const shown = (number: number) => measured(isSize(column) ? number / size.bytes : number);
      const judged = pick(row) === row.run && base && !column.share ? context.over(base, row, column.metric) : undefined;
      const best = pick(row) === row.run && isBest(context, peers, row, column);
      const relative = column.share ? null : base && median(base, column);
      const unit = column.unit ?? context.unit(column.metric);
      const head = `${column.head}, ${isSize(column) ? `${size.name} ${unit}` : unit}`;
      return figureCell(footnotes, head, figure, { shown, whole: isSize(column) ? bytes : significant, base: relative, judged, largest, best });
    });
    const attributes = { class: alone(row) === current().baseline ? "baseline" : "" };
    return h("tr", { ...attributes, click: () => choose({ baseline: alone(row) }) }, engineHead(context, row, group), ...cells);
  });
  const table = h(
    "table",
    { class: "figures" },
    h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "engine"), ...heads)),
    h("tbody", {}, ...body),
  );
  const notes = rows.flatMap((row) => (pick(row)?.notes ?? []).map((note) => h("li", {}, `${context.label(row.engine)}: ${note}`)));
  const list = notes.length > 0 && h("ul", { class: "footnotes", "aria-label": "what is not in the figures" }, ...notes);
  return h("div", {}, scrolling(`figures of the ${group}`, table), footnotes.list(), list);
}

/** Whether the exact test finds every other engine worse. A median alone does not decide. */
function isBest(context: Context, rows: Row[], row: Row, column: Column): boolean {
  if (column.share || context.better(column.metric) === "neither" || !context.keepsData(row.engine)) return false;
  const others = rows.filter((other) => other !== row && context.keepsData(other.engine));
  const noise = rows.every((other) => (value(other.run?.metrics[column.metric]?.median) ?? 0) < RESOLUTION);
  if (noise) return false;
  return others.length > 0 && others.every((other) => context.over(row, other, column.metric)?.change === "worse");
}

/** The reason for an open verdict: the noise of the repeats, or repeats without the figure. */
function undecided(judged: Ratio, interval: string | false, more: string): string {
  if (judged.lacking !== undefined) return judged.lacking;
  return `the repeats do not decide${interval ? ` (${interval})` : ""}${more}`;
}

/** The conclusion from a ratio, in a few words; its interval if it is decided. */
function conclusion(judged: Ratio | undefined): HTMLElement | false {
  if (judged === undefined) return false;
  const [low, high] = [value(judged.low), value(judged.high)];
  const interval = low !== null && high !== null && `${ratio(low)}–${ratio(high)}`;
  const more = judged.more_repeats === undefined ? "; too noisy to decide here" : `; ${counted(judged.more_repeats, "more repeat")} would probably decide`;
  const scope = judged.scope === "this-load" ? " for this load" : "";
  const decided = `95% interval of the ratio: decided${scope}`;
  const [words, title] = {
    better: [`${interval || "better"}${scope}`, decided],
    worse: [`${interval || "worse"}${scope}`, decided],
    differs: [`${interval || "differs"}${scope}`, decided],
    same: [`the same${scope}`, `within 1%: ${interval || ""}`],
    undecided: ["not decided", undecided(judged, interval, more)],
    "single-run": ["single run", "one repeat decides nothing"],
    void: ["void", judged.lacking ?? "both are the same engine"],
  }[judged.change];
  return h("span", { class: `conclusion ${judged.change}`, title: title ?? "" }, words ?? "");
}

interface Cell {
  /** The number in its column's unit. */
  shown: (number: number) => string;
  /** The number with all its digits. */
  whole: (number: number) => string;
  /** The baseline's number; null if there is nothing to compare. */
  base: number | null | undefined;
  /** The ratio to the baseline with its verdict, if the loops have one. */
  judged: Ratio | undefined;
  largest: number;
  best: boolean;
}

/** `head` names the cell on a narrow screen, which shows each engine as a card. */
function figureCell(footnotes: Footnotes, head: string, figure: Figure | undefined, { shown, whole, base, judged, largest, best }: Cell): HTMLElement {
  const median = value(figure?.median);
  if (median === null) return h("td", { "data-head": head }, footnotes.dash(reason(figure?.median)));
  const repeats = numbers(figure).map(whole);
  const starts = (figure?.starts ?? []).map((of) => of.map((start) => (value(start) === null ? "–" : whole(value(start) ?? 0))).join(" and "));
  const spread = figure?.spread ? `; repeats: ${repeats.join(", ")}${starts.length > 0 ? `; their starts: ${starts.join(", ")}` : ""}; largest over smallest less one: ${percent(figure.spread.range)}` : "";
  // Negative values have no bar and no ratio.
  const share = largest >= RESOLUTION ? Math.max(0, Math.min(100, (100 * median) / largest)) : 0;
  const relative = base && base >= RESOLUTION && median >= 0 ? ratio(median / base) : null;
  return h(
    "td",
    { class: best ? "best" : "", "data-head": head, title: `${whole(median)}${spread}` },
    h("span", { class: "value" }, shown(median)),
    h("span", { class: "ratio" }, ...(relative === null ? ["\u00a0"] : [relative, h("span", { class: "times" }, "×")])),
    relative !== null && conclusion(judged),
    h("span", { class: "bar", style: `--share: ${share.toFixed(1)}%` }),
  );
}

/** The spread of the repeats of each engine. */
export function spreadTable(context: Context, columns: Column[], pick: (row: Row) => PhaseFigures | null): HTMLElement | null {
  const rows = context.rows().filter((row) => (pick(row)?.repeats.length ?? 0) > 1);
  if (rows.length === 0) return null;
  const body = rows.map((row) => {
    const cells = columns.map((column) => {
      const spread = pick(row)?.metrics[column.metric]?.spread;
      return h("td", {}, spread ? `${percent(spread.range)} (${percent(spread.cv)})` : "–");
    });
    return h("tr", {}, h("th", { scope: "row" }, marker(context.look(row.engine)), ` ${context.label(row.engine)}`), ...cells);
  });
  const heads = columns.map((column) => h("th", { scope: "col" }, column.head));
  const table = h("table", {}, h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "engine"), ...heads)), h("tbody", {}, ...body));
  return h(
    "details",
    {},
    h("summary", {}, "Repeat to repeat"),
    h("p", { class: "about" }, "Largest over smallest, less one, and in brackets the coefficient of variation."),
    scrolling("spread of the repeats", table),
  );
}
