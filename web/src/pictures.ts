// Every picture of the page at once, for a program that opens it without a reader: `#pictures=svg` or `#pictures=png`.

import type { Context } from "./context";
import { h } from "./dom";
import { drawnOn, pictureOf } from "./picture";

/** A picture without the extension of its file; a PNG is in base64. */
interface Picture {
  name: string;
  content: string;
}

async function encoded(svg: SVGElement, kind: string): Promise<string> {
  if (kind === "svg") return new XMLSerializer().serializeToString(svg);
  return (await drawnOn(svg)).toDataURL("image/png").replace(/^.*,/, "");
}

/** Puts the pictures into an island of the document, once the charts are drawn. */
export async function islandOfPictures(context: Context): Promise<void> {
  const kind = new URLSearchParams(location.hash.slice(1)).get("pictures");
  if (kind !== "svg" && kind !== "png") return;
  const pictures: Picture[] = [];
  for (const buttons of document.querySelectorAll<HTMLElement>(".save[data-picture]")) {
    const element = buttons.closest(".panel, figure, section");
    const name = buttons.dataset["picture"] ?? "";
    // One that is folded has no size.
    if (!element || element.getBoundingClientRect().width === 0 || pictures.some((picture) => picture.name === name)) continue;
    pictures.push({ name, content: await encoded(pictureOf(context, element), kind) });
  }
  const text = JSON.stringify(pictures).replaceAll("<", "\\u003c");
  document.body.append(h("script", { type: "application/json", id: "pictures" }, text));
}
