// The page: its sections, and the choices that redraw each section.

import "./style.css";
import { dispose } from "./chart";
import { bytesSection } from "./bytes";
import { claimsSection } from "./claims";
import { conditionsSection, debtTable, warningsAbout } from "./conditions";
import { contentionSection } from "./contention";
import { contents } from "./contents";
import { Context } from "./context";
import { clientCounts, readData, value } from "./data";
import { choice, h, rememberView, section } from "./dom";
import { gaugeNames, gaugesSection } from "./gauges";
import { readHistory } from "./history-data";
import { showHistory } from "./history";
import { headerSection, problemsSection } from "./header";
import { flameSection } from "./flame";
import { engineKey } from "./key";
import { latencySection } from "./latency";
import { follow } from "./live";
import { comparedMetrics, matrixSection } from "./matrix";
import { saveButtons } from "./picture";
import { offerPictures } from "./pictures";
import { multiplesSection } from "./multiples";
import { promisesSection } from "./promises";
import { rumSection } from "./rum";
import { ladderMetrics, scalingSection } from "./scaling";
import { searchSection } from "./search";
import { opNames, spectrumSection } from "./spectrum";
import { type Key, type State, begin, choose, current, lasting, onChange } from "./state";
import { stepsSection } from "./steps";
import { sweepSection } from "./sweep";
import { type Column, figureTable, spreadTable } from "./table";
import { throughputSection } from "./throughput";
import { timelineSection } from "./timeline";
import { verdictsSection } from "./verdicts";

const COST: Column[] = [
  { head: "operations", metric: "ops_per_s", unit: "per s" },
  { head: "reads", metric: "reads_per_op", unit: "per op" },
  { head: "read", metric: "rkb_per_op", unit: "KB/op" },
  { head: "writes", metric: "writes_per_op", unit: "per op" },
  { head: "written", metric: "wkb_per_op", unit: "KB/op" },
  { head: "with drain", metric: "wkb_per_op_with_drain", unit: "KB/op" },
  { head: "CPU", metric: "cpu_us_per_op", unit: "µs/op" },
  { head: "with drain", metric: "cpu_us_per_op_with_drain", unit: "µs/op" },
  { head: "of server", metric: "server_cpu_us_per_op", unit: "µs/op", share: true },
  { head: "of client", metric: "client_cpu_us_per_op", unit: "µs/op", share: true },
  { head: "of host", metric: "host_cpu_us_per_op", unit: "µs/op" },
  { head: "with drain", metric: "host_cpu_us_per_op_with_drain", unit: "µs/op" },
  { head: "data", metric: "data_bytes", unit: "on disk" },
  { head: "with logs", metric: "size_bytes", unit: "on disk" },
  { head: "resident", metric: "rss_bytes", unit: "of memory" },
];

const LOAD: Column[] = [
  { head: "rows", metric: "ops_per_s", unit: "per s" },
  { head: "written", metric: "wkb_per_op", unit: "KB/row" },
  { head: "with settle", metric: "wkb_per_row_with_settle", unit: "KB/row" },
  { head: "write amp.", metric: "write_amp_with_settle", unit: "with settle" },
  { head: "CPU", metric: "cpu_us_per_op", unit: "µs/row" },
  { head: "with settle", metric: "cpu_us_per_row_with_settle", unit: "µs/row" },
  { head: "data", metric: "data_bytes", unit: "on disk" },
  { head: "with logs", metric: "size_bytes", unit: "on disk" },
  { head: "resident", metric: "rss_bytes", unit: "of memory" },
  { head: "of server", metric: "server_cpu_us_per_op", unit: "µs/op", share: true },
  { head: "of client", metric: "client_cpu_us_per_op", unit: "µs/op", share: true },
  { head: "host CPU", metric: "host_cpu_percent", unit: "% of all cores" },
];

