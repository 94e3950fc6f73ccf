// The timeline: the metrics second by second, with all engines on the same time axis.

import type uPlot from "uplot";
import { type Line, chart, ink } from "./chart";
import { type Span, TIMES, clock, precedes, spans } from "./clock";
import type { Context } from "./context";
import type { Trial } from "./data";
import { h, section } from "./dom";
import { seconds, significant } from "./format";
import { sample } from "./look";
import { marksPanel } from "./marks";
import { unpacked } from "./packed";
import { saveButtons } from "./picture";
import { placing, spacing } from "./places";
import { choose, current } from "./state";

/** The line of a trial. */
type TrialLine = Line & { trial: Trial };

interface Panel {
  series: string;
  title: string;
  unit: string;
  height: number;
  logarithmic?: boolean;
  /** Omitted if no trial has the series, for example in results of older versions. */
  optional?: boolean;
}

const RUN: Panel[] = [
  { series: "ops_per_s", title: "Operations", unit: "per second, more is better", height: 190 },
  { series: "p99_ms", title: "99th percentile of the response time", unit: "ms, logarithmic, less is better", height: 170, logarithmic: true },
  { series: "active_clients", title: "Active clients", unit: "by the plan", height: 100, optional: true },
  { series: "wkb_per_op", title: "Written per operation, the last 15 s together", unit: "KB, logarithmic, less is better", height: 140, logarithmic: true },
  { series: "write_mb_s", title: "Written to the device", unit: "MB/s", height: 140 },
  { series: "read_mb_s", title: "Read from the device", unit: "MB/s", height: 140 },
  { series: "device_await_ms", title: "Time of a device read or write (await)", unit: "ms, queueing included, less is better", height: 140, optional: true },
  { series: "device_queue_length", title: "Requests in flight at the device (aqu-sz)", unit: "on average", height: 140, optional: true },
  { series: "device_utilisation_percent", title: "Device in use (%util)", unit: "% of the time", height: 140, optional: true },
  { series: "cpu_cores", title: "CPU of clients and engine", unit: "cores busy", height: 140 },
  { series: "ctx_switches_per_s", title: "Context switches of the host", unit: "per second", height: 140, optional: true },
];
const LOAD: Panel[] = RUN.filter(({ series }) => series !== "p99_ms" && series !== "active_clients").map((panel) =>
  panel.series === "ops_per_s"
    ? { ...panel, title: "Rows inserted" }
    : panel.series === "wkb_per_op"
      ? { ...panel, title: "Written per row, the last 15 s together" }
      : panel,
);

/** Phases in which no client works. */
const IDLE = new Set(["drain", "settle"]);

function lines(context: Context, { series, logarithmic }: Panel): TrialLine[] {
  const load = current().part === "load";
  return context.trials().flatMap(({ trial, main }) => {
    const values = unpacked(trial.timeline.series.find(({ name }) => name === series)?.values);
    const shown = spans(trial);
    const first = trial.timeline.phases.find(([name]) => precedes(name) === load);
    if (!first || values.length === 0) return [];
    const [, origin] = first;
    const end = (shown.at(-1)?.[2] ?? 0) + origin;
    const drains = shown.filter(([name]) => IDLE.has(name));
    const isDrain = (at: number) => drains.some(([, from, until]) => at >= from - 1e-6 && at < until);
    const placed = placing(trial.timeline.at_s);
    const x: number[] = [];
    const y: (number | null)[] = [];
    trial.timeline.at_s.forEach((at, index) => {
      if (at < origin - 1e-6 || at >= end - 1e-6) return;
      const place = placed(at - origin);
      if (x.at(-1) === place) return;
      x.push(place);
      const value = values[index] ?? null;
      // Zero does not fit a logarithmic scale. No client works in the drain, so a zero there is not a rate.
      const isNone = value === 0 && (logarithmic || (series === "ops_per_s" && isDrain(at - origin)));
      y.push(isNone ? null : value);
    });
    return x.length > 0 ? [{ trial, main, x, y }] : [];
  });
}

/** Loads end at different times, so a mark above the plot shows each engine's end. */
function loadEnds(context: Context): uPlot.Hooks.Arrays {
  const mains = context.trials().filter(({ main }) => main);
  return {
    drawClear: [
      (plot) => {
        const { ctx, bbox } = plot;
        for (const { trial } of mains) {
          const load = spans(trial).find(([name]) => name === "load");
          if (!load) continue;
          const at = plot.valToPos(load[2], "x", true);
          const size = 5 * devicePixelRatio;
          ctx.fillStyle = ink(context.look(trial.engine).ink);
          ctx.beginPath();
          ctx.moveTo(at, bbox.top - 1);
          ctx.lineTo(at - size, bbox.top - 1.7 * size);
          ctx.lineTo(at + size, bbox.top - 1.7 * size);
          ctx.fill();
        }
      },
    ],
  };
}

