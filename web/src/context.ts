// Shared by all sections: the data, and an engine's look and rows.

import { type PageData, type Ratio, type Row, type Trial, alone, engines, mainTrial } from "./data";
import { choice } from "./dom";
import { type Look, lookOf } from "./look";
import { choose, current } from "./state";

/** The names of a list, split at commas outside of brackets: `innodb[cache=1GiB,page_size=4k]` is one name. */
function namesIn(list: string): string[] {
  return list.split(/,(?![^[]*\])/).filter((name) => name !== "");
}

/** The engines of a page: the look of each, and whether the charts show it. */
export class Engines {
  constructor(
    readonly engines: string[],
    readonly labels: Record<string, string> = {},
  ) {}

  /** The engine's label, made of its differences from the others. */
  label(engine: string): string {
    return this.labels[engine] ?? engine;
  }

  look(engine: string): Look {
    return lookOf(Math.max(0, this.engines.indexOf(engine)));
  }

  /** Whether the charts show the engine. */
  shown(engine: string): boolean {
    return !namesIn(current().hidden).includes(engine);
  }

  /** Shows or hides an engine in the charts. */
  toggle(engine: string): void {
    const hidden = namesIn(current().hidden).filter((name) => name !== engine);
    choose({ hidden: (this.shown(engine) ? [...hidden, engine] : hidden).join(",") });
  }
}

export class Context extends Engines {
  /** Engines without the tests of a suite, which can be a baseline. */
  readonly alone: string[];
  /** The tests of a suite, in the experiment's order. */
  readonly tests: string[];
  /** The test of each engine of a suite. */
  readonly #testOf: Map<string, string | undefined>;

  constructor(readonly data: PageData) {
    super(engines(data), data.labels);
    this.alone = [...new Set(data.summary.rows.map(alone))];
    this.tests = [...new Set(data.summary.rows.flatMap(({ test }) => test ?? []))];
    this.#testOf = new Map(data.summary.rows.map(({ engine, test }) => [engine, test]));
  }

  /** The name of the results, for files. */
  get name(): string {
    return this.data.name;
  }

  /** The source of the results, below a picture. */
  get source(): string {
    return `${this.data.name} · ${this.data.started.slice(0, 10)} · rumba ${this.data.rumba}`;
  }

  /** A sentence of the report with labels instead of the names of sides, such as `base/innodb`. */
  labelled(text: string): string {
    const sides = Object.entries(this.data.labels ?? {}).filter(([name]) => /^(base|other)\//.test(name));
    // The longest name first, because one name can begin with another.
    return sides.sort(([one], [other]) => other.length - one.length).reduce((labelled, [name, label]) => labelled.replaceAll(name, label), text);
  }

  keepsData(engine: string): boolean {
    return !this.data.keep_nothing.includes(engine);
  }

  /** The rows with the chosen number of clients, in the experiment's order. */
  rows(): Row[] {
    const { clients } = current();
    return this.data.summary.rows.filter((row) => row.clients === clients);
  }

  /** The shown trials with the chosen number of clients. The main trial of each engine is last, so that it is drawn on top. */
  allTrials(): { trial: Trial; main: boolean }[] {
    // Results of several runs can be shown as one. Trial numbers then repeat, and engine names do not.
    const mains = new Map(this.rows().map((row) => [row.engine, mainTrial(row)]));
    const { clients } = current();
    return this.data.trials
      .filter((trial) => trial.clients === clients && this.shown(trial.engine))
      .map((trial) => ({ trial, main: mains.get(trial.engine) === trial.number }))
      .sort((a, b) => Number(a.main) - Number(b.main));
  }

  /** The same of the chosen test only, because the charts of all tests together are not legible. */
  trials(): { trial: Trial; main: boolean }[] {
    const { test } = current();
    // A load that all tests start from has no test.
    return this.allTrials().filter(({ trial }) => (this.#testOf.get(trial.engine) ?? test) === test);
  }

  /** A choice of the test, for sections that show one test of a suite. */
  testChoice(): HTMLElement | null {
    const options = this.tests.map((test) => ({ value: test, text: test }));
    return options.length > 1 ? choice("test", options, current().test, (test) => choose({ test })) : null;
  }

  /** One engine's loops over another's, at the chosen number of clients. */
  over(baseline: Row, of: Row, metric: string): Ratio | undefined {
    return this.ratio(alone(baseline), of.engine, current().clients, metric);
  }

  /** The loops of an engine, with its test, over those of the baseline. */
  ratio(baseline: string, engine: string, clients: number, metric: string): Ratio | undefined {
    const against = (this.data.summary.relative ?? []).find((relative) => relative.baseline === baseline);
    const row = against?.rows.find((other) => other.engine === engine && other.clients === clients);
    return row?.metrics.find((ratio) => ratio.metric === metric);
  }

  unit(metric: string): string {
    return this.data.metrics.find((info) => info.name === metric)?.unit ?? "";
  }

  help(metric: string): string {
    return this.data.metrics.find((info) => info.name === metric)?.help ?? "";
  }

  better(metric: string): "more" | "less" | "neither" {
    return this.data.metrics.find((info) => info.name === metric)?.better ?? "neither";
  }
}
