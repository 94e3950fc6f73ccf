// Absent values: a dash with a number, and each reason once below the table.

import { h } from "./dom";

export class Footnotes {
  private readonly reasons: string[] = [];

  /** A dash with a reference to its reason. */
  dash(reason: string): HTMLElement {
    // Without a leading number ("1232 samples are too few"), so that cells that
    // differ only in it share one footnote. The title has the number.
    const shared = reason.replace(/^\d+ (?=samples are too few)/, "");
    let index = this.reasons.indexOf(shared);
    if (index < 0) index = this.reasons.push(shared) - 1;
    return h("span", { class: "absent", title: reason }, "–", h("sup", {}, String(index + 1)));
  }

  list(): HTMLElement | null {
    if (this.reasons.length === 0) return null;
    const items = this.reasons.map((reason, index) =>
      h("li", {}, h("sup", {}, String(index + 1)), ` ${reason}`),
    );
    return h("ol", { class: "footnotes", "aria-label": "why values are absent" }, ...items);
  }
}
