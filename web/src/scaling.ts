// The load ladder: figures over the number of clients, if the experiment has several.

import { warningsAbout } from "./conditions";
import type { Context } from "./context";
import { alone, clientCounts, value } from "./data";
import { choice, h, section } from "./dom";
import { whole } from "./format";
import { type Series, type Varied, bandsInWords, ladderPanel } from "./ladder";
import { lookOf, sample } from "./look";
import { metricName } from "./names";
import { opNames } from "./spectrum";
import { choose, current } from "./state";

/** The cost of an operation, below the rates and the times. */
export const COSTS = ["cpu_us_per_op", "wkb_per_op_with_drain"];
/** The metrics of the ladder in addition to the rates that a workload reports. */
const OTHERS = ["ops_per_s", "retries_per_op", "reads_per_op", "host_cpu_percent"];

/** The rates of the workload's specification, such as `tpmC`, then the rates of every workload. */
export function ladderMetrics(context: Context): string[] {
  const present = new Set(context.data.summary.rows.flatMap(({ run }) => Object.entries(run?.metrics ?? {}).flatMap(([name, figure]) => (value(figure.median) === null ? [] : [name]))));
  const rates = [...present].filter((name) => /^tpm[A-Za-z0-9]+(_percent)?$/.test(name)).sort();
  return [...rates, ...OTHERS.filter((name) => present.has(name))];
}

/** The selected metric, and the response times next to it. */
export function chosenMetrics(): [string, string] {
  return [current().ladder, `${current().op}.p99_ms`];
}

/** The lists for the metric and for the operation whose times are next to it. */
export function pickers(context: Context): HTMLElement {
  const [metrics, ops] = [ladderMetrics(context), opNames(context)];
  const metric = choice("metric", metrics.map((name) => ({ value: name, text: metricName(name) })), current().ladder, (ladder) => choose({ ladder }));
  const operation = choice("operation", ops.map((op) => ({ value: op, text: op })), current().op, (op) => choose({ op }));
  return h("div", { class: "choices" }, metrics.length > 1 && metric, ops.length > 1 && operation);
}

/** The engines in a test of a suite, or all engines without a suite. */
function seriesOf(context: Context, test: string | undefined): Series[] {
  const rows = context.data.summary.rows.filter((row) => row.test === test && row.run !== null && context.shown(row.engine));
  return [...new Set(rows.map((row) => row.engine))].flatMap((engine) => {
    const own = rows.filter((row) => row.engine === engine);
    const [first] = own;
    if (!first) return [];
    // An engine has the same look in every test.
    const look = test === undefined ? context.look(engine) : lookOf(Math.max(0, context.alone.indexOf(alone(first))));
    return [{ look, points: own.map((row) => ({ at: row.clients, row })) }];
  });
}

export function scalingSection(context: Context): HTMLElement | null {
  const counts = clientCounts(context.data);
  if (counts.length < 2) return null;
  const varied: Varied = { name: "clients", values: counts.map((at) => ({ at, text: whole(at) })) };
  const tests = [...new Set(context.data.summary.rows.filter((row) => row.run !== null).map((row) => row.test))];
  const all = tests.map((test) => ({ test, series: seriesOf(context, test) }));
  const groups = all.map(({ test, series }) => {
    const panels = (metrics: string[], height: number) => h("div", { class: "halves" }, ...metrics.flatMap((metric) => ladderPanel(context, "ladder", varied, series, metric, height)));
    return h("div", {}, test !== undefined && h("h3", {}, test), panels(chosenMetrics(), test === undefined ? 320 : 220), panels(COSTS, 200));
  });
  // The key above the page names each engine once per test.
  const key = context.tests.length > 0 && h("ul", { class: "key" }, ...context.alone.map((engine, index) => h("li", {}, sample(lookOf(index)), engine)));
  const bands = bandsInWords(all.flatMap(({ series }) => series), [...chosenMetrics(), ...COSTS]);
  return section(
    "scaling",
    "How far does it scale?",
    `Lines join the medians of the repeats, which are the points around them${bands}. The axis of clients is logarithmic. The other axis begins at zero, except for times.`,
    warningsAbout(context, [current().ladder, "p99_ms"]),
    pickers(context),
    key,
    ...groups,
  );
}
