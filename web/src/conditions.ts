// Warnings and conditions that affect the trust in the figures and their comparison.

import type { Context } from "./context";
import { type Metric, type Trial, type Unequal, type Warning, reason, value } from "./data";
import { h, scrolling, section } from "./dom";
import { bytes, counted, measured, seconds, significant, whole } from "./format";
import { marker } from "./look";
import { current } from "./state";

/** The most serious rank comes first. */
const MEANINGS = {
  void: "the figures are worth nothing",
  misleading: "a figure does not mean what it seems to",
  unsure: "less certain than it looks",
  note: "no figure is touched",
};
const RANKS = ["void", "misleading", "unsure", "note"];

/** Groups warnings by code and remedy, with all their trials. */
export function warningList(context: Context): HTMLElement | null {
  const groups = new Map<string, { warning: Warning; lines: Map<string, { who: string; message: string; repeats: number[] }> }>();
  const add = (warning: Warning, who: string, repeat: number | null) => {
    const key = `${warning.code}\n${warning.remedy}`;
    const group = groups.get(key) ?? { warning, lines: new Map() };
    // A warning about all repeats together is separate from a warning about one.
    const of = repeat === null ? `${who}\n${warning.message}` : who;
    const line = group.lines.get(of) ?? { who, message: warning.message, repeats: [] };
    if (repeat !== null) line.repeats.push(repeat);
    group.lines.set(of, line);
    groups.set(key, group);
  };
  for (const warning of context.data.warnings) add(warning, "", null);
  for (const remark of context.data.summary.remarks) add(remark, `${context.label(remark.engine)}, ${counted(remark.clients, "client")}`, remark.repeat);
  if (groups.size === 0) return null;
  const ranked = [...groups.values()].sort((a, b) => RANKS.indexOf(a.warning.rank ?? "unsure") - RANKS.indexOf(b.warning.rank ?? "unsure"));
  const items = ranked.map(({ warning, lines }) =>
    h(
      "li",
      {},
      h("code", {}, warning.code),
      warning.rank !== undefined && h("span", { class: "unit" }, ` ${MEANINGS[warning.rank]}`),
      ...[...lines.values()].map(({ who, message, repeats }) =>
        h("p", {}, who !== "" && h("strong", {}, `${who}: `), message, repeats.length > 1 && ` (repeat ${repeats[0]}; likewise in ${repeats.slice(1).join(", ")})`),
      ),
      (warning.undermines ?? []).length > 0 && h("p", { class: "about" }, `It changes how to read: ${(warning.undermines ?? []).join(", ")}`),
      h("p", { class: "remedy" }, warning.remedy),
    ),
  );
  return h("ul", { class: "warnings" }, ...items);
}

/** The warnings that affect these metrics, next to their chart: by kind, with the engines. */
export function warningsAbout(context: Context, metrics: string[]): HTMLElement | null {
  const kinds = new Map<string, { message: string; who: Set<string> }>();
  // Warnings about rates use the name of their rule.
  const names = metrics.flatMap((metric) => [metric, metric.replace(/^tpm[A-Za-z0-9]+/, "tpmX")]);
  const add = (warning: Warning, who: string) => {
    if (!(warning.undermines ?? []).some((metric) => names.includes(metric))) return;
    const kind = kinds.get(warning.code) ?? { message: warning.message, who: new Set() };
    kind.who.add(who);
    kinds.set(warning.code, kind);
  };
  for (const warning of context.data.warnings) add(warning, "all");
  const { clients } = current();
  for (const remark of context.data.summary.remarks) if (remark.clients === clients) add(remark, context.label(remark.engine));
  if (kinds.size === 0) return null;
  const items = [...kinds].map(([code, { message, who }]) => h("li", {}, h("code", {}, code), ` ${[...who].join(", ")}: ${message}`));
  return h("details", { class: "concerns" }, h("summary", {}, `Read with ${counted(kinds.size, "warning")}: ${[...kinds.keys()].join(", ")}`), h("ul", {}, ...items));
}

/** A row of the parity table: its name, and one value per engine. */
interface Trait {
  name: string;
  values: string[];
  /** Whether a difference makes the comparison unfair. Other differences are the subject of the comparison. */
  parity: boolean;
}

