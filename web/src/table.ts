// Tables of figures per engine: the absolute value, its length from zero, and
// its ratio to the baseline.

import type { Context } from "./context";
import { type Figure, type PhaseFigures, type Row, numbers, reason, value } from "./data";
import { h, scrolling } from "./dom";
import { Footnotes } from "./footnotes";
import { RESOLUTION, bytes, measured, percent, ratio, significant, sizeUnit } from "./format";
import { marker } from "./look";
import { choose, current } from "./state";

export interface Column {
  head: string;
  metric: string;
  /** A unit in place of the metric's own; of a size, what follows it: `MB on disk`. */
  unit?: string;
  /** A share of the column before it: no contest of its own. */
  share?: boolean;
}

/** The name of an engine with its marker; a click makes it the baseline. */
function engineHead(context: Context, row: Row, group: string): HTMLElement {
  const chosen = current().baseline === row.engine;
  const radio = h("input", {
    type: "radio",
    name: `baseline-${group}`,
    value: row.engine,
    checked: chosen,
    change: () => choose({ baseline: row.engine }),
  });
  const broken = row.broken.length > 0 && h("span", { class: "flag" }, "data inconsistent");
  return h(
    "th",
    { scope: "row" },
    h("label", { class: "engine", title: "compare with this engine" }, radio, marker(context.look(row.engine)), row.engine, broken),
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
  const base = rows.find((row) => row.engine === current().baseline);
  const median = (row: Row, column: Column) => value(pick(row)?.metrics[column.metric]?.median);
  const isSize = (column: Column) => context.unit(column.metric) === "B";
  const size = sizeUnit(Math.max(0, ...columns.filter(isSize).flatMap((column) => rows.map((row) => median(row, column) ?? 0))));
  const heads = columns.map((column) => {
    const own = column.unit ?? context.unit(column.metric);
    const unit = isSize(column) ? `${size.name} ${own}` : own;
    return h("th", { scope: "col", title: context.help(column.metric) }, column.head, h("span", { class: "unit" }, unit));
  });
  const body = rows.map((row) => {
    const cells = columns.map((column) => {
      const measures = rows.filter((other) => context.keepsData(other.engine));
      const largest = Math.max(...(measures.length > 0 ? measures : rows).map((other) => median(other, column) ?? 0));
      const figure = pick(row)?.metrics[column.metric];
      const shown = (number: number) => measured(isSize(column) ? number / size.bytes : number);
      const best = isBest(context, rows, row, column, median, shown);
      return figureCell(footnotes, figure, { shown, whole: isSize(column) ? bytes : significant, base: column.share ? null : base && median(base, column), largest, best });
    });
    const attributes = { class: row.engine === current().baseline ? "baseline" : "" };
    return h("tr", { ...attributes, click: () => choose({ baseline: row.engine }) }, engineHead(context, row, group), ...cells);
  });
  const table = h(
    "table",
    { class: "figures" },
    h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "engine"), ...heads)),
    h("tbody", {}, ...body),
  );
  return h("div", {}, scrolling(`figures of the ${group}`, table), footnotes.list());
}

function isBest(
  context: Context,
  rows: Row[],
  row: Row,
  column: Column,
  median: (row: Row, column: Column) => number | null,
  shown: (number: number) => string,
): boolean {
  const better = context.better(column.metric);
  const own = median(row, column);
  const fit = rows.filter((other) => other.broken.length === 0 && context.keepsData(other.engine));
  if (column.share || better === "neither" || own === null || fit.length < 2 || !fit.includes(row)) return false;
  // A tie has no best, and neither has a column that an engine has no figure in, or only noise.
  const others = fit.filter((other) => other !== row).map((other) => median(other, column));
  const noise = [own, ...others].every((other) => other !== null && other < RESOLUTION);
  const beats = (other: number) => (better === "more" ? own > other * CLEARLY : other > own * CLEARLY) && shown(other) !== shown(own);
  return !noise && others.every((other) => other !== null && beats(other));
}

/** Figures within a percent of each other have no winner. */
const CLEARLY = 1.01;

interface Cell {
  /** The number in its column's unit. */
  shown: (number: number) => string;
  /** The number with all that is known of it. */
  whole: (number: number) => string;
  /** The baseline's number; null where there is nothing to compare. */
  base: number | null | undefined;
  largest: number;
  best: boolean;
}

function figureCell(footnotes: Footnotes, figure: Figure | undefined, { shown, whole, base, largest, best }: Cell): HTMLElement {
  const median = value(figure?.median);
  if (median === null) return h("td", {}, footnotes.dash(reason(figure?.median)));
  const repeats = numbers(figure).map(whole);
  const spread = figure?.spread ? `; repeats: ${repeats.join(", ")}; largest over smallest less one: ${percent(figure.spread.range)}` : "";
  const share = largest >= RESOLUTION ? Math.min(100, (100 * median) / largest) : 0;
  const relative = base && base >= RESOLUTION ? ratio(median / base) : null;
  return h(
    "td",
    { class: best ? "best" : "", title: `${whole(median)}${spread}` },
    h("span", { class: "value" }, shown(median)),
    h("span", { class: "ratio" }, ...(relative === null ? ["\u00a0"] : [relative, h("span", { class: "times" }, "×")])),
    h("span", { class: "bar", style: `--share: ${share.toFixed(1)}%` }),
  );
}

/** How far the repeats of each engine lie apart. */
export function spreadTable(context: Context, columns: Column[], pick: (row: Row) => PhaseFigures | null): HTMLElement | null {
  const rows = context.rows().filter((row) => (pick(row)?.trials.length ?? 0) > 1);
  if (rows.length === 0) return null;
  const body = rows.map((row) => {
    const cells = columns.map((column) => {
      const spread = pick(row)?.metrics[column.metric]?.spread;
      return h("td", {}, spread ? `${percent(spread.range)} (${percent(spread.cv)})` : "–");
    });
    return h("tr", {}, h("th", { scope: "row" }, marker(context.look(row.engine)), ` ${row.engine}`), ...cells);
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
