// A ladder of clients within one trial: throughput, times and waits over time, the engines below each other.

import type uPlot from "uplot";
import { type Line, chart, ink, tickBelow } from "./chart";
import { TIMES, clock } from "./clock";
import type { Context } from "./context";
import type { Trial } from "./data";
import { h, section } from "./dom";
import { lookOf, marker } from "./look";
import { unpacked } from "./packed";
import { saveButtons } from "./picture";
import { placing } from "./places";
import { MOST, waitsOf } from "./waits";

interface Panel {
  name: string;
  title: string;
  unit: string;
  height: number;
  logarithmic: boolean;
}

const OPS: Panel = { name: "ops_per_s", title: "Operations", unit: "per second, more is better", height: 150, logarithmic: false };
const P99: Panel = { name: "p99_ms", title: "99th percentile of the response time", unit: "ms, logarithmic, less is better", height: 130, logarithmic: true };
const WAITS: Panel = { name: "waits", title: "Waiting clients, by what for", unit: "on average, less is better", height: 150, logarithmic: false };

/** The opacity of stacked areas. */
const FILL = 0.5;

/** The start and the end of the loops, seconds since the trial's start. */
function loops(trial: Trial): [number, number] {
  const of = trial.timeline.phases.filter(([name]) => name.startsWith("loop"));
  return [of[0]?.[1] ?? 0, of.at(-1)?.[2] ?? 0];
}

/** A series of the loops, from their start. */
function line(trial: Trial, main: boolean, { name, logarithmic }: Panel): Line[] {
  const values = unpacked(trial.timeline.series.find((series) => series.name === name)?.values);
  const [from, until] = loops(trial);
  const placed = placing(trial.timeline.at_s);
  const [x, y]: [number[], (number | null)[]] = [[], []];
  trial.timeline.at_s.forEach((at, index) => {
    const place = placed(at - from);
    if (at < from - 1e-6 || at >= until - 1e-6 || x.at(-1) === place) return;
    x.push(place);
    const value = values[index] ?? null;
    y.push(logarithmic && value === 0 ? null : value);
  });
  return y.some((value) => value !== null) ? [{ trial, main, x, y }] : [];
}

/** Waits as areas on top of each other, each with its name. */
function areas(trial: Trial): (Line & { kind: string })[] {
  const [from, until] = loops(trial);
  const found = waitsOf(trial, from, until + 1);
  if (!found) return [];
  const below = found.at_s.map(() => 0);
  return found.kinds.map(({ kind, clients }, index) => {
    const band = clients.map((value, at): [number, number] => [below[at] ?? 0, (below[at] ?? 0) + value]);
    band.forEach(([, top], at) => (below[at] = top));
    return { kind, trial, main: true, look: { ...lookOf(index), dash: [] }, width: 1, fill: FILL, x: found.at_s.map((at) => at - from), y: band.map(([, top]) => top), band };
  });
}

/** A vertical line at each step. The first panel of an engine has the numbers of clients above. */
function stepMarks(points: [number, number][], named: boolean): uPlot.Hooks.Arrays {
  return {
    drawClear: [
      (plot) => {
        const { ctx, bbox } = plot;
        const right = bbox.left + bbox.width;
        ctx.save();
        ctx.font = `${11 * devicePixelRatio}px ${ink("--sans")}`;
        ctx.textBaseline = "bottom";
        ctx.lineWidth = devicePixelRatio;
        let free = -Infinity;
        points.forEach(([at, clients], index) => {
          const x = plot.valToPos(at, "x", true);
          if (x < bbox.left - 1 || x > right) return;
          ctx.strokeStyle = ink("--muted");
          ctx.beginPath();
          ctx.moveTo(x, bbox.top);
          ctx.lineTo(x, bbox.top + bbox.height);
          ctx.stroke();
          const text = index === 0 ? `${clients} ${clients === 1 ? "client" : "clients"}` : String(clients);
          if (!named || x < free) return;
          ctx.fillStyle = ink("--muted");
          ctx.fillText(text, x + 2 * devicePixelRatio, bbox.top - 3 * devicePixelRatio);
          free = x + ctx.measureText(text).width + 8 * devicePixelRatio;
        });
        ctx.restore();
      },
    ],
  };
}

