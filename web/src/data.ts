// What the page shows. Mirrors `PageData` of crates/report/src/html.rs and the
// values of crates/results/src/comparison.rs.

import type { Packed } from "./packed";

/** A number, or the reason why there is none. */
export type Metric = number | { absent: string };

export interface Spread {
  range: number;
  cv: number;
}

/** One number of an engine over its repeats. */
export interface Figure {
  median: Metric;
  values: Metric[];
  /** The values behind these, of each start of each repeat, where a load has several starts. */
  starts?: Metric[][];
  spread: Spread | null;
  /** Where the centre of the repeats lies, by the exact test of the verdicts; from four repeats on. */
  centre?: { low: number; high: number; level: number };
}

export interface OpFigures {
  count: Figure;
  errors: Figure;
  retries: Figure;
  service: Record<string, Figure>;
  response: Record<string, Figure>;
}

export interface PhaseFigures {
  trials: number[];
  /** The repeat of each value. */
  repeats: number[];
  notes: string[];
  /** That no repeat came to its end: nothing is decided by these figures. */
  partial?: boolean;
  metrics: Record<string, Figure>;
  op_types: Record<string, OpFigures>;
}

/** One engine with one number of clients. */
export interface Row {
  /** With the test of a suite behind it: `innodb/point-query`. */
  engine: string;
  test?: string;
  registered: string;
  clients: number;
  load: PhaseFigures | null;
  run: PhaseFigures | null;
  broken: string[];
  /** Repeats whose data failed its verification, or did not come through it: they are in no figure. */
  unsound?: { trial: number; repeat: number; proof?: "failed" | "cut-off"; reason: string }[];
  /** Repeats whose load or run was suspended: that part is in no figure. */
  suspended?: { trial: number; repeat: number; part: "load" | "run"; reason: string }[];
}

/** What a ratio says, noise considered. */
export type Change = "better" | "worse" | "same" | "differs" | "undecided" | "single-run" | "void";

/** What a verdict holds for; `this-load` where repeats are starts of one load. */
export type Scope = "loads" | "this-load";

/** A figure over another, with the exact interval and its verdict. */
export interface Ratio {
  metric: string;
  headline: boolean;
  ratio: Metric;
  low?: number;
  high?: number;
  change: Change;
  /** What the verdict holds for, where that is not other loads too. */
  scope?: Scope;
  more_repeats?: number;
  /** Why no verdict is given although both have the figure. */
  lacking?: string;
}

/** A condition that two engines do not have alike. */
export interface Unequal {
  condition: "memory" | "storage" | "cache" | "page-cache" | "durability" | "compression";
  one: string;
  other: string;
}

/** The engines against one of them. */
/** Several verdicts, each of which is wrong in at most 5% of cases. */
export interface VerdictCount {
  verdicts: number;
  any_wrong: number;
}

/** A sentence about the verdicts of a section, with a space before it; nothing for fewer than two, or results of older versions. */
export function together(count: VerdictCount | undefined): string {
  if (count === undefined || count.verdicts < 2) return "";
  const percent = 100 * count.any_wrong;
  const share = percent > 99 ? "almost all" : `up to ${percent.toFixed(0)}% of`;
  return ` At least one of these ${count.verdicts} verdicts is wrong in ${share} such runs.`;
}

export interface Relative {
  baseline: string;
  headline_verdicts?: VerdictCount;
  rows: { engine: string; clients: number; unsound: string | null; comparability?: Unequal[]; metrics: Ratio[] }[];
}

/** Where a metric's level changed within the loops. */
export interface Course {
  settled: string;
  changes: { at_s: number; before: number; after: number }[];
}

export interface Warning {
  code: string;
  /** Metrics that must be read otherwise because of it. */
  undermines?: string[];
  /** How much it changes what a figure means. */
  rank?: "void" | "misleading" | "unsure" | "note";
  message: string;
  remedy: string;
}

