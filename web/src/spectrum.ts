// The percentile spectrum: response time over rarity, as HdrHistogram plots it.

import type uPlot from "uplot";
import { type Line, chart } from "./chart";
import type { Context } from "./context";
import { choice, h, section } from "./dom";
import { choose, current } from "./state";

/** Nines: 90% is 1, 99% is 2; the middle of the scale is where the tail begins. */
function nines(percentile: number): number {
  return Math.round(-Math.log10(1 - percentile / 100) * 1000) / 1000;
}

const NAMED = [0, 50, 75, 90, 99, 99.9, 99.99, 99.999, 99.9999];

/** The percentiles' names, as many as have room; the right ones first, they are the rarer. */
function labels(plot: uPlot, splits: number[]): string[] {
  let free = Infinity;
  return splits
    .map((split, index) => ({ at: plot.valToPos(split, "x"), name: `${NAMED[index]}%` }))
    .reverse()
    .map(({ at, name }) => {
      const half = name.length * 3.2 + 5;
      if (at + half > free) return "";
      free = at - half;
      return name;
    })
    .reverse();
}

function lines(context: Context, op: string): Line[] {
  return context.trials().flatMap(({ trial, main }) => {
    const points = (trial.spectrum[op] ?? []).filter(([percentile, ms]) => percentile < 100 && ms > 0);
    const x: number[] = [];
    const y: number[] = [];
    for (const [percentile, ms] of points) {
      const place = nines(percentile);
      if (place === x.at(-1)) y[y.length - 1] = ms;
      else {
        x.push(place);
        y.push(ms);
      }
    }
    return x.length > 1 ? [{ trial, main, x, y }] : [];
  });
}

export function opNames(context: Context): string[] {
  return [...new Set(context.data.trials.flatMap((trial) => Object.keys(trial.spectrum)))].sort();
}

export function spectrumSection(context: Context): HTMLElement | null {
  const names = opNames(context);
  if (names.length === 0) return null;
  const found = lines(context, current().op);
  const about =
    "Response time that a share of the operations stayed below: to the right the rare and slow ones. Both axes are logarithmic.";
  const operation = choice(
    "operation",
    names.map((name) => ({ value: name, text: name })),
    current().op,
    (op) => choose({ op }),
  );
  if (found.length === 0) {
    return section("spectrum", "Response times", about, operation, h("p", { class: "nothing" }, "No loop of these trials has a spectrum of this operation."));
  }
  const holder = h("div", { class: "chart", style: "height: 320px" });
  const end = Math.max(...found.flatMap((line) => line.x.at(-1) ?? 0));
  requestAnimationFrame(() =>
    chart(context, holder, found, {
      height: 320,
      x: {
        splits: () => NAMED.map(nines).filter((split) => split <= end + 0.01),
        values: labels,
      },
      y: { label: "response time, ms", labelSize: 20, labelFont: "11px sans-serif" },
      xRange: [0, end],
      logarithmic: true,
    }),
  );
  return section("spectrum", "Response times", about, operation, h("div", { class: "panel" }, holder));
}
