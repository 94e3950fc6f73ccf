// Contention: the waits of clients in the engines, by the number of clients.

import type { Context } from "./context";
import { type Row, clientsInWords, mainTrial, value } from "./data";
import { h, section } from "./dom";
import { percent, significant } from "./format";
import { marker } from "./look";
import { saveButtons } from "./picture";
import { type Bar, stack } from "./stack";
import { words } from "./bytes";
import { MOST, OTHER, named } from "./waits";

const RULE = /^([a-z][a-z0-9_]*)_wait_us_per_op$/;

function waits(row: Row): { kind: string; value: number }[] {
  return Object.entries(row.run?.metrics ?? {}).flatMap(([metric, figure]) => {
    const kind = RULE.exec(metric)?.[1];
    const median = value(figure.median);
    return kind !== undefined && median !== null && median > 0 ? [{ kind: words(kind), value: median }] : [];
  });
}

/** The waits of a row's median repeat by the engine's own names: the largest, and all others together. */
function events(context: Context, row: Row): { kind: string; value: number }[] {
  const number = mainTrial(row);
  const all = context.data.trials.find((trial) => trial.engine === row.engine && trial.number === number)?.waits ?? [];
  const rest = all.slice(MOST).reduce((sum, [, us]) => sum + us, 0);
  const large = all.slice(0, MOST).map(([event, us]) => ({ kind: named(event), value: us }));
  return rest > 0 ? [...large, { kind: OTHER, value: rest }] : large;
}

/** The share of an operation's time that was spent waiting, and the number of retries. */
function note(row: Row, waited: number): string {
  const rate = value(row.run?.metrics["ops_per_s"]?.median);
  const retries = value(row.run?.metrics["retries_per_op"]?.median) ?? 0;
  // In a closed loop, each client is always in an operation, unless it is active only in some steps.
  const share = rate && !row.client_steps ? (waited * rate) / (row.clients * 1e6) : null;
  const parts = [share !== null && share >= 0.0005 && share <= 1 ? `${percent(share)} of the time` : "", retries > 0 ? `${significant(retries)} retries/op` : ""];
  return parts.filter(Boolean).join(", ");
}

export function contentionSection(context: Context): HTMLElement | null {
  const rows = context.data.summary.rows.filter((row) => row.run !== null && context.shown(row.engine));
  const waiting = rows.filter((row) => waits(row).length > 0 || events(context, row).length > 0 || (value(row.run?.metrics["retries_per_op"]?.median) ?? 0) > 0);
  if (waiting.length === 0) return null;
  const engines = context.engines.filter((engine) => waiting.some((row) => row.engine === engine));
  const head = (row: Row) => h("span", { class: "engine" }, marker(context.look(row.engine)), `${context.label(row.engine)}, ${clientsInWords(row)}`);
  const ordered = engines.flatMap((engine) => rows.filter((row) => row.engine === engine));
  const bars = ordered.map((row): Bar => {
    const parts = waits(row);
    return { head: head(row), segments: parts, note: note(row, parts.reduce((sum, part) => sum + part.value, 0)) };
  });
  const byName = ordered.map((row): Bar => ({ head: head(row), segments: events(context, row) })).filter(({ segments }) => segments.length > 0);
  return section(
    "contention",
    "What did clients wait for?",
    "Time that clients waited in the engine, by its own counters, all clients together. For an engine that counts no waits, only retries are known: transactions that were rolled back and run again.",
    saveButtons(context, "contention", "what was waited for"),
    stack("microseconds waited per operation by what for", "engine, clients", "µs waited per operation, less is better", bars),
    byName.length > 0 && h("h3", {}, "By the engine's own names"),
    byName.length > 0 && h("p", { class: "about" }, `Waits of clients in the loops of the median repeat: the ${MOST} longest of each row, and all others together.`),
    byName.length > 0 && stack("microseconds waited per operation by the engine's own names", "engine, clients", "µs waited per operation, less is better", byName),
  );
}
