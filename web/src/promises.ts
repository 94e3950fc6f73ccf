// The guarantees of transactions, the outcomes of their tests, and the acknowledged transactions after a kill.

import type { Context } from "./context";
import type { Kept, Trial } from "./data";
import { h, scrolling, section } from "./dom";
import { counted, whole } from "./format";
import { marker } from "./look";
import { current } from "./state";

/** The worst outcome first. The page shows the worst of several repeats. */
const OUTCOMES: Kept["outcome"][] = ["broken", "anomaly", "kept"];

const promisesOf = (trial: Trial) => trial.phases.flatMap(({ promises }) => promises ?? []);
const recoveriesOf = (trials: Trial[]) => trials.flatMap(({ phases }) => phases.flatMap(({ recovery, checks }) => (recovery ? [{ ...recovery, checks }] : [])));

function worst(trials: Trial[], short: string): Kept | undefined {
  const found = trials.flatMap(promisesOf).filter((promise) => promise.short === short);
  return found.sort((a, b) => OUTCOMES.indexOf(a.outcome) - OUTCOMES.indexOf(b.outcome))[0];
}

function cell(promise: Kept | undefined): HTMLElement {
  if (!promise) return h("td", {}, "–");
  const verdict = promise.outcome === "kept" ? "verdict-holds" : promise.outcome === "broken" ? "verdict-fails" : "verdict-undecided";
  return h("td", { class: verdict, title: promise.seen }, promise.outcome === "broken" ? "broken" : promise.how);
}

/** The losses after a kill: a row for each engine with its durability, over its repeats. */
function killsTable(context: Context, engines: { engine: string; trials: Trial[] }[]): HTMLElement | null {
  const killed = engines.map(({ engine, trials }) => ({ engine, trials, found: recoveriesOf(trials) })).filter(({ found }) => found.length > 0);
  if (killed.length === 0) return null;
  const rows = killed.map(({ engine, trials, found }) => {
    const sum = (of: (one: (typeof found)[number]) => number) => found.reduce((all, one) => all + of(one), 0);
    const lost = sum((one) => one.lost);
    const wrong = sum(({ damage, checks }) => (damage ?? []).length + checks.filter((check) => check.wrong > 0).length);
    const alarming = (count: number) => h("td", { class: count > 0 ? "verdict-fails" : "verdict-holds" }, whole(count));
    return h(
      "tr",
      {},
      h("th", { scope: "row" }, marker(context.look(engine)), context.label(engine)),
      h("td", { class: "text" }, trials[0]?.durability ?? ""),
      h("td", {}, whole(sum((one) => one.acknowledged))),
      alarming(lost),
      alarming(wrong),
      h("td", {}, Math.max(...found.map(({ open_s }) => open_s)).toFixed(2)),
    );
  });
  const heads = ["engine", "durability", "acknowledged before the kill", "of them lost", "checks of the data that do not hold", "opened again within, s"];
  return scrolling("what a kill left", h("table", { class: "kills" }, h("thead", {}, h("tr", {}, ...heads.map((head) => h("th", { scope: "col" }, head)))), h("tbody", {}, ...rows)));
}

export function promisesSection(context: Context): HTMLElement | null {
  const { clients } = current();
  const proven = context.data.trials.filter((trial) => trial.clients === clients && (promisesOf(trial).length > 0 || recoveriesOf([trial]).length > 0));
  if (proven.length === 0) return null;
  const engines = [...new Set(proven.map(({ engine }) => engine))].map((engine) => ({
    engine,
    trials: proven.filter((trial) => trial.engine === engine),
  }));
  const names = new Map(proven.flatMap(promisesOf).map(({ short, name }) => [short, name]));
  const heads = engines.map(({ engine }) => h("th", { scope: "col" }, marker(context.look(engine)), context.label(engine)));
  const rows = [...names].map(([short, name]) =>
    h("tr", {}, h("th", { scope: "row" }, name), ...engines.map(({ trials }) => cell(worst(trials, short)))),
  );
  const table = h("table", { class: "promises" }, h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "promise"), ...heads)), h("tbody", {}, ...rows));
  const items = engines.flatMap(({ engine, trials }) =>
    [...names.keys()].flatMap((short) => {
      const promise = worst(trials, short);
      return promise && promise.outcome !== "kept" ? [h("li", {}, h("strong", {}, `${context.label(engine)}, ${promise.name.split(":")[0]}: `), promise.seen)] : [];
    }),
  );
  return section(
    "promises",
    "Which promises to transactions were kept?",
    `Two transactions meet on purpose, and one of them pauses inside. The other waits, is not affected, or is refused and repeated. An anomaly that the engine's isolation level allows is named. Then rumba kills the database while ${counted(clients, "client")} work, and looks for every acknowledged transaction. The worst repeat is shown. The numbers of acknowledged and lost transactions and of failed checks cover all repeats.`,
    scrolling("promises", table),
    killsTable(context, engines),
    items.length > 0 ? h("ul", {}, ...items) : null,
  );
}
