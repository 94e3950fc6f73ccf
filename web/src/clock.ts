// The time axis of all engines, which starts with the warmup or with the load.

import type { Trial } from "./data";
import { tick } from "./format";
import { current } from "./state";

export type Span = [name: string, start: number, end: number];

/** Whether a phase prepares the data. These phases are shown separately from the measured ones. */
export const precedes = (name: string) => name === "load" || name === "settle" || name === "age";

/** The phases of a part, counted from its start. */
export function spans(trial: Trial): Span[] {
  const load = current().part === "load";
  const of = trial.timeline.phases.filter(([name]) => {
    const before = precedes(name);
    return load ? before : !before && name !== "verify";
  });
  const origin = of[0]?.[1] ?? 0;
  return of.map(([name, start, end]) => [name, start - origin, end - origin]);
}

/** Seconds between ticks. */
export const TIMES = [1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1200, 1800, 3600, 7200, 14400];

/** Seconds, or minutes on a long axis. */
export function clock(at: number, end: number): string {
  if (end < 600) return `${tick(at)} s`;
  const rest = Math.round(at % 60);
  return rest ? `${Math.floor(at / 60)}:${String(rest).padStart(2, "0")}` : `${Math.floor(at / 60)} min`;
}
