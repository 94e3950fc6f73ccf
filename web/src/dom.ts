// Elements from data. Text always becomes a text node, so that names in the
// results cannot become markup.

type Child = Node | string | null | undefined | false;
type Properties = Record<string, string | boolean | ((event: Event) => void) | undefined>;

/** An element with properties and children. Properties that are functions become listeners, others become attributes. */
export function h(tag: string, properties: Properties = {}, ...children: Child[]): HTMLElement {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (typeof value === "function") element.addEventListener(name, value);
    else if (value === true) element.setAttribute(name, "");
    else if (typeof value === "string") element.setAttribute(name, value);
  }
  element.append(...children.filter((child): child is Node | string => Boolean(child)));
  return element;
}

/** An element of constant markup. It must not be called with text from the results. */
export function constant(markup: string): Element {
  const template = document.createElement("template");
  template.innerHTML = markup;
  return template.content.firstElementChild ?? document.createElement("span");
}

/** A section with its title and a line that describes it. */
export function section(id: string, title: string, about: Child, ...children: Child[]): HTMLElement {
  const labelled = `${id}-title`;
  return h(
    "section",
    { id, "aria-labelledby": labelled },
    h("h2", { id: labelled, tabindex: "-1" }, title),
    about ? h("p", { class: "about" }, about) : null,
    ...children,
  );
}

/** A labelled list to choose one of several values. */
export function choice(
  label: string,
  options: { value: string; text: string }[],
  chosen: string,
  change: (value: string) => void,
): HTMLElement {
  const select = h(
    "select",
    { change: (event) => change((event.target as HTMLSelectElement).value) },
    ...options.map(({ value, text }) => h("option", { value, selected: value === chosen }, text)),
  );
  return h("label", { class: "choice" }, h("span", {}, label), select);
}

/** Observes whether frames have content beyond their right edge. */
const widths = new ResizeObserver((entries) => entries.forEach(({ target }) => hintAt(target.closest(".scroll"))));

function hintAt(frame: Element | null): void {
  const hidden = frame ? frame.scrollWidth - frame.clientWidth - frame.scrollLeft : 0;
  frame?.parentElement?.classList.toggle("has-more", hidden > 4);
}

/** A wide table scrolls within its own frame, also by keyboard; a button shows that there is more. */
export function scrolling(label: string, table: HTMLElement): HTMLElement {
  const frame = h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": label, scroll: () => hintAt(frame) }, table);
  const onward = () => frame.scrollBy({ left: frame.clientWidth * 0.6, behavior: "smooth" });
  // A focusable frame can be scrolled by keyboard.
  const more = h("button", { type: "button", class: "more", tabindex: "-1", click: onward }, "more columns →");
  widths.observe(frame);
  widths.observe(table);
  return h("div", { class: "wide" }, frame, more);
}

/** Finds the redrawn element that replaces `of`: by its text in the same section, else by its position. */
function successor(of: Element, root: HTMLElement, selector: string): () => HTMLElement | undefined {
  const section = (one: Element) => one.closest("section")?.id;
  const words = (one: Element) => {
    const named = one.matches("details") ? one.firstElementChild : one.matches("select") ? one.closest("label")?.firstElementChild : one;
    return one.getAttribute("aria-label") ?? one.getAttribute("value") ?? named?.textContent;
  };
  const [itsSection, itsWords] = [section(of), words(of)];
  const alike = () => [...root.querySelectorAll<HTMLElement>(selector)].filter((one) => section(one) === itsSection);
  const named = () => alike().filter((one) => words(one) === itsWords);
  const [placeOfAlike, placeOfNamed] = [alike().indexOf(of as HTMLElement), named().indexOf(of as HTMLElement)];
  return () => named()[placeOfNamed] ?? alike()[placeOfAlike];
}

/** Stores the reader's view below an element: the focus, open details, and the scrolling of tables. Call the returned
 * function after the content has been redrawn. */
export function rememberView(root: HTMLElement): () => void {
  const active = document.activeElement;
  const focused = active !== null && active !== root && root.contains(active) ? successor(active, root, active.tagName) : null;
  const details = [...root.querySelectorAll("details")].map((one) => [successor(one, root, "details"), one.open] as const);
  const scrolled = [...root.querySelectorAll(".scroll")]
    .filter((one) => one.scrollLeft > 0)
    .map((one) => [successor(one, root, ".scroll"), one.scrollLeft] as const);
  return () => {
    for (const [find, open] of details) find()?.toggleAttribute("open", open);
    for (const [find, left] of scrolled) find()?.scrollTo({ left });
    focused?.()?.focus({ preventScroll: true });
  };
}
