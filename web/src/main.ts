// The page: its sections, and which choices redraw which.

import "./style.css";
import { dispose } from "./chart";
import { claimsSection } from "./claims";
import { conditionsSection, debtTable } from "./conditions";
import { Context } from "./context";
import { clientCounts, readData, value } from "./data";
import { choice, h, section } from "./dom";
import { headerSection, problemsSection } from "./header";
import { flameSection } from "./flame";
import { latencySection } from "./latency";
import { follow } from "./live";
import { sample } from "./look";
import { promisesSection } from "./promises";
import { rumSection } from "./rum";
import { scalingSection } from "./scaling";
import { opNames, spectrumSection } from "./spectrum";
import { type Key, begin, choose, current, lasting, onChange } from "./state";
import { type Column, figureTable, spreadTable } from "./table";
import { timelineSection } from "./timeline";

const COST: Column[] = [
  { head: "operations", metric: "ops_per_s", unit: "per s" },
  { head: "reads", metric: "reads_per_op", unit: "per op" },
  { head: "read", metric: "rkb_per_op", unit: "KB/op" },
  { head: "writes", metric: "writes_per_op", unit: "per op" },
  { head: "written", metric: "wkb_per_op", unit: "KB/op" },
  { head: "with drain", metric: "wkb_per_op_with_drain", unit: "KB/op" },
  { head: "CPU", metric: "cpu_us_per_op", unit: "µs/op" },
  { head: "with drain", metric: "cpu_us_per_op_with_drain", unit: "µs/op" },
  { head: "host CPU", metric: "host_cpu_us_per_op", unit: "µs/op" },
  { head: "size", metric: "size_bytes", unit: "on disk" },
  { head: "of it logs", metric: "log_bytes", unit: "on disk", share: true },
  { head: "resident", metric: "rss_bytes", unit: "of memory" },
];

const LOAD: Column[] = [
  { head: "rows", metric: "ops_per_s", unit: "per s" },
  { head: "written", metric: "wkb_per_op", unit: "KB/row" },
  { head: "with settle", metric: "wkb_per_row_with_settle", unit: "KB/row" },
  { head: "write amp.", metric: "write_amp_with_settle", unit: "with settle" },
  { head: "CPU", metric: "cpu_us_per_op", unit: "µs/row" },
  { head: "with settle", metric: "cpu_us_per_row_with_settle", unit: "µs/row" },
  { head: "size", metric: "size_bytes", unit: "on disk" },
  { head: "of it logs", metric: "log_bytes", unit: "on disk", share: true },
  { head: "resident", metric: "rss_bytes", unit: "of memory" },
  { head: "host CPU", metric: "host_cpu_percent", unit: "% of all cores" },
];

/** The metrics that the engines' own counters make, by their names' rule: `X_kb_per_op`, in words. */
function written(context: Context): Column[] {
  const names = context.data.metrics.map(({ name }) => name).filter((name) => /^[a-z][a-z0-9_]*_kb_per_op$/.test(name));
  return names.map((metric) => ({ head: metric.replace(/_kb_per_op$/, "").replaceAll("_", " "), metric, share: true }));
}

interface Part {
  needs: Key[];
  render: (context: Context) => HTMLElement | null;
}

const PARTS: Part[] = [
  { needs: ["clients"], render: headerSection },
  { needs: [], render: problemsSection },
  { needs: [], render: claimsSection },
  { needs: ["clients", "baseline", "hidden"], render: toolbar },
  { needs: ["clients", "baseline"], render: costSection },
  { needs: ["clients", "hidden"], render: rumSection },
  { needs: ["hidden"], render: scalingSection },
  { needs: ["clients", "part", "hidden"], render: timelineSection },
  { needs: ["clients", "op", "hidden"], render: spectrumSection },
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
    context.alone.map((engine) => ({ value: engine, text: engine })),
    current().baseline,
    (value) => choose({ baseline: value }),
  );
  const keys = context.engines.map((engine) => {
    const shown = context.shown(engine);
    const title = shown ? "leave it out of the charts" : "show it in the charts";
    const button = { type: "button", "aria-pressed": String(shown), title, click: () => context.toggle(engine) };
    return h("li", {}, h("button", button, sample(context.look(engine)), engine));
  });
  return h(
    "div",
    { class: "toolbar" },
    h("ul", { class: "key", "aria-label": "engines: press to show or hide in the charts" }, ...keys),
    h("div", { class: "choices" }, counts.length > 1 && clients, context.alone.length > 1 && baseline),
  );
}

