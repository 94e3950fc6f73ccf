// The summary of a run for docs/experiments: `rumba report --json | node scripts/summary.mjs > NAME.json`.
//
// It contains the data of the pages: conditions, medians of all metrics, the headline metrics of every repeat, verdicts
// over the first engine, claims. Raw results stay in the directory of `make experiments`.
import { readFileSync } from "node:fs";

/** The maximum size of a stored file. Above it, optional parts are dropped. */
const LARGEST = 200 * 1024;
const PERCENTILES = ["p50_ms", "p95_ms", "p99_ms"];

const run = JSON.parse(readFileSync(0, "utf8"));
const { rows, relative, claims, searches, remarks } = run.summary;

/** Eight significant digits; an absent figure is null. */
const number = (value) => (typeof value === "number" ? Number(value.toPrecision(8)) : null);
const headlines = new Set(relative.flatMap((one) => one.rows).flatMap((row) => row.metrics).filter(({ headline }) => headline).map(({ metric }) => metric));
const isHeadline = (name) => headlines.has(name) || name === "ops_per_s";

function figure(name, { median, values, spread }) {
  const kept = { median: number(median) };
  return isHeadline(name) ? { ...kept, values: values.map(number), cv: number(spread?.cv) } : kept;
}

const mapped = (object, of) => Object.fromEntries(Object.entries(object).map(([key, value]) => [key, of(key, value)]));

function part(figures) {
  if (!figures) return null;
  const { metrics, op_types, repeats, partial } = figures;
  const response = (op, all) => Object.fromEntries(PERCENTILES.filter((name) => all[name]).map((name) => [name, figure(name === "p99_ms" ? `${op}.p99_ms` : name, all[name])]));
  return {
    ...(partial && { partial }),
    repeats,
    metrics: mapped(metrics, figure),
    op_types: mapped(op_types, (op, { count, response: all }) => ({ count: { median: number(count.median) }, response: response(op, all) })),
  };
}

/** The common data of all trials of an engine. */
const engines = {};
for (const { engine, version, engine_settings: settings, engine_facts: facts } of run.trials) {
  engines[engine] ??= {
    registered: settings.engine,
    version,
    form: facts?.form ?? null,
    compression: settings.compression ?? null,
    cache_bytes: settings.cache,
    durability: settings.durability,
    memory_bytes: settings.limits?.memory_bytes ?? null,
    settings: settings.settings,
  };
}

/** The data that rows lack: single loops, and the results of a recovery after a kill. */
function trial({ engine, repeat, loaded_by, status, phases, written }) {
  const isLoop = ({ phase }) => /^loop \d/.test(phase);
  const loops = phases.filter(isLoop).map(({ phase, ops_per_s, wkb_per_op }) => ({ phase, ops_per_s: number(ops_per_s), wkb_per_op: number(wkb_per_op) }));
  const recovery = phases.filter(({ phase }) => phase === "recovery").map(({ phase, recovery }) => ({ phase, recovery }));
  const counted = (written ?? []).filter(isLoop).map(({ phase, kb_per_op }) => ({ phase, kb_per_op: mapped(kb_per_op, (_, value) => number(value)) }));
  return { engine, repeat, loaded_by, status, phases: [...loops, ...recovery], written: counted };
}

const verdicts = relative.slice(0, 1).map(({ baseline, rows }) => ({
  baseline,
  rows: rows.map(({ engine, clients, unsound, comparability, metrics }) => ({
    engine,
    clients,
    ...(unsound && { unsound }),
    ...(comparability && { comparability }),
    metrics: metrics.filter(({ headline }) => headline).map(({ metric, ratio, low, high, change, scope, p, lacking }) => ({
      metric, ratio: number(ratio), low: number(low), high: number(high), change, scope, p: number(p), ...(lacking && { lacking }),
    })),
  })),
}));

const { experiment, source, started, rumba, build, conditions, experiment_toml, missing } = run;
const codes = {};
for (const { code } of [...run.warnings, ...remarks]) codes[code] = (codes[code] ?? 0) + 1;
const summary = {
  experiment, source, started, rumba, build, missing, conditions, experiment_toml, engines, warnings: codes,
  // Verdicts over repeats that start from one load do not hold for other loads.
  starts_of_one_load: run.trials.some(({ repeat, loaded_by }) => repeat > 1 && (loaded_by ?? null) !== null),
  summary: {
    rows: rows.map((row) => ({ engine: row.engine, clients: row.clients, loads: row.loads ?? null, load: part(row.load), run: part(row.run) })),
    relative: verdicts,
    claims: claims.map(({ measured, interval, ...claim }) => ({ ...claim, measured: number(measured), interval: interval?.map(number) ?? null })),
    searches: searches?.map(({ probes, ...search }) => ({ ...search, probes: probes.length })) ?? [],
  },
  trials: run.trials.map(trial),
};

const size = () => JSON.stringify(summary).length;
const SMALLER = [
  // Single loops.
  () => {
    for (const trial of summary.trials) {
      trial.phases = trial.phases.filter(({ phase }) => phase === "recovery");
      trial.written = [];
    }
  },
  // Counters that are zero.
  () => {
    for (const { load, run } of summary.summary.rows) {
      for (const figures of [load, run]) {
        if (figures) for (const [name, { median }] of Object.entries(figures.metrics)) if (!median && !isHeadline(name)) delete figures.metrics[name];
      }
    }
  },
  // A load that an earlier row has: the tests of a suite, and all numbers of clients, start from the same loads.
  () => {
    const seen = new Set();
    for (const row of summary.summary.rows) {
      const load = JSON.stringify(row.load);
      if (row.run && seen.has(load)) row.load = null;
      seen.add(load);
    }
  },
  // The trials, and the repeats of all metrics except rates.
  () => {
    summary.trials = [];
    for (const { run } of summary.summary.rows) {
      for (const [name, figure] of Object.entries(run?.metrics ?? {})) if (name !== "ops_per_s") delete figure.values;
    }
  },
  // In a suite of a hundred tests, all figures except the headlines, CPU, resident memory and device writes.
  () => {
    const isKept = (name) => isHeadline(name) || ["cpu_us_per_op", "rss_bytes", "writes_per_op"].includes(name);
    const alone = (name) => name.slice(0, name.lastIndexOf("/"));
    summary.engines = Object.fromEntries(Object.entries(engines).map(([name, engine]) => [alone(name), engine]));
    summary.summary.relative = [];
    for (const row of summary.summary.rows) {
      row.load = null;
      if (!row.run) continue;
      row.run.op_types = {};
      for (const name of Object.keys(row.run.metrics)) if (!isKept(name)) delete row.run.metrics[name];
    }
  },
];
for (const drop of SMALLER) if (size() > LARGEST) drop();
process.stdout.write(`${JSON.stringify(summary)}\n`);
