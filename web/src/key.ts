// The key to the colours, with which a reader shows or hides engines.

import type { Engines } from "./context";
import { h } from "./dom";
import { sample } from "./look";

/** With more engines than this, the key is folded, so that it leaves room for the charts. */
const FOLDED = 12;

/** The engines as buttons. `flag` marks an engine. */
export function engineKey(context: Engines, flag: (engine: string) => HTMLElement | false = () => false): HTMLElement {
  const keys = context.engines.map((engine) => {
    const shown = context.shown(engine);
    const title = shown ? "hide it in the charts" : "show it in the charts";
    const button = { type: "button", "aria-pressed": String(shown), title, click: () => context.toggle(engine) };
    return h("li", {}, h("button", button, sample(context.look(engine)), context.label(engine)), flag(engine));
  });
  const key = h("ul", { class: "key", "aria-label": "engines: press to show or hide in the charts" }, ...keys);
  return keys.length > FOLDED ? h("details", { class: "fold" }, h("summary", {}, `${keys.length} lines`), key) : key;
}
