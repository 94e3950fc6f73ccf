// All pictures of a page at once, for `rumba report --png` and `--svg`. A headless browser opens the page with
// `#pictures=png,svg`. The document is then a list: in each line the name of a file, and its content in Base64.

import { h } from "./dom";
import { type Pictured, drawnOn, fileName, pictureOf } from "./picture";

type Kind = "png" | "svg";

function base64(text: string): string {
  return btoa(Array.from(new TextEncoder().encode(text), (byte) => String.fromCharCode(byte)).join(""));
}

async function content(svg: SVGElement, kind: Kind): Promise<string> {
  if (kind === "svg") return base64(new XMLSerializer().serializeToString(svg));
  // A canvas that is too large for the browser has no content.
  return (await drawnOn(svg)).toDataURL("image/png").split(",")[1] ?? "";
}

async function list(context: Pictured, kinds: Kind[]): Promise<string> {
  const known = new Map<string, number>();
  const lines: string[] = [];
  for (const buttons of document.querySelectorAll<HTMLElement>("[data-picture]")) {
    const element = buttons.closest(".panel, figure, section");
    if (!element || element.getClientRects().length === 0) continue;
    const name = buttons.dataset["picture"] ?? "";
    const count = (known.get(name) ?? 0) + 1;
    known.set(name, count);
    const svg = pictureOf(context, element);
    for (const kind of kinds) lines.push(`${fileName(context, count > 1 ? `${name}-${count}` : name, kind).replaceAll(/\s/g, "_")} ${await content(svg, kind)}`);
  }
  return lines.join("\n");
}

/** Replaces the document by its pictures, if the hash requests them. Call it when the page has been drawn. */
export async function offerPictures(context: Pictured): Promise<void> {
  const wanted = new URLSearchParams(location.hash.slice(1)).get("pictures")?.split(",") ?? [];
  const kinds = (["png", "svg"] as const).filter((kind) => wanted.includes(kind));
  if (kinds.length === 0) return;
  const text = await list(context, kinds);
  document.body.replaceChildren(h("pre", { id: "pictures" }, text));
}
