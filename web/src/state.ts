// The reader's choices. They are stored in the URL's hash, so that a link to the
// page shows the same view.

export interface State {
  baseline: string;
  clients: number;
  op: string;
  time: "response" | "service";
  part: "run" | "load";
  /** The metrics of the ladder and the matrix. */
  ladder: string;
  metric: string;
  /** The listed verdicts. */
  judged: "headline" | "all";
  /** The engines' own gauge in the timeline: `size_bytes`, deferred work, a counter. */
  gauge: string;
  /** The test of a suite that charts over time and of percentiles show; empty for results without tests. */
  test: string;
  /** Engines that the charts hide, joined by commas. */
  hidden: string;
}

export type Key = keyof State;
type Listener = (changed: Set<Key>) => void;

let state: State;
let listeners: Listener[] = [];
let drawing = new AbortController();
/** Suggested choices, which replace the defaults until the reader chooses. */
let suggested: Partial<State> = {};

export function current(): Readonly<State> {
  return state;
}

/** Reads the hash over the defaults; `accepts` drops choices that these results lack. A new start, with newer data,
 * removes all earlier listeners. */
export function begin(defaults: State, accepts: (wanted: State) => State): void {
  drawing.abort();
  drawing = new AbortController();
  listeners = [];
  const read = () => accepts(parse(location.hash, { ...defaults, ...suggested }));
  reread = read;
  state = read();
  addEventListener("hashchange", () => apply(read()), lasting());
}

let reread: () => State = () => state;

/** Shows a view as long as the reader has made no choice. */
export function suggest(change: Partial<State>): void {
  suggested = { ...suggested, ...change };
  apply(reread());
}

/** Listener options that end when the page starts again. */
export function lasting(): { signal: AbortSignal } {
  return { signal: drawing.signal };
}

export function choose(change: Partial<State>): void {
  const next = { ...state, ...change };
  const hash = new URLSearchParams(Object.entries(next).map(([key, value]) => [key, String(value)]));
  history.replaceState(null, "", `#${hash}`);
  apply(next);
}

export function onChange(listener: Listener): void {
  listeners.push(listener);
}

function apply(next: State): void {
  const changed = new Set((Object.keys(next) as Key[]).filter((key) => next[key] !== state[key]));
  state = next;
  if (changed.size > 0) for (const listener of listeners) listener(changed);
}

function parse(hash: string, defaults: State): State {
  const wanted = new URLSearchParams(hash.replace(/^#/, ""));
  return {
    baseline: wanted.get("baseline") ?? defaults.baseline,
    clients: Number(wanted.get("clients") ?? defaults.clients),
    op: wanted.get("op") ?? defaults.op,
    time: wanted.get("time") === "service" ? "service" : "response",
    part: (wanted.get("part") ?? defaults.part) === "load" ? "load" : "run",
    ladder: wanted.get("ladder") ?? defaults.ladder,
    metric: wanted.get("metric") ?? defaults.metric,
    judged: wanted.get("judged") === "all" ? "all" : "headline",
    gauge: wanted.get("gauge") ?? defaults.gauge,
    test: wanted.get("test") ?? defaults.test,
    hidden: wanted.get("hidden") ?? defaults.hidden,
  };
}
