// The relative matrix: every test, number of clients or metric compared with the baseline.

import type { Context } from "./context";
import { type Change, type Ratio, value } from "./data";
import { choice, h, scrolling, section } from "./dom";
import { counted, ratio as shown } from "./format";
import { lookOf, marker } from "./look";
import { metricName, unitAndDirection } from "./names";
import { saveButtons } from "./picture";
import { choose, current } from "./state";

/** A factor of eight has the strongest colour. */
const FULL = 3;

interface Line {
  head: string;
  unit: string;
  test: string | undefined;
  clients: number;
  metric: string;
}

/** The conclusion, as a word below a ratio. */
const WORDS: Record<Change, string> = { better: "better", worse: "worse", same: "the same", differs: "differs", undecided: "not decided", "single-run": "single run", void: "void" };

function named(engine: string, test: string | undefined): string {
  return test === undefined ? engine : `${engine}/${test}`;
}

/** The tests and numbers of clients that have figures. */
function combinations(context: Context): { test: string | undefined; clients: number }[] {
  const seen = new Map(context.data.summary.rows.filter(({ run }) => run !== null).map(({ test, clients }) => [`${test ?? ""} ${clients}`, { test, clients }]));
  return [...seen.values()].sort((a, b) => (a.test ?? "").localeCompare(b.test ?? "") || a.clients - b.clients);
}

export function comparedMetrics(context: Context): string[] {
  return [...new Set((context.data.summary.relative ?? []).flatMap(({ rows }) => rows).flatMap(({ metrics }) => metrics.map(({ metric }) => metric)))];
}

function linesOf(context: Context): Line[] {
  const places = combinations(context);
  if (places.length > 1) {
    const several = new Set(places.map(({ clients }) => clients)).size > 1;
    return places.map(({ test, clients }) => ({
      head: test ?? counted(clients, "client"),
      unit: test !== undefined && several ? counted(clients, "client") : "",
      test,
      clients,
      metric: current().metric,
    }));
  }
  const [place] = places;
  return place ? comparedMetrics(context).map((metric) => ({ head: metricName(metric), unit: unitAndDirection(context, metric), ...place, metric })) : [];
}

function paint({ change, ratio }: Ratio): string {
  const factor = value(ratio);
  if (factor === null || factor <= 0 || (change !== "better" && change !== "worse")) return "";
  const strength = 14 + 56 * Math.min(1, Math.abs(Math.log2(factor)) / FULL);
  return `background: color-mix(in srgb, var(--${change}) ${strength.toFixed(0)}%, var(--paper))`;
}

function cell(judged: Ratio | undefined): HTMLElement {
  const factor = value(judged?.ratio);
  if (judged === undefined || factor === null) return h("td", { class: "absent" }, "–");
  const [low, high] = [value(judged.low), value(judged.high)];
  const interval = low !== null && high !== null ? `${shown(low)}–${shown(high)}` : "";
  const decided = judged.change === "better" || judged.change === "worse" || judged.change === "differs";
  const title = `${WORDS[judged.change]}${interval ? `, 95% interval ${interval}` : ""}`;
  return h("td", { class: `ratio-cell ${judged.change}`, style: paint(judged), title }, shown(factor), h("span", { class: "unit" }, decided && interval ? interval : WORDS[judged.change]));
}

export function matrixSection(context: Context): HTMLElement | null {
  const metrics = comparedMetrics(context);
  const lines = linesOf(context);
  const { baseline, metric } = current();
  // The baseline has no column, because it would contain only 1.00.
  const engines = context.alone.filter((engine) => engine !== baseline);
  if (metrics.length === 0 || lines.length === 0 || engines.length === 0) return null;
  const body = lines.map((line) => {
    const cells = engines.map((engine) => {
      return cell(context.ratio(baseline, named(engine, line.test), line.clients, line.metric));
    });
    return h("tr", {}, h("th", { scope: "row" }, line.head, line.unit !== "" && h("span", { class: "unit" }, line.unit)), ...cells);
  });
  const isSuite = lines.some(({ test }) => test !== undefined);
  // An engine has the same look in every test.
  const look = (engine: string) => (isSuite ? lookOf(context.alone.indexOf(engine)) : context.look(engine));
  const heads = engines.map((engine) => h("th", { scope: "col" }, h("span", { class: "engine" }, marker(look(engine)), context.label(engine))));
  const overMetrics = combinations(context).length > 1;
  const table = h("table", { class: "matrix" }, h("thead", {}, h("tr", {}, h("th", { scope: "col" }, overMetrics ? metricName(metric) : "metric", overMetrics && h("span", { class: "unit" }, unitAndDirection(context, metric))), ...heads)), h("tbody", {}, ...body));
  const picker = overMetrics && choice("metric", metrics.map((name) => ({ value: name, text: metricName(name) })), metric, (chosen) => choose({ metric: chosen }));
  return section(
    "matrix",
    "How does each compare with the baseline?",
    `Each figure is divided by that of ${context.label(baseline)}. Blue is better and orange is worse; a factor of eight has the full colour. Ratios within the noise, within 1%, or from a single run have no colour. Below a decided ratio is its 95% interval.`,
    saveButtons(context, "matrix", "the matrix"),
    picker,
    scrolling("ratios to the baseline", table),
  );
}
