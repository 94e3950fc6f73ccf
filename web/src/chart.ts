// Charts with uPlot: engines overlaid on shared axes, repeats as faint lines.

import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import { tick } from "./format";
import type { Look } from "./look";

/** Gives each engine its look. */
export interface Looks {
  look(engine: string): Look;
}

/** One line: a trial's series over its own positions. */
export interface Line {
  trial: { engine: string; repeat: number };
  main: boolean;
  x: number[];
  y: (number | null)[];
  /** Draws points without a line. */
  apart?: boolean;
  /** Joins the points in their order, also backwards along the axis. */
  joined?: boolean;
  /** For joined points: which are hollow, and the label of each. */
  hollow?: boolean[];
  names?: string[];
  /** For joined points: no marks at the points. */
  bare?: boolean;
  /** The band around the line at each of its positions: from and to. */
  band?: ([number, number] | null)[];
  /** Replaces the default opacity of the band. */
  fill?: number;
  /** Replaces the look of the trial's engine. */
  look?: Look;
  /** Replaces the default width of a line, pixels. */
  width?: number;
}

export interface Axes {
  height: number;
  x: Partial<uPlot.Axis>;
  y?: Partial<uPlot.Axis>;
  xRange: [number, number];
  /** The range for figures that are positions; by default, the range of the lines. */
  yRange?: [number, number];
  /** A logarithmic scale, for times that span orders of magnitude; otherwise from zero. */
  logarithmic?: boolean;
  hooks?: uPlot.Hooks.Arrays;
  /** Draws a mark at every position, for lines of few points. */
  points?: boolean;
  /** Space above the plot for the names of phases, pixels. */
  above?: number;
  /** Charts of one group share their cursor. */
  sync?: string;
}

/** The values of CSS variables, cached because each query makes the browser lay out the page again. */
const inks = new Map<string, string>();

matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => inks.clear());

/** The value of a CSS variable. uPlot draws on a canvas, which does not resolve them. */
export function ink(name: string): string {
  const known = inks.get(name);
  if (known !== undefined) return known;
  const found = getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  inks.set(name, found);
  return found;
}

/** A drawn chart, for pictures of it. */
export interface Drawn {
  plot: uPlot;
  lines: Line[];
  axes: Axes;
}

const charts = new Map<HTMLElement, Drawn>();

export function drawnIn(holder: Element): Drawn | undefined {
  return charts.get(holder as HTMLElement);
}

const resizing = new ResizeObserver((entries) => {
  for (const { target, contentRect } of entries) {
    const plot = charts.get(target as HTMLElement)?.plot;
    if (plot && contentRect.width > 0 && Math.abs(contentRect.width - plot.width) > 1) {
      plot.setSize({ width: Math.floor(contentRect.width), height: plot.height });
    }
  }
});

/** The width of an A4 or letter page without its margins, CSS pixels. */
const PAPER_WIDTH = 660;

addEventListener("beforeprint", () => {
  document.documentElement.toggleAttribute("data-print", true);
  inks.clear();
  for (const { plot } of charts.values()) plot.setSize({ width: PAPER_WIDTH, height: plot.height });
});
addEventListener("afterprint", () => {
  document.documentElement.toggleAttribute("data-print", false);
  inks.clear();
  for (const [holder, { plot }] of charts) plot.setSize({ width: holder.clientWidth, height: plot.height });
});

/** Forgets the charts below an element that is about to be replaced. */
export function dispose(root: HTMLElement): void {
  for (const [holder, { plot }] of charts) {
    if (root.contains(holder)) {
      resizing.unobserve(holder);
      plot.destroy();
      charts.delete(holder);
    }
  }
}

/** Lines with their own positions as columns over the union of all positions. */
function aligned(lines: Line[]): uPlot.AlignedData {
  const all = [...new Set(lines.flatMap((line) => line.x))].sort((a, b) => a - b);
  const place = new Map(all.map((x, index) => [x, index]));
  const columns = lines.map((line) => {
    // `undefined`: the line has no point here. `null`: a point without a value, a gap.
    const column = new Array<number | null | undefined>(all.length).fill(undefined);
    line.x.forEach((x, index) => (column[place.get(x) ?? 0] = line.y[index] ?? null));
    return parted(column);
  });
  return [all, ...columns] as uPlot.AlignedData;
}