/** One trial of a search; without a rate it was a closed loop. */
export interface Probe {
  rate: number | null;
  percentile_ms: Metric;
  found: "reference" | "kept" | "missed" | "disturbed" | "unknown";
}

/** A search for the highest rate that keeps a percentile of the response time below a limit. */
export interface Searched {
  engine: string;
  clients: number;
  repeat: number;
  search: { percentile: string; limit_ms: number };
  probes: Probe[];
  highest: Metric;
  confirmed: boolean;
  lowest_missed: Metric;
  ended: boolean;
}

/** A claim of the experiment with its verdict. */
export interface Judgement {
  text: string;
  source: string | null;
  holds: string;
  measure: string | null;
  published: number | null;
  verdict: "holds" | "fails" | "undecided" | "single-run" | "void" | "true-for-this-load" | "false-for-this-load";
  seen: boolean | null;
  test: string | null;
  more_repeats: number | null;
  reason: string;
  measured: Metric;
  interval: [number, number] | null;
}

export interface TrialName {
  trial: number;
  engine: string;
  clients: number;
  repeat: number;
}

/** What a warning is about: a trial, or all repeats of an engine together, which have no number. */
export interface About {
  trial: number | null;
  engine: string;
  clients: number;
  repeat: number | null;
}

export interface Verdict {
  clients: number;
  question: string;
  metric: string;
  engine: string;
  value: string;
  close: string[];
  single_run: boolean;
  scope?: Scope;
  left_out: string[];
  why_not_host?: string;
}

export interface MetricInfo {
  name: string;
  unit: string;
  better: "more" | "less" | "neither";
  help: string;
}

export interface Gauge {
  name: string;
  value: number;
}

/** A promise of transactions, and how it was kept. */
export interface Kept {
  name: string;
  short: string;
  outcome: "kept" | "anomaly" | "broken";
  how: string;
  seen: string;
}

export interface Phase {
  phase: string;
  seconds: number;
  ops: number;
  debt_start: Gauge[];
  debt_end: Gauge[];
  checks: { name: string; examined: number; wrong: number; examples: string[] }[];
  promises?: Kept[];
  recovery?: { acknowledged: number; lost: number; damage?: string[]; open_s: number };
}

export interface Series {
  name: string;
  values: Packed;
  absent: string | null;
}

export interface Timeline {
  at_s: number[];
  phases: [name: string, start: number, end: number][];
  /** When the trial was suspended, seconds since its start. */
  suspended?: [from: number, until: number][];
  /** When the engine wrote a checkpoint, flushed or compacted: from and until, one pair behind the other. */
  marks?: Record<string, Packed>;
  series: Series[];
  bucket_s: number | null;
}

export interface Trial {
  number: number;
  engine: string;
  registered: string;
  clients: number;
  repeat: number;
  ended: string | null;
  workload: string;
  version: string | null;
  /** Of an existing server it is not known, and a setting of the engine's own may say it in other terms. */
  cache_bytes: number | null;
  /** The same in words. */
  cache: string;
  durability: string;
  /** The settings of the engine's own that say these, by the common one in whose place each is. */
  set_by: Record<string, string>;
  compression: string | null;
  /** How its files are read; absent where that is not known. */
  reads?: string | null;
  settings: Record<string, string>;
  effective_settings: [string, string][];
  workload_settings: Record<string, string>;
  conditions: Record<string, string>;
  run: { load_clients: number; warmup_s: number; loops: number; loop_s: number; rate: number | null; seed: number };
  phases: Phase[];
  spectrum: Record<string, [percentile: number, ms: number][]>;
  /** Types whose spectrum ends where so many operations had not ended. */
  censored?: Record<string, number>;
  timeline: Timeline;
  /** What stood, or grew each second: at the ends of phases, and where the engine was looked at while clients worked. */
  gauges?: { at_s: number[]; looked?: boolean; levels: Record<string, Packed>; rates: Record<string, Packed> };
}

