// The claims: published and measured values, and whether each claim holds here.

import type { Context } from "./context";
import { type Judgement, reason, together, value } from "./data";
import { h, scrolling, section } from "./dom";
import { Footnotes } from "./footnotes";
import { counted, measured } from "./format";

const WORDS: Record<Judgement["verdict"], string> = {
  holds: "holds",
  fails: "fails",
  undecided: "undecided",
  "single-run": "single run",
  void: "void",
  "true-for-this-load": "true for this load",
  "false-for-this-load": "false for this load",
};

/** The reason for a verdict: the result of one repeat, the test, or the number of repeats that would decide. */
function behind({ verdict, seen, test, more_repeats }: Judgement): string | null {
  if (verdict === "void") return "the same engine with itself";
  if (verdict === "single-run") return seen === null ? null : seen ? "it was so" : "it was not so";
  if (verdict === "undecided" && more_repeats !== null) return `${counted(more_repeats, "more repeat")} would probably decide`;
  if (verdict === "undecided" && test !== null) return "too noisy to decide here";
  return test;
}

function row(judged: Judgement, footnotes: Footnotes): HTMLElement {
  const figure = value(judged.measured);
  const interval = judged.interval && `${measured(judged.interval[0])} – ${measured(judged.interval[1])}`;
  const why = behind(judged);
  return h(
    "tr",
    {},
    // The verdict comes first and is narrow, because on a phone the other columns need scrolling.
    h("td", { class: `verdict-${judged.verdict}`, title: judged.reason }, WORDS[judged.verdict], why !== null && h("span", { class: "unit" }, why)),
    h(
      "th",
      { scope: "row" },
      judged.text,
      judged.source !== null && h("span", { class: "unit" }, judged.source),
      h("code", { class: "unit" }, judged.holds),
    ),
    h(
      "td",
      { title: judged.measure ?? "the inequality's left side over its right" },
      figure === null ? footnotes.dash(reason(judged.measured)) : measured(figure),
      interval && h("span", { class: "unit" }, interval),
    ),
    h("td", {}, judged.published === null ? "–" : measured(judged.published)),
  );
}

export function claimsSection(context: Context): HTMLElement | null {
  const { claims } = context.data.summary;
  if (claims.length === 0) return null;
  const footnotes = new Footnotes();
  const rows = claims.map((judged) => row(judged, footnotes));
  const heads = ["verdict", "claim", "measured here", "published"].map((head) => h("th", { scope: "col" }, head));
  const table = h("table", { class: "claims" }, h("thead", {}, h("tr", {}, ...heads)), h("tbody", {}, ...rows));
  return section(
    "claims",
    "Do the claims hold?",
    `A test over the repeats decides. A verdict that a claim holds or fails is wrong in at most 5 of 100 such experiments.${together(context.data.summary.claim_verdicts)} A single run decides nothing. If the repeats are starts of one load, a claim is true or false for this load only. Below a measured figure is its 90% interval.`,
    scrolling("claims", table),
    footnotes.list(),
  );
}
