// The page of a running experiment: a bar with its progress, and the page below, which is redrawn with new results.

import { type Live, type PageData, hold, readData } from "./data";
import { h, rememberView } from "./dom";
import { counted, seconds, significant } from "./format";
import { isBusy, whenFree } from "./reader";
import { type State, suggest } from "./state";

interface Left {
  words: string;
}

/** The events of the run; each kind has some of these fields. */
interface RunEvent {
  number: number;
  of: number;
  engine: string;
  /** Its clients in words: `4 clients`, `1→4 clients`. */
  with: string;
  repeat: number;
  phase: string;
  seconds: number | null;
  rows: number | null;
  ops: number;
  p99_ms: number | null;
  message: string;
  left: Left;
}

/** How the run ended. */
interface Ending {
  done?: number;
  failed?: number;
  suspended?: number;
  not_begun?: number;
  interrupted?: boolean;
  /** The reason for a failure of the whole run. */
  error?: string;
  /** The reason for missing results. */
  unreadable?: string;
}

/** The response to a request for data. */
interface Grown {
  goes_on: boolean;
  newer_in_ms: number;
  data: PageData;
}

/** Phases that prepare the data, which the timeline shows separately. */
const MAKING = new Set(["load", "settle", "verify load", "age"]);
const LEAST_PAUSE_MS = 1000;

/** Updates the page of a running experiment; `begin` draws it. It does nothing for other pages. */
export function follow(begin: () => void): void {
  const page = document.getElementById("page");
  const live = readData()?.live;
  if (!page || !live) return;
  const bar = new Bar(live);
  page.before(bar.element);
  const drawing = new Drawing(live, page, begin, bar);
  bar.onPause((paused) => drawing.pause(paused));
  if (live.events === undefined) return;
  const events = new EventSource(live.events);
  const on = <T>(kind: string, receive: (event: T) => void) =>
    events.addEventListener(kind, (event) => receive(JSON.parse((event as MessageEvent<string>).data) as T));
  on<RunEvent>("trial", (event) => bar.trial(event));
  on<RunEvent>("phase", (event) => {
    bar.phase(event);
    show({ part: MAKING.has(event.phase) ? "load" : "run" });
  });
  on<RunEvent>("interval", (event) => bar.interval(event));
  on<RunEvent>("trial-ended", (event) => bar.left(event.left));
  on<RunEvent>("warning", (event) => bar.warn(event.message));
  on("stopping", () => bar.stopping());
  // The server ends with the run, so it sends the result without a request.
  on<PageData>("result", (data) => drawing.last(data));
  on<Ending>("end", (ending) => {
    events.close();
    drawing.stop();
    bar.ended(ending);
  });
  events.addEventListener("error", () => bar.lost());
  events.addEventListener("open", () => bar.found());
}

let next: Partial<State> | null = null;

/** Shows the current trial and phase. Earlier events arrive together, so only the last is shown. */
function show(change: Partial<State>): void {
  if (next === null) setTimeout(() => whenFree(() => { suggest(next ?? {}); next = null; }), 50);
  next = { ...next, ...change };
}

/** Redraws the page repeatedly, except while it is hidden or paused, or while the reader uses it. */
class Drawing {
  #paused = false;
  #over = false;

  constructor(
    readonly live: Live,
    readonly page: HTMLElement,
    readonly begin: () => void,
    readonly bar: Bar,
  ) {
    this.#wait(LEAST_PAUSE_MS);
  }

  pause(paused: boolean): void {
    this.#paused = paused;
  }

  /** Ends the updates. */
  stop(): void {
    this.#over = true;
  }

