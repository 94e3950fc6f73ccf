// The data of a history page. Mirrors `HistoryPage` of crates/report/src/history_page.rs and the values of
// crates/results/src/history.rs.

import type { Change, Metric, MetricInfo, Scope } from "./data";

/** One run. */
export interface Run {
  directory: string;
  name: string;
  started: string;
  commit: string | null;
  committed: string | null;
}

/** One figure of an engine in one run. */
export interface Step {
  /** The run, by its position in `points`. */
  point: number;
  label: string;
  version: string | null;
  repeats: number;
  values: number[];
  median: Metric;
  against: { ratio: Metric; low: Metric; high: Metric; change: Change; scope: Scope } | null;
  unsound: string | null;
}

export interface LevelChange {
  after: string;
  at: string;
  from: number;
  to: number;
  p: number;
}

export type Axis = "version" | "commit" | "started";

/** One figure of an engine over the runs. */
export interface MetricLine {
  engine: string;
  clients: number;
  part: "load" | "run";
  metric: string;
  unit: string;
  by: Axis;
  steps: Step[];
  changes: LevelChange[];
}

export interface HistoryData {
  name: string;
  points: Run[];
  lines: MetricLine[];
  /** Conditions that differ between runs. */
  differ: string[];
  /** Sentences: the conditions of `--fail-if`, the changes of level, and the verdicts on the last runs. */
  gates: string[];
  moved: string[];
  last: string[];
  /** Runs that are not in the history, with the reasons. */
  left_out: string[];
  metrics: MetricInfo[];
  /** The address of the library, if a server made this page. */
  library?: string;
}

/** The history of this page, if it is one. */
export function readHistory(): HistoryData | null {
  const text = document.getElementById("data")?.textContent ?? "";
  // Other pages have large data, which need not be parsed here.
  return text.startsWith('{"history":') ? (JSON.parse(text) as { history: HistoryData }).history : null;
}