/** The CPU's hardware counters, where they could be read. */
const HARDWARE: Column[] = [
  ...["server", "client", "kernel"].flatMap((owner) => [
    { head: `${owner} instructions`, metric: `${owner}_instructions_per_op` },
    { head: "cycles", metric: `${owner}_cycles_per_op` },
    { head: "per cycle", metric: `${owner}_ipc`, unit: "instructions" },
    { head: "LLC misses", metric: `${owner}_llc_misses_per_op` },
    { head: "dTLB misses", metric: `${owner}_dtlb_misses_per_op` },
  ]),
  { head: "counted", metric: "hardware_counted_percent", unit: "% of the time" },
];

/** The metrics of the engines' own counters, which have names such as `X_kb_per_op`, in words. */
function written(context: Context): Column[] {
  const names = context.data.metrics.map(({ name }) => name).filter((name) => /^[a-z][a-z0-9_]*_kb_per_op$/.test(name));
  return names.map((metric) => ({ head: metric.replace(/_kb_per_op$/, "").replaceAll("_", " "), metric, share: true }));
}

/** The growth on disk at the rates of the workload's specification: for each operation, and in eight hours. */
function growth(context: Context): Column[] {
  const rates = context.data.metrics.map(({ name }) => name).filter((name) => /^tpm[A-Za-z0-9]+$/.test(name));
  return rates.flatMap((rate) => [
    { head: `for ${rate}`, metric: `${rate}_growth_bytes_per_op` },
    { head: "in 8 hours", metric: `${rate}_growth_bytes_per_8h`, unit: "on disk" },
  ]);
}

interface Part {
  needs: Key[];
  render: (context: Context) => HTMLElement | null;
}

const PARTS: Part[] = [
  { needs: ["clients"], render: headerSection },
  { needs: ["clients", "baseline", "hidden"], render: toolbar },
  { needs: [], render: problemsSection },
  { needs: [], render: claimsSection },
  { needs: ["clients", "hidden", "ladder", "op"], render: scalingSection },
  { needs: ["clients", "hidden"], render: stepsSection },
  { needs: ["hidden"], render: searchSection },
  { needs: ["clients", "hidden", "ladder", "op"], render: sweepSection },
  { needs: ["clients", "hidden", "ladder", "op"], render: multiplesSection },
  { needs: ["clients", "baseline"], render: costSection },
  { needs: ["clients", "hidden"], render: bytesSection },
  { needs: ["baseline", "clients", "metric"], render: matrixSection },
  { needs: ["baseline", "clients", "judged"], render: verdictsSection },
  { needs: ["clients", "hidden"], render: rumSection },
  { needs: ["clients", "hidden", "op"], render: throughputSection },
  { needs: ["hidden"], render: contentionSection },
  { needs: ["clients", "part", "test", "hidden"], render: timelineSection },
  { needs: ["clients", "part", "test", "hidden", "gauge"], render: gaugesSection },
  { needs: ["clients", "op", "test", "hidden"], render: spectrumSection },
  { needs: ["clients", "time"], render: latencySection },
  { needs: ["clients", "baseline"], render: loadSection },
  { needs: ["clients"], render: promisesSection },
  { needs: ["clients", "baseline"], render: flameSection },
  { needs: ["clients"], render: conditionsSection },
];

function toolbar(context: Context): HTMLElement {
  const counts = clientCounts(context.data);
  const clients = choice(
    "clients",
    counts.map((count) => ({ value: String(count), text: String(count) })),
    String(current().clients),
    (value) => choose({ clients: Number(value) }),
  );
  const baseline = choice(
    "baseline",
    context.alone.map((engine) => ({ value: engine, text: context.label(engine) })),
    current().baseline,
    (value) => choose({ baseline: value }),
  );
  const flag = (engine: string) => {
    const isPartial = context.rows().some((row) => row.engine === engine && (row.run?.partial ?? row.run === null));
    return isPartial && h("span", { class: "flag", title: "no repeat has come to its end" }, "partial");
  };
  return h(
    "div",
    { class: "toolbar" },
    engineKey(context, flag),
    h("div", { class: "choices" }, counts.length > 1 && clients, context.alone.length > 1 && baseline),
  );
}

