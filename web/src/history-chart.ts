// One metric over the runs of a history: medians joined by a line, the repeats around them, and the levels.

import type uPlot from "uplot";
import { type Line, chart } from "./chart";
import { reason, value } from "./data";
import { h } from "./dom";
import { counted, ratio, significant, sizeUnit } from "./format";
import type { Axis, LevelChange, MetricLine, Step } from "./history-data";
import type { History } from "./history";
import { fittingLabels } from "./ladder";
import { sample } from "./look";
import { metricTitle, unitAndDirection } from "./names";
import { saveButtons } from "./picture";
import { changed, verdictWords } from "./verdicts";

const HEIGHT = 230;
/** The width of a level, pixels. */
const LEVEL = 1.2;
/** The free share of the axis after the last run, for its label. */
const AFTER = 0.06;

/** The runs of a chart's axis, in order. */
export interface Places {
  by: Axis;
  /** The run of each position, with its label. */
  runs: { point: number; label: string }[];
}

const placeOf = (places: Places, step: Step | undefined) => places.runs.findIndex(({ point }) => point === step?.point);

/** A time without its seconds; other labels as they are. */
export const shortLabel = (label: string) => label.replace(/^(\d{4}-\d\d-\d\d)T(\d\d:\d\d).*$/, "$1 $2");

/** A figure in its unit: sizes as MB or GB. */
export function shownFigure({ unit }: MetricLine, size: { name: string; bytes: number }): (number: number) => string {
  return unit === "B" ? (number) => `${significant(number / size.bytes)} ${size.name}` : significant;
}

export function sizeOf(lines: MetricLine[]): { name: string; bytes: number } {
  return sizeUnit(Math.max(0, ...lines.flatMap(({ steps }) => steps.map(({ median }) => value(median) ?? 0))));
}

/** The change of a level, as a factor; null from zero. */
const factorOf = ({ from, to }: LevelChange) => (from > 0 ? to / from : null);

/** The mean of each level, as a dashed line that steps between the runs of a change. */
function levels(context: History, places: Places, line: MetricLine, scale: number): Line[] {
  const known = line.steps.filter(({ repeats }) => repeats > 0);
  if (line.changes.length === 0 || known.length === 0) return [];
  const named = (label: string) => placeOf(places, line.steps.find((step) => step.label === label));
  const points = line.changes.flatMap((change) => {
    const between = (named(change.after) + named(change.at)) / 2;
    const factor = factorOf(change);
    const name = factor === null ? "" : changed(factor);
    // Above the step, the line does not cross the label.
    const isRise = change.to > change.from;
    return [
      { x: between, y: change.from, name: isRise ? "" : name },
      { x: between, y: change.to, name: isRise ? name : "" },
    ];
  });
  const [first, last] = [points[0], points.at(-1)];
  const all = [{ x: placeOf(places, known[0]), y: first?.y ?? 0, name: "" }, ...points, { x: placeOf(places, known.at(-1)), y: last?.y ?? 0, name: "" }];
  const look = { ...context.look(line.engine), dash: [4, 3] };
  const trial = { engine: line.engine, repeat: 0 };
  return [{ trial, look, main: true, joined: true, bare: true, width: LEVEL, x: all.map(({ x }) => x), y: all.map(({ y }) => y / scale), names: all.map(({ name }) => name) }];
}

function lines(places: Places, line: MetricLine, scale: number): Line[] {
  const trial = { engine: line.engine, repeat: 0 };
  const x = line.steps.map((step) => placeOf(places, step));
  const scaled = (number: number | null | undefined) => (number === null || number === undefined ? null : number / scale);
  const repeats = Math.max(0, ...line.steps.map(({ values }) => values.length));
  const single = Array.from({ length: repeats > 1 ? repeats : 0 }, (_, repeat) => ({ trial, x, main: false, apart: true, y: line.steps.map(({ values }) => scaled(values[repeat])) }));
  return [...single, { trial, x, main: true, y: line.steps.map(({ median }) => scaled(value(median))) }];
}

/** `0.80× (0.78–0.82), worse`; empty for the first run. */
export function againstInWords({ against }: Step): string {
  if (against === null) return "";
  const [factor, low, high] = [value(against.ratio), value(against.low), value(against.high)];
  const interval = low !== null && high !== null ? ` (${ratio(low)}–${ratio(high)})` : "";
  return `${factor === null ? "no ratio" : `${ratio(factor)}×${interval}`}, ${verdictWords(against)}`;
}