/** One range for all engines, so that their charts can be compared. */
function range(lines: Line[], logarithmic: boolean): [number, number] {
  const values = lines.flatMap(({ y }) => y.flatMap((value) => (value === null ? [] : [value])));
  const most = Math.max(...values, 0);
  if (!logarithmic) return [0, most > 0 ? most * 1.06 : 1];
  const floor = tickBelow(Math.max(Math.min(...values), 1e-4) * 0.85);
  return [floor, Math.max(most * 1.18, floor * 3)];
}

/** The charts of one engine. */
function engineBlock(context: Context, engine: string, drawn: { panel: Panel; lines: Line[]; shared: Line[] }[], points: [number, number][], end: number): HTMLElement {
  const panels = drawn.map(({ panel, lines, shared }, index) => {
    const reported = `${context.label(engine)}: ${panel.title}`;
    const head = h("div", { class: "panel-head" }, h("h4", {}, panel.title, h("span", { class: "unit" }, panel.unit)), saveButtons(context, `steps-${panel.name}-${engine}`, reported));
    if (lines.length === 0) {
      const why = panel === WAITS ? "the engine reports no waits; see its page in the docs" : "no interval was kept";
      return h("div", { class: "panel", "data-series": panel.name }, head, h("p", { class: "nothing" }, `There is no chart: ${why}.`));
    }
    const holder = h("div", { class: "chart", style: `height: ${panel.height}px` });
    const last = index === drawn.length - 1;
    chart(context, holder, lines, {
      height: panel.height,
      above: index === 0 ? 20 : 8,
      x: { incrs: TIMES, values: (_: uPlot, splits: number[]) => splits.map((split) => (last ? clock(split, end) : "")), size: last ? 26 : 10 },
      xRange: [0, end],
      yRange: range(shared, panel.logarithmic),
      logarithmic: panel.logarithmic,
      hooks: stepMarks(points, index === 0),
      sync: "steps",
    });
    const kinds = lines.flatMap((area) => ("kind" in area ? [String(area.kind)] : []));
    const swatch = (at: number) => h("span", { class: "swatch", style: `--kind: var(${lookOf(at).ink}); --thin: ${100 * FILL}%` });
    const key = kinds.length > 0 && h("ul", { class: "kinds", "aria-label": "waits" }, ...kinds.map((kind, at) => h("li", {}, swatch(at), kind)));
    return h("div", { class: "panel", "data-series": panel.name }, head, holder, key);
  });
  return h("div", { class: "steps" }, h("h3", { class: "engine" }, marker(context.look(engine)), context.label(engine)), ...panels);
}

export function stepsSection(context: Context): HTMLElement | null {
  const stepped = context.trials().filter(({ trial }) => trial.run.client_steps && loops(trial)[1] > 0);
  const engines = context.engines.filter((engine) => stepped.some(({ trial }) => trial.engine === engine));
  if (engines.length === 0) return null;
  const of = (engine: string, panel: Panel): Line[] => {
    const own = stepped.filter(({ trial }) => trial.engine === engine);
    return panel === WAITS ? own.filter(({ main }) => main).flatMap(({ trial }) => areas(trial)) : own.flatMap(({ trial, main }) => line(trial, main, panel));
  };
  const panels = [OPS, P99, WAITS].map((panel) => ({ panel, lines: new Map(engines.map((engine) => [engine, of(engine, panel)])) }));
  const end = Math.max(...stepped.map(({ trial }) => loops(trial)[1] - loops(trial)[0]), 1);
  const blocks = engines.map((engine) => {
    const points = stepped.find(({ trial }) => trial.engine === engine)?.trial.run.client_steps?.points ?? [];
    return engineBlock(context, engine, panels.map(({ panel, lines }) => ({ panel, lines: lines.get(engine) ?? [], shared: [...lines.values()].flat() })), points, end);
  });
  const repeated = stepped.some(({ main }) => !main) ? " The strong line is each engine's median repeat, the faint ones are its others; waits are those of the median repeat." : "";
  return section(
    "steps",
    "How does it change as clients are added?",
    `The number of active clients changes within the trial, at the vertical lines; all clients are connected from its start. The engines are below each other on the same scales. Waits have the engine's own names: the ${MOST} largest, and all others together.${repeated} Drag to zoom, double-click to zoom out.`,
    ...blocks,
  );
}