/** The changes of a metric's level within the loops of an engine's median repeat, as lines in its colour. */
function changePoints(context: Context, series: string): uPlot.Hooks.Arrays {
  const mains = context.trials().filter(({ main }) => main);
  const marks = mains.flatMap(({ trial }) => {
    const found = (context.data.summary.steadiness ?? []).find(({ engine, trial: number }) => engine === trial.engine && number === trial.number);
    const origin = trial.timeline.phases.find(([name]) => !precedes(name))?.[1] ?? 0;
    const changes = found?.courses[series]?.changes ?? [];
    return changes.map(({ at_s }) => ({ at: (found?.start_s ?? 0) + at_s - origin, engine: trial.engine }));
  });
  return {
    draw: [
      (plot) => {
        const { ctx, bbox } = plot;
        ctx.save();
        ctx.setLineDash([3 * devicePixelRatio, 3 * devicePixelRatio]);
        ctx.lineWidth = devicePixelRatio;
        for (const { at, engine } of marks) {
          const x = plot.valToPos(at, "x", true);
          if (x < bbox.left || x > bbox.left + bbox.width) continue;
          ctx.strokeStyle = ink(context.look(engine).ink);
          ctx.beginPath();
          ctx.moveTo(x, bbox.top);
          ctx.lineTo(x, bbox.top + bbox.height);
          ctx.stroke();
        }
        ctx.restore();
      },
    ],
  };
}

/** Seconds of warmup and loops without a finished operation and without a pause: marks on the axis in the engine's colour. */
function stalls(context: Context, found: TrialLine[]): (plot: uPlot) => void {
  const marks = found.flatMap(({ trial, main, x, y }) => {
    const serving = spans(trial).filter(([name]) => name === "warmup" || name.startsWith("loop"));
    const origin = trial.timeline.phases.find(([name]) => !precedes(name))?.[1] ?? 0;
    const suspended = trial.timeline.suspended ?? [];
    const isStall = (at: number) =>
      serving.some(([, from, until]) => at >= from && at < until - 1) && !suspended.some(([from, until]) => at + origin >= from - 1 && at + origin < until);
    // If intervals are shorter than a second, one without an operation is not yet a stall.
    const isSecond = (from: number) => x.every((at, index) => at < from || at >= from + 0.95 || y[index] === 0);
    return main ? x.filter((at, index) => y[index] === 0 && isStall(at) && isSecond(at)).map((at) => ({ at, ink: context.look(trial.engine).ink })) : [];
  });
  return (plot) => {
    const { ctx, bbox } = plot;
    const [size, bottom] = [4 * devicePixelRatio, bbox.top + bbox.height];
    ctx.save();
    for (const { at, ink: name } of marks) {
      const x = plot.valToPos(at, "x", true);
      if (x < bbox.left || x > bbox.left + bbox.width) continue;
      ctx.fillStyle = ink(name);
      ctx.beginPath();
      ctx.moveTo(x, bottom - 2 * size);
      ctx.lineTo(x - size, bottom);
      ctx.lineTo(x + size, bottom);
      ctx.fill();
    }
    ctx.restore();
  };
}

const STALLS = " A triangle on the first chart's axis is a second in which no operation ended.";

/** The pauses of a trial: bands in a warning colour, with a label if it fits. */
function suspensions(context: Context): (plot: uPlot) => void {
  const stretches = context.trials().flatMap(({ trial }) => {
    const load = current().part === "load";
    const origin = trial.timeline.phases.find(([name]) => precedes(name) === load)?.[1] ?? 0;
    const end = (spans(trial).at(-1)?.[2] ?? 0) + origin;
    return (trial.timeline.suspended ?? [])
      .filter(([from]) => from >= origin - 1e-6 && from < end - 1e-6)
      .map(([from, until]) => [from - origin, until - origin] as const);
  });
  return (plot) => {
    const { ctx, bbox } = plot;
    const edge = bbox.left + bbox.width;
    ctx.save();
    ctx.font = `${11 * devicePixelRatio}px ${ink("--sans")}`;
    ctx.textBaseline = "top";
    for (const [from, until] of stretches) {
      const left = Math.max(plot.valToPos(from, "x", true), bbox.left);
      const right = Math.min(plot.valToPos(until, "x", true), edge);
      if (right <= left) continue;
      ctx.fillStyle = ink("--alarm-paper");
      ctx.fillRect(left, bbox.top, right - left, bbox.height);
      ctx.fillStyle = ink("--alarm");
      ctx.fillRect(left, bbox.top, right - left, 2 * devicePixelRatio);
      const room = ctx.measureText("suspended").width + 8 * devicePixelRatio < right - left;
      if (room) ctx.fillText("suspended", left + 3 * devicePixelRatio, bbox.top + 4 * devicePixelRatio);
    }
    ctx.restore();
  };
}

