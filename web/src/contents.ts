// The table of contents: a line that stays in view and marks the current section.

import { h } from "./dom";

/** A section's short name, by its id. The heading of a section is a question. */
const NAMES: Record<string, string> = {
  problems: "Failures",
  changes: "Changes",
  loops: "Loops",
  claims: "Claims",
  scaling: "Scaling",
  steps: "Steps",
  search: "Rate search",
  sweep: "Sweep",
  multiples: "Tests",
  cost: "Cost",
  bytes: "Bytes",
  matrix: "Ratios",
  verdicts: "Certainty",
  rum: "Trade-off",
  throughput: "Rate and time",
  contention: "Waits",
  timeline: "Timeline",
  gauges: "Counters",
  spectrum: "Percentiles",
  latency: "Operations",
  load: "Load",
  promises: "Transactions",
  flame: "CPU profile",
  conditions: "Conditions",
  runs: "Runs",
};

/** Links to the sections of a page. They do not change the URL's hash, which holds the reader's choices. */
export function contents(page: HTMLElement, signal: AbortSignal): HTMLElement {
  // The target of the last link, until the reader scrolls. Charts above it that are drawn later would move it.
  let target = "";
  const sections = [...page.querySelectorAll<HTMLElement>("section[id]")].filter(({ id }) => id in NAMES);
  const links = new Map(
    sections.map(({ id }) => {
      const go = (event: Event) => {
        event.preventDefault();
        const section = document.getElementById(id);
        section?.scrollIntoView();
        section?.querySelector("h2")?.focus({ preventScroll: true });
        target = id;
        mark();
      };
      return [id, h("a", { href: `#${id}`, click: go }, NAMES[id] ?? id)] as const;
    }),
  );
  const nav = h("nav", { class: "contents", "aria-label": "sections" }, ...links.values());
  let marked: HTMLElement | undefined;
  const mark = () => {
    // The last section that begins above the middle of the upper half. Sections are redrawn, so each is looked up again.
    const begun = sections.map(({ id }) => id).filter((id) => (document.getElementById(id)?.getBoundingClientRect().top ?? Infinity) < innerHeight / 4);
    const now = links.get(target === "" ? (begun.at(-1) ?? "") : target);
    if (now === marked) return;
    marked?.removeAttribute("aria-current");
    now?.setAttribute("aria-current", "true");
    marked = now;
    // A list that moved below the pointer would put another link there.
    if (now && !nav.matches(":hover")) nav.scrollTo({ left: now.offsetLeft - nav.clientWidth / 2 + now.clientWidth / 2 });
  };
  let asked = false;
  const later = () => {
    if (asked) return;
    asked = true;
    requestAnimationFrame(() => {
      asked = false;
      mark();
    });
  };
  addEventListener("scroll", later, { passive: true, signal });
  for (const kind of ["wheel", "touchmove", "keydown", "pointerdown"]) {
    addEventListener(kind, () => (target = ""), { capture: true, passive: true, signal });
  }
  const resized = new ResizeObserver(() => {
    if (target !== "") document.getElementById(target)?.scrollIntoView();
    later();
  });
  resized.observe(page);
  signal.addEventListener("abort", () => resized.disconnect());
  later();
  return nav;
}
