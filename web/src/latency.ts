// Percentiles per operation type and engine.

import type { Context } from "./context";
import { type Figure, reason, value } from "./data";
import { h, scrolling, section } from "./dom";
import { Footnotes } from "./footnotes";
import { milliseconds, whole } from "./format";
import { marker } from "./look";
import { choose, current } from "./state";

const PERCENTILES = [
  ["mean_ms", "mean"],
  ["p50_ms", "p50"],
  ["p95_ms", "p95"],
  ["p99_ms", "p99"],
  ["p999_ms", "p99.9"],
  ["max_ms", "max"],
] as const;

function cell(figure: Figure | undefined, footnotes: Footnotes, show: (number: number) => string): HTMLElement {
  const median = value(figure?.median);
  return h("td", {}, median === null ? footnotes.dash(reason(figure?.median)) : show(median));
}

export function latencySection(context: Context): HTMLElement | null {
  const rows = context.rows().filter((row) => row.run !== null);
  const ops = [...new Set(rows.flatMap((row) => Object.keys(row.run?.op_types ?? {})))].sort();
  if (ops.length === 0) return null;
  const footnotes = new Footnotes();
  const { time } = current();
  const bodies = ops.map((op) => {
    const lines = rows.map((row, index) => {
      const figures = row.run?.op_types[op];
      const times = PERCENTILES.map(([name]) => cell(figures?.[time][name], footnotes, milliseconds));
      return h(
        "tr",
        {},
        index === 0 && h("th", { scope: "rowgroup", rowspan: String(rows.length), class: "op" }, op),
        h("th", { scope: "row", class: "of" }, h("span", { class: "engine" }, marker(context.look(row.engine)), context.label(row.engine))),
        cell(figures?.count, footnotes, whole),
        cell(figures?.retries, footnotes, whole),
        cell(figures?.errors, footnotes, whole),
        ...times,
      );
    });
    return h("tbody", {}, ...lines);
  });
  const heads = ["operation", "engine"].map((text) => h("th", { scope: "col", class: "text" }, text));
  const counts = ["done", "retried", "given up"].map((text) => h("th", { scope: "col" }, text));
  const times = PERCENTILES.map(([, text]) => h("th", { scope: "col" }, text, h("span", { class: "unit" }, "ms")));
  const table = h("table", { class: "latency" }, h("thead", {}, h("tr", {}, ...heads, ...counts, ...times)), ...bodies);
  const switcher = h(
    "div",
    { class: "switch", role: "group", "aria-label": "kind of time" },
    ...(["response", "service"] as const).map((which) =>
      h("button", { type: "button", "aria-pressed": String(time === which), click: () => choose({ time: which }) }, `${which} time`),
    ),
  );
  const about =
    "Medians of the repeats. Response time counts from when an operation was due, service time from when it began; a percentile that too few operations support is not shown.";
  return section("latency", "How long does each operation take?", about, switcher, scrolling("times per operation", table), footnotes.list());
}
