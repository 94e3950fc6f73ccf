// Background work of the engines: checkpoints, flushes and compactions, each as a line for its duration.

import type uPlot from "uplot";
import { type Line, chart } from "./chart";
import { TIMES, precedes } from "./clock";
import type { Context } from "./context";
import type { Trial } from "./data";
import { h } from "./dom";
import { unpacked } from "./packed";
import { saveButtons } from "./picture";
import { current } from "./state";

/** Short names for the axis; the first is the lowest. */
const KINDS: [kind: string, name: string][] = [
  ["compaction", "comp."],
  ["flush", "flush"],
  ["checkpoint", "chkp."],
];
/** The minimum length of a drawn line, as a part of the whole, so that it is visible. */
const SHORTEST = 1 / 400;
/** The height of an engine's line, and the distance between two kinds, pixels. */
const LINE = 7;
const BETWEEN = 8;

/** The intervals of a kind within the shown part, from its start. */
function stretches(trial: Trial, kind: string, end: number): [from: number, until: number][] {
  const origin = trial.timeline.phases.find(([name]) => precedes(name) === (current().part === "load"))?.[1];
  const ends = unpacked(trial.timeline.marks?.[kind]);
  if (origin === undefined) return [];
  const pairs = Array.from({ length: ends.length / 2 }, (_, index) => [(ends[2 * index] ?? 0) - origin, (ends[2 * index + 1] ?? 0) - origin] as [number, number]);
  return pairs.map(([from, until]): [number, number] => [Math.max(from, 0), Math.min(until, end)]).filter(([from, until]) => until > from);
}

/** A line at one height, with a gap between any two intervals. */
function line(context: Context, trial: Trial, height: number, found: [number, number][], end: number): Line {
  const x: number[] = [];
  const y: (number | null)[] = [];
  const put = (at: number, value: number | null) => {
    // With four digits, an interval can begin where the last has ended.
    if (at <= (x.at(-1) ?? -Infinity)) return;
    x.push(at);
    y.push(value);
  };
  found.forEach(([from, until], index) => {
    const next = found[index + 1]?.[0] ?? Infinity;
    const drawn = Math.min(Math.max(until, from + end * SHORTEST), (until + next) / 2);
    put(from, height);
    put(drawn, height);
    if (next < Infinity) put((drawn + next) / 2, null);
  });
  // A dash would look like an end. The position of the line also identifies its engine.
  return { trial, look: { ...context.look(trial.engine), dash: [] }, width: 4, main: true, x, y };
}

/** The panel for the engines' median repeats, or nothing if no engine reported such work. */
export function marksPanel(context: Context, end: number): HTMLElement | null {
  const mains = context.trials().filter(({ main }) => main);
  const all = mains.map(({ trial }) => new Map(KINDS.map(([kind]) => [kind, stretches(trial, kind, end)])));
  const kinds = KINDS.filter(([kind]) => all.some((of) => (of.get(kind) ?? []).length > 0));
  if (kinds.length === 0) return null;
  const lines = kinds.flatMap(([kind], row) =>
    mains.flatMap(({ trial }, index) => {
      const found = all[index]?.get(kind) ?? [];
      return found.length > 0 ? [line(context, trial, row + (0.1 + 0.8 * ((mains.length - index - 0.5) / mains.length)), found, end)] : [];
    }),
  );
  const height = kinds.length * (LINE * mains.length + BETWEEN) + 20;
  const holder = h("div", { class: "chart", style: `height: ${height}px` });
  const title = "Checkpoints, flushes and compactions";
  chart(context, holder, lines, {
    height,
    x: { incrs: TIMES, values: (_: uPlot, splits: number[]) => splits.map(() => ""), size: 10 },
    y: { splits: () => kinds.map((_, row) => row + 0.5), values: () => kinds.map(([, name]) => name), grid: { show: false } },
    yRange: [0, kinds.length],
    xRange: [0, end],
    sync: "timeline",
  });
  const head = h("div", { class: "panel-head" }, h("h3", {}, title, h("span", { class: "unit" }, "by the engines' own counters: a bar while one goes on, of each engine in the order of the key")), saveButtons(context, "timeline-marks", title));
  return h("div", { class: "panel", "data-series": "marks" }, head, holder);
}
