// Self-contained pictures: the contents of the screen as SVG, or as a PNG of that SVG.

import type uPlot from "uplot";
import { bandOutline, type Drawn, type Looks, drawnIn, faintness, ink, joinedPoints, lookOfLine } from "./chart";
import { constant, h } from "./dom";
import type { Look } from "./look";

/** PNG pixels for each pixel of the page. */
const SHARP = 2;
const MARGIN = 14;

/** The engines and the source of what a picture shows. */
export interface Pictured extends Looks {
  readonly engines: string[];
  /** The name of the results, for files. */
  readonly name: string;
  /** The line below the picture. */
  readonly source: string;
  label(engine: string): string;
  shown(engine: string): boolean;
}

type Attributes = Record<string, string | number>;

/** The namespace of SVG, taken from the browser, because the page must contain no address. */
const SVG = constant("<svg></svg>").namespaceURI;

function shape(tag: string, attributes: Attributes, ...children: (Node | string)[]): SVGElement {
  const element = document.createElementNS(SVG, tag) as SVGElement;
  for (const [name, value] of Object.entries(attributes)) {
    element.setAttribute(name, typeof value === "number" ? String(Math.round(value * 100) / 100) : value);
  }
  element.append(...children);
  return element;
}

const probe = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
const known = new Map<string, { colour: string; alpha: number }>();

/** A colour in a format that every program reads, for any format of the browser. */
function plain(colour: string): { colour: string; alpha: number } {
  const found = known.get(colour);
  if (found) return found;
  let shown = { colour: "none", alpha: 0 };
  if (probe) {
    probe.canvas.width = probe.canvas.height = 1;
    probe.fillStyle = colour;
    probe.fillRect(0, 0, 1, 1);
    const [red, green, blue, alpha] = probe.getImageData(0, 0, 1, 1).data;
    shown = { colour: `rgb(${red},${green},${blue})`, alpha: (alpha ?? 0) / 255 };
  }
  known.set(colour, shown);
  return shown;
}

function text(content: string, x: number, y: number, attributes: Attributes): SVGElement {
  return shape("text", { x, y, ...attributes }, content);
}

/** The computed fields of a uPlot axis, which its types omit. */
interface Ticks {
  _splits?: (number | null)[] | null;
  _values?: (string | number | null)[] | null;
}

/** The lines and labels of the axes, within a plot of this width and height. */
function axes({ plot }: Drawn, width: number, height: number): SVGElement {
  const group = shape("g", { "font-size": 11, fill: plain(ink("--muted")).colour });
  const rule = { stroke: plain(ink("--rule")).colour, "stroke-width": 1 };
  const of = (index: number) => (plot.axes[index] ?? {}) as unknown as Ticks;
  const named = (ticks: Ticks, draw: (at: number, name: string) => void) =>
    (ticks._splits ?? []).forEach((split, index) => {
      if (split !== null) draw(split, String(ticks._values?.[index] ?? ""));
    });
  named(of(0), (split, name) => {
    const x = plot.valToPos(split, "x");
    if (x < -1 || x > width + 1) return;
    group.append(shape("line", { x1: x, x2: x, y1: 0, y2: height, ...rule }), text(name, x, height + 16, { "text-anchor": "middle" }));
  });
  named(of(1), (split, name) => {
    const y = plot.valToPos(split, "y");
    if (y < -1 || y > height + 1) return;
    group.append(shape("line", { x1: 0, x2: width, y1: y, y2: y, ...rule }), text(name, -7, y + 4, { "text-anchor": "end" }));
  });
  return group;
}

/** The parts of a column that a line joins. */
function stretches(plot: uPlot, index: number): string {
  let path = "";
  let open = false;
  plot.data[0].forEach((x, at) => {
    const y = plot.data[index + 1]?.[at];
    if (y === undefined) return;
    if (y === null) {
      open = false;
      return;
    }
    path += `${open ? "L" : "M"}${plot.valToPos(x, "x").toFixed(1)} ${plot.valToPos(y, "y").toFixed(1)}`;
    open = true;
  });
  return path;
}

