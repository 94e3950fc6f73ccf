// Flame graphs: the CPU profile of an engine, and its differences from the baseline's.

import type { Context } from "./context";
import type { Flame, Frame } from "./data";
import { choice, h, scrolling, section } from "./dom";
import { percent } from "./format";
import { current } from "./state";

/** Narrower frames are not drawn, as a share of the whole width. */
const LEAST_WIDTH = 0.002;
const ROW_PX = 18;
/** The number of listed functions. */
const LISTED = 15;
/** The difference with the strongest colour, as a share of all samples. */
const STRONG = 0.1;

/** The shown engine, and the path of the frame with the whole width. */
let chosen = "";
let zoomed: string[] = [];

export function flameSection(context: Context): HTMLElement | null {
  const { clients, baseline } = current();
  const flames = (context.data.flames ?? []).filter((flame) => flame.clients === clients);
  const flame = flames.find(({ engine }) => engine === chosen) ?? flames.find(({ engine }) => engine !== baseline) ?? flames[0];
  if (!flame) return null;
  const base = flames.find(({ engine }) => engine === baseline && engine !== flame.engine);
  const holder = h("div", {});
  const draw = () => holder.replaceChildren(graph(context, flame, base, draw), hottest(context, flame, base));
  draw();
  const chooser = choice(
    "engine",
    flames.map(({ engine }) => ({ value: engine, text: context.label(engine) })),
    flame.engine,
    (engine) => {
      [chosen, zoomed] = [engine, []];
      const redrawn = flameSection(context);
      if (redrawn) holder.closest("section")?.replaceWith(redrawn);
      redrawn?.querySelector("select")?.focus({ preventScroll: true });
    },
  );
  const compared = base
    ? ` Orange frames have a larger share of the CPU than in ${context.label(base.engine)}, blue ones a smaller.`
    : "";
  return section(
    "flame",
    "Where did the CPU time go?",
    `perf took ${flame.samples.toLocaleString("en")} samples during the loops. A frame is as wide as the CPU time of the function and its callees.${compared} Click a frame to give it the whole width.`,
    flames.length > 1 && chooser,
    unnamed(context, flame),
    holder,
  );
}

/** The programs whose functions have no names in this graph, and how to get them. The repeats of an engine lack the same. */
function unnamed(context: Context, flame: Flame): HTMLElement | null {
  const missing = context.data.summary.remarks.filter(({ code, engine, clients }) => code === "missing-symbols" && engine === flame.engine && clients === flame.clients);
  const byRemedy = new Map(missing.reverse().map(({ message, remedy }) => [remedy, message]));
  if (byRemedy.size === 0) return null;
  return h("ul", { class: "footnotes", "aria-label": "functions without names" }, ...[...byRemedy].map(([remedy, message]) => h("li", {}, `${message}; ${remedy}.`)));
}

/** The shares of a flame's frames, by their paths. */
function shares(flame: Flame): Map<string, number> {
  const all = new Map<string, number>();
  const walk = (frames: Frame[], above: string) => {
    for (const [name, samples, callees] of frames) {
      const path = `${above};${name}`;
      all.set(path, samples / flame.samples);
      walk(callees, path);
    }
  };
  walk(flame.threads, "");
  return all;
}

function graph(context: Context, flame: Flame, base: Flame | undefined, draw: () => void): HTMLElement {
  const before = base && shares(base);
  const root: Frame = ["all", flame.samples, flame.threads];
  const way = wayTo(root, zoomed);
  const frames: HTMLElement[] = [];
  let deepest = 0;
  const add = ([name, samples]: Frame, left: number, width: number, depth: number, path: string[]) => {
    const share = samples / flame.samples;
    const changed = before ? share - (before.get(`;${path.join(";")}`) ?? 0) : 0;
    const difference = before && path.length > 0 ? `, ${changed >= 0 ? "+" : "−"}${percent(Math.abs(changed))} over ${base && context.label(base.engine)}` : "";
    frames.push(
      h(
        "div",
        {
          class: "frame",
          style: `left: ${left * 100}%; width: ${width * 100}%; top: ${depth * ROW_PX}px; background: ${colour(before ? changed : null)}`,
          title: `${name}: ${percent(share)} of the samples${difference}`,
          click: () => {
            zoomed = path;
            draw();
          },
        },
        width > 0.03 ? name : "",
      ),
    );
    deepest = Math.max(deepest, depth);
  };
  const walk = (of: Frame, left: number, width: number, depth: number, path: string[]) => {
    add(of, left, width, depth, path);
    let at = left;
    for (const callee of of[2]) {
      const own = (callee[1] / of[1]) * width;
      if (own >= LEAST_WIDTH) walk(callee, at, own, depth + 1, [...path, callee[0]]);
      at += own;
    }
  };
  way.slice(0, -1).forEach((frame, depth) => add(frame, 0, 1, depth, zoomed.slice(0, depth)));
  const shown = way.at(-1) ?? root;
  walk(shown, 0, 1, way.length - 1, zoomed.slice(0, way.length - 1));
  const label = `flame graph of ${context.label(flame.engine)}; the table below has the hottest functions`;
  return h("div", { class: "flame", role: "img", "aria-label": label, style: `height: ${(deepest + 1) * ROW_PX}px` }, ...frames);
}

/** The existing frames from the root along a path. */
function wayTo(root: Frame, path: string[]): Frame[] {
  const way = [root];
  for (const name of path) {
    const next = way.at(-1)?.[2].find(([own]) => own === name);
    if (!next) break;
    way.push(next);
  }
  return way;
}

/** The difference of a frame, as a share of all samples; zero without a baseline. */
function colour(changed: number | null): string {
  if (changed === null) return "color-mix(in srgb, var(--alarm) 22%, var(--paper))";
  const strength = Math.round(Math.min(1, Math.abs(changed) / STRONG) * 60);
  return `color-mix(in srgb, var(${changed > 0 ? "--alarm" : "--accent"}) ${strength}%, var(--card))`;
}

/** The samples of functions, without their callees. */
function own(flame: Flame): Map<string, number> {
  const all = new Map<string, number>();
  const walk = ([name, samples, callees]: Frame) => {
    const rest = samples - callees.reduce((sum, [, of]) => sum + of, 0);
    all.set(name, (all.get(name) ?? 0) + rest / flame.samples);
    callees.forEach(walk);
  };
  // Threads have no samples of their own.
  flame.threads.forEach(([, , callees]) => callees.forEach(walk));
  return all;
}

function hottest(context: Context, flame: Flame, base: Flame | undefined): HTMLElement {
  const [mine, theirs] = [own(flame), base && own(base)];
  const names = [...mine].sort((a, b) => b[1] - a[1]).slice(0, LISTED);
  const row = ([name, share]: [string, number]) => {
    const other = theirs?.get(name) ?? 0;
    return h(
      "tr",
      {},
      h("th", { scope: "row" }, name),
      h("td", {}, percent(share)),
      theirs ? h("td", {}, percent(other)) : null,
      theirs ? h("td", {}, `${share >= other ? "+" : "−"}${percent(Math.abs(share - other))}`) : null,
    );
  };
  const head = h(
    "tr",
    {},
    h("th", { scope: "col" }, "hottest functions, of themselves"),
    h("th", { scope: "col" }, context.label(flame.engine)),
    base ? h("th", { scope: "col" }, context.label(base.engine)) : null,
    base ? h("th", { scope: "col" }, "difference") : null,
  );
  return scrolling("the hottest functions", h("table", { class: "hottest" }, h("thead", {}, head), h("tbody", {}, ...names.map(row))));
}
