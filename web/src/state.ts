// What the reader has chosen. It lives in the URL's hash, so that a link to the
// page shows the same view.

export interface State {
  baseline: string;
  clients: number;
  op: string;
  time: "response" | "service";
  part: "run" | "load";
  /** What the ladder and the matrix show. */
  ladder: string;
  metric: string;
  /** Which verdicts are listed. */
  judged: "headline" | "all";
  /** What of the engines' own the timeline shows: `size_bytes`, a debt, a counter. */
  gauge: string;
  /** Engines that the charts leave out, joined by commas. */
  hidden: string;
}

export type Key = keyof State;
type Listener = (changed: Set<Key>) => void;

let state: State;
let listeners: Listener[] = [];
let drawing = new AbortController();
/** What is shown until the reader chooses, rather than the defaults. */
let suggested: Partial<State> = {};

export function current(): Readonly<State> {
  return state;
}

/** Reads the hash over the defaults; `accepts` drops what these results do not have. Begun anew, with newer data, nobody
 * listens any more who did before. */
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

/** Shows something for as long as the reader has chosen nothing. */
export function suggest(change: Partial<State>): void {
  suggested = { ...suggested, ...change };
  apply(reread());
}

/** How to listen until the page is begun anew. */
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
    hidden: wanted.get("hidden") ?? defaults.hidden,
  };
}
