// The search for a rate: every probe, the limit of the response time, and the highest rate within the limit.

import { type Line, chart } from "./chart";
import type { Context } from "./context";
import { type Probe, type Searched, value } from "./data";
import { h, scrolling, section } from "./dom";
import { milliseconds, significant, tick } from "./format";
import { type Look, marker } from "./look";
import { saveButtons } from "./picture";

const LIMIT: Look = { colour: "var(--alarm)", ink: "--alarm", dash: [6, 4], marker: "" };

/** The decisive probes, by their rates. */
function decided({ probes }: Searched): { rate: number; ms: number; missed: boolean }[] {
  const known = probes.flatMap(({ rate, percentile_ms, found }: Probe) => {
    const ms = value(percentile_ms);
    return rate !== null && ms !== null && ms > 0 && (found === "kept" || found === "missed") ? [{ rate, ms, missed: found === "missed" }] : [];
  });
  return known.sort((a, b) => a.rate - b.rate);
}

function lines(context: Context, searches: Searched[], limit: number): Line[] {
  const all = searches.flatMap(decided);
  const [lowest, largest] = [Math.min(...all.map(({ ms }) => ms), limit), Math.max(...all.map(({ rate }) => rate), 1)];
  return searches.flatMap((search, index): Line[] => {
    const trial = context.data.trials.find(({ engine }) => engine === search.engine);
    if (!trial) return [];
    const points = decided(search);
    const probes = { trial, main: true, joined: true, x: points.map(({ rate }) => rate), y: points.map(({ ms }) => ms), hollow: points.map(({ missed }) => missed) };
    const [highest, missed] = [value(search.highest), value(search.lowest_missed)];
    const bracket = { trial, main: true, x: [highest ?? 0, missed ?? highest ?? 0], y: [null, null], band: [[lowest, limit], [lowest, limit]] as [number, number][] };
    const found = { trial, main: true, joined: true, x: [highest ?? 0], y: [limit], names: [highest === null ? "" : `${significant(highest)}/s`] };
    const line = { trial, main: true, look: LIMIT, x: [0, largest * 1.1], y: [limit, limit] };
    return [...(index === 0 ? [line] : []), ...(highest === null ? [] : [bracket]), probes, ...(highest === null ? [] : [found])];
  });
}

function table(context: Context, searches: Searched[]): HTMLElement {
  const rows = searches.map((search) => {
    const [highest, missed] = [value(search.highest), value(search.lowest_missed)];
    const state = !search.ended ? "not finished" : search.confirmed ? "confirmed" : "not confirmed";
    return h(
      "tr",
      {},
      h("th", { scope: "row" }, h("span", { class: "engine" }, marker(context.look(search.engine)), context.label(search.engine))),
      h("td", {}, String(search.repeat)),
      h("td", {}, highest === null ? "none" : significant(highest), h("span", { class: "unit" }, state)),
      h("td", {}, missed === null ? "–" : significant(missed)),
      h("td", {}, String(search.probes.length)),
    );
  });
  const heads = [["engine", ""], ["repeat", ""], ["highest rate kept", "per s"], ["lowest rate missed", "per s"], ["probes", ""]];
  const head = h("tr", {}, ...heads.map(([text, unit]) => h("th", { scope: "col" }, text, unit !== "" && h("span", { class: "unit" }, unit))));
  return scrolling("searches for a rate", h("table", { class: "searches" }, h("thead", {}, head), h("tbody", {}, ...rows)));
}

export function searchSection(context: Context): HTMLElement | null {
  const shown = (context.data.summary.searches ?? []).filter(({ engine }) => context.shown(engine));
  if (shown.length === 0) return null;
  const goal = ({ clients, search }: Searched) => `${search.percentile} ${search.limit_ms} ${clients}`;
  const parts = [...new Set(shown.map(goal))].flatMap((wanted) => {
    const searches = shown.filter((search) => goal(search) === wanted);
    const [first] = searches;
    if (!first) return [];
    const { percentile, limit_ms } = first.search;
    const title = `${percentile} below ${milliseconds(limit_ms)} ms with ${first.clients} ${first.clients === 1 ? "client" : "clients"}`;
    const holder = h("div", { class: "chart", style: "height: 300px" });
    const found = lines(context, searches, limit_ms);
    chart(context, holder, found, {
      height: 300,
      x: { values: (_, splits) => splits.map((split) => tick(split)) },
      xRange: [0, Math.max(...found.flatMap(({ x }) => x))],
      logarithmic: true,
    });
    const head = h("div", { class: "panel-head" }, h("h3", {}, title, h("span", { class: "unit" }, "response time in ms, logarithmic")), saveButtons(context, `search-${percentile}-${first.clients}`, title));
    return [h("div", { class: "panel" }, head, holder, h("p", { class: "axis" }, "requested operations per second →")), table(context, searches)];
  });
  return section(
    "search",
    "Which rate keeps the response time?",
    "Each point is a probe at one rate: filled if it kept the limit, hollow if it missed. The dashed line is the limit. The band reaches from the highest rate that was kept to the lowest that was missed; the limit lies between them.",
    ...parts,
  );
}