/** Describes a run: its label, its directory, the commit and the dates. */
function runInWords(context: History, { point, label }: Places["runs"][number]): HTMLElement {
  const run = context.data.points[point];
  const commit = run?.commit ? `commit ${run.commit}${run.committed ? ` of ${shortLabel(run.committed)}` : ""}` : "commit unknown";
  return h("div", {}, h("strong", {}, shortLabel(label)), h("span", { class: "unit" }, run?.directory), h("span", { class: "unit" }, `${shortLabel(run?.started ?? "")}, ${commit}`));
}

function stepInWords(context: History, line: MetricLine, step: Step, show: (number: number) => string): HTMLElement {
  const median = value(step.median);
  const figure = median === null ? `– (${reason(step.median)})` : `${show(median)} (${counted(step.repeats, "repeat")})`;
  const version = step.version !== null && step.version !== step.label ? ` ${step.version}` : "";
  const change = line.changes.find(({ at }) => at === step.label);
  return h(
    "div",
    {},
    h("span", { class: "reading" }, sample(context.look(line.engine)), `${context.label(line.engine)}${version}: ${figure}`),
    h("span", { class: "unit" }, againstInWords(step), step.unsound !== null && `; ${step.unsound}`),
    change !== undefined && h("span", { class: "unit" }, `the level changes here: ${show(change.from)} to ${show(change.to)} (p = ${change.p.toFixed(4)})`),
  );
}

/** Shows the run under the cursor, on the other side of the chart. */
function tooltip(context: History, places: Places, shown: MetricLine[], show: (number: number) => string, tip: HTMLElement): (plot: uPlot) => void {
  return (plot) => {
    const left = plot.cursor.left ?? -1;
    tip.hidden = left < 0;
    if (left < 0) return;
    const at = Math.min(Math.max(Math.round(plot.posToVal(left, "x")), 0), places.runs.length - 1);
    const run = places.runs[at];
    if (!run) return;
    const readings = shown.flatMap((line) => line.steps.filter(({ point }) => point === run.point).map((step) => stepInWords(context, line, step, show)));
    tip.classList.toggle("right", left < plot.over.clientWidth / 2);
    tip.replaceChildren(runInWords(context, run), ...readings);
  };
}

/** One metric of the engines that share an axis. */
export function historyPanel(context: History, places: Places, shown: MetricLine[]): HTMLElement {
  const [first] = shown;
  const [metric, part] = [first?.metric ?? "", first?.part ?? "run"];
  const isBytes = first?.unit === "B";
  const size = sizeOf(shown);
  const scale = isBytes ? size.bytes : 1;
  const found = [...shown.flatMap((line) => lines(places, line, scale)), ...shown.flatMap((line) => levels(context, places, line, scale))];
  const title = metricTitle(metric);
  const unit = [isBytes ? size.name : "", unitAndDirection(context, metric)].filter(Boolean).join(", ");
  const head = h("div", { class: "panel-head" }, h("h3", {}, title, h("span", { class: "unit" }, unit)), saveButtons(context, `${part === "run" ? "loops" : part}-${metric}`, title));
  const attributes = { class: "panel", "data-metric": metric };
  if (shown.every(({ steps }) => steps.every(({ median }) => value(median) === null))) {
    return h("div", attributes, head, h("p", { class: "nothing" }, "No run has this figure."));
  }
  const tip = h("div", { class: "tip", hidden: true });
  const holder = h("div", { class: "chart tipped", style: `height: ${HEIGHT}px` }, tip);
  const positions = places.runs.map((_, at) => at);
  const last = positions.length - 1;
  chart(context, holder, found, {
    height: HEIGHT,
    points: true,
    x: { splits: () => positions, values: fittingLabels(places.runs.map(({ label }) => shortLabel(label))) },
    xRange: [-0.5, last + Math.max(0.5, AFTER * positions.length)],
    hooks: { setCursor: [tooltip(context, places, shown, first ? shownFigure(first, size) : significant, tip)] },
  });
  return h("div", attributes, head, holder);
}
