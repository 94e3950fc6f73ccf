// The claims: what was published beside what was measured, and whether it holds here.

import type { Context } from "./context";
import { type Judgement, reason, value } from "./data";
import { h, scrolling, section } from "./dom";
import { Footnotes } from "./footnotes";
import { measured } from "./format";

const WORDS: Record<Judgement["verdict"], string> = {
  holds: "holds",
  fails: "fails",
  undecided: "undecided",
  "seen-once": "seen once",
};

function row(judged: Judgement, footnotes: Footnotes): HTMLElement {
  const figure = value(judged.measured);
  const interval = judged.interval && `${measured(judged.interval[0])} – ${measured(judged.interval[1])}`;
  return h(
    "tr",
    {},
    // First, and narrow: on a phone the rest is a scroll away.
    h("td", { class: `verdict-${judged.verdict}`, title: judged.reason }, WORDS[judged.verdict]),
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
    "Claims",
    "A claim holds when an exact test over the repeats rejects that it does not, and fails when it rejects that it does; each is false in at most 5% of cases. Seen once: one repeat, nothing to test. Below a measured figure: its 90% interval, where there are repeats.",
    scrolling("claims", table),
    footnotes.list(),
  );
}
