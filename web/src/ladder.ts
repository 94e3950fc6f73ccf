// Figures over a number that the experiment varies: medians joined by lines, with the repeats and a band.

import type uPlot from "uplot";
import { type Line, chart } from "./chart";
import type { Context } from "./context";
import { type Figure, type Row, figureOf, numbers, value } from "./data";
import { h } from "./dom";
import type { Look } from "./look";
import { metricTitle, unitAndDirection } from "./names";
import { saveButtons } from "./picture";

/** The rows of one line, by the varied number. */
export interface Series {
  look: Look;
  points: { at: number; row: Row }[];
}

/** The axis of the varied number: its values in order, with their labels. */
export interface Varied {
  name: string;
  values: { at: number; text: string }[];
}

/** On this axis, doubling is one step. */
export const place = (at: number) => Math.round(Math.log2(at) * 1000) / 1000;

/** Times span orders of magnitude. */
const isTime = (metric: string) => metric.endsWith(".p99_ms");

/** The interval of the repeats' centre, if there are enough repeats; else from the smallest to the largest. */
export function bandOf(figure: Figure | undefined): [number, number] | null {
  if (figure?.centre) return [figure.centre.low, figure.centre.high];
  const known = numbers(figure);
  return known.length > 1 ? [Math.min(...known), Math.max(...known)] : null;
}

function lines(context: Context, { look, points }: Series, metric: string): Line[] {
  const figures = points.map(({ row }) => figureOf(row, metric));
  const trial = context.data.trials.find(({ engine }) => engine === points[0]?.row.engine);
  if (!trial || figures.every((figure) => value(figure?.median) === null)) return [];
  const x = points.map(({ at }) => place(at));
  const repeats = Math.max(...figures.map((figure) => figure?.values.length ?? 0));
  const single = Array.from({ length: repeats > 1 ? repeats : 0 }, (_, repeat) => ({
    trial, look, x, main: false, apart: true, y: figures.map((figure) => value(figure?.values[repeat])),
  }));
  return [...single, { trial, look, x, main: true, band: figures.map(bandOf), y: figures.map((figure) => value(figure?.median)) }];
}

/** As many labels as fit on the axis. */
export function fittingLabels(texts: string[]): uPlot.Axis.DynamicValues {
  return (plot, splits) => {
    let free = -Infinity;
    return splits.map((split, index) => {
      const [at, text] = [plot.valToPos(split, "x"), texts[index] ?? ""];
      const half = text.length * 3.4 + 3;
      if (at - half < free) return "";
      free = at + half;
      return text;
    });
  };
}

/** One metric over the varied number, or nothing if no series has it. `marks` are drawn with the lines. */
export function ladderPanel(context: Context, name: string, varied: Varied, series: Series[], metric: string, height: number, marks: Line[] = []): HTMLElement[] {
  const found = series.flatMap((one) => lines(context, one, metric));
  if (found.length === 0) return [];
  const ends = varied.values.map(({ at }) => place(at));
  const holder = h("div", { class: "chart", style: `height: ${height}px` });
  chart(context, holder, [...found, ...marks], {
    height,
    points: true,
    logarithmic: isTime(metric),
    x: {
      splits: () => ends,
      values: fittingLabels(varied.values.map(({ text }) => text)),
    },
    xRange: [ends[0] ?? 0, ends.at(-1) ?? 1],
  });
  const title = metricTitle(metric);
  const unit = h("span", { class: "unit" }, unitAndDirection(context, metric), isTime(metric) && ", logarithmic");
  const head = h("div", { class: "panel-head" }, h("h3", {}, title, unit), saveButtons(context, `${name}-${metric}`, title));
  return [h("div", { class: "panel" }, head, holder, h("p", { class: "axis" }, `${varied.name}, logarithmic →`))];
}

/** A description of the bands of all drawn figures. */
export function bandsInWords(series: Series[], metrics: string[]): string {
  const drawn = series.flatMap(({ points }) => points.flatMap(({ row }) => metrics.flatMap((metric) => figureOf(row, metric) ?? [])));
  const figures = drawn.filter((figure) => numbers(figure).length > 1);
  const levels = figures.flatMap(({ centre }) => (centre ? [centre.level] : []));
  const range = "reaches from the smallest repeat to the largest";
  if (figures.length === 0) return "";
  if (levels.length === 0) return `; the band ${range}`;
  const shown = (level: number) => `${Number((100 * level).toFixed(2))}%`;
  const [least, most] = [Math.min(...levels), Math.max(...levels)];
  const level = least === most ? `exact ${shown(least)} interval` : `exact interval, ${shown(least)} to ${shown(most)},`;
  const exact = `is the ${level} of the repeats' centre, by the test of the verdicts`;
  return `; the band ${exact}${levels.length < figures.length ? `, or where that is not known ${range}` : ""}`;
}