function lineShapes(context: Pictured, { plot, lines, axes }: Drawn): SVGElement[] {
  const place = (x: number, y: number) => ({ x: plot.valToPos(x, "x"), y: plot.valToPos(y, "y") });
  const bands = lines.map((line) => {
    const points = bandOutline(line).map(([x, y]) => place(x, y)).map(({ x, y }) => `${x.toFixed(1)},${y.toFixed(1)}`);
    return shape("polygon", { points: points.join(" "), fill: plain(ink(lookOfLine(context, line).ink)).colour, opacity: line.fill ?? ink("--band-of-line") });
  });
  const drawn = lines.flatMap((line, index) => {
    const look = lookOfLine(context, line);
    const { colour } = plain(ink(look.ink));
    const dots = joinedPoints(line).map((point) => ({ ...point, ...place(point.x, point.y) }));
    const path = line.joined ? dots.map(({ x, y }, at) => `${at ? "L" : "M"}${x.toFixed(1)} ${y.toFixed(1)}`).join("") : stretches(plot, index);
    const marks = dots.flatMap(({ x, y, hollow, name }) => [
      ...(line.bare ? [] : [shape("circle", { cx: x, cy: y, r: 3.4, fill: hollow ? plain(ink("--paper")).colour : colour, stroke: colour })]),
      text(name, x + 5, y - 3, { "font-size": 11, fill: plain(ink("--muted")).colour }),
    ]);
    if (line.apart || axes.points) {
      plot.data[0].forEach((at, row) => {
        const value = plot.data[index + 1]?.[row];
        if (typeof value !== "number" || line.joined) return;
        const { x, y } = place(at, value);
        marks.push(shape("circle", { cx: x, cy: y, r: line.apart ? 2 : 3, fill: colour, opacity: faintness(line) }));
      });
    }
    const stroke = { fill: "none", stroke: colour, "stroke-width": line.width ?? (line.main ? 1.6 : 1), "stroke-dasharray": line.main ? look.dash.join(" ") : "", opacity: faintness(line) };
    return [...(line.apart ? [] : [shape("path", { d: path, ...stroke })]), ...marks];
  });
  return [...bands, ...drawn];
}

function chartShape(context: Pictured, drawn: Drawn, x: number, y: number): SVGElement {
  const { plot } = drawn;
  const [left, top] = [plot.bbox.left / devicePixelRatio, plot.bbox.top / devicePixelRatio];
  const [width, height] = [plot.bbox.width / devicePixelRatio, plot.bbox.height / devicePixelRatio];
  // A nested frame clips the lines outside a zoomed range.
  const inside = shape("svg", { width, height, overflow: "hidden" }, ...lineShapes(context, drawn));
  return shape("g", { transform: `translate(${x + left} ${y + top})` }, axes(drawn, width, height), inside);
}

/** A text with the line breaks of the screen. */
function textShapes(node: Text, left: number, top: number): SVGElement[] {
  const parent = node.parentElement;
  if (!parent || !node.data.trim()) return [];
  const style = getComputedStyle(parent);
  const range = document.createRange();
  const lines: { words: string; box: DOMRect }[] = [];
  for (const { 0: word, index } of node.data.matchAll(/\S+/g)) {
    range.setStart(node, index);
    range.setEnd(node, index + word.length);
    const box = range.getBoundingClientRect();
    const line = lines.at(-1);
    if (line && Math.abs(line.box.top - box.top) < 2) line.words += ` ${word}`;
    else lines.push({ words: word, box });
  }
  const { colour, alpha } = plain(style.color);
  const look = { "font-size": parseFloat(style.fontSize), "font-weight": style.fontWeight, fill: colour, "fill-opacity": alpha };
  return lines.filter(({ box }) => box.width > 0).map(({ words, box }) => text(words, box.left - left, box.bottom - top - box.height * 0.24, look));
}

/** Controls, which a picture omits. */
const LEFT_OUT = "button, select, input, .choice, .save, .switch, .visually-hidden, script, details:not([open]) > :not(summary)";

function elementShapes(context: Pictured, element: Element, left: number, top: number): SVGElement[] {
  if (element.matches(LEFT_OUT)) return [];
  const box = element.getBoundingClientRect();
  const drawn = drawnIn(element);
  if (drawn) return [chartShape(context, drawn, box.left - left, box.top - top)];
  const style = getComputedStyle(element);
  if (style.display === "none" || style.visibility === "hidden") return [];
  if (element instanceof SVGSVGElement) {
    const copy = element.cloneNode(true) as SVGSVGElement;
    for (const [name, value] of Object.entries({ x: box.left - left, y: box.top - top, width: box.width, height: box.height })) copy.setAttribute(name, value.toFixed(2));
    for (const part of [copy, ...copy.querySelectorAll<SVGElement>("[style]")]) {
      for (const property of ["fill", "stroke"]) {
        const variable = /var\((--[a-z0-9-]+)\)/.exec(part.style.getPropertyValue(property))?.[1];
        if (variable) part.style.setProperty(property, plain(ink(variable)).colour);
      }
    }
    return [copy];
  }
  const shapes: SVGElement[] = [];
  const frame = { x: box.left - left, y: box.top - top, width: box.width, height: box.height };
  const fill = (part: typeof frame, colour: string) => {
    const { colour: fill, alpha } = plain(colour);
    if (alpha > 0) shapes.push(shape("rect", { ...part, fill, "fill-opacity": alpha, opacity: style.opacity }));
  };
  fill(frame, style.backgroundColor);
  if (parseFloat(style.borderLeftWidth) > 0 && style.borderLeftStyle !== "none") {
    fill({ ...frame, width: parseFloat(style.borderLeftWidth) }, style.borderLeftColor);
  }
  if (parseFloat(style.borderBottomWidth) > 0 && style.borderBottomStyle !== "none") {
    fill({ ...frame, y: frame.y + frame.height - 1, height: 1 }, style.borderBottomColor);
  }
  for (const child of element.childNodes) {
    if (child instanceof Element) shapes.push(...elementShapes(context, child, left, top));
    else if (child instanceof Text) shapes.push(...textShapes(child, left, top));
  }
  return shapes;
}

