// Throughput against latency: the response time at each rate, and rates that were not reached.

import { type Line, chart } from "./chart";
import { warningsAbout } from "./conditions";
import type { Context } from "./context";
import { type Row, type Trial, value } from "./data";
import { choice, h, section } from "./dom";
import { tick } from "./format";
import { saveButtons } from "./picture";
import { choose, current } from "./state";

const PERCENTILES = [
  { name: "p50_ms", title: "Median" },
  { name: "p99_ms", title: "99th percentile" },
  { name: "p999_ms", title: "99.9th percentile" },
] as const;

/** Below this share of the offered rate, the rate was missed, as for the warning `target-missed`. */
const MISSED = 0.95;

function missed(row: Row, trial: Trial | undefined, rate: number): boolean {
  const offered = trial?.clients === row.clients ? trial.run.rate : null;
  return offered !== null && offered !== undefined && rate < MISSED * offered;
}

/** One point for each number of clients, in order. */
function lines(context: Context, op: string, percentile: string): Line[] {
  const rows = context.data.summary.rows.filter((row) => row.run !== null && context.shown(row.engine));
  return [...new Set(rows.map(({ engine }) => engine))].flatMap((engine) => {
    const trials = context.data.trials.filter((trial) => trial.engine === engine);
    const [trial] = trials;
    const points = rows.filter((row) => row.engine === engine).flatMap((row) => {
      const rate = value(row.run?.metrics["ops_per_s"]?.median);
      const time = value(row.run?.op_types[op]?.response[percentile]?.median);
      if (rate === null || time === null || time <= 0) return [];
      const hollow = missed(row, trials.find(({ clients }) => clients === row.clients), rate);
      return [{ x: rate, y: time, hollow, name: String(row.clients) }];
    });
    if (!trial || points.length === 0) return [];
    const column = <K extends keyof (typeof points)[number]>(key: K) => points.map((point) => point[key]);
    return [{ trial, main: true, joined: true, x: column("x"), y: column("y"), hollow: column("hollow"), names: column("name") }];
  });
}

export function throughputSection(context: Context): HTMLElement | null {
  const ops = [...new Set(context.data.summary.rows.flatMap((row) => Object.keys(row.run?.op_types ?? {})))].sort();
  if (ops.length === 0) return null;
  const { op } = current();
  const panels = PERCENTILES.flatMap(({ name, title }) => {
    const found = lines(context, op, name);
    if (found.length === 0) return [];
    const holder = h("div", { class: "chart", style: "height: 230px" });
    const most = Math.max(...found.flatMap(({ x }) => x));
    chart(context, holder, found, {
      height: 230,
      x: { values: (_, splits) => splits.map((split) => tick(split)) },
      xRange: [0, most * 1.12],
      logarithmic: true,
    });
    const head = h("div", { class: "panel-head" }, h("h3", {}, title, h("span", { class: "unit" }, "ms, logarithmic, less is better")), saveButtons(context, `throughput-${name}`, title));
    return [h("div", { class: "panel" }, head, holder, h("p", { class: "axis" }, "operations per second, all types; more is better →"))];
  });
  if (panels.length === 0) return null;
  const operation = choice("operation", ops.map((name) => ({ value: name, text: name })), op, (chosen) => choose({ op: chosen }));
  return section(
    "throughput",
    "Which rate at which response time?",
    "Medians of the repeats, with the number of clients next to each point. A hollow point missed its offered rate by more than 5%, so its times grow for as long as it runs.",
    warningsAbout(context, ["p99_ms"]),
    operation,
    h("div", { class: "thirds" }, ...panels),
  );
}
