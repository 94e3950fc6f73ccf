// Tables of figures per engine: the absolute value, its length from zero, and
// its ratio to the baseline.

import type { Context } from "./context";
import { type Figure, type PhaseFigures, type Row, numbers, reason, value } from "./data";
import { h, scrolling } from "./dom";
import { Footnotes } from "./footnotes";
import { bytes, percent, ratio, significant } from "./format";
import { marker } from "./look";
import { choose, current } from "./state";

export interface Column {
  head: string;
  metric: string;
  /** A unit in place of the metric's own. */
  unit?: string;
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
  const heads = columns.map((column) => {
    const unit = column.unit ?? context.unit(column.metric);
    return h("th", { scope: "col", title: context.help(column.metric) }, column.head, h("span", { class: "unit" }, unit));
  });
  const body = rows.map((row) => {
    const cells = columns.map((column) => {
      const measures = rows.filter((other) => context.keepsData(other.engine));
      const largest = Math.max(...(measures.length > 0 ? measures : rows).map((other) => median(other, column) ?? 0));
      const figure = pick(row)?.metrics[column.metric];
      return figureCell(context, footnotes, column, figure, base && median(base, column), largest, isBest(context, rows, row, column, median));
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
): boolean {
  const better = context.better(column.metric);
  const own = median(row, column);
  const fit = rows.filter((other) => other.broken.length === 0 && context.keepsData(other.engine));
  if (better === "neither" || own === null || fit.length < 2 || !fit.includes(row)) return false;
  // A tie has no best, and neither has a column that an engine has no figure in.
  const others = fit.filter((other) => other !== row).map((other) => median(other, column));
  return others.every((other) => other !== null && (better === "more" ? other < own : other > own));
}

function figureCell(
  context: Context,
  footnotes: Footnotes,
  column: Column,
  figure: Figure | undefined,
  base: number | null | undefined,
  largest: number,
  best: boolean,
): HTMLElement {
  const median = value(figure?.median);
  if (median === null) return h("td", {}, footnotes.dash(reason(figure?.median)));
  const unit = context.unit(column.metric);
  const repeats = numbers(figure).map((number) => (unit === "B" ? bytes(number) : significant(number)));
  const spread = figure?.spread ? `; repeats: ${repeats.join(", ")}; largest over smallest less one: ${percent(figure.spread.range)}` : "";
  const shown = unit === "B" ? bytes(median) : significant(median);
  const share = largest > 0 ? Math.min(100, (100 * median) / largest) : 0;
  const relative = base ? ratio(median / base) : "";
  return h(
    "td",
    { class: best ? "best" : "", title: `${shown}${spread}` },
    h("span", { class: "value" }, shown),
    h("span", { class: "ratio" }, relative),
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