/**
 * Extends a gap from the last value to the next, across the positions of other lines. uPlot by itself interrupts a line
 * only at positions without a value.
 */
function parted(column: (number | null | undefined)[]): (number | null | undefined)[] {
  let from = -1;
  let isGap = false;
  column.forEach((value, index) => {
    if (value === null) isGap = true;
    if (typeof value !== "number") return;
    if (isGap) column.fill(null, from + 1, index);
    [from, isGap] = [index, false];
  });
  return column;
}

export function lookOfLine(context: Looks, line: Line): Look {
  return line.look ?? context.look(line.trial.engine);
}

/** The opacity of a faint line, which is higher on a dark background. */
export function faintness(line: Line): number {
  return line.main ? 1 : Number(ink(line.apart ? "--faint-points" : "--faint"));
}

function series(context: Looks, line: Line, points: boolean): uPlot.Series {
  const look = lookOfLine(context, line);
  // Read at each drawing, because paper has other colours than a dark screen.
  const colour = () => ink(look.ink);
  const label = `${line.trial.engine} ${line.trial.repeat}`;
  if (line.joined) return { paths: () => null, points: { show: false }, label };
  if (line.apart) {
    return { paths: () => null, alpha: faintness(line), points: { show: true, size: 4, fill: colour, stroke: colour }, label };
  }
  return {
    stroke: colour,
    width: line.width ?? (line.main ? 1.6 : 1),
    alpha: faintness(line),
    dash: line.main ? look.dash : [],
    points: { show: points, size: 6, fill: colour, stroke: colour },
    label,
  };
}

/** Bands below the lines. */
function bands(context: Looks, lines: Line[]): (plot: uPlot) => void {
  return (plot) => {
    const { ctx, bbox } = plot;
    ctx.save();
    ctx.beginPath();
    ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
    ctx.clip();
    for (const line of lines) {
      const outline = bandOutline(line).map(([x, y]) => [plot.valToPos(x, "x", true), plot.valToPos(y, "y", true)] as const);
      if (outline.length < 4) continue;
      ctx.globalAlpha = line.fill ?? Number(ink("--band-of-line"));
      ctx.fillStyle = ink(lookOfLine(context, line).ink);
      ctx.beginPath();
      for (const [x, y] of outline) ctx.lineTo(x, y);
      ctx.fill();
    }
    ctx.restore();
  };
}

/** The band's corners: along its upper side, and back along its lower side. */
export function bandOutline(line: Line): [number, number][] {
  const known = (line.band ?? []).flatMap((ends, index) => (ends ? [{ x: line.x[index] ?? 0, ends }] : []));
  const upper = known.map(({ x, ends }): [number, number] => [x, ends[1]]);
  const lower = known.map(({ x, ends }): [number, number] => [x, ends[0]]);
  return [...upper, ...lower.reverse()];
}

/** The points of a joined line that have a value, in their order. */
export function joinedPoints(line: Line): { x: number; y: number; hollow: boolean; name: string }[] {
  if (!line.joined) return [];
  return line.x.flatMap((x, index) => {
    const y = line.y[index];
    return typeof y === "number" ? [{ x, y, hollow: line.hollow?.[index] ?? false, name: line.names?.[index] ?? "" }] : [];
  });
}