function costSection(context: Context): HTMLElement {
  const notes = context.rows().flatMap((row) => (row.run?.notes ?? []).map((note) => `${row.engine}: ${note}.`));
  return section(
    "cost",
    "Cost per operation",
    `Medians of all loops; below each, its ratio to ${current().baseline} and what the repeats say of it: a 95% interval once it is decided. Bold is what every other engine is found worse than. Choose another engine to compare with it. "With drain" charges the work that was put off: (warmup + loops + drain) / operations of warmup and loops.`,
    rates(context),
    figureTable(context, "cost", COST, (row) => row.run),
    notes.length > 0 && h("p", { class: "about" }, notes.join(" ")),
    spreadTable(context, COST, (row) => row.run),
    writtenTable(context),
    debtTable(context),
  );
}

/** How often the verdicts below the ratios err, where there are any. */
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
    `What is said of ${listed} is wrong in at most 5 of 100 cases each. All other columns bear a false discovery rate of 5% together: on average no more than one in twenty of those that are said to differ do not.`,
  );
}

/** What the engines themselves say that bytes were written for. */
function writtenTable(context: Context): HTMLElement | null {
  const rows = context.rows();
  const counted = written(context).filter(({ metric }) => rows.some((row) => (value(row.run?.metrics[metric]?.median) ?? 0) > 0));
  if (counted.length === 0) return null;
  return h(
    "details",
    {},
    h("summary", {}, "What was written, by the engines' own counters"),
    h("p", { class: "about" }, "Drain charged: from the start of the warmup to the end of the drain, per operation of warmup and loops."),
    figureTable(context, "written", counted, (row) => row.run),
  );
}

function loadSection(context: Context): HTMLElement {
  return section(
    "load",
    "Load",
    'What it took to write the rows and build the indexes, from the first row to the last. "With settle" charges the work that was put off: (load + settle) / rows, or bytes, loaded.',
    figureTable(context, "load", LOAD, (row) => row.load),
  );
}

function start(): void {
  const page = document.getElementById("page");
  const data = readData();
  if (!page || !data) return;
  const context = new Context(data);
  const counts = clientCounts(data);
  const ops = opNames(context);
  const first = { baseline: data.baseline ?? "", clients: counts.at(-1) ?? 1, op: ops[0] ?? "" };
  const nothingElse = data.keep_nothing.length === context.engines.length;
  const hidden = nothingElse ? "" : data.keep_nothing.join(",");
  begin({ ...first, time: "response", part: "run", hidden }, (wanted) => ({
    ...wanted,
    baseline: context.alone.includes(wanted.baseline) ? wanted.baseline : first.baseline,
    clients: counts.includes(wanted.clients) ? wanted.clients : first.clients,
    op: ops.includes(wanted.op) ? wanted.op : first.op,
  }));

  const holders = PARTS.map((part) => ({ part, holder: h("div", { class: "part" }) }));
  const draw = ({ part, holder }: (typeof holders)[number]) => {
    const focused = focusPath(holder);
    dispose(holder);
    const drawn = part.render(context);
    holder.replaceChildren(...(drawn ? [drawn] : []));
    refocus(holder, focused);
  };
  dispose(page);
  page.replaceChildren(...holders.map(({ holder }) => holder));
  holders.forEach(draw);
  onChange((changed) => holders.filter(({ part }) => part.needs.some((key) => changed.has(key))).forEach(draw));
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => holders.forEach(draw), lasting());
}

/** Where the keyboard's focus is among a part's controls, so that redrawing does not lose it. */
function focusPath(holder: HTMLElement): number {
  const controls = [...holder.querySelectorAll("button, select, input, summary")];
  return document.activeElement ? controls.indexOf(document.activeElement) : -1;
}

function refocus(holder: HTMLElement, index: number): void {
  const control = holder.querySelectorAll<HTMLElement>("button, select, input, summary")[index];
  if (index >= 0) control?.focus({ preventScroll: true });
}

start();
follow(start);
