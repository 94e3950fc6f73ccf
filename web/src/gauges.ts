// What the engines say of themselves over time: size, debt, and any counter that the reader picks. They are asked at the
// ends of phases, so there is one point for each.

import type uPlot from "uplot";
import { type Line, chart } from "./chart";
import type { Context } from "./context";
import type { Trial } from "./data";
import { choice, h, section } from "./dom";
import { bytes, tick } from "./format";
import { saveButtons } from "./picture";
import { choose, current } from "./state";
import { TIMES, clock, precedes, spans } from "./timeline";

const MIB = 2 ** 20;

/** Size first, then what was put off, then all else by name. */
export function gaugeNames(context: Context): string[] {
  const of = (kind: "levels" | "rates") => [...new Set(context.data.trials.flatMap(({ gauges }) => Object.keys(gauges?.[kind] ?? {})))].sort();
  const debts = new Set(context.data.trials.flatMap(({ phases }) => phases.flatMap(({ debt_end }) => debt_end.map(({ name }) => name))));
  const rank = (name: string) => (name === "size_bytes" ? 0 : debts.has(name) ? 1 : 2);
  return [...new Set([...of("levels"), ...of("rates")])].sort((a, b) => rank(a) - rank(b));
}

/** The values of the shown part, from its start. */
function points(trial: Trial, name: string): { x: number[]; y: (number | null)[]; isRate: boolean } | null {
  const { gauges } = trial;
  const values = gauges?.levels[name] ?? gauges?.rates[name];
  const load = current().part === "load";
  const first = trial.timeline.phases.find(([phase]) => precedes(phase) === load);
  if (!gauges || !values || !first) return null;
  const end = spans(trial).at(-1)?.[2] ?? 0;
  const shown = gauges.at_s.map((at, index) => ({ x: at - first[1], y: values[index] ?? null })).filter(({ x }) => x > -1 && x <= end + 1);
  return { x: shown.map(({ x }) => Math.round(x * 10) / 10), y: shown.map(({ y }) => y), isRate: gauges.rates[name] !== undefined };
}

export function gaugesSection(context: Context): HTMLElement | null {
  const names = gaugeNames(context);
  if (names.length === 0) return null;
  const { gauge } = current();
  const isBytes = gauge.includes("bytes");
  let isRate = false;
  const found = context.trials().flatMap(({ trial, main }): Line[] => {
    const known = points(trial, gauge);
    if (!known || known.y.every((value) => value === null)) return [];
    isRate ||= known.isRate;
    return [{ trial, main, x: known.x, y: known.y.map((value) => (value !== null && isBytes ? value / MIB : value)) }];
  });
  const picker = choice("shown", names.map((name) => ({ value: name, text: name === "size_bytes" ? "size on disk" : name })), gauge, (chosen) => choose({ gauge: chosen }));
  const about = "Size, work put off, and the engines' own counters, by their own names: asked at the ends of phases, so there is one point for each. What only grows is shown as its growth each second of the phase that ends there.";
  if (found.length === 0) return section("gauges", "The engines' own counters", about, picker, h("p", { class: "nothing" }, "No shown engine has it in this part of the trial."));
  const unit = `${isBytes ? "MB" : "as the engine counts it"}${isRate ? " per second" : ""}`;
  const holder = h("div", { class: "chart", style: "height: 200px" });
  const end = Math.max(...found.flatMap(({ x }) => x), 1);
  chart(context, holder, found, {
    height: 200,
    points: true,
    x: { incrs: TIMES, values: (_: uPlot, splits: number[]) => splits.map(clock) },
    y: { values: (_: uPlot, splits: number[]) => splits.map((split) => (isBytes && split >= 10_000 ? bytes(split * MIB) : tick(split))), size: 64 },
    xRange: [0, end],
    sync: "timeline",
  });
  const title = gauge === "size_bytes" ? "Size on disk" : gauge;
  const head = h("div", { class: "panel-head" }, h("h3", {}, title, h("span", { class: "unit" }, unit)), saveButtons(context, `gauge-${gauge}`, title));
  return section("gauges", "The engines' own counters", about, picker, h("div", { class: "panel" }, head, holder));
}