function costSection(context: Context): HTMLElement {
  return section(
    "cost",
    "Which is cheaper?",
    `Each figure is the median of all loops. Below it is the ratio to ${context.label(current().baseline)}, with a 95% interval once that is decided. A figure is bold if the test finds all other engines worse. Choose a row to compare with that engine. "With drain" includes deferred work: (warmup + loops + drain) / operations of warmup and loops.`,
    rates(context),
    warningsAbout(context, COST.map(({ metric }) => metric)),
    saveButtons(context, "cost", "the table"),
    figureTable(context, "cost", costColumns(context), (row) => row.run),
    spreadTable(context, COST, (row) => row.run),
    growthTable(context),
    writtenTable(context),
    tallyTable(context),
    hardwareTable(context),
    debtTable(context),
  );
}

/** The parts of the CPU are shown separately if an engine runs in a server. Otherwise the clients' CPU is the total. */
function costColumns(context: Context): Column[] {
  const isServer = context.rows().some((row) => value(row.run?.metrics["server_cpu_us_per_op"]?.median) !== null);
  return COST.filter(({ metric }) => isServer || !/^(server|client)_cpu/.test(metric));
}

/** The error rates of the verdicts below the ratios, if there are any. */
function rates(context: Context): HTMLElement | null {
  const { relative = [] } = context.data.summary;
  const judged = relative.flatMap(({ rows }) => rows).flatMap(({ metrics }) => metrics);
  const headline = (metric: string) => judged.some((ratio) => ratio.metric === metric && ratio.headline);
  const heads = COST.filter(({ metric }) => headline(metric)).map(({ head, unit }) => (head === "with drain" ? `${unit} ${head}` : head));
  if (heads.length === 0) return null;
  const listed = heads.length === 1 ? heads.join("") : `${heads.slice(0, -1).join(", ")} and ${heads.at(-1)}`;
  return h(
    "p",
    { class: "about rates" },
    `Each verdict on ${listed} is wrong in at most 5 of 100 cases. All other columns together have a false discovery rate of 5%: on average, at most one in twenty differences found there is not real.`,
  );
}

/** A table of more figures of the loops, folded; none without columns. */
function folded(context: Context, name: string, summary: string, about: string, columns: Column[], ...warnings: (HTMLElement | null)[]): HTMLElement | null {
  if (columns.length === 0) return null;
  const table = figureTable(context, name, columns, (row) => row.run);
  return h("details", { class: name }, h("summary", {}, summary), h("p", { class: "about" }, about), ...warnings, table);
}

/** The growth of the database, if the workload's specification reports a rate. */
function growthTable(context: Context): HTMLElement | null {
  const columns = growth(context);
  const about =
    "Growth from the end of the settle to the end of the drain, without logs. It is per operation of warmup, loops and backlog, and for eight hours at their rate. Files grow in pieces, so short runs show little.";
  return folded(context, "growth", "How much the database grows", about, columns, warningsAbout(context, columns.map(({ metric }) => metric)));
}

/** Bytes written by purpose, as the engines report them. */
function writtenTable(context: Context): HTMLElement | null {
  const rows = context.rows();
  const counted = written(context).filter(({ metric }) => rows.some((row) => (value(row.run?.metrics[metric]?.median) ?? 0) > 0));
  const about = "From the start of the warmup to the end of the drain, per operation of warmup and loops.";
  return folded(context, "written", "How much did the engines write, by their own counters?", about, counted);
}

/** The workload's own counters, which make metrics such as `rows_counted_per_op`. */
function tallyTable(context: Context): HTMLElement | null {
  const columns = context.data.metrics.flatMap(({ name }): Column[] => {
    const [, counter, per] = /^(.+)_counted_per_(op|s)$/.exec(name) ?? [];
    return counter === undefined ? [] : [{ head: counter.replaceAll("_", " "), metric: name, unit: `per ${per}` }];
  });
  const about = "Counters such as a script's rumba.count, per operation and per second of all loops.";
  return folded(context, "tallies", "The workload's own counters", about, columns);
}

