// The data of the page. Mirrors `PageData` of crates/report/src/html.rs and the
// values of crates/results/src/comparison.rs.

import { counted } from "./format";
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
  /** The values of each start of each repeat, if a load has several starts. */
  starts?: Metric[][];
  spread: Spread | null;
  /** The interval of the repeats' centre, by the exact test of the verdicts; needs four repeats. */
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
  /** No repeat has finished, so these figures decide nothing. */
  partial?: boolean;
  metrics: Record<string, Figure>;
  op_types: Record<string, OpFigures>;
}

/** Numbers of active clients: seconds since the loops' start, and the number from there on. */
export interface ClientSteps {
  points: [at_s: number, clients: number][];
}

/** One engine with one number of clients. */
export interface Row {
  /** With the test of a suite appended: `innodb/point-query`. */
  engine: string;
  test?: string;
  registered: string;
  clients: number;
  client_steps?: ClientSteps;
  load: PhaseFigures | null;
  run: PhaseFigures | null;
  broken: string[];
  /** Repeats whose verification failed or was interrupted. They are excluded from all figures. */
  unsound?: { trial: number; repeat: number; proof?: "failed" | "cut-off"; reason: string }[];
  /** Repeats whose load or run was paused. That part is excluded from all figures. */
  suspended?: { trial: number; repeat: number; part: "load" | "run"; reason: string }[];
}

/** The verdict on a ratio, with regard to noise. */
export type Change = "better" | "worse" | "same" | "differs" | "undecided" | "single-run" | "void";

/** The scope of a verdict; `this-load` if repeats are starts of one load. */
export type Scope = "loads" | "this-load";

/** The ratio of two figures, with its exact interval and verdict. */
export interface Ratio {
  metric: string;
  headline: boolean;
  ratio: Metric;
  low?: number;
  high?: number;
  change: Change;
  /** The scope of the verdict; absent for all loads. */
  scope?: Scope;
  more_repeats?: number;
  /** The reason for a missing verdict, if both engines have the figure. */
  lacking?: string;
}

/** A condition that differs between two engines. */
export interface Unequal {
  condition: "memory" | "storage" | "cpus" | "client-cpus" | "cache" | "page-cache" | "durability" | "compression";
  one: string;
  other: string;
}

/** Several verdicts, each of which is wrong in at most 5% of cases. */
export interface VerdictCount {
  verdicts: number;
  any_wrong: number;
}

/** A sentence about the verdicts of a section, with a leading space; empty for fewer than two, or for older results. */
export function together(count: VerdictCount | undefined): string {
  if (count === undefined || count.verdicts < 2) return "";
  const percent = 100 * count.any_wrong;
  const share = percent > 99 ? "almost all" : `up to ${percent.toFixed(0)}% of`;
  return ` At least one of these ${count.verdicts} verdicts is wrong in ${share} such runs.`;
}

/** The engines compared with one of them. */
export interface Relative {
  baseline: string;
  headline_verdicts?: VerdictCount;
  rows: { engine: string; clients: number; unsound: string | null; comparability?: Unequal[]; metrics: Ratio[] }[];
}

/** The changes of a metric's level within the loops. */
export interface Course {
  settled: string;
  changes: { at_s: number; before: number; after: number }[];
}

export interface Warning {
  code: string;
  /** The affected metrics. */
  undermines?: string[];
  /** The effect on the meaning of a figure. */
  rank?: "void" | "misleading" | "unsure" | "note";
  message: string;
  remedy: string;
}

/** One trial of a search; a closed loop if it has no rate. */
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

/** The subject of a warning: a trial, or all repeats of an engine together, without a number. */
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