function traits(trials: Trial[], unequal: Set<Unequal["condition"]>): Trait[] {
  const of = (name: string, get: (trial: Trial) => string, parity = false): Trait => ({ name, values: trials.map(get), parity });
  const rows = [
    of("engine", (trial) => trial.registered),
    of("version", (trial) => trial.version ?? "unknown"),
    of("durability", (trial) => trial.durability, unequal.has("durability")),
    of("cache", (trial) => (trial.cache_bytes === null ? trial.cache : bytes(trial.cache_bytes)), unequal.has("cache")),
    of("files read", (trial) => trial.reads ?? "unknown", unequal.has("page-cache")),
    of("compression", (trial) => trial.compression ?? "the engine's default", unequal.has("compression")),
  ];
  const keys = (get: (trial: Trial) => Record<string, string>) => [...new Set(trials.flatMap((trial) => Object.keys(get(trial))))].sort();
  for (const key of keys((trial) => trial.set_by)) rows.push(of(`${key} set by`, (trial) => trial.set_by[key] ?? key));
  for (const key of keys((trial) => trial.settings)) rows.push(of(key, (trial) => trial.settings[key] ?? ""));
  for (const key of keys((trial) => trial.conditions)) {
    const row = of(key, (trial) => trial.conditions[key] ?? "", true);
    if (differs(row)) rows.push(row);
  }
  return rows;
}

/** Whether the values differ. The number of the trial that loaded the data is not a difference between engines. */
function differs({ values }: Trait): boolean {
  return new Set(values.map((value) => value.replace(/\btrial \d+/, "a trial"))).size > 1;
}

/** The conditions that are the same in all trials, which are shown once. */
function sharedConditions(trials: Trial[]): [string, string][] {
  const [first] = trials;
  return Object.entries(first?.conditions ?? {}).filter(([key, value]) => trials.every((trial) => trial.conditions[key] === value));
}

/** One trial of each engine with the chosen number of clients. */
function oneEach(context: Context): Trial[] {
  const { clients } = current();
  return context.engines.flatMap((engine) => context.data.trials.find((trial) => trial.engine === engine && trial.clients === clients) ?? []);
}

function parityTable(context: Context): HTMLElement {
  const trials = oneEach(context);
  const heads = trials.map((trial) => h("th", { scope: "col", class: "text" }, h("span", { class: "engine" }, marker(context.look(trial.engine)), context.label(trial.engine))));
  // The engine and its version, then unfair differences, then compared differences, then equal values.
  const rank = (trait: Trait) => (trait.parity && differs(trait) ? 0 : differs(trait) ? 1 : 2);
  const unequal = (context.data.summary.relative ?? []).flatMap(({ rows }) => rows).flatMap(({ comparability }) => comparability ?? []);
  const [engine, version, ...rest] = traits(trials, new Set(unequal.map(({ condition }) => condition)));
  const ordered = [engine, version, ...rest.sort((a, b) => rank(a) - rank(b))].filter((trait) => trait !== undefined);
  const body = ordered.map((trait) => {
    const unfair = trait.parity && differs(trait);
    return h(
      "tr",
      { class: unfair ? "differs" : "" },
      h("th", { scope: "row" }, trait.name, unfair && h("span", { class: "flag" }, "differs")),
      ...trait.values.map((value) => h("td", { class: "text" }, value)),
    );
  });
  const table = h("table", { class: "parity" }, h("thead", {}, h("tr", {}, h("th", { scope: "col" }), ...heads)), h("tbody", {}, ...body));
  return scrolling("engines and their settings", table);
}

function pairs(entries: [string, string][]): HTMLElement {
  return h("dl", {}, ...entries.flatMap(([name, value]) => [h("dt", {}, name), h("dd", {}, value)]));
}

function details(title: string, ...content: (Node | null)[]): HTMLElement {
  return h("details", {}, h("summary", {}, title), ...content);
}

function howItRan(context: Context): [string, string][] {
  const [trial] = context.data.trials;
  if (!trial) return [];
  const { run } = trial;
  return [
    ["workload", trial.workload],
    ["loaders", String(run.load_clients)],
    ["warmup", seconds(run.warmup_s)],
    ["loops", `${run.loops} × ${seconds(run.loop_s)}`],
    ["arrivals", run.rate === null ? "closed loop" : `open loop, ${significant(run.rate)} operations/s`],
    ["seed", String(run.seed)],
    ...Object.entries(trial.workload_settings),
    ...sharedConditions(oneEach(context)),
  ];
}

function inForce(context: Context): HTMLElement[] {
  return context.engines.flatMap((engine) => {
    const trial = context.data.trials.find((trial) => trial.engine === engine && trial.effective_settings.length > 0);
    return trial ? [details(`Settings in force: ${context.label(engine)}`, pairs(trial.effective_settings))] : [];
  });
}

