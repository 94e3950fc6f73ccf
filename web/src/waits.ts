// The waits of clients by name over time: the counters that an engine reports for its wait events.

import type { Trial } from "./data";
import { words } from "./bytes";
import { unpacked } from "./packed";

/** A counter of one wait event, by the engine's own name, and one of a class of waits. */
const EVENT = /^wait_event_(.+)_us$/;
const CLASS = /^waited_([a-z][a-z0-9_]*)_us$/;

/** The largest waits that have a name of their own; the others are added up. */
export const MOST = 6;
export const OTHER = "other";

/** `IO_DataFileRead` of PostgreSQL is of the type IO. MySQL's `synch/mutex/innodb/lock_mutex` is a path. */
export function named(event: string): string {
  return event.replace(/^([A-Z][A-Za-z]*)_/, "$1: ");
}

/** Waits over time: the mean number of waiting clients since the point before, by name. */
export interface Waits {
  /** Seconds since the trial's start. */
  at_s: number[];
  kinds: { kind: string; clients: number[] }[];
}

/** The waits of a trial between two times, the largest first; `null` if the engine counts none. */
export function waitsOf(trial: Trial, from: number, until: number): Waits | null {
  const { gauges } = trial;
  if (!gauges) return null;
  const of = (rule: RegExp, name: (kind: string) => string) =>
    Object.entries(gauges.rates).flatMap(([counter, packed]) => {
      const kind = rule.exec(counter)?.[1];
      return kind === undefined ? [] : [{ kind: name(kind), values: unpacked(packed) }];
    });
  const events = of(EVENT, named);
  const all = events.length > 0 ? events : of(CLASS, words);
  // A point at which only the size was seen has no value of any wait.
  const at = gauges.at_s.flatMap((at_s, index) => (at_s >= from && at_s <= until && all.some(({ values }) => typeof values[index] === "number") ? [index] : []));
  if (at.length === 0) return null;
  const sum = (values: number[]) => values.reduce((total, value) => total + value, 0);
  const kinds = all
    .map(({ kind, values }) => ({ kind, clients: at.map((index) => Math.max(values[index] ?? 0, 0) / 1e6) }))
    .filter(({ clients }) => sum(clients) > 0)
    .sort((a, b) => sum(b.clients) - sum(a.clients));
  const [large, rest] = [kinds.slice(0, MOST), kinds.slice(MOST)];
  const others = at.map((_, index) => sum(rest.map(({ clients }) => clients[index] ?? 0)));
  return { at_s: at.map((index) => gauges.at_s[index] ?? 0), kinds: rest.length > 0 ? [...large, { kind: OTHER, clients: others }] : large };
}