  /** Draws the result, also on a paused page, because the server is gone afterwards. */
  last(data: PageData): void {
    this.stop();
    whenFree(() => this.#draw(data));
  }

  #wait(ms: number): void {
    setTimeout(() => void this.#turn(), ms);
  }

  async #turn(): Promise<void> {
    if (this.#over) return;
    if (document.hidden || this.#paused || isBusy()) return this.#wait(LEAST_PAUSE_MS);
    const grown = await this.#fetch();
    if (this.#over) return;
    // Without events, only these responses show the end of the run and a lost server.
    if (this.live.events === undefined) {
      if (grown === null) this.bar.lost();
      else if (grown.goes_on) this.bar.found();
      else {
        this.last(grown.data);
        return this.bar.ended({});
      }
    }
    // The reader can have started to use the page during the request.
    if (grown && !this.#paused && !isBusy()) this.#draw(grown.data);
    this.#wait(Math.max(grown?.newer_in_ms ?? 0, LEAST_PAUSE_MS));
  }

  async #fetch(): Promise<Grown | null> {
    try {
      const answer = await fetch(this.live.data);
      return answer.ok ? ((await answer.json()) as Grown) : null;
    } catch {
      return null;
    }
  }

  /** Draws newer data and keeps the view: the focus, open details, and the section at the top of the window. */
  #draw(data: PageData): void {
    const parts = () => [...this.page.children];
    const top = (index: number) => parts()[index]?.getBoundingClientRect().top ?? 0;
    // The table of contents stays at the top of the window wherever the reader is.
    const isPart = (one: Element) => one.clientHeight > 0 && !one.matches(".contents");
    // A section that begins in the window, because what is above it may grow. A long one has the whole window.
    const begins = parts().findIndex((one, index) => isPart(one) && top(index) >= 0 && top(index) < innerHeight);
    const first = begins >= 0 ? begins : parts().findIndex((one) => isPart(one) && one.getBoundingClientRect().bottom > 0);
    const before = top(first);
    const restoreView = rememberView(this.page);
    hold(data);
    this.begin();
    restoreView();
    scrollBy(0, top(first) - before);
  }
}

/** The progress of the run: the current phase, the estimated end, and the stop button. */
class Bar {
  readonly element: HTMLElement;
  readonly #what = h("strong", {}, "The run goes on");
  readonly #figures = h("span", { class: "figures-now" });
  readonly #left = h("span", { class: "left" });
  readonly #warning = h("span", { class: "warned", role: "status" });
  readonly #progress = document.createElement("progress");
  readonly #stop: HTMLElement;
  readonly #pause: HTMLElement;
  #trial = "";
  #isLost = false;
  #phase = { name: "", seconds: 0, rows: 0, passed: 0, done: 0 };

  constructor(readonly live: Live) {
    this.#stop = h("button", { type: "button", class: "stop", click: () => void this.#askToStop() }, "Stop the run");
    this.#pause = h("button", { type: "button", "aria-pressed": "false" }, "Pause the page");
    this.#progress.hidden = true;
    this.element = h(
      "aside",
      { id: "live", "aria-label": "the run" },
      h("div", { class: "now" }, h("div", { role: "status" }, this.#what), this.#figures, h("div", {}, this.#progress, this.#left)),
      h("div", { class: "buttons" }, this.#pause, live.stop !== undefined && this.#stop, h("a", { href: live.library }, "All results")),
      this.#warning,
    );
  }

  onPause(receive: (paused: boolean) => void): void {
    this.#pause.addEventListener("click", () => {
      const paused = this.#pause.getAttribute("aria-pressed") !== "true";
      this.#pause.setAttribute("aria-pressed", String(paused));
      receive(paused);
    });
  }

  trial({ number, of, engine, with: clients, repeat, left }: RunEvent): void {
    this.#trial = `Trial ${number} of ${of}: ${engine}, ${clients}, repeat ${repeat}`;
    this.#what.textContent = this.#trial;
    this.#figures.textContent = "";
    this.left(left);
  }

  phase({ phase, seconds: lasts, rows, left }: RunEvent): void {
    this.#phase = { name: phase, seconds: lasts ?? 0, rows: rows ?? 0, passed: 0, done: 0 };
    this.#what.textContent = `${this.#trial} · ${phase}`;
    this.#progress.hidden = lasts === null && rows === null;
    this.#progress.value = 0;
    this.left(left);
  }

  interval({ ops, seconds: passed, p99_ms, left }: RunEvent): void {
    const phase = this.#phase;
    phase.passed += passed ?? 0;
    phase.done += ops;
    const share = phase.rows > 0 ? phase.done / phase.rows : phase.seconds > 0 ? phase.passed / phase.seconds : 0;
    this.#progress.value = Math.min(1, share);
    const rate = passed ? `${significant(ops / passed)} ${phase.name === "load" ? "rows" : "operations"} per second` : "";
    const tail = p99_ms === null ? "" : `, 99th percentile ${significant(p99_ms)} ms`;
    this.#figures.textContent = ops > 0 ? rate + tail : seconds(phase.passed);
    this.left(left);
  }

  left(left: Left): void {
    this.#left.textContent = left.words;
  }

  warn(message: string): void {
    this.#warning.textContent = `Warning: ${message}`;
  }

  stopping(): void {
    this.#what.textContent = "The run is being stopped; what was measured is kept";
    this.#stop.textContent = "Stop at once";
  }

  lost(): void {
    this.#figures.textContent = "Connection lost; retrying… If the run has ended, `rumba serve` shows its results.";
    this.#isLost = true;
  }

  found(): void {
    if (this.#isLost) this.#figures.textContent = "";
    this.#isLost = false;
  }

  /** Shows how the run ended, and that there are no more updates. */
  ended(ending: Ending): void {
    this.#what.textContent = ["The run has ended", inWords(ending)].filter((words) => words !== "").join(": ");
    this.#figures.textContent =
      ending.unreadable !== undefined
        ? `The result cannot be read: ${ending.unreadable}`
        : this.live.events === undefined
          ? "This is its whole result."
          : "This page keeps the result. Its address is gone; `rumba serve` shows the result again.";
    this.#left.textContent = "";
    this.#progress.hidden = true;
    this.element.classList.add("ended");
    for (const control of this.element.querySelectorAll("button")) control.remove();
    // The target of the link has ended with the run.
    if (this.live.events !== undefined) this.element.querySelector("a")?.remove();
  }

  async #askToStop(): Promise<void> {
    if (this.live.stop === undefined || !confirm("Stop the run? The measurements are kept, and the run can continue later.")) return;
    const answer = await fetch(this.live.stop, { method: "POST" }).catch(() => null);
    if (!answer?.ok) this.warn("the run could not be asked to stop: press Ctrl-C where it was started.");
  }
}

/** The end of a run: the trials that did not end as planned, or the reason for its failure. */
function inWords({ done = 0, failed = 0, suspended = 0, not_begun = 0, interrupted = false, error }: Ending): string {
  if (error !== undefined) return error;
  const trials = (count: number, how: string) => (count > 0 ? `${counted(count, "trial")} ${how}` : "");
  return [
    interrupted ? "interrupted by its user" : "",
    trials(done, "done"),
    trials(failed, "failed"),
    trials(suspended, "paused while measured"),
    trials(not_begun, "not run"),
  ].filter((words) => words !== "").join(", ");
}
