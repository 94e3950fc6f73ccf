// Charts with uPlot: engines overlaid on shared axes, repeats as faint lines.

import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import type { Context } from "./context";
import type { Trial } from "./data";
import { tick } from "./format";
import type { Look } from "./look";

/** One line: a trial's series over its own positions. */
export interface Line {
  trial: Trial;
  main: boolean;
  x: number[];
  y: (number | null)[];
  /** Points that no line joins. */
  apart?: boolean;
  /** Other than its trial's engine's. */
  look?: Look;
}

export interface Axes {
  height: number;
  x: Partial<uPlot.Axis>;
  y?: Partial<uPlot.Axis>;
  xRange: [number, number];
  /** A logarithmic scale, for times that span orders of magnitude; otherwise from zero. */
  logarithmic?: boolean;
  hooks?: uPlot.Hooks.Arrays;
  /** A mark at every position, for lines of few. */
  points?: boolean;
  /** Room above the plot for the names of phases, pixels. */
  above?: number;
  /** Charts of one group share their cursor. */
  sync?: string;
}

/** uPlot draws on a canvas, which knows no CSS variables. */
export function ink(name: string): string {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

const charts = new Map<HTMLElement, uPlot>();

const resizing = new ResizeObserver((entries) => {
  for (const { target, contentRect } of entries) {
    const chart = charts.get(target as HTMLElement);
    if (chart && contentRect.width > 0 && Math.abs(contentRect.width - chart.width) > 1) {
      chart.setSize({ width: Math.floor(contentRect.width), height: chart.height });
    }
  }
});

/** A page of A4 or letter without its margins, CSS pixels. */
const PAPER_WIDTH = 660;

addEventListener("beforeprint", () => {
  document.documentElement.toggleAttribute("data-print", true);
  for (const chart of charts.values()) chart.setSize({ width: PAPER_WIDTH, height: chart.height });
});
addEventListener("afterprint", () => {
  document.documentElement.toggleAttribute("data-print", false);
  for (const [holder, chart] of charts) chart.setSize({ width: holder.clientWidth, height: chart.height });
});

/** Forgets the charts below an element that is about to be replaced. */
export function dispose(root: HTMLElement): void {
  for (const [holder, chart] of charts) {
    if (root.contains(holder)) {
      resizing.unobserve(holder);
      chart.destroy();
      charts.delete(holder);
    }
  }
}

/** Lines with their own positions as columns over the union of all positions. */
function aligned(lines: Line[]): uPlot.AlignedData {
  const all = [...new Set(lines.flatMap((line) => line.x))].sort((a, b) => a - b);
  const place = new Map(all.map((x, index) => [x, index]));
  const columns = lines.map((line) => {
    // `undefined` is no point of this line; `null` is a point without a value, a gap.
    const column = new Array<number | null | undefined>(all.length).fill(undefined);
    line.x.forEach((x, index) => (column[place.get(x) ?? 0] = line.y[index] ?? null));
    return column;
  });
  return [all, ...columns] as uPlot.AlignedData;
}

function stroke(context: Context, line: Line, points: boolean): uPlot.Series {
  const look = line.look ?? context.look(line.trial.engine);
  if (line.apart) {
    return {
      paths: () => null,
      alpha: 0.45,
      points: { show: true, size: 4, fill: look.colour, stroke: look.colour },
      label: `${line.trial.engine} ${line.trial.repeat}`,
    };
  }
  return {
    stroke: look.colour,
    width: line.main ? 1.6 : 1,
    alpha: line.main ? 1 : 0.28,
    dash: line.main ? look.dash : [],
    points: { show: points, size: 6, fill: look.colour, stroke: look.colour },
    label: `${line.trial.engine} ${line.trial.repeat}`,
  };
}

/**
 * The largest of 1, 2 and 5 times a power of ten that is not above. uPlot counts its lines up from an axis' end in steps
 * of that decade; from an end between two ticks, rounding can step over the next decade, and it then never ends.
 */
export function tickBelow(value: number): number {
  const power = Math.floor(Math.log10(value) + 1e-9);
  const lead = value / 10 ** power;
  return Number(`${[5, 2, 1].find((named) => named <= lead + 1e-9) ?? 1}e${power}`);
}

function yRange(logarithmic: boolean): uPlot.Scale.Range {
  return (_, min, max) => {
    if (!Number.isFinite(min) || !Number.isFinite(max)) return logarithmic ? [0.1, 10] : [0, 1];
    if (!logarithmic) return [0, max > 0 ? max * 1.06 : 1];
    // Half a decade at least, so that noise is not blown up to the whole height.
    const floor = tickBelow(Math.max(min, 1e-4) * 0.85);
    return [floor, Math.max(max * 1.18, floor * 3)];
  };
}

/** A chart of these lines in `holder`, which must be in the page. */
export function chart(context: Context, holder: HTMLElement, lines: Line[], axes: Axes): void {
  // The reader may have chosen something else before this frame came.
  if (!holder.isConnected) return;
  const logarithmic = axes.logarithmic ?? false;
  const data = aligned(lines);
  const [first, last] = [data[0][0] ?? 0, data[0].at(-1) ?? 0];
  const axis: uPlot.Axis = {
    stroke: () => ink("--muted"),
    font: `11px ${ink("--sans")}`,
    grid: { stroke: () => ink("--rule"), width: 1 },
    ticks: { stroke: () => ink("--rule"), width: 1, size: 4 },
  };
  const options: uPlot.Options = {
    width: Math.max(240, Math.floor(holder.clientWidth)),
    height: axes.height,
    legend: { show: false },
    padding: [axes.above ?? 8, 16, 0, 0],
    cursor: { points: { show: false }, drag: { x: true, y: false }, ...(axes.sync ? { sync: { key: axes.sync } } : {}) },
    scales: {
      x: { time: false, range: (_, min, max) => (min === null || (min <= first && max >= last) ? axes.xRange : [min, max]) },
      y: { distr: logarithmic ? 3 : 1, range: yRange(logarithmic) },
    },
    axes: [
      { ...axis, size: 26, gap: 3, ...axes.x },
      { ...axis, size: 50, gap: 4, space: logarithmic ? 18 : 28, values: ticks(logarithmic), ...axes.y },
    ],
    series: [{}, ...lines.map((line) => stroke(context, line, axes.points ?? false))],
    hooks: axes.hooks ?? {},
  };
  charts.set(holder, new uPlot(options, data, holder));
  resizing.observe(holder);
}

/** Logarithmic axes name 1, 2 and 5 of every decade and leave the rest as lines. */
function ticks(logarithmic: boolean): uPlot.Axis.DynamicValues {
  return (_, splits) =>
    splits.map((split) => {
      if (split === null) return null;
      if (!logarithmic) return tick(split);
      const lead = split / 10 ** Math.floor(Math.log10(split) + 1e-9);
      return [1, 2, 5].some((named) => Math.abs(lead - named) < 0.01) ? tick(split) : null;
    });
}
