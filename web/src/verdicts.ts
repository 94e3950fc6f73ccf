// The verdicts: the change with its interval over the repeats, the noise, and the repeats that would decide.

import type { Context } from "./context";
import { type Change, type Ratio, type Row, alone, figureOf, together, value } from "./data";
import { h, scrolling, section } from "./dom";
import { bytes, measured, milliseconds, percent, price, ratio as shown } from "./format";
import { marker } from "./look";
import { isBytes, metricName, unitAndDirection } from "./names";
import { saveButtons } from "./picture";
import { choose, current } from "./state";

const WORDS: Record<Change, string> = { better: "better", worse: "worse", same: "the same", differs: "differs", undecided: "not decided", "single-run": "single run", void: "void" };

/** A verdict with its scope. */
export function verdictWords({ change, scope }: Pick<Ratio, "change" | "scope">): string {
  const decided = change === "better" || change === "worse" || change === "same" || change === "differs";
  return decided && scope === "this-load" ? `${WORDS[change]} for this load` : WORDS[change];
}

/** Above this factor, a factor is easier to read than a percentage. */
const TENFOLD = 10;

/** `+8.0%`, `−95.5%`, `×14.2`. */
export function changed(factor: number): string {
  if (factor >= TENFOLD) return `×${shown(factor)}`;
  const share = (factor - 1) * 100;
  const digits = Math.abs(share) < 100 ? 1 : 0;
  const text = Math.abs(share).toFixed(digits);
  if (Number(text) === 0) return `${(0).toFixed(digits)}%`;
  return `${share < 0 ? "−" : "+"}${text}%`;
}

/** A cell that is named by its column on a narrow screen. */
const named = (head: string, ...content: Parameters<typeof h>[2][]) => h("td", { "data-head": head }, ...content);

/** The number of repeats that would decide it, or the reason why none would. */
function moreRepeats({ change, lacking, more_repeats: more }: Ratio): string {
  if (lacking !== undefined) return lacking;
  if (change === "single-run") return "unknown";
  if (change !== "undecided") return "–";
  return more === undefined ? "too noisy" : String(more);
}

function line(context: Context, base: Row, row: Row, judged: Ratio, first: boolean, lines: number): HTMLElement {
  const figures = [figureOf(base, judged.metric), figureOf(row, judged.metric)];
  const show = (number: number) => {
    if (judged.metric.endsWith(".p99_ms")) return milliseconds(number);
    if (isBytes(context, judged.metric)) return bytes(number);
    return context.unit(judged.metric) === "price" ? price(number) : measured(number);
  };
  const medians = figures.map((figure, index) => {
    const median = value(figure?.median);
    return named(context.label([base.engine, row.engine][index] ?? ""), median === null ? "–" : show(median));
  });
  const [factor, low, high] = [value(judged.ratio), value(judged.low), value(judged.high)];
  const noise = figures.flatMap((figure) => (figure?.spread ? [figure.spread.range] : []));
  const counts = [base, row].map(({ run }) => run?.repeats.length ?? 0);
  return h(
    "tr",
    {},
    first && h("th", { scope: "rowgroup", rowspan: String(lines), class: "op" }, h("span", { class: "engine" }, marker(context.look(row.engine)), context.label(row.engine))),
    h("th", { scope: "row", class: "of" }, metricName(judged.metric), h("span", { class: "unit" }, unitAndDirection(context, judged.metric))),
    ...medians,
    named("change", factor === null ? "–" : changed(factor), low !== null && high !== null && h("span", { class: "unit" }, `${changed(low)} to ${changed(high)}`)),
    h("td", { class: `text change-${judged.change}`, "data-head": "verdict" }, verdictWords(judged), !judged.headline && h("span", { class: "unit" }, "not a headline")),
    named("noise", noise.length > 0 ? percent(Math.max(...noise)) : "–"),
    named("repeats", counts.join(" and ")),
    h("td", { "data-head": "more repeats", class: judged.change === "undecided" || judged.change === "single-run" ? "" : "none-needed" }, context.labelled(moreRepeats(judged))),
  );
}

export function verdictsSection(context: Context): HTMLElement | null {
  const { baseline, clients, judged: which } = current();
  const against = (context.data.summary.relative ?? []).find((relative) => relative.baseline === baseline);
  const bodies = context.rows().filter((row) => alone(row) !== baseline).flatMap((row) => {
    const found = against?.rows.find((other) => other.engine === row.engine && other.clients === clients);
    const base = context.rows().find((other) => alone(other) === baseline && other.test === row.test);
    const ratios = (found?.metrics ?? []).filter(({ headline }) => which === "all" || headline);
    if (!base || ratios.length === 0) return [];
    const why = found?.unsound;
    const note = why ? [h("tr", {}, h("td", { class: "text alarm", colspan: "9" }, `Nothing is decided: ${context.labelled(why)}`))] : [];
    return [h("tbody", {}, ...ratios.map((ratio, index) => line(context, base, row, ratio, index === 0, ratios.length)), ...note)];
  });
  if (bodies.length === 0) return null;
  const heads: [string, string, boolean][] = [
    ["engine", "", true],
    ["metric", "", true],
    [context.label(baseline), "median", false],
    ["the engine", "median", false],
    ["change", "95% interval", false],
    ["verdict", "", true],
    ["noise", "largest over smallest", false],
    ["repeats", "of both", false],
    ["more repeats", "would decide", false],
  ];
  const head = h("tr", {}, ...heads.map(([text, unit, left]) => h("th", { scope: "col", class: left ? "text" : "" }, text, unit !== "" && h("span", { class: "unit" }, unit))));
  const switcher = h(
    "div",
    { class: "switch", role: "group", "aria-label": "which verdicts" },
    ...(["headline", "all"] as const).map((kind) => h("button", { type: "button", "aria-pressed": String(which === kind), click: () => choose({ judged: kind }) }, kind === "all" ? "all metrics" : "headlines")),
  );
  return section(
    "verdicts",
    "How sure is that?",
    `A permutation test and Welch's test compare the repeats with those of ${context.label(baseline)}. Each headline verdict is wrong in at most 5 of 100 cases.${together(against?.headline_verdicts)} All other metrics together have a false discovery rate of 5%. A verdict for this load rests on starts of one load and says nothing about other loads. The number of repeats that would decide is estimated from the noise.`,
    saveButtons(context, "verdicts", "the verdicts"),
    switcher,
    scrolling("verdicts", h("table", { class: "verdict-table latency" }, h("thead", {}, head), ...bodies)),
  );
}