/** Descriptions of gauges with unclear names. */
const GAUGES: Record<string, string> = { host_dirty_bytes: "dirty page cache of the whole host" };

/** An engine's deferred work at the start and the end of the loops and after the drain. */
export function debtTable(context: Context): HTMLElement | null {
  const rows = context.allTrials().flatMap(({ trial, main }) => {
    const loops = main ? trial.phases.find(({ phase }) => phase === "loops") : undefined;
    const drain = trial.phases.find(({ phase }) => phase === "drain");
    return (loops?.debt_end ?? []).map((gauge) => {
      const at = (gauges: { name: string; value: number }[] | undefined) => {
        const found = gauges?.find(({ name }) => name === gauge.name);
        return found ? (gauge.name.includes("bytes") ? bytes(found.value) : Number.isInteger(found.value) ? whole(found.value) : significant(found.value)) : "–";
      };
      return h(
        "tr",
        {},
        h("th", { scope: "row" }, h("span", { class: "engine" }, marker(context.look(trial.engine)), context.label(trial.engine))),
        h("td", { class: "text", title: gauge.name }, GAUGES[gauge.name] ?? gauge.name),
        h("td", {}, at(loops?.debt_start)),
        h("td", {}, at(loops?.debt_end)),
        h("td", {}, at(drain?.debt_end)),
        h("td", {}, drain ? seconds(drain.seconds) : "–"),
      );
    });
  });
  if (rows.length === 0) return null;
  const heads = ["at the loops' start", "at their end", "after the drain", "drain took"].map((text) => h("th", { scope: "col" }, text));
  const table = h("table", {}, h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "engine"), h("th", { scope: "col", class: "text" }, "debt"), ...heads)), h("tbody", {}, ...rows));
  return h("details", {}, h("summary", {}, "Debt: work put off, and paid in the drain"), scrolling("debt", table));
}

/** The client hosts of each trial with the chosen number of clients. */
function hostTable(context: Context): HTMLElement | null {
  const { clients } = current();
  const shown = (metric: Metric) => {
    const number = value(metric);
    return h("td", number === null ? { title: reason(metric) } : {}, number === null ? "–" : measured(number));
  };
  const rows = context.data.trials.filter((trial) => trial.clients === clients && context.shown(trial.engine)).flatMap((trial) =>
    (trial.hosts ?? []).map((host) =>
      h(
        "tr",
        {},
        h("th", { scope: "row" }, h("span", { class: "engine" }, marker(context.look(trial.engine)), `${context.label(trial.engine)}, repeat ${trial.repeat}`)),
        h("td", { class: "text", title: `${host.about}, ${counted(host.cpus, "CPU")}` }, host.name),
        h("td", {}, whole(host.clients)),
        h("td", {}, whole(host.ops)),
        ...[host.client_cpu_percent, host.host_cpu_percent, host.late_us_per_op, host.start_skew_ms, host.round_trip_ms].map(shown),
        h("td", {}, `${whole(host.late_frames)}, ${whole(host.missing_frames)}`),
        h("td", { class: "text" }, host.lost ?? "–"),
      ),
    ),
  );
  if (rows.length === 0) return null;
  const heads = ["clients", "operations", "CPU of clients, %", "CPU of all, %", "late, µs per operation", "start skew, ms", "ping, ms", "frames late, missing"];
  const head = h("tr", {}, h("th", { scope: "col" }, "engine"), h("th", { scope: "col", class: "text" }, "host"), ...heads.map((text) => h("th", { scope: "col" }, text)), h("th", { scope: "col", class: "text" }, "lost"));
  return scrolling("client hosts", h("table", {}, h("thead", {}, head), h("tbody", {}, ...rows)));
}

export function conditionsSection(context: Context): HTMLElement {
  const { data } = context;
  const [warnings, hosts] = [warningList(context), hostTable(context)];
  return section(
    "conditions",
    "Was it a fair comparison?",
    "Conditions that must be equal for a fair comparison are marked where they differ.",
    warnings && h("h3", {}, "Warnings"),
    warnings,
    h("h3", {}, "Engines"),
    parityTable(context),
    hosts && h("h3", {}, "Client hosts"),
    hosts,
    h("div", { class: "columns" }, h("div", {}, h("h3", {}, "Run"), pairs(howItRan(context))), h("div", {}, h("h3", {}, "Host"), pairs(Object.entries(data.conditions)))),
    ...inForce(context),
    details("The experiment as run", h("pre", { tabindex: "0", role: "region", "aria-label": "the experiment as run" }, data.experiment)),
  );
}