/** Lines that uPlot cannot draw, because they go back along the axis. */
function joined(context: Looks, lines: Line[]): (plot: uPlot) => void {
  return (plot) => {
    const { ctx } = plot;
    const scale = devicePixelRatio;
    ctx.save();
    ctx.font = `${11 * scale}px ${ink("--sans")}`;
    ctx.textAlign = "left";
    ctx.textBaseline = "bottom";
    for (const line of lines) {
      const look = lookOfLine(context, line);
      const places = joinedPoints(line).map((point) => ({ ...point, x: plot.valToPos(point.x, "x", true), y: plot.valToPos(point.y, "y", true) }));
      ctx.strokeStyle = ink(look.ink);
      ctx.lineWidth = (line.width ?? 1.6) * scale;
      ctx.setLineDash(look.dash.map((length) => length * scale));
      ctx.beginPath();
      for (const { x, y } of places) ctx.lineTo(x, y);
      ctx.stroke();
      ctx.setLineDash([]);
      for (const { x, y, hollow, name } of places) {
        if (!line.bare) {
          ctx.beginPath();
          ctx.arc(x, y, 3.4 * scale, 0, 2 * Math.PI);
          ctx.fillStyle = ink(hollow ? "--paper" : look.ink);
          ctx.fill();
          ctx.stroke();
        }
        ctx.fillStyle = ink("--muted");
        ctx.fillText(name, x + 5 * scale, y - 3 * scale);
      }
    }
    ctx.restore();
  };
}

/**
 * The largest of 1, 2 and 5 times a power of ten that is not above the value. uPlot counts its lines from an axis' end in
 * steps of that decade. From an end between two ticks, rounding can step over the next decade, and the loop never ends.
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
    // At least half a decade, so that noise does not fill the whole height.
    const floor = tickBelow(Math.max(min, 1e-4) * 0.85);
    return [floor, Math.max(max * 1.18, floor * 3)];
  };
}

/** Charts to make in the next frame. */
let asked: { context: Looks; holder: HTMLElement; lines: Line[]; axes: Axes }[] = [];

/**
 * A chart of these lines in `holder`, which must be in the page by the next frame. All charts of a frame are made together:
 * their widths are read before the first chart changes the page, so the page is laid out only once.
 */
export function chart(context: Looks, holder: HTMLElement, lines: Line[], axes: Axes): void {
  if (asked.length === 0) requestAnimationFrame(makeAsked);
  asked.push({ context, holder, lines, axes });
}

function makeAsked(): void {
  // The reader can have changed a choice before this frame.
  const wanted = asked.filter(({ holder }) => holder.isConnected).map((one) => ({ ...one, width: one.holder.clientWidth }));
  asked = [];
  for (const { context, holder, lines, axes, width } of wanted) make(context, holder, lines, axes, width);
}

function make(context: Looks, holder: HTMLElement, lines: Line[], axes: Axes, room: number): void {
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
    width: Math.max(240, Math.floor(room)),
    height: axes.height,
    legend: { show: false },
    padding: [axes.above ?? 8, 16, 0, 0],
    cursor: { points: { show: false }, drag: { x: true, y: false }, ...(axes.sync ? { sync: { key: axes.sync } } : {}) },
    scales: {
      x: { time: false, range: (_, min, max) => (min === null || (min <= first && max >= last) ? axes.xRange : [min, max]) },
      y: { distr: logarithmic ? 3 : 1, range: axes.yRange ?? yRange(logarithmic) },
    },
    axes: [
      { ...axis, size: 26, gap: 3, ...axes.x },
      { ...axis, size: 50, gap: 4, space: logarithmic ? 18 : 28, values: ticks(logarithmic), ...axes.y },
    ],
    series: [{}, ...lines.map((line) => series(context, line, axes.points ?? false))],
    hooks: {
      ...axes.hooks,
      drawClear: [...(axes.hooks?.drawClear ?? []), bands(context, lines)],
      draw: [...(axes.hooks?.draw ?? []), joined(context, lines)],
    },
  };
  charts.set(holder, { plot: new uPlot(options, data, holder), lines, axes });
  resizing.observe(holder);
}

/** Logarithmic axes label 1, 2 and 5 of every decade; other grid lines have no label. */
function ticks(logarithmic: boolean): uPlot.Axis.DynamicValues {
  return (_, splits) =>
    splits.map((split) => {
      if (split === null) return null;
      if (!logarithmic) return tick(split);
      const lead = split / 10 ** Math.floor(Math.log10(split) + 1e-9);
      return [1, 2, 5].some((named) => Math.abs(lead - named) < 0.01) ? tick(split) : null;
    });
}
