// The load ladder: figures over the number of clients, where the experiment has several.

import type uPlot from "uplot";
import { type Line, chart } from "./chart";
import { warningsAbout } from "./conditions";
import type { Context } from "./context";
import { type Figure, alone, clientCounts, numbers, value } from "./data";
import { choice, h, section } from "./dom";
import { whole } from "./format";
import { lookOf } from "./look";
import { metricName, metricTitle, unitAndDirection } from "./names";
import { saveButtons } from "./picture";
import { choose, current } from "./state";

/** What stands below the ladder: what a rung costs. */
const COSTS = ["cpu_us_per_op", "wkb_per_op_with_drain"];
/** What the ladder can show beside the rates that a workload reports. */
const OTHERS = ["ops_per_s", "retries_per_op", "reads_per_op", "host_cpu_percent"];

/** The rates that the workload's specification reports, `tpmC`, then what every workload has. */
export function ladderMetrics(context: Context): string[] {
  const present = new Set(context.data.summary.rows.flatMap(({ run }) => Object.entries(run?.metrics ?? {}).flatMap(([name, figure]) => (value(figure.median) === null ? [] : [name]))));
  const rates = [...present].filter((name) => /^tpm[A-Za-z0-9]+(_percent)?$/.test(name)).sort();
  return [...rates, ...OTHERS.filter((name) => present.has(name))];
}

/** Doubling the clients is one step. */
const place = (clients: number) => Math.round(Math.log2(clients) * 1000) / 1000;

/** Where the centre of the repeats lies, if there are enough of them to say; else from the smallest to the largest. */
function bandOf(figure: Figure | undefined): [number, number] | null {
  if (figure?.centre) return [figure.centre.low, figure.centre.high];
  const known = numbers(figure);
  return known.length > 1 ? [Math.min(...known), Math.max(...known)] : null;
}

/** What the bands are, of all figures that are drawn. */
function bandsInWords(context: Context, metrics: string[]): string {
  const rows = context.data.summary.rows.filter((row) => context.shown(row.engine));
  const figures = rows.flatMap(({ run }) => metrics.flatMap((metric) => run?.metrics[metric] ?? [])).filter((figure) => numbers(figure).length > 1);
  const levels = figures.flatMap(({ centre }) => (centre ? [centre.level] : []));
  const range = "reaches from the smallest repeat to the largest";
  if (figures.length === 0) return "";
  if (levels.length === 0) return `; the band ${range}`;
  const shown = (level: number) => `${Number((100 * level).toFixed(2))}%`;
  const [least, most] = [Math.min(...levels), Math.max(...levels)];
  const level = least === most ? `exact ${shown(least)} interval` : `exact interval, ${shown(least)} to ${shown(most)},`;
  const exact = `is the ${level} of the repeats' centre, by the test of the verdicts`;
  return `; the band ${exact}${levels.length < figures.length ? `; where there are fewer than four repeats it ${range}` : ""}`;
}

/** The medians of each engine in a test of a suite, or of all where there is none, and its repeats around them. */
function lines(context: Context, metric: string, test: string | undefined): Line[] {
  const of = context.data.summary.rows.filter((row) => row.test === test && row.run !== null && context.shown(row.engine));
  return [...new Set(of.map((row) => row.engine))].flatMap((engine) => {
    const rows = of.filter((row) => row.engine === engine);
    const figures = rows.map((row) => ({ x: place(row.clients), figure: row.run?.metrics[metric] }));
    const trial = context.data.trials.find((trial) => trial.engine === engine);
    const [row] = rows;
    if (!trial || !row || figures.every(({ figure }) => value(figure?.median) === null)) return [];
    // An engine looks alike in every test.
    const look = test === undefined ? context.look(engine) : lookOf(Math.max(0, context.alone.indexOf(alone(row))));
    const x = figures.map(({ x }) => x);
    const repeats = Math.max(...figures.map(({ figure }) => figure?.values.length ?? 0));
    const single = Array.from({ length: repeats > 1 ? repeats : 0 }, (_, repeat) => ({
      trial, look, x, main: false, apart: true, y: figures.map(({ figure }) => value(figure?.values[repeat])),
    }));
    const band = figures.map(({ figure }) => bandOf(figure));
    return [...single, { trial, look, x, main: true, band, y: figures.map(({ figure }) => value(figure?.median)) }];
  });
}

function panel(context: Context, counts: number[], test: string | undefined, metric: string, height: number): HTMLElement[] {
  const found = lines(context, metric, test);
  if (found.length === 0) return [];
  const holder = h("div", { class: "chart", style: `height: ${height}px` });
  chart(context, holder, found, {
    height,
    points: true,
    x: {
      splits: () => counts.map(place),
      values: (plot: uPlot, splits: number[]) => labels(plot, splits, counts),
    },
    xRange: [place(counts[0] ?? 1), place(counts.at(-1) ?? 2)],
  });
  const title = metricTitle(metric);
  const head = h("div", { class: "panel-head" }, h("h3", {}, title, h("span", { class: "unit" }, unitAndDirection(context, metric))), saveButtons(context, `ladder-${metric}`, title));
  return [h("div", { class: "panel" }, head, holder, h("p", { class: "axis" }, "clients, logarithmic →"))];
}

/** As many numbers of clients as have room. */
function labels(plot: uPlot, splits: number[], counts: number[]): string[] {
  let free = -Infinity;
  return splits.map((split, index) => {
    const [at, name] = [plot.valToPos(split, "x"), whole(counts[index] ?? 0)];
    const half = name.length * 3.4 + 3;
    if (at - half < free) return "";
    free = at + half;
    return name;
  });
}

export function scalingSection(context: Context): HTMLElement | null {
  const counts = clientCounts(context.data);
  if (counts.length < 2) return null;
  const metrics = ladderMetrics(context);
  const tests = [...new Set(context.data.summary.rows.filter((row) => row.run !== null).map((row) => row.test))];
  const groups = tests.map((test) => {
    const ladder = panel(context, counts, test, current().ladder, test === undefined ? 320 : 220);
    const costs = h("div", { class: "thirds" }, ...COSTS.flatMap((metric) => panel(context, counts, test, metric, 200)));
    return h("div", {}, test !== undefined && h("h3", {}, test), ...ladder, costs);
  });
  const picker = choice("metric", metrics.map((name) => ({ value: name, text: metricName(name) })), current().ladder, (ladder) => choose({ ladder }));
  return section(
    "scaling",
    "Load ladder",
    `How far it scales: lines join the medians of the repeats, which are the points around them${bandsInWords(context, [current().ladder, ...COSTS])}. The axis of clients is logarithmic, the other begins at zero.`,
    warningsAbout(context, [current().ladder]),
    metrics.length > 1 && picker,
    ...groups,
  );
}