/** A line of the key. */
export interface Keyed {
  readonly name: string;
  readonly look: Look;
}

/** Panels whose lines are not engines, with their own keys. */
const ownKeys = new WeakMap<Element, Keyed[]>();

/** Gives a panel its own key. A single line needs no key. */
export function withKey(panel: HTMLElement, lines: Keyed[]): HTMLElement {
  ownKeys.set(panel, lines.length > 1 ? lines : []);
  return panel;
}

/** The key to the colours, because a picture is often seen without its page. */
function key(context: Pictured, element: Element, width: number): { shapes: SVGElement[]; height: number } {
  let [x, y] = [0, 0];
  const engines = context.engines.filter((engine) => context.shown(engine));
  const lines = ownKeys.get(element) ?? engines.map((engine) => ({ name: context.label(engine), look: context.look(engine) }));
  const shapes = lines.flatMap(({ name: label, look }) => {
    const colour = plain(ink(look.ink)).colour;
    const wide = 44 + label.length * 7;
    if (x > 0 && x + wide > width) [x, y] = [0, y + 18];
    const line = shape("line", { x1: x, x2: x + 26, y1: y + 8, y2: y + 8, stroke: colour, "stroke-width": 2, "stroke-dasharray": look.dash.join(" ") });
    const name = text(label, x + 32, y + 12, { "font-size": 12, fill: plain(ink("--ink")).colour });
    x += wide;
    return [line, name];
  });
  return { shapes, height: lines.length > 0 ? y + 22 : 0 };
}

/** An element of the page, with the key above it and the source of the results below. */
export function pictureOf(context: Pictured, element: Element): SVGElement {
  const box = element.getBoundingClientRect();
  // A table that scrolls is shown completely.
  const tables = [...element.querySelectorAll(".scroll")].map((frame) => frame.scrollWidth);
  const [width, body] = [Math.ceil(Math.max(box.width, ...tables)), Math.ceil(box.height)];
  const engines = key(context, element, width);
  const [wide, high] = [width + 2 * MARGIN, body + engines.height + 24 + 2 * MARGIN];
  return shape(
    "svg",
    { width: wide, height: high, viewBox: `0 0 ${wide} ${high}`, "font-family": "system-ui, 'Helvetica Neue', 'DejaVu Sans', sans-serif" },
    shape("title", {}, element.querySelector("h2, h3")?.textContent ?? context.name),
    shape("rect", { width: wide, height: high, fill: plain(ink("--paper")).colour }),
    shape("g", { transform: `translate(${MARGIN} ${MARGIN})` }, ...engines.shapes),
    shape("g", { transform: `translate(${MARGIN} ${MARGIN + engines.height})` }, ...elementShapes(context, element, box.left, box.top)),
    text(context.source, MARGIN, high - MARGIN, { "font-size": 11, fill: plain(ink("--muted")).colour }),
  );
}

/** The picture in pixels. */
export async function drawnOn(svg: SVGElement): Promise<HTMLCanvasElement> {
  const image = new Image();
  const loaded = new Promise((resolve) => (image.onload = resolve));
  image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(new XMLSerializer().serializeToString(svg))}`;
  await loaded;
  const canvas = document.createElement("canvas");
  [canvas.width, canvas.height] = [image.width * SHARP, image.height * SHARP];
  canvas.getContext("2d")?.drawImage(image, 0, 0, canvas.width, canvas.height);
  return canvas;
}

async function asPng(svg: SVGElement): Promise<Blob | null> {
  const canvas = await drawnOn(svg);
  return new Promise((resolve) => canvas.toBlob(resolve, "image/png"));
}

/** The name of a picture's file. */
export function fileName(context: Pictured, name: string, kind: "svg" | "png"): string {
  return `${context.name}-${name}.${kind}`;
}

async function save(context: Pictured, element: Element, kind: "svg" | "png", name: string): Promise<void> {
  const svg = pictureOf(context, element);
  const blob = kind === "png" ? await asPng(svg) : new Blob([new XMLSerializer().serializeToString(svg)], { type: "image/svg+xml" });
  if (!blob) return;
  const address = URL.createObjectURL(blob);
  h("a", { href: address, download: fileName(context, name, kind) }).click();
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
}

/** Two buttons that save the surrounding panel, figure or section. */
export function saveButtons(context: Pictured, name: string, what: string): HTMLElement {
  const button = (kind: "png" | "svg") =>
    h(
      "button",
      {
        type: "button",
        "aria-label": `save ${what} as ${kind.toUpperCase()}`,
        title: `save ${what} as ${kind.toUpperCase()}`,
        click: (event) => {
          const element = (event.currentTarget as Element).closest(".panel, figure, section");
          if (element) void save(context, element, kind, name);
        },
      },
      kind.toUpperCase(),
    );
  return h("span", { class: "save", "data-picture": name }, button("png"), button("svg"));
}