/** Every second phase has a faint band, and phases without clients are hatched. The first panel has their names. */
function phaseBands(phases: Span[], named: boolean): uPlot.Hooks.Arrays {
  return {
    drawClear: [
      (plot) => {
        const { ctx, bbox } = plot;
        const edge = bbox.left + bbox.width;
        ctx.save();
        ctx.font = `${11 * devicePixelRatio}px ${ink("--sans")}`;
        ctx.textBaseline = "bottom";
        phases.forEach(([name, start, end], index) => {
          const left = Math.max(plot.valToPos(start, "x", true), bbox.left);
          const right = Math.min(plot.valToPos(end, "x", true), edge);
          if (right <= left) return;
          ctx.fillStyle = ink("--band");
          if (IDLE.has(name)) hatch(ctx, left, bbox.top, right - left, bbox.height);
          else if (index % 2 === 0) ctx.fillRect(left, bbox.top, right - left, bbox.height);
          if (!named) return;
          // The last phase, the drain, is often short, so its name ends at its end.
          const last = index === phases.length - 1;
          const fits = ctx.measureText(name).width + 8 * devicePixelRatio < right - left;
          ctx.fillStyle = ink("--muted");
          ctx.textAlign = fits || !last ? "left" : "right";
          if (fits || last) ctx.fillText(name, fits ? left + 2 * devicePixelRatio : right, bbox.top - 4 * devicePixelRatio);
        });
        ctx.restore();
      },
    ],
  };
}

/** Slanted lines over a part of the plot. */
function hatch(ctx: CanvasRenderingContext2D, left: number, top: number, width: number, height: number): void {
  ctx.save();
  ctx.beginPath();
  ctx.rect(left, top, width, height);
  ctx.clip();
  ctx.fillRect(left, top, width, height);
  ctx.strokeStyle = ink("--rule");
  ctx.lineWidth = devicePixelRatio;
  ctx.beginPath();
  for (let x = left - height; x < left + width; x += 7 * devicePixelRatio) {
    ctx.moveTo(x, top + height);
    ctx.lineTo(x + height, top);
  }
  ctx.stroke();
  ctx.restore();
}

/** The values under the cursor, one per engine. */
function readout(context: Context, holder: HTMLElement, shown: Line[]): (plot: uPlot) => void {
  const mains = shown.map((line, index) => ({ line, index })).filter(({ line }) => line.main);
  return (plot) => {
    const at = plot.cursor.idx;
    if (at === null || at === undefined) {
      holder.replaceChildren();
      return;
    }
    const items = mains.map(({ line, index }) => {
      const column = plot.data[index + 1] ?? [];
      let near = at;
      while (near > 0 && column[near] === undefined) near -= 1;
      const value = column[near];
      const name = context.look(line.trial.engine);
      return h("span", { class: "reading" }, sample(name), typeof value === "number" ? significant(value) : "–");
    });
    holder.replaceChildren(h("span", {}, seconds(plot.data[0][at] ?? 0)), ...items);
  };
}

