// The page of a history: how each headline changed over the runs of one experiment.

import { dispose } from "./chart";
import { contents } from "./contents";
import { Engines } from "./context";
import { reason, value } from "./data";
import { choice, h, rememberView, scrolling, section } from "./dom";
import { Footnotes } from "./footnotes";
import { counted } from "./format";
import { type Places, againstInWords, historyPanel, shortLabel, shownFigure, sizeOf } from "./history-chart";
import type { HistoryData, MetricLine } from "./history-data";
import { engineKey } from "./key";
import { metricName } from "./names";
import { offerPictures } from "./pictures";
import { type State, begin, choose, current, lasting, onChange } from "./state";

const AXES = { version: "the engine's version", commit: "the date of rumba's commit", started: "the start of the run" };

export class History extends Engines {
  readonly name: string;
  readonly source: string;

  constructor(readonly data: HistoryData) {
    super([...new Set(data.lines.map(({ engine }) => engine))]);
    this.name = `${data.name}-history`;
    this.source = `${data.name} · ${counted(data.points.length, "run")} · ${dates(data)}`;
  }

  unit(metric: string): string {
    return this.data.metrics.find(({ name }) => name === metric)?.unit ?? "";
  }

  better(metric: string): "more" | "less" | "neither" {
    return this.data.metrics.find(({ name }) => name === metric)?.better ?? "neither";
  }

  clientCounts(): number[] {
    return [...new Set(this.data.lines.map(({ clients }) => clients))].sort((a, b) => a - b);
  }

  /** The lines of a part at the chosen number of clients. A load that several numbers of clients share has one of them. */
  lines(part: "load" | "run"): MetricLine[] {
    return this.engines.flatMap((engine) => {
      const own = this.data.lines.filter((line) => line.engine === engine && line.part === part);
      const isChosen = own.some(({ clients }) => clients === current().clients);
      const clients = isChosen || part === "run" ? current().clients : own[0]?.clients;
      return own.filter((line) => line.clients === clients);
    });
  }
}

function dates({ points }: HistoryData): string {
  const [first, last] = [points[0], points.at(-1)].map((run) => run?.started.slice(0, 10) ?? "");
  return first === last ? (first ?? "") : `${first} to ${last}`;
}

/** Lines that share an axis: all by the start or by the commit, but only those with the same runs by the version. */
function groups({ data }: History, lines: MetricLine[]): { places: Places; lines: MetricLine[] }[] {
  const found = new Map<string, MetricLine[]>();
  for (const line of lines) {
    const key = line.by === "version" ? JSON.stringify(line.steps.map(({ point, label }) => [point, label])) : line.by;
    found.set(key, [...(found.get(key) ?? []), line]);
  }
  return [...found.values()].map((own) => {
    const by = own[0]?.by ?? "started";
    const labels = new Map(own.flatMap(({ steps }) => steps.map(({ point, label }) => [point, label] as const)));
    const runs = [...labels].map(([point, label]) => ({ point, label }));
    const committed = (point: number) => data.points[point]?.committed ?? "";
    // The points are in the order of their starts, which a stable sort keeps for equal commits.
    if (by !== "version") runs.sort((a, b) => a.point - b.point);
    if (by === "commit") runs.sort((a, b) => (committed(a.point) < committed(b.point) ? -1 : Number(committed(a.point) > committed(b.point))));
    return { places: { by, runs }, lines: own };
  });
}

function headerSection(context: History): HTMLElement {
  const { data } = context;
  const library = data.library !== undefined && h("a", { href: data.library }, "Results");
  return h(
    "header",
    {},
    h("p", { class: "kicker" }, library, library && " · ", "history"),
    h("h1", {}, data.name),
    h("p", { class: "ran" }, [counted(data.points.length, "run"), dates(data), counted(context.engines.length, "engine")].join(" · ")),
  );
}

function toolbar(context: History): HTMLElement {
  const counts = context.clientCounts();
  const options = counts.map((count) => ({ value: String(count), text: String(count) }));
  const clients = choice("clients", options, String(current().clients), (value) => choose({ clients: Number(value) }));
  return h("div", { class: "toolbar" }, engineKey(context), h("div", { class: "choices" }, counts.length > 1 && clients));
}

const list = (sentences: string[]) => h("ul", { class: "sentences" }, ...sentences.map((sentence) => h("li", {}, sentence)));

/** The findings in sentences: all engines, and all numbers of clients. */
function changesSection({ data }: History): HTMLElement {
  const titled = (title: string, sentences: string[]) => (sentences.length > 0 ? [h("h3", {}, title), list(sentences)] : []);
  return section(
    "changes",
    "What changed?",
    "A change of level is tested over all repeats of all runs. Histories without a change show one in at most 5% of cases. Every ratio includes changes of the host between two runs.",
    ...(data.moved.length > 0 ? [list(data.moved)] : [h("p", {}, "No level changed over the runs.")]),
    ...titled("Conditions of --fail-if", data.gates),
    ...titled("The last run of each engine over the one before it", data.last),
    ...titled("Not the same in all runs", data.differ),
  );
}

