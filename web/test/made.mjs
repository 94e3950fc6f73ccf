// Results that the sample pages lack, derived from the page with a ladder.

/** A figure with its repeats and its interval, multiplied by this factor. */
function scaled(figure, factor) {
  const by = (number) => (typeof number === "number" ? number * factor : number);
  const centre = figure.centre && { ...figure.centre, low: by(figure.centre.low), high: by(figure.centre.high) };
  return { ...figure, median: by(figure.median), values: figure.values.map(by), ...(centre && { centre }) };
}

/** Two engines over six page sizes: the first slows down with larger pages, the second does not, so they cross at 16k. */
export function sweep(data) {
  const sizes = ["2k", "4k", "8k", "16k", "32k", "64k"];
  const [rows, trials] = [[], []];
  for (const [index, size] of sizes.entries()) {
    for (const base of ["innodb", "myrocks.zstd"]) {
      const engine = `${base.split(".")[0]}[page_size=${size}]`;
      const row = data.summary.rows.find((row) => row.engine === base && row.clients === 64);
      const ops = data.summary.rows.find((row) => row.engine === "innodb" && row.clients === 64).run.metrics.ops_per_s;
      const ops_per_s = scaled(ops, base === "innodb" ? 1.3 - 0.1 * index : 1);
      rows.push({ ...row, engine, run: { ...row.run, metrics: { ...row.run.metrics, ops_per_s } } });
      trials.push({ ...data.trials.find((trial) => trial.engine === base && trial.clients === 64), engine });
    }
  }
  Object.assign(data.summary, { rows, relative: [], remarks: [] });
  Object.assign(data, { trials, verdicts: [], labels: {}, baseline: rows[0].engine });
}

/** A search for a rate with two engines; the second one found none. */
export function search(data) {
  const probe = (rate, percentile_ms, found) => ({ rate, percentile_ms, found });
  const goal = { clients: 64, search: { percentile: "p99", limit_ms: 10 }, ended: true };
  const probes = [probe(null, 14, "reference"), probe(4000, 3, "kept"), probe(8000, 40, "missed"), probe(6000, 6, "kept"), probe(7000, 9, "kept"), probe(7400, 13, "missed"), probe(7300, { absent: "disturbed" }, "disturbed")];
  data.summary.searches = [
    { ...goal, engine: "innodb", repeat: 1, probes, highest: 7000, confirmed: true, lowest_missed: 7400 },
    { ...goal, engine: "lmdb", repeat: 1, probes: [probe(2000, 20, "missed")], highest: { absent: "no rate kept it" }, confirmed: false, lowest_missed: 2000 },
  ];
}

/** The ladder in two tests of a suite. */
export function suiteLadder(data) {
  const inTest = (test) => (of) => ({ ...of, test, engine: `${of.engine}/${test}` });
  const { rows } = data.summary;
  Object.assign(data.summary, { rows: ["read", "write"].flatMap((test) => rows.map(inTest(test))), relative: [], remarks: [] });
  Object.assign(data, { trials: ["read", "write"].flatMap((test) => data.trials.map(inTest(test))), verdicts: [], labels: {}, baseline: `${rows[0].engine}/read` });
}

/** Hardware counters of a server, of which the kernel's could not be read. */
export function hardware(data) {
  for (const { run } of data.summary.rows) run.metrics.server_instructions_per_op = scaled(run.metrics.ops_per_s, 3);
}

/** A profile of one engine, with a program whose functions have no names; its repeats differ a little. */
export function unnamed(data) {
  const { engine, clients } = data.summary.rows.find((row) => row.clients === 64);
  data.flames = [{ engine, clients, samples: 100, threads: [["mariadbd", 100, [["[mariadbd]", 40, []], ["main", 60, []]]]] }];
  const about = { code: "missing-symbols", rank: "note", engine, clients, remedy: "install mariadb-server-core-dbgsym" };
  data.summary.remarks.push({ ...about, repeat: 1, message: "40% without names" }, { ...about, repeat: 2, message: "41% without names" });
}

/** The last second of the loops has no operation, as the drain has none. */
export function stalled(data) {
  for (const { timeline } of data.trials) {
    const drain = timeline.phases.find(([name]) => name === "drain")[1];
    const ops = timeline.series.find(({ name }) => name === "ops_per_s");
    ops.values = timeline.at_s.map((at) => (at >= drain - 1 ? 0 : 5000));
  }
}