function panel(context: Context, shown: Panel, first: boolean, last: boolean, phases: Span[]): HTMLElement {
  const reading = h("div", { class: "readings" });
  const head = h("div", { class: "panel-head" }, h("h3", {}, shown.title, h("span", { class: "unit" }, shown.unit)), reading, saveButtons(context, `timeline-${shown.series}`, shown.title));
  const found = lines(context, shown);
  if (found.length === 0) {
    if (context.trials().length === 0) return h("div", { class: "panel", "data-series": shown.series }, head, h("p", { class: "nothing" }, "Every engine is hidden."));
    const of = context.trials().flatMap(({ trial }) => trial.timeline.series.filter(({ name }) => name === shown.series));
    const why = of.find(({ absent }) => absent)?.absent ?? "no interval was kept";
    return h("div", { class: "panel", "data-series": shown.series }, head, h("p", { class: "nothing" }, `There is no chart: ${why}.`));
  }
  const holder = h("div", { class: "chart", style: `height: ${shown.height}px` });
  const hooks = current().part === "run" ? phaseBands(phases, first) : first ? loadEnds(context) : {};
  if (current().part === "run") hooks.draw = [...(changePoints(context, shown.series).draw ?? []), ...(first ? [stalls(context, found)] : [])];
  hooks.drawClear = [...(hooks.drawClear ?? []), suspensions(context)];
  hooks.setCursor = [readout(context, reading, found)];
  const end = Math.max(...phases.map(([, , to]) => to), 1);
  chart(context, holder, found, {
    height: shown.height,
    above: first ? 22 : 8,
    x: { incrs: TIMES, values: (_: uPlot, splits: number[]) => splits.map((split) => (last ? clock(split, end) : "")), size: last ? 26 : 10 },
    xRange: [0, end],
    logarithmic: shown.logarithmic ?? false,
    hooks,
    sync: "timeline",
  });
  return h("div", { class: "panel", "data-series": shown.series }, head, holder);
}

/** The times of the shown part's points. */
function shownAt(trial: Trial): number[] {
  const load = current().part === "load";
  const of = trial.timeline.phases.filter(([name]) => precedes(name) === load);
  const [from, until] = [of[0]?.[1] ?? 0, of.at(-1)?.[2] ?? 0];
  return trial.timeline.at_s.filter((at) => at >= from && at < until);
}

export function timelineSection(context: Context): HTMLElement {
  const { part } = current();
  const measured = (series: string) => context.data.trials.some(({ timeline }) => timeline.series.some(({ name, absent }) => name === series && absent === null));
  const panels = (part === "load" ? LOAD : RUN).filter(({ series, optional }) => !optional || measured(series));
  const all = context.trials().map(({ trial }) => spans(trial));
  const phases = all.reduce((longest, own) => ((own.at(-1)?.[2] ?? 0) > (longest.at(-1)?.[2] ?? 0) ? own : longest), []);
  const spacings = context.trials().map(({ trial }) => spacing(shownAt(trial)));
  const apart = Math.min(...spacings, 1);
  // The load and the run are thinned separately. Each `bucket_s` seconds become a pair of points.
  const pairs = context.trials().flatMap(({ trial }, index) => (trial.timeline.bucket_s !== null && (spacings[index] ?? 0) > 0.4 * trial.timeline.bucket_s ? [trial.timeline.bucket_s] : []));
  const thinned = pairs.length > 0 && ` Every ${seconds(Math.max(...pairs))} are drawn as their smallest and largest second.`;
  const repeated = context.trials().some(({ main }) => !main) ? " The strong line is each engine's median repeat, the faint ones are its others." : "";
  const changed = (context.data.summary.steadiness ?? []).some(({ courses }) => Object.values(courses).some(({ changes }) => changes.length > 0))
    ? " A dashed line is where a level changed within the loops."
    : "";
  const suspended = context.trials().some(({ trial }) => (trial.timeline.suspended ?? []).length > 0)
    ? " A warning band is time in which a trial was suspended: it is in no figure."
    : "";
  const switcher = h(
    "div",
    { class: "switch", role: "group", "aria-label": "part of the trial" },
    ...(["run", "load"] as const).map((which) =>
      h(
        "button",
        { type: "button", "aria-pressed": String(part === which), click: () => choose({ part: which }) },
        which === "run" ? "Warmup, loops, drain" : "Load and settle",
      ),
    ),
  );
  return section(
    "timeline",
    "What happened over time?",
    `${part === "load" ? "A mark above the first chart is where an engine's load ended. " : ""}${apart > 0.95 ? "One second" : seconds(apart)} per point.${repeated}${thinned || ""}${changed}${suspended}${part === "run" ? STALLS : ""} Phases without clients are hatched. Drag to zoom, double-click to zoom out.`,
    context.testChoice(),
    switcher,
    ...panels.flatMap((shown, index) => {
      const drawn = panel(context, shown, index === 0, index === panels.length - 1, phases);
      // The background work of the engines is directly below the operations.
      const marks = index === 0 ? marksPanel(context, Math.max(...phases.map(([, , to]) => to), 1)) : null;
      return marks ? [drawn, marks] : [drawn];
    }),
  );
}
