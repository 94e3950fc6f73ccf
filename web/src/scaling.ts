// Figures over the number of clients, where the experiment has several.

import type uPlot from "uplot";
import { type Line, chart } from "./chart";
import type { Context } from "./context";
import { alone, clientCounts, value } from "./data";
import { h, section } from "./dom";
import { whole } from "./format";
import { lookOf } from "./look";

const PANELS = [
  { metric: "ops_per_s", title: "Operations", unit: "per second" },
  { metric: "cpu_us_per_op", title: "CPU", unit: "µs per operation" },
  { metric: "wkb_per_op_with_drain", title: "Written, with the drain", unit: "KB per operation" },
];

/** Doubling the clients is one step. */
const place = (clients: number) => Math.round(Math.log2(clients) * 1000) / 1000;

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
    return [...single, { trial, look, x, main: true, y: figures.map(({ figure }) => value(figure?.median)) }];
  });
}

function panels(context: Context, counts: number[], test: string | undefined): HTMLElement[] {
  return PANELS.flatMap(({ metric, title, unit }) => {
    const found = lines(context, metric, test);
    if (found.length === 0) return [];
    const holder = h("div", { class: "chart", style: "height: 200px" });
    requestAnimationFrame(() =>
      chart(context, holder, found, {
        height: 200,
        points: true,
        x: {
          splits: () => counts.map(place),
          values: (_: uPlot, splits: number[]) => splits.map((_, index) => whole(counts[index] ?? 0)),
        },
        xRange: [place(counts[0] ?? 1), place(counts.at(-1) ?? 2)],
      }),
    );
    return [h("div", { class: "panel" }, h("div", { class: "panel-head" }, h("h3", {}, title, h("span", { class: "unit" }, unit))), holder)];
  });
}

export function scalingSection(context: Context): HTMLElement | null {
  const counts = clientCounts(context.data);
  if (counts.length < 2) return null;
  const tests = [...new Set(context.data.summary.rows.filter((row) => row.run !== null).map((row) => row.test))];
  const groups = tests.map((test) => {
    const thirds = h("div", { class: "thirds" }, ...panels(context, counts, test));
    return test === undefined ? thirds : h("div", {}, h("h3", {}, test), thirds);
  });
  const words = "Lines join the medians of the repeats, which are the points around them; the axis of clients is logarithmic.";
  return section("scaling", "Over the number of clients", words, ...groups);
}
