// Bytes written by purpose, as each engine reports them, with one bar for each engine.

import { warningsAbout } from "./conditions";
import type { Context } from "./context";
import { type Row, value } from "./data";
import { h, section } from "./dom";
import { marker } from "./look";
import { saveButtons } from "./picture";
import { type Bar, type Segment, stack } from "./stack";

/** Kinds that are part of another kind although their names do not show it (docs/engines). */
const PART_OF: Record<string, string> = {
  checkpointer: "pages",
  background_writer: "pages",
  backends: "pages",
  checkpoint: "blocks",
};
/** A remainder below this share of its whole is a rounding error. */
const ROUNDING = 0.01;
const RULE = /^([a-z][a-z0-9_]*)_kb_per_op$/;

/** The counted kind that contains this one. */
function whole(kind: string, kinds: string[]): string | undefined {
  const named = kinds.filter((other) => other !== kind && kind.startsWith(`${other}_`)).sort((a, b) => b.length - a.length)[0];
  const other = PART_OF[kind];
  // `compaction_level2` is a level of `compaction`.
  return named ?? (other !== undefined && kinds.includes(other) ? other : undefined);
}

export const words = (kind: string) => kind.replaceAll("_", " ").replace(/level(\d)/, "level $1");

/** All written bytes, each counted once: parts instead of their whole, and the remainder. */
export function segments(row: Row): Segment[] {
  const counted = Object.entries(row.run?.metrics ?? {}).flatMap(([metric, figure]) => {
    const kind = RULE.exec(metric)?.[1];
    const median = value(figure.median);
    return kind !== undefined && median !== null && median > 0 ? [{ kind, value: median }] : [];
  });
  const kinds = counted.map(({ kind }) => kind);
  return counted.flatMap(({ kind, value }) => {
    const parts = counted.filter((other) => whole(other.kind, kinds) === kind);
    if (parts.length === 0) return [{ kind: words(kind), value }];
    const rest = value - parts.reduce((sum, part) => sum + part.value, 0);
    return rest > value * ROUNDING ? [{ kind: `${words(kind)}, other`, value: rest }] : [];
  });
}

export function bytesSection(context: Context): HTMLElement | null {
  const rows = context.rows().filter((row) => row.run !== null && context.shown(row.engine));
  const all = rows.map((row) => ({ row, parts: segments(row) }));
  const counting = all.filter(({ parts }) => parts.length > 0);
  if (counting.length === 0) return null;
  const bars = counting.map(({ row, parts }): Bar => {
    const device = value(row.run?.metrics["wkb_per_op_with_drain"]?.median);
    return {
      head: h("span", { class: "engine" }, marker(context.look(row.engine)), context.label(row.engine)),
      segments: parts,
      mark: device === null ? undefined : { value: device, name: "the device wrote" },
    };
  });
  const silent = all.filter(({ row, parts }) => parts.length === 0 && context.keepsData(row.engine)).map(({ row }) => context.label(row.engine));
  return section(
    "bytes",
    "Where did the bytes go?",
    "Bytes that each engine wrote, by cause and by its own counters, with the drain. The line across a bar is what the device wrote. The gap to it is not counted by the engine: the file system's journal, metadata, writes of other processes.",
    warningsAbout(context, ["wkb_per_op_with_drain"]),
    saveButtons(context, "bytes", "where the bytes went"),
    stack("KB written per operation by what they were written for", "engine", "KB written per operation, less is better", bars),
    silent.length > 0 && h("p", { class: "about" }, `Counts nothing of this: ${silent.join(", ")}.`),
  );
}
