// What the reader is doing that a redraw must not interrupt: a button held down, a list of choices open.

const RETRY_MS = 100;

let isPressed = false;

// A menu can take the release: the next movement tells that nothing is held down any more.
for (const kind of ["pointerdown", "pointermove", "pointerup", "pointercancel"] as const) {
  addEventListener(kind, (event) => (isPressed = event.buttons !== 0), { capture: true, passive: true });
}

const knowsOpen = CSS.supports("selector(select:open)");

/** Whether what is under the reader's hand must stay. */
export function isBusy(): boolean {
  return isPressed || (knowsOpen && document.querySelector("select:open") !== null);
}

/** Does it at once, or as soon as the reader is not busy. */
export function whenFree(act: () => void): void {
  if (isBusy()) setTimeout(() => whenFree(act), RETRY_MS);
  else act();
}
