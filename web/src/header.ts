// The head of the page: the experiment, the best engines, and the problems.

import type { Context } from "./context";
import { clientCounts, clientsInWords } from "./data";
import { h, section } from "./dom";
import { counted, seconds } from "./format";
import { marker } from "./look";
import { current } from "./state";

function whatRan(context: Context): string {
  const { data } = context;
  const [trial] = data.trials;
  if (!trial) return "No trial was recorded.";
  const repeats = Math.max(...data.trials.map(({ repeat }) => repeat));
  const clients = clientCounts(data).join(", ");
  const stepped = data.summary.rows.find(({ client_steps }) => client_steps);
  return [
    trial.workload,
    counted(context.alone.length, "engine"),
    stepped ? clientsInWords(stepped) : `${clients} ${clients === "1" ? "client" : "clients"}`,
    `${counted(trial.run.loops, "loop")} of ${seconds(trial.run.loop_s)}`,
    counted(repeats, "repeat") + (data.repeats_from ?? ""),
  ].join(" · ");
}

function verdict(context: Context): HTMLElement | null {
  const { clients } = current();
  const found = context.data.verdicts.filter((entry) => entry.clients === clients);
  if (found.length === 0) return null;
  const cells = found.map(({ question, engine, value, metric, close, single_run, scope }) =>
    h(
      "div",
      { class: "verdict" },
      h("dt", {}, question),
      h(
        "dd",
        {},
        h("span", { class: "winner" }, marker(context.look(engine)), context.label(engine)),
        h("span", { class: "won" }, value, metric.endsWith("_with_drain") && " with the drain", metric.startsWith("host_") && ", of the host"),
        single_run && h("span", { class: "won" }, "single run: one repeat decides nothing"),
        scope === "this-load" && h("span", { class: "won" }, "for this load: the repeats are starts of one load"),
        close.length > 0 && h("span", { class: "won" }, `no significant difference from ${close.map((other) => context.label(other)).join(", ")}`),
      ),
    ),
  );
  const out = [...new Set(found.flatMap((entry) => entry.left_out))];
  const why = found.find((entry) => entry.why_not_host !== undefined)?.why_not_host;
  return h(
    "div",
    {},
    h("dl", { class: "verdicts" }, ...cells),
    out.length > 0 && h("p", { class: "about" }, `Left out: ${out.join("; ")}.`),
    why !== undefined && h("p", { class: "about" }, `CPU is that of clients and engine; the host's, with the kernel's work, is not known: ${context.labelled(why)}.`),
  );
}

/** The findings, their certainty, and cautions, which the report makes from the verdicts. */
function opening(context: Context): HTMLElement | null {
  const opening = context.data.opening;
  if (!opening) return null;
  const sentences = [opening.found, opening.undecided, opening.careful].map((sentence) => h("p", {}, context.labelled(sentence)));
  return h("div", { class: "opening" }, ...sentences, opening.conditions !== "" && h("p", { class: "about" }, opening.conditions));
}

export function headerSection(context: Context): HTMLElement {
  const { data } = context;
  const began = new Date(data.started);
  const when = Number.isNaN(began.getTime()) ? data.started : `${began.toISOString().slice(0, 16).replace("T", " ")} UTC`;
  return h(
    "header",
    {},
    h("p", { class: "kicker" }, `rumba ${data.rumba} · ${when}`),
    h("h1", {}, data.title ?? data.name),
    h("p", { class: "ran" }, whatRan(context)),
    data.source !== null && h("p", { class: "about" }, `Reproduces: ${data.source}`),
    opening(context),
    verdict(context),
  );
}

/** Unfinished trials and missing results. They are not replaced by other values. */
export function problemsSection(context: Context): HTMLElement | null {
  const { data } = context;
  const failed = data.trials.filter(({ ended }) => ended !== null);
  const broken = data.trials.flatMap((trial) =>
    trial.phases.flatMap(({ checks }) => checks.filter(({ wrong }) => wrong > 0).map((check) => ({ trial, check }))),
  );
  if (failed.length + broken.length + data.missing.length === 0) return null;
  // Trials with the same end share an item, for example all whose data was not loaded.
  const alike = new Map<string, typeof failed>();
  for (const trial of failed) alike.set(trial.ended ?? "", [...(alike.get(trial.ended ?? "") ?? []), trial]);
  const items = [
    ...[...alike].map(([ended, trials]) => {
      const [first] = trials;
      const who =
        trials.length === 1 && first !== undefined
          ? `${context.label(first.engine)}, ${counted(first.clients, "client")}, repeat ${first.repeat}`
          : [...new Set(trials.map(({ engine }) => context.label(engine)))].join(", ");
      const numbers = trials.map(({ number }) => number).join(", ");
      return h("li", {}, h("strong", {}, who), ` (${trials.length === 1 ? "trial" : "trials"} ${numbers}) ${ended}`);
    }),
    ...broken.map(({ trial, check }) =>
      h("li", {}, h("strong", {}, `${context.label(trial.engine)}, repeat ${trial.repeat}`), ` data inconsistent: not so for ${check.wrong} of ${check.examined}: ${check.name}`),
    ),
    ...data.missing.map((missing) => h("li", {}, missing)),
  ];
  return section("problems", "What failed or is missing?", "No figure replaces these.", h("ul", {}, ...items));
}
