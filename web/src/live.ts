// The page of a run that goes on: how it goes stands above, and the page below is begun anew with what is measured by then.

import { type Live, type PageData, hold, readData } from "./data";
import { h } from "./dom";
import { seconds, significant } from "./format";
import { type State, suggest } from "./state";

interface Left {
  words: string;
}

/** What the run tells; each kind of event has some of it. */
interface Told {
  number: number;
  of: number;
  engine: string;
  clients: number;
  repeat: number;
  phase: string;
  seconds: number | null;
  rows: number | null;
  ops: number;
  p99_ms: number | null;
  message: string;
  interrupted: boolean;
  left: Left;
}

/** What is asked for data. */
interface Grown {
  goes_on: boolean;
  newer_in_ms: number;
  data: PageData;
}

/** Phases that are of the data's making: the timeline shows them apart. */
const MAKING = new Set(["load", "settle", "verify load", "age"]);
const LEAST_PAUSE_MS = 1000;

/** Keeps the page of a run that goes on up to date; `begin` draws it. Of any other page it does nothing. */
export function follow(begin: () => void): void {
  const page = document.getElementById("page");
  const live = readData()?.live;
  if (!page || !live) return;
  const bar = new Bar(live);
  page.before(bar.element);
  const drawing = new Drawing(live, page, begin, (over) => bar.ended(over));
  bar.onPause((paused) => drawing.pause(paused));
  if (live.events === undefined) return;
  const events = new EventSource(live.events);
  const on = (kind: string, heard: (told: Told) => void) =>
    events.addEventListener(kind, (event) => heard(JSON.parse((event as MessageEvent<string>).data) as Told));
  on("trial", (told) => {
    bar.trial(told);
    show({ clients: told.clients });
  });
  on("phase", (told) => {
    bar.phase(told);
    show({ part: MAKING.has(told.phase) ? "load" : "run" });
  });
  on("interval", (told) => bar.interval(told));
  on("trial-ended", (told) => bar.left(told.left));
  on("warning", (told) => bar.warn(told.message));
  on("stopping", () => bar.stopping());
  on("end", () => {
    events.close();
    void drawing.last();
  });
  events.addEventListener("error", () => bar.lost(events.readyState));
  events.addEventListener("open", () => bar.found());
}

let next: Partial<State> | null = null;

/** Shows what is under way; what was told before this page was opened comes all at once, and is shown once. */
function show(change: Partial<State>): void {
  if (next === null) setTimeout(() => { suggest(next ?? {}); next = null; }, 50);
  next = { ...next, ...change };
}

/** Draws the page again and again: not while it is hidden, paused, or pressed. */
class Drawing {
  #paused = false;
  #pressed = false;
  #over = false;

  constructor(
    readonly live: Live,
    readonly page: HTMLElement,
    readonly begin: () => void,
    readonly ended: (over: boolean) => void,
  ) {
    addEventListener("pointerdown", () => (this.#pressed = true));
    addEventListener("pointerup", () => (this.#pressed = false));
    addEventListener("pointercancel", () => (this.#pressed = false));
    this.#wait(LEAST_PAUSE_MS);
  }

  pause(paused: boolean): void {
    this.#paused = paused;
  }

  /** Draws what came of the run. */
  async last(): Promise<void> {
    this.#over = true;
    const grown = await this.#fetch();
    if (grown) this.#draw(grown.data);
    this.ended(grown !== null);
  }

  #wait(ms: number): void {
    setTimeout(() => void this.#turn(), ms);
  }

  async #turn(): Promise<void> {
    if (this.#over) return;
    if (document.hidden || this.#paused || this.#pressed) return this.#wait(LEAST_PAUSE_MS);
    const grown = await this.#fetch();
    if (this.#over) return;
    // What was pressed meanwhile must not go from under the pointer.
    if (grown && !this.#paused && !this.#pressed) this.#draw(grown.data);
    // Without events nobody else says that it is over.
    if (grown && !grown.goes_on && this.live.events === undefined) {
      this.#over = true;
      return this.ended(true);
    }
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

  /** The same view with newer data: what has the focus, what is open and what is at the top of the window stays so. */
  #draw(data: PageData): void {
    const parts = () => [...this.page.children];
    const controls = (part: Element | undefined) =>
      part ? [...part.querySelectorAll<HTMLElement>("button, select, input, summary, [tabindex]")] : [];
    const details = () => [...this.page.querySelectorAll("details")];
    const part = parts().findIndex((one) => one.contains(document.activeElement));
    const focused = controls(parts()[part]).findIndex((control) => control === document.activeElement);
    const open = details().map((one) => one.open);
    const top = (index: number) => parts()[index]?.getBoundingClientRect().top ?? 0;
    // One that begins in the window: what is above it may grow. A long one has the whole window.
    const begins = parts().findIndex((one, index) => one.clientHeight > 0 && top(index) >= 0 && top(index) < innerHeight);
    const first = begins >= 0 ? begins : parts().findIndex((one) => one.getBoundingClientRect().bottom > 0);
    const before = top(first);
    hold(data);
    this.begin();
    details().forEach((one, index) => (one.open = open[index] ?? false));
    controls(parts()[part])[focused]?.focus({ preventScroll: true });
    scrollBy(0, top(first) - before);
  }
}

/** How the run goes: what it is at, until when, and the button that stops it. */
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

  onPause(heard: (paused: boolean) => void): void {
    this.#pause.addEventListener("click", () => {
      const paused = this.#pause.getAttribute("aria-pressed") !== "true";
      this.#pause.setAttribute("aria-pressed", String(paused));
      heard(paused);
    });
  }

  trial({ number, of, engine, clients, repeat, left }: Told): void {
    this.#trial = `Trial ${number} of ${of}: ${engine}, ${clients} ${clients === 1 ? "client" : "clients"}, repeat ${repeat}`;
    this.#what.textContent = this.#trial;
    this.#figures.textContent = "";
    this.left(left);
  }

  phase({ phase, seconds: lasts, rows, left }: Told): void {
    this.#phase = { name: phase, seconds: lasts ?? 0, rows: rows ?? 0, passed: 0, done: 0 };
    this.#what.textContent = `${this.#trial} · ${phase}`;
    this.#progress.hidden = lasts === null && rows === null;
    this.#progress.value = 0;
    this.left(left);
  }

  interval({ ops, seconds: passed, p99_ms, left }: Told): void {
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

  lost(state: number): void {
    if (state !== EventSource.OPEN) this.#figures.textContent = "Nothing is heard of the run: it is asked again.";
  }

  found(): void {
    this.#figures.textContent = "";
  }

  /** Says that nothing more will come. */
  ended(isWhole: boolean): void {
    this.#what.textContent = "The run has ended";
    this.#figures.textContent = !isWhole
      ? "How it came out was not heard any more; `rumba serve` shows the results."
      : this.live.events === undefined
        ? "This is its whole result."
        : "This page keeps what it shows; its address is gone with the run. `rumba serve` shows the results again.";
    this.#left.textContent = "";
    this.#progress.hidden = true;
    this.element.classList.add("ended");
    for (const control of this.element.querySelectorAll("button")) control.remove();
    // What it leads to has gone with the run.
    if (this.live.events !== undefined) this.element.querySelector("a")?.remove();
  }

  async #askToStop(): Promise<void> {
    if (this.live.stop === undefined || !confirm("Stop the run? What was measured is kept, and the run can go on later.")) return;
    const answer = await fetch(this.live.stop, { method: "POST" }).catch(() => null);
    if (!answer?.ok) this.warn("the run could not be asked to stop: press Ctrl-C where it was started.");
  }
}
