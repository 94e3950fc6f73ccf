// The engines' own gauges over time: size, deferred work, and a counter that the reader selects. rumba samples them about
// once a second while clients work. Results of older versions have one point for each phase.

import type uPlot from "uplot";
import { type Line, chart } from "./chart";
import { TIMES, clock, precedes, spans } from "./clock";
import type { Context } from "./context";
import type { Trial } from "./data";
import { choice, h, section } from "./dom";
import { bytes, tick } from "./format";
import { unpacked } from "./packed";
import { saveButtons } from "./picture";
import { placing } from "./places";
import { choose, current } from "./state";

const MIB = 2 ** 20;
const SIZE = "size_bytes";
/** Lines with at most this number of points have a mark at each. */
const FEW = 40;

/** The selectable gauges in addition to the size: deferred work first, then all others by name. */
export function gaugeNames(context: Context): string[] {
  const of = (kind: "levels" | "rates") => [...new Set(context.data.trials.flatMap(({ gauges }) => Object.keys(gauges?.[kind] ?? {})))].sort();
  const debts = new Set(context.data.trials.flatMap(({ phases }) => phases.flatMap(({ debt_end }) => debt_end.map(({ name }) => name))));
  const rank = (name: string) => (debts.has(name) ? 0 : 1);
  return [...new Set([...of("levels"), ...of("rates")])].filter((name) => name !== SIZE).sort((a, b) => rank(a) - rank(b));
}

/** The values of the shown part, from its start. A line joins adjacent values across missing ones. */
function points(trial: Trial, name: string): { x: number[]; y: number[]; isRate: boolean } | null {
  const { gauges } = trial;
  const packed = gauges?.levels[name] ?? gauges?.rates[name];
  const load = current().part === "load";
  const first = trial.timeline.phases.find(([phase]) => precedes(phase) === load);
  if (!gauges || packed === undefined || !first) return null;
  const end = spans(trial).at(-1)?.[2] ?? 0;
  const placed = placing(gauges.at_s);
  const [x, y]: [number[], number[]] = [[], []];
  unpacked(packed).forEach((value, index) => {
    const at = placed((gauges.at_s[index] ?? 0) - first[1]);
    if (value === null || at < -1 || at > end + 1 || at <= (x.at(-1) ?? -Infinity)) return;
    x.push(at);
    y.push(value);
  });
  return { x, y, isRate: gauges.rates[name] !== undefined };
}

function panel(context: Context, name: string): HTMLElement {
  const isBytes = name.includes("bytes");
  const title = name === SIZE ? "Size on disk" : name;
  let isRate = false;
  const found = context.trials().flatMap(({ trial, main }): Line[] => {
    const known = points(trial, name);
    if (!known || known.y.length === 0) return [];
    isRate ||= known.isRate;
    return [{ trial, main, x: known.x, y: isBytes ? known.y.map((value) => value / MIB) : known.y }];
  });
  if (found.length === 0) return h("div", { class: "panel" }, h("h3", {}, title), h("p", { class: "nothing" }, "No shown engine has it in this part of the trial."));
  const unit = `${isBytes ? "MB" : "as the engine counts it"}${isRate ? " per second" : ""}`;
  const holder = h("div", { class: "chart", style: "height: 200px" });
  const end = Math.max(...found.flatMap(({ x }) => x.at(-1) ?? 0), 1);
  chart(context, holder, found, {
    height: 200,
    points: found.every(({ x }) => x.length <= FEW),
    x: { incrs: TIMES, values: (_: uPlot, splits: number[]) => splits.map((split) => clock(split, end)) },
    y: { values: (_: uPlot, splits: number[]) => splits.map((split) => (isBytes && split >= 10_000 ? bytes(split * MIB) : tick(split))), size: 64 },
    xRange: [0, end],
    sync: "timeline",
  });
  const head = h("div", { class: "panel-head" }, h("h3", {}, title, h("span", { class: "unit" }, unit)), saveButtons(context, `gauge-${name}`, title));
  return h("div", { class: "panel", "data-series": name }, head, holder);
}

export function gaugesSection(context: Context): HTMLElement | null {
  const names = gaugeNames(context);
  const hasSize = context.data.trials.some(({ gauges }) => gauges?.levels[SIZE] !== undefined);
  if (names.length === 0 && !hasSize) return null;
  const looked = context.data.trials.some(({ gauges }) => gauges?.looked);
  const when = looked
    ? "seen about once a second while clients work, and at the ends of phases. In long runs neighbouring points are drawn as their smallest and their largest."
    : "asked at the ends of phases, so there is one point for each.";
  const { gauge } = current();
  const picker = choice("shown", names.map((name) => ({ value: name, text: name })), gauge, (chosen) => choose({ gauge: chosen }));
  return section(
    "gauges",
    "What did the engines count?",
    `Size, work put off, and the engines' own counters, by their own names: ${when} What only grows is shown as its growth each second.`,
    context.testChoice(),
    hasSize && panel(context, SIZE),
    names.length > 0 && picker,
    names.length > 0 && panel(context, gauge),
  );
}
