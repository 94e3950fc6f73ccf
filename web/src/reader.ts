// Actions of the reader that a redraw must not interrupt: a pressed button or an open list.

const RETRY_MS = 100;

let isPressed = false;

// A menu can consume the release of a button. The next movement then shows that no button is pressed.
for (const kind of ["pointerdown", "pointermove", "pointerup", "pointercancel"] as const) {
  addEventListener(kind, (event) => (isPressed = event.buttons !== 0), { capture: true, passive: true });
}

const knowsOpen = CSS.supports("selector(select:open)");

/** Whether the reader is using an element, which must stay. */
export function isBusy(): boolean {
  return isPressed || (knowsOpen && document.querySelector("select:open") !== null);
}

/** Calls the function at once, or as soon as the reader is not busy. */
export function whenFree(act: () => void): void {
  if (isBusy()) setTimeout(() => whenFree(act), RETRY_MS);
  else act();
}