/** The hardware counters, if some engine has any. */
function hardwareTable(context: Context): HTMLElement | null {
  const rows = context.rows();
  const counted = HARDWARE.filter(({ metric }) => rows.some((row) => value(row.run?.metrics[metric]?.median) !== null));
  const about =
    "Server and client in user mode, then both in kernel mode. LLC misses are loads that missed the last level cache. Counting costs time at each switch between threads. Events that were counted for a part of the time are scaled up.";
  return folded(context, "hardware", "Hardware counters", about, counted);
}

function loadSection(context: Context): HTMLElement {
  return section(
    "load",
    "What did the load cost?",
    'The cost of writing the rows and building the indexes. "With settle" includes deferred work: (load + settle) / rows, or bytes, loaded.',
    figureTable(context, "load", LOAD, (row) => row.load),
  );
}

/** Numbers of clients: first those that most rows have finished, and of these the largest first. */
function countsByFinished({ data }: Context): number[] {
  const finished = (clients: number) => data.summary.rows.filter((row) => row.clients === clients && row.run !== null && !row.run.partial).length;
  return clientCounts(data).sort((a, b) => finished(b) - finished(a) || b - a);
}

/** The available choices for these results. The first of each is the initial one. */
function choicesOf(context: Context): { baseline: string[]; clients: number[]; op: string[]; ladder: string[]; metric: string[]; gauge: string[]; test: string[] } {
  return {
    baseline: context.alone,
    clients: countsByFinished(context),
    op: opNames(context),
    ladder: ladderMetrics(context),
    metric: comparedMetrics(context),
    gauge: gaugeNames(context),
    test: context.tests,
  };
}

function defaults(context: Context): State {
  const { data } = context;
  const { clients, op, ladder, metric, gauge, test } = choicesOf(context);
  const nothingElse = data.keep_nothing.length === context.engines.length;
  return {
    baseline: data.baseline ?? "",
    clients: clients[0] ?? 1,
    op: op[0] ?? "",
    ladder: ladder[0] ?? "ops_per_s",
    metric: metric[0] ?? "ops_per_s",
    gauge: gauge[0] ?? "",
    time: "response",
    part: "run",
    judged: "headline",
    test: test[0] ?? "",
    hidden: nothingElse ? "" : data.keep_nothing.join(","),
  };
}

/** A link can come from other results, so unavailable choices fall back to the defaults. */
function accepted(context: Context, wanted: State): State {
  const [has, first] = [choicesOf(context), defaults(context)];
  const kept = <K extends keyof typeof has>(key: K): State[K] => ((has[key] as State[K][]).includes(wanted[key]) ? wanted[key] : first[key]);
  return {
    ...wanted,
    baseline: kept("baseline"),
    clients: kept("clients"),
    op: kept("op"),
    ladder: kept("ladder"),
    metric: kept("metric"),
    gauge: kept("gauge"),
    test: kept("test"),
  };
}

function start(): void {
  const page = document.getElementById("page");
  const data = readData();
  if (!page || !data) return;
  const context = new Context(data);
  begin(defaults(context), (wanted) => accepted(context, wanted));

  const holders = PARTS.map((part) => ({ part, holder: h("div", { class: "part" }) }));
  const draw = ({ part, holder }: (typeof holders)[number]) => {
    const restoreView = rememberView(holder);
    dispose(holder);
    const drawn = part.render(context);
    holder.replaceChildren(...(drawn ? [drawn] : []));
    restoreView();
  };
  dispose(page);
  page.replaceChildren(...holders.map(({ holder }) => holder));
  holders.forEach(draw);
  // The table of contents follows the header, and its links name the sections of these results.
  holders[0]?.holder.after(contents(page, lasting().signal));
  // Charts are drawn in the next frame. After it, the page responds.
  requestAnimationFrame(() => requestAnimationFrame(() => {
    performance.mark("drawn");
    void offerPictures(context);
  }));
  onChange((changed) => holders.filter(({ part }) => part.needs.some((key) => changed.has(key))).forEach(draw));
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => holders.forEach(draw), lasting());
}

const past = readHistory();
if (past) {
  showHistory(past);
} else {
  start();
  follow(start);
}
