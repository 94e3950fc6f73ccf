// The percentile spectrum: response time over percentiles, as HdrHistogram plots it.

import type uPlot from "uplot";
import { type Line, chart } from "./chart";
import { warningsAbout } from "./conditions";
import type { Context } from "./context";
import { value } from "./data";
import { choice, h, section } from "./dom";
import { counted } from "./format";
import { saveButtons } from "./picture";
import { choose, current } from "./state";

/** The number of nines: 90% is 1, 99% is 2. The tail begins in the middle of the scale. */
function nines(percentile: number): number {
  return Math.round(-Math.log10(1 - percentile / 100) * 1000) / 1000;
}

const NAMED = [0, 50, 75, 90, 99, 99.9, 99.99, 99.999, 99.9999];

/** As many labels of percentiles as fit. The right ones have priority, because they are the rarer. */
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

const SERVICE = [
  ["p50_ms", 50],
  ["p95_ms", 95],
  ["p99_ms", 99],
  ["p999_ms", 99.9],
] as const;

/** The known service times of each engine: hollow points and a dotted line. */
function serviceLines(context: Context, op: string): Line[] {
  const { test } = current();
  return context.rows().filter((row) => context.shown(row.engine) && (row.test ?? test) === test).flatMap((row) => {
    const trial = context.data.trials.find(({ engine }) => engine === row.engine);
    const points = SERVICE.flatMap(([name, percentile]) => {
      const ms = value(row.run?.op_types[op]?.service[name]?.median);
      return ms !== null && ms > 0 ? [{ x: nines(percentile), y: ms }] : [];
    });
    if (!trial || points.length === 0) return [];
    const look = { ...context.look(row.engine), dash: [1.5, 3] };
    return [{ trial, main: true, joined: true, look, x: points.map(({ x }) => x), y: points.map(({ y }) => y), hollow: points.map(() => true) }];
  });
}

/** Spectra that end early because of unfinished operations. */
function cutOff(context: Context, op: string): HTMLElement | null {
  const found = context.trials().flatMap(({ trial }) => {
    const count = trial.censored?.[op];
    return count === undefined ? [] : [`${context.label(trial.engine)}, repeat ${trial.repeat}: ${counted(count, "operation")}`];
  });
  return found.length > 0 ? h("p", { class: "about" }, `Cut off where operations had not ended when the time was up: ${found.join("; ")}.`) : null;
}

export function opNames(context: Context): string[] {
  return [...new Set(context.data.trials.flatMap((trial) => Object.keys(trial.spectrum)))].sort();
}

export function spectrumSection(context: Context): HTMLElement | null {
  if (opNames(context).length === 0) return null;
  // The tests of a suite have different operations.
  const ofTest = new Set(context.trials().flatMap(({ trial }) => Object.keys(trial.spectrum)));
  const names = ofTest.size > 0 ? [...ofTest].sort() : opNames(context);
  const op = names.includes(current().op) ? current().op : (names[0] ?? "");
  const response = lines(context, op);
  const found = [...response, ...serviceLines(context, op)];
  const about =
    "Response time that a share of the operations stayed below: to the right the rare and slow ones. It ends where fewer than 10 operations lie beyond, or where some had not ended. Hollow points are the service time, which counts from when an operation began. Both axes are logarithmic.";
  const operation = choice(
    "operation",
    names.map((name) => ({ value: name, text: name })),
    op,
    (chosen) => choose({ op: chosen }),
  );
  if (response.length === 0) {
    return section("spectrum", "How long do the slowest operations take?", about, context.testChoice(), operation, h("p", { class: "nothing" }, "No loop of these trials has a spectrum of this operation."));
  }
  const holder = h("div", { class: "chart", style: "height: 320px" });
  const end = Math.max(...found.flatMap((line) => line.x.at(-1) ?? 0));
  chart(context, holder, found, {
    height: 320,
    x: {
      splits: () => NAMED.map(nines).filter((split) => split <= end + 0.01),
      values: labels,
    },
    y: { label: "response time, ms", labelSize: 20, labelFont: "11px sans-serif" },
    xRange: [0, end],
    logarithmic: true,
  });
  return section("spectrum", "How long do the slowest operations take?", about, warningsAbout(context, ["p99_ms"]), context.testChoice(), operation, cutOff(context, op), h("div", { class: "panel" }, h("div", { class: "panel-head" }, h("h3", {}, op, h("span", { class: "unit" }, "response time, less is better")), saveButtons(context, `spectrum-${op}`, "the spectrum")), holder, h("p", { class: "axis" }, "share of the operations that took no longer →")));
}
