// Figures over a setting with a list of numbers, and the points where engines cross.

import type { Line } from "./chart";
import type { Context } from "./context";
import { type Row, alone, figureOf, value } from "./data";
import { h, section } from "./dom";
import { bytes, significant } from "./format";
import { type Series, type Varied, bandOf, bandsInWords, ladderPanel, place } from "./ladder";
import { type Look, lookOf, marker } from "./look";
import { metricName } from "./names";
import { withKey } from "./picture";
import { COSTS, chosenMetrics, pickers } from "./scaling";

/** The minimum number of values of a sweep. */
const FEWEST = 3;
const SIZES: Record<string, number> = { "": 1, k: 2 ** 10, m: 2 ** 20, g: 2 ** 30, t: 2 ** 40 };
const MARK: Look = { colour: "var(--ink)", ink: "--ink", dash: [], marker: "" };

interface Swept {
  key: string;
  /** The engines without the setting. */
  names: string[];
  /** The series, the number and the text of each engine. */
  of: Map<string, { name: string; at: number; text: string }>;
}

interface Crossing {
  names: [string, string];
  at: number;
  /** The points on either side from which the bands are separate; null beyond the swept values. */
  from: number | null;
  to: number | null;
  y: number;
}

/** Splits `innodb[cache=1GiB,page_size=4k]` into its name and its settings. */
function parts(engine: string): { base: string; options: [string, string][] } {
  const [, base, list] = /^([^[]*)\[(.*)\]$/.exec(engine) ?? [];
  if (base === undefined || list === undefined) return { base: engine, options: [] };
  return { base, options: list.split(",").map((option) => option.split("=", 2) as [string, string]) };
}

/** The number of a setting: `4k`, `1GiB`, `0.5`. A cache can be a share of the data. */
function numberOf(context: Context, engine: string, key: string, text: string): number | null {
  if (key === "cache") return context.data.trials.find((trial) => trial.engine.startsWith(engine))?.cache_bytes ?? null;
  const [, digits, unit] = /^(\d+(?:\.\d+)?)\s*([kmgt]?)(?:i?b)?$/i.exec(text) ?? [];
  const at = Number(digits) * (SIZES[(unit ?? "").toLowerCase()] ?? 1);
  return at > 0 ? at : null;
}

/** The settings with lists of numbers. */
function sweptIn(context: Context): Swept[] {
  const engines = context.alone.map((engine) => ({ engine, ...parts(engine) }));
  const keys = [...new Set(engines.flatMap(({ options }) => options.map(([key]) => key)))];
  return keys.flatMap((key) => {
    const of: Swept["of"] = new Map();
    for (const { engine, base, options } of engines) {
      const text = options.find(([name]) => name === key)?.[1];
      const at = text === undefined ? null : numberOf(context, engine, key, text);
      const rest = options.filter(([name]) => name !== key).map(([name, value]) => `${name}=${value}`);
      const shown = key === "cache" && at !== null ? bytes(at) : (text ?? "");
      if (at !== null) of.set(engine, { name: [base, ...rest].join(", "), at, text: shown });
    }
    const isSwept = new Set([...of.values()].map(({ at }) => at)).size >= FEWEST;
    return isSwept ? [{ key, of, names: [...new Set([...of.values()].map(({ name }) => name))] }] : [];
  });
}

function seriesOf(context: Context, { names, of }: Swept, rows: Row[]): (Series & { name: string })[] {
  return names.flatMap((name, index) => {
    const points = rows.flatMap((row) => {
      const found = of.get(alone(row));
      return found?.name === name && context.shown(row.engine) ? [{ at: found.at, row }] : [];
    });
    return points.length > 1 ? [{ name, look: lookOf(index), points: points.sort((a, b) => a.at - b.at) }] : [];
  });
}

/** The point where a quantity passes zero, between its first two values with different signs. */
function zero(steps: number[], values: number[]): number | null {
  for (let index = 1; index < steps.length; index += 1) {
    const [x0, x1, y0, y1] = [steps[index - 1] ?? 0, steps[index] ?? 0, values[index - 1] ?? NaN, values[index] ?? NaN];
    if (y0 === 0) return x0;
    if (y0 * y1 < 0) return x0 + ((x1 - x0) * y0) / (y0 - y1);
  }
  return null;
}

/** The point where the ratio of two series passes one, and the interval in which the repeats' bands overlap. */
function crossing(one: Series & { name: string }, other: Series & { name: string }, metric: string): Crossing[] {
  const both = one.points.flatMap(({ at, row }) => {
    const [a, b] = [row, other.points.find((point) => point.at === at)?.row].map((found) => figureOf(found, metric));
    const [mine, theirs] = [value(a?.median), value(b?.median)];
    if (!mine || !theirs || mine < 0 || theirs < 0) return [];
    const [mineIn, theirsIn] = [bandOf(a) ?? [mine, mine], bandOf(b) ?? [theirs, theirs]];
    const log = (over = 1, under = 1) => Math.log(over / under);
    return [{ x: Math.log2(at), log: log(mine, theirs), low: log(mineIn[0], theirsIn[1]), high: log(mineIn[1], theirsIn[0]), y: Math.log(mine) }];
  });
  const steps = both.map(({ x }) => x);
  const x = zero(steps, both.map(({ log }) => log));
  if (x === null) return [];
  const ends = [zero(steps, both.map(({ low }) => low)), zero(steps, both.map(({ high }) => high))];
  const before = ends.filter((end) => end !== null && end <= x + 1e-9);
  const after = ends.filter((end) => end !== null && end >= x - 1e-9);
  const right = both.findIndex((point) => point.x >= x);
  const [left, next] = [both[Math.max(0, right - 1)], both[right]];
  const share = left && next && next.x > left.x ? (x - left.x) / (next.x - left.x) : 0;
  const y = Math.exp((left?.y ?? 0) + share * ((next?.y ?? 0) - (left?.y ?? 0)));
  const back = (end: number | null | undefined) => (end === null || end === undefined ? null : 2 ** end);
  return [{ names: [one.name, other.name], at: 2 ** x, from: back(before[0]), to: back(after.at(-1)), y }];
}

function crossings(series: (Series & { name: string })[], metric: string): Crossing[] {
  return series.flatMap((one, index) => series.slice(index + 1).flatMap((other) => crossing(one, other, metric)));
}

/** A point where two cross, and a line over its interval. */
function marks(context: Context, { values }: Varied, found: Crossing[], shown: (at: number) => string): Line[] {
  const trial = context.data.trials[0];
  if (!trial) return [];
  const [least, most] = [values[0]?.at ?? 1, values.at(-1)?.at ?? 1];
  return found.flatMap(({ at, from, to, y }) => {
    const interval = [place(from ?? least), place(to ?? most)];
    return [
      { trial, look: MARK, main: true, width: 3, x: interval, y: [y, y] },
      { trial, look: MARK, main: true, joined: true, hollow: [true], names: [shown(at)], x: [place(at)], y: [y] },
    ];
  });
}

function inWords({ names, at, from, to }: Crossing, metric: string, key: string, shown: (at: number) => string): HTMLElement {
  const interval = from === null && to === null ? "the repeats leave open where" : `interval ${from === null ? "below the smallest" : shown(from)} to ${to === null ? "above the largest" : shown(to)}`;
  return h("li", {}, `${metricName(metric)}: ${names[0]} and ${names[1]} cross at ${key} ${shown(at)} (${interval})`);
}

function sweep(context: Context, swept: Swept): HTMLElement[] {
  const isBytes = [...swept.of.values()].some(({ text }) => /[kmgt]i?b?$/i.test(text));
  const shown = (at: number) => (isBytes ? bytes(at) : significant(at));
  const values = new Map([...swept.of.values()].map(({ at, text }) => [at, text]));
  const varied: Varied = { name: swept.key, values: [...values].map(([at, text]) => ({ at, text })).sort((a, b) => a.at - b.at) };
  const rows = context.rows().filter((row) => row.run !== null);
  return [...new Set(rows.map(({ test }) => test))].flatMap((test) => {
    const series = seriesOf(context, swept, rows.filter((row) => row.test === test));
    if (series.length === 0) return [];
    const panel = (metric: string, height: number) =>
      ladderPanel(context, `sweep-${swept.key}`, varied, series, metric, height, marks(context, varied, crossings(series, metric), shown));
    const panels = (metrics: string[], height: number) =>
      h("div", { class: "halves" }, ...metrics.flatMap((metric) => panel(metric, height)).map((drawn) => withKey(drawn, series)));
    const all = [...chosenMetrics(), ...COSTS];
    const found = all.flatMap((metric) => crossings(series, metric).map((one) => inWords(one, metric, swept.key, shown)));
    const key = h("ul", { class: "kinds" }, ...series.map(({ name, look }) => h("li", {}, marker(look), name)));
    const bands = bandsInWords(series, all);
    return [
      h("h3", {}, [swept.key, test].filter(Boolean).join(", ")),
      h("p", { class: "about" }, `Lines join the medians of the repeats, which are the points around them${bands}.`),
      series.length > 1 && key,
      panels(chosenMetrics(), 280),
      panels(COSTS, 200),
      found.length > 0 && h("ul", { class: "footnotes crossings" }, ...found),
    ].filter((part) => part !== false);
  });
}

export function sweepSection(context: Context): HTMLElement | null {
  const drawn = sweptIn(context).flatMap((swept) => sweep(context, swept));
  if (drawn.length === 0) return null;
  return section(
    "sweep",
    "What does the setting change?",
    "Figures over each setting that has at least three numbers, on a logarithmic axis. A hollow point marks where two engines cross, by interpolation. The line through it is the interval that the repeats leave open.",
    pickers(context),
    ...drawn,
  );
}