/** A frame: its name, how many samples passed through it, and what it called. */
export type Frame = [name: string, samples: number, callees: Frame[]];

/** Where the CPU of an engine went, over all repeats that were sampled. */
export interface Flame {
  engine: string;
  clients: number;
  samples: number;
  threads: Frame[];
}

/** Addresses from which the page of a run that goes on is kept up to date, relative to its own. */
export interface Live {
  data: string;
  events?: string;
  stop?: string;
  library: string;
}

export interface PageData {
  name: string;
  /** The name with what is compared. */
  title?: string;
  source: string | null;
  started: string;
  rumba: string;
  experiment: string;
  conditions: Record<string, string>;
  warnings: Warning[];
  missing: string[];
  summary: {
    rows: Row[];
    unfinished: TrialName[];
    remarks: (About & Warning)[];
    claims: Judgement[];
    claim_verdicts?: VerdictCount;
    relative?: Relative[];
    searches?: Searched[];
    steadiness?: (TrialName & { start_s: number; courses: Record<string, Course> })[];
  };
  /** Whom the others are compared with until the reader chooses. */
  baseline: string | null;
  /** Engines that keep no data: no measure for the others, and not drawn until asked for. */
  keep_nothing: string[];
  verdicts: Verdict[];
  /** What is said before anything is shown. */
  opening?: { found: string; undecided: string; careful: string; conditions: string };
  /** What engines are called on the page, where that is not their name: `MySQL 9.7.4` for `other/innodb`. */
  labels?: Record<string, string>;
  /** What the repeats started from, behind their number: what verdicts generalise over. */
  repeats_from?: string;
  metrics: MetricInfo[];
  trials: Trial[];
  flames?: Flame[];
  live?: Live;
}

let newer: PageData | null = null;

/** Puts newer data in the place of the island's. */
export function hold(data: PageData): void {
  newer = data;
}

/** The data of this page: of its island, or what has come since. */
export function readData(): PageData {
  if (newer) return newer;
  const island = document.getElementById("data");
  return JSON.parse(island?.textContent ?? "null") as PageData;
}

export function value(metric: Metric | undefined): number | null {
  return typeof metric === "number" ? metric : null;
}

export function reason(metric: Metric | undefined): string {
  if (metric === undefined) return "not measured";
  return typeof metric === "number" ? "" : metric.absent;
}

export function numbers(figure: Figure | undefined): number[] {
  return (figure?.values ?? []).filter((metric) => typeof metric === "number");
}

export function engines(data: PageData): string[] {
  return [...new Set(data.summary.rows.map((row) => row.engine))];
}

export function clientCounts(data: PageData): number[] {
  return [...new Set(data.summary.rows.map((row) => row.clients))].sort((a, b) => a - b);
}

/** A row's figure of the loops; `OP.p99_ms` is that of a type of operation. */
export function figureOf(row: Row | undefined, metric: string): Figure | undefined {
  const op = /^(.+)\.p99_ms$/.exec(metric)?.[1];
  return op === undefined ? row?.run?.metrics[metric] : row?.run?.op_types[op]?.response["p99_ms"];
}

/** The trial whose throughput is the median of its engine's: drawn strong, its siblings faint. */
export function mainTrial(row: Row): number | null {
  const figure = row.run?.metrics["ops_per_s"] ?? row.load?.metrics["ops_per_s"];
  const trials = (row.run ?? row.load)?.trials ?? [];
  const ranked = trials
    .map((trial, index) => ({ trial, ops: value(figure?.values[index]) }))
    .filter((entry) => entry.ops !== null)
    .sort((a, b) => (a.ops ?? 0) - (b.ops ?? 0));
  return ranked[Math.floor((ranked.length - 1) / 2)]?.trial ?? trials[0] ?? null;
}

/** A row's engine without the test of a suite. */
export function alone(row: Row): string {
  return row.test === undefined ? row.engine : row.engine.slice(0, -row.test.length - 1);
}