/** A guarantee of transactions, and the outcome of its test. */
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
  /** The pauses of the trial, seconds since its start. */
  suspended?: [from: number, until: number][];
  /** The times of checkpoints, flushes and compactions, as a sequence of starts and ends. */
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
  /** Unknown for an existing server, and if the engine's own setting has another unit. */
  cache_bytes: number | null;
  /** The cache in words. */
  cache: string;
  durability: string;
  /** The engine's own settings that replace common ones, by the common name. */
  set_by: Record<string, string>;
  compression: string | null;
  /** How the engine reads its files; absent if unknown. */
  reads?: string | null;
  settings: Record<string, string>;
  effective_settings: [string, string][];
  workload_settings: Record<string, string>;
  conditions: Record<string, string>;
  /** The hosts of the clients, if they ran on several. */
  hosts?: ClientHost[];
  run: { load_clients: number; warmup_s: number; loops: number; loop_s: number; rate: number | null; seed: number; client_steps?: ClientSteps };
  phases: Phase[];
  spectrum: Record<string, [percentile: number, ms: number][]>;
  /** Operation types with a truncated spectrum, and the number of their unfinished operations. */
  censored?: Record<string, number>;
  /** Waits of clients in the loops by the engine's own names, microseconds per operation, the longest first. */
  waits?: [event: string, us: number][];
  timeline: Timeline;
  /** Levels and growth per second, at the ends of phases and at samples while clients worked. */
  gauges?: { at_s: number[]; looked?: boolean; levels: Record<string, Packed>; rates: Record<string, Packed> };
}

/** A client host in a trial. */
export interface ClientHost {
  name: string;
  about: string;
  cpus: number;
  clients: number;
  ops: number;
  start_skew_ms: Metric;
  round_trip_ms: Metric;
  late_frames: number;
  missing_frames: number;
  client_cpu_percent: Metric;
  host_cpu_percent: Metric;
  late_us_per_op: Metric;
  lost?: string;
}

/** A frame: its name, its number of samples, and its callees. */
export type Frame = [name: string, samples: number, callees: Frame[]];

/** The CPU profile of an engine, over all sampled repeats. */
export interface Flame {
  engine: string;
  clients: number;
  samples: number;
  threads: Frame[];
}

/** Addresses of updates for the page of a running experiment, relative to the page. */
export interface Live {
  data: string;
  events?: string;
  stop?: string;
  library: string;
}

export interface PageData {
  name: string;
  /** The name and the compared engines. */
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
  /** The initial baseline. */
  baseline: string | null;
  /** Engines that store no data. They are no reference for the others, and are hidden at first. */
  keep_nothing: string[];
  verdicts: Verdict[];
  /** The summary at the top of the page. */
  opening?: { found: string; undecided: string; careful: string; conditions: string };
  /** Labels that differ from the engines' names: `MySQL 9.7.4` for `other/innodb`. */
  labels?: Record<string, string>;
  /** The starting point of the repeats, shown after their number; the scope of the verdicts follows from it. */
  repeats_from?: string;
  metrics: MetricInfo[];
  trials: Trial[];
  flames?: Flame[];
  live?: Live;
}

let newer: PageData | null = null;

/** Replaces the embedded data by newer data. */
export function hold(data: PageData): void {
  newer = data;
}

/** The data of this page: the embedded data, or the last update. */
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

/** A row's clients in words: `4 clients`, or `1→4 clients` if their number changes within a trial. */
export function clientsInWords({ clients, client_steps }: Row): string {
  if (!client_steps) return counted(clients, "client");
  const numbers = client_steps.points.map(([, number]) => number);
  const short = [numbers[0], clients, numbers.at(-1)].filter((number, index, all) => number !== all[index - 1]);
  return `${short.join("→")} clients`;
}

/** A row's figure for the loops; `OP.p99_ms` is the figure of an operation type. */
export function figureOf(row: Row | undefined, metric: string): Figure | undefined {
  const op = /^(.+)\.p99_ms$/.exec(metric)?.[1];
  return op === undefined ? row?.run?.metrics[metric] : row?.run?.op_types[op]?.response["p99_ms"];
}

/** The trial with the median throughput of its engine. It is drawn strong, and the other repeats faint. */
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