/** The figures of one engine: a row for each run. */
function figuresTable(places: Places, lines: MetricLine[]): HTMLElement {
  const footnotes = new Footnotes();
  const shown = lines.map((line) => ({ line, show: shownFigure(line, sizeOf([line])) }));
  const heads = lines.map(({ metric, unit }) => h("th", { scope: "col" }, metricName(metric), h("span", { class: "unit" }, unit === "B" ? "" : unit)));
  const rows = places.runs.map(({ point, label }) => {
    const cells = shown.map(({ line, show }) => {
      const step = line.steps.find((one) => one.point === point);
      const median = value(step?.median);
      if (step === undefined || median === null) return h("td", {}, footnotes.dash(reason(step?.median)));
      return h("td", { class: `change-${step.against?.change ?? "none"}` }, show(median), h("span", { class: "unit" }, againstInWords(step)));
    });
    return h("tr", {}, h("th", { scope: "row" }, shortLabel(label)), ...cells);
  });
  const table = h("table", { class: "steps" }, h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "run"), ...heads)), h("tbody", {}, ...rows));
  return h("div", {}, scrolling(`figures of ${lines[0]?.engine ?? ""}`, table), footnotes.list());
}

function partSection(context: History, part: "load" | "run"): HTMLElement | null {
  const all = context.lines(part);
  if (all.length === 0) return null;
  const drawn = groups(context, all).flatMap(({ places, lines }) => {
    const engines = [...new Set(lines.map(({ engine }) => engine))];
    const visible = lines.filter(({ engine }) => context.shown(engine));
    const metrics = [...new Set(visible.map(({ metric }) => metric))];
    const panels = metrics.map((metric) => historyPanel(context, places, visible.filter((line) => line.metric === metric)));
    const tables = engines.flatMap((engine) => [h("h3", {}, context.label(engine)), figuresTable(places, lines.filter((line) => line.engine === engine))]);
    return [
      h("h3", {}, `${engines.map((engine) => context.label(engine)).join(", ")} by ${AXES[places.by]}`),
      panels.length > 0 ? h("div", { class: "halves" }, ...panels) : h("p", { class: "nothing" }, "Every engine is hidden."),
      h("details", {}, h("summary", {}, "Figures of every run"), ...tables),
    ];
  });
  return section(
    part === "run" ? "loops" : "load",
    part === "run" ? "How did the loops change?" : "How did the load change?",
    "A line joins the medians of the repeats, which are the points around it. A dashed line is the mean of a level, and steps where the level changes. The other axis begins at zero. Each run is compared with the last sound one before it.",
    ...drawn,
  );
}

function runsSection({ data }: History): HTMLElement {
  const rows = data.points.map(({ directory, name, started, commit, committed }) => {
    const results = data.library === undefined ? directory : h("a", { href: `${data.library}results/${encodeURIComponent(directory)}` }, directory);
    const made = committed === null ? "" : shortLabel(committed);
    return h("tr", {}, h("th", { scope: "row" }, results), h("td", { class: "text" }, shortLabel(started)), h("td", { class: "text" }, name), h("td", { class: "text" }, commit ?? "unknown", h("span", { class: "unit" }, made)));
  });
  const heads = ["results", "began", "experiment", "commit of rumba"].map((head) => h("th", { scope: "col", class: "text" }, head));
  const table = h("table", { class: "steps" }, h("thead", {}, h("tr", {}, ...heads)), h("tbody", {}, ...rows));
  return section("runs", "Which runs?", null, scrolling("runs", table), data.left_out.length > 0 && h("p", { class: "about" }, `Left out: ${data.left_out.join("; ")}.`));
}

/** Draws the page of a history, and again after each choice. */
export function showHistory(data: HistoryData): void {
  const page = document.getElementById("page");
  if (!page) return;
  const context = new History(data);
  const counts = context.clientCounts();
  const defaults: State = { baseline: "", clients: counts[0] ?? 1, op: "", time: "response", part: "run", ladder: "", metric: "", judged: "headline", gauge: "", test: "", hidden: "" };
  begin(defaults, (wanted) => ({ ...wanted, clients: counts.includes(wanted.clients) ? wanted.clients : defaults.clients }));
  const parts = [toolbar, (of: History) => partSection(of, "run"), (of: History) => partSection(of, "load")].map((render) => ({ render, holder: h("div", { class: "part" }) }));
  const draw = () => {
    for (const { render, holder } of parts) {
      const restoreView = rememberView(holder);
      dispose(holder);
      const drawn = render(context);
      holder.replaceChildren(...(drawn ? [drawn] : []));
      restoreView();
    }
  };
  page.replaceChildren(headerSection(context), changesSection(context), ...parts.map(({ holder }) => holder), runsSection(context));
  draw();
  page.firstElementChild?.after(contents(page, lasting().signal));
  onChange(draw);
  // Charts are drawn in the next frame.
  requestAnimationFrame(() => requestAnimationFrame(() => void offerPictures(context)));
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw, lasting());
}
