// Figures over the number of clients, where the experiment has several.

import type uPlot from "uplot";
import { type Line, chart } from "./chart";
import type { Context } from "./context";
import { clientCounts, value } from "./data";
import { h, section } from "./dom";
import { whole } from "./format";

const PANELS = [
  { metric: "ops_per_s", title: "Operations", unit: "per second" },
  { metric: "cpu_us_per_op", title: "CPU", unit: "µs per operation" },
  { metric: "wkb_per_op_with_drain", title: "Written, with the drain", unit: "KB per operation" },
];

/** Doubling the clients is one step. */
const place = (clients: number) => Math.round(Math.log2(clients) * 1000) / 1000;

function lines(context: Context, metric: string): Line[] {
  return context.engines.filter((engine) => context.shown(engine)).flatMap((engine) => {
    const rows = context.data.summary.rows.filter((row) => row.engine === engine);
    const points = rows.map((row) => ({ x: place(row.clients), y: value(row.run?.metrics[metric]?.median) }));
    const trial = context.data.trials.find((trial) => trial.engine === engine);
    if (!trial || points.every(({ y }) => y === null)) return [];
    return [{ trial, main: true, x: points.map(({ x }) => x), y: points.map(({ y }) => y) }];
  });
}

export function scalingSection(context: Context): HTMLElement | null {
  const counts = clientCounts(context.data);
  if (counts.length < 2) return null;
  const panels = PANELS.flatMap(({ metric, title, unit }) => {
    const found = lines(context, metric);
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
  return section("scaling", "Over the number of clients", "Medians of the repeats, one point per number of clients; that axis is logarithmic.", h("div", { class: "thirds" }, ...panels));
}
