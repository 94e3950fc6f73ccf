// The views over a ladder of clients: their contents, their choices in the link, and their pictures.
import assert from "node:assert/strict";
import { readFile, stat } from "node:fs/promises";
import { after, before, test } from "node:test";
import { altered, dataOf, opener, pageOf } from "./open.mjs";

const { start, stop, open } = opener();
before(start);
after(stop);

const { file: ladder, skip } = pageOf("ladder");
const { file: suite, skip: noSuite } = pageOf("suite");
const { file: proof, skip: noProof } = pageOf("proof");
const { file: hour, skip: noHour } = pageOf("hour");

const data = (tab) => tab.evaluate(() => JSON.parse(document.getElementById("data").textContent));

test("the opening shows the report's findings, with memory, storage and cache", { skip }, async () => {
  const { tab } = await open({}, "", ladder);
  const { opening } = await data(tab);
  const shown = await tab.locator(".opening p").allTextContents();
  assert.deepEqual(shown, [opening.found, opening.undecided, opening.careful, opening.conditions]);
  assert.match(opening.conditions, /^memory .+ · storage .+ · cache .+ · durability /);
});

test("bytes are stacked once each: parts instead of their whole, with the device as reference", { skip }, async () => {
  const { tab } = await open({}, "", ladder);
  const kinds = await tab.locator("#bytes .kinds li").allTextContents();
  for (const kind of ["redo", "doublewrite", "pages", "wal", "compaction level 1", "compaction, other"]) assert.ok(kinds.includes(kind), `${kind} of ${kinds}`);
  assert.ok(!kinds.includes("compaction"), "its levels replace it");
  const { summary } = await data(tab);
  const row = summary.rows.find(({ engine, clients }) => engine === "myrocks.zstd" && clients === 64);
  const median = (name) => row.run.metrics[name].median;
  const whole = median("wal_kb_per_op") + median("flush_kb_per_op") + median("compaction_kb_per_op");
  const total = await tab.locator("#bytes tbody tr", { hasText: "myrocks.zstd" }).locator(".stack-total").textContent();
  assert.equal(total, whole.toFixed(2), "each byte counts once");
  assert.match(await tab.locator("#bytes > .about").last().textContent(), /Counts nothing of this: lmdb/);
});

test("the matrix is grey inside the noise, and its metric and baseline can be chosen", { skip }, async () => {
  const { tab } = await open({}, "", ladder);
  const cells = () => tab.locator("#matrix tbody td").evaluateAll((all) => all.map((cell) => ({ text: cell.firstChild.textContent, kind: cell.className, painted: cell.style.background !== "" })));
  const before = await cells();
  assert.equal(before.length, 4 * 2, "four numbers of clients, the engines other than the baseline");
  for (const { kind, painted } of before) assert.equal(painted, / (better|worse)$/.test(kind), kind);
  await tab.locator("#matrix select").selectOption("size_bytes");
  await tab.locator(".choice", { hasText: "baseline" }).locator("select").selectOption("lmdb");
  const after = await cells();
  assert.notDeepEqual(after, before);
  assert.deepEqual((await tab.locator("#matrix thead th").allTextContents()).slice(1), ["innodb", "myrocks.zstd"]);
  const { hash } = new URL(tab.url());
  assert.ok(hash.includes("metric=size_bytes") && hash.includes("baseline=lmdb"), hash);
  const { tab: again } = await open({}, hash, ladder);
  assert.equal(await again.locator("#matrix").innerText(), await tab.locator("#matrix").innerText());
});

test("verdicts show interval, noise and counts; a click shows all metrics", { skip }, async () => {
  const { tab } = await open({}, "", ladder);
  const headlines = await tab.locator("#verdicts tbody tr").count();
  const { summary, baseline } = await data(tab);
  const rows = summary.relative.find((relative) => relative.baseline === baseline).rows.filter(({ clients }) => clients === 64);
  assert.equal(headlines, rows.flatMap(({ metrics }) => metrics.filter(({ headline }) => headline)).length);
  await tab.locator("#verdicts .switch button", { hasText: "all" }).click();
  assert.equal(await tab.locator("#verdicts tbody tr").count(), rows.flatMap(({ metrics }) => metrics).length);
  const line = await tab.locator("#verdicts tbody tr").first().innerText();
  const [first] = rows[0].metrics;
  assert.ok(line.includes("4 and 4"), line);
  if (first.change === "undecided") assert.ok(line.includes("not decided"), line);
});

test("the matrix of a suite has a line for each test, grey if undecided", { skip: noSuite }, async () => {
  const { tab, problems } = await open({}, "", suite);
  assert.deepEqual(await tab.locator("#matrix tbody th").allTextContents(), ["distinct-pk", "point-query", "read-only-100"]);
  const kinds = await tab.locator("#matrix tbody td:nth-child(2)").evaluateAll((all) => all.map(({ className }) => className));
  assert.deepEqual(kinds, ["ratio-cell undecided", "ratio-cell better", "ratio-cell worse"]);
  assert.match(await tab.locator(".opening p").first().textContent(), /in 1 of 3 tests, fewer in 1/);
  assert.deepEqual(problems, []);
});

test("the ladder begins with the rate that the workload's specification reports", { skip }, async () => {
  const { tab } = await open({}, "", altered(ladder, (data) => {
    data.metrics.push({ name: "tpmC", unit: "1/min", better: "more", help: "" });
    for (const { run } of data.summary.rows) run.metrics.tpmC = run.metrics.ops_per_s;
  }));
  assert.equal(await tab.locator("#scaling h3").first().textContent(), "tpmC1/min, more is better");
  assert.deepEqual((await tab.locator("#scaling select").first().locator("option").allTextContents()).slice(0, 2), ["tpmC", "operations per second"]);
});

/** The page of a workload that reports a rate, with the growth of each engine's data per operation and in eight hours. */
async function grown(figures, warnings = []) {
  const { tab: before } = await open({}, "", ladder);
  assert.equal(await before.locator("#cost .growth").count(), 0);
  const { tab } = await open({}, "", altered(ladder, (data) => {
    for (const [name, unit] of [["tpmC", "1/min"], ["tpmC_growth_bytes_per_op", "B/op"], ["tpmC_growth_bytes_per_8h", "B"]]) {
      data.metrics.push({ name, unit, better: "neither", help: "" });
    }
    data.warnings.push(...warnings);
    const figure = (median) => ({ median, values: [median], spread: null });
    for (const { engine, run } of data.summary.rows) {
      const [each, of8h] = figures[engine];
      run.metrics.tpmC = run.metrics.ops_per_s;
      run.metrics.tpmC_growth_bytes_per_op = figure(each);
      run.metrics.tpmC_growth_bytes_per_8h = figure(of8h);
    }
  }));
  return tab.locator("#cost .growth");
}

test("growth is shown if a rate is reported, and a missing value with its reason", { skip }, async () => {
  const [known, unknown] = [[250, 300 * 2 ** 20], Array(2).fill({ absent: "the server runs elsewhere" })];
  const growth = await grown({ innodb: known, "myrocks.zstd": known, lmdb: unknown });
  const heads = await growth.locator("thead th").allTextContents();
  assert.deepEqual(heads, ["engine", "for tpmCB/op", "in 8 hoursMB on disk"]);
  assert.deepEqual(await growth.locator("td .value").allTextContents(), ["250", "300", "250", "300"], "the third engine has none");
  assert.match(await growth.textContent(), /the server runs elsewhere/);
  assert.equal(await growth.locator(".concerns").count(), 0);
});

test("negative growth has a unit, no bar and no ratio, and unpaid debt has a warning", { skip }, async () => {
  const unpaid = { code: "debt-unpaid", message: "held back", remedy: "write more", rank: "misleading", undermines: ["tpmX_growth_bytes_per_op"] };
  const growth = await grown({ innodb: [250, 300 * 2 ** 20], "myrocks.zstd": [-100, -12 * 2 ** 30], lmdb: [0, 0] }, [unpaid]);
  assert.equal(await growth.locator("thead th").last().textContent(), "in 8 hoursGB on disk");
  assert.deepEqual(await growth.locator("td .value").allTextContents(), ["250", "0.29", "-100", "-12.0", "0", "0"]);
  const lengths = await growth.locator("td .bar").evaluateAll((bars) => bars.map((bar) => bar.style.getPropertyValue("--share").trim()));
  assert.deepEqual(lengths, ["100.0%", "100.0%", "0.0%", "0.0%", "0.0%", "0.0%"]);
  assert.deepEqual(await growth.locator("tbody tr").nth(1).locator(".ratio").allTextContents(), ["\u00a0", "\u00a0"]);
  assert.match(await growth.locator(".concerns").textContent(), /debt-unpaid/);
});

test("a workload's own counters are shown per operation and per second", { skip }, async () => {
  const { tab: before } = await open({}, "", ladder);
  assert.equal(await before.locator("#cost .tallies").count(), 0);
  const { tab } = await open({}, "", altered(ladder, (data) => {
    for (const [name, unit, median] of [["rows_read_counted_per_op", "1/op", 20.5], ["rows_read_counted_per_s", "1/s", 410]]) {
      data.metrics.push({ name, unit, better: "neither", help: "" });
      for (const { run } of data.summary.rows) run.metrics[name] = { median, values: [median], spread: null };
    }
  }));
  const tallies = tab.locator("#cost .tallies");
  assert.deepEqual(await tallies.locator("thead th").allTextContents(), ["engine", "rows readper op", "rows readper s"]);
  assert.deepEqual((await tallies.locator("td .value").allTextContents()).slice(0, 2), ["20.5", "410"]);
});

test("the ladder's band is the exact interval for four repeats, else their range", { skip }, async () => {
  const { tab } = await open({}, "", ladder);
  const about = (on) => on.locator("#scaling > .about").first().textContent();
  assert.match(await about(tab), /the band is the exact 87\.5% interval of the repeats' centre, by the test of the verdicts, or where that is not known reaches from/);
  // A picture contains the band's corners, and a wider interval has a larger area.
  const area = async (on) => {
    await on.locator("#scaling .chart").first().scrollIntoViewIfNeeded();
    const waiting = on.waitForEvent("download");
    await on.locator("#scaling .save button", { hasText: "SVG" }).first().click();
    const svg = (await readFile(await (await waiting).path())).toString();
    const corners = /<polygon points="([^"]+)"/.exec(svg)[1].split(" ").map((corner) => corner.split(",").map(Number));
    return Math.abs(corners.reduce((sum, [x, y], at) => sum + x * corners[(at + 1) % corners.length][1] - corners[(at + 1) % corners.length][0] * y, 0));
  };
  const changed = (change) =>
    altered(ladder, (data) => {
      for (const { run } of data.summary.rows) {
        const times = Object.values(run.op_types).map(({ response }) => response.p99_ms);
        for (const figure of [...Object.values(run.metrics), ...times]) {
          if (change === "none") delete figure.centre;
          else if (figure.centre) Object.assign(figure.centre, { low: 0.5 * figure.centre.low, level: 0.95 });
        }
        if (change === "some") delete run.metrics.ops_per_s.centre;
      }
    });
  const pages = {};
  for (const change of ["none", "wide", "some"]) pages[change] = (await open({ acceptDownloads: true }, "", changed(change))).tab;
  assert.match(await about(pages.none), /; the band reaches from the smallest repeat to the largest\. The axis/);
  assert.match(await about(pages.wide), /the exact 95% interval/);
  assert.match(await about(pages.some), /the exact 95% interval .*, or where that is not known reaches from the smallest repeat/);
  assert.ok((await area(pages.wide)) > 1.2 * (await area(pages.none)));
});

test("waits are shown by number of clients, and the ladder shows the chosen metric", { skip }, async () => {
  const { tab, problems } = await open({}, "", ladder);
  const heads = await tab.locator("#contention tbody th").allTextContents();
  for (const clients of ["1 client", "4 clients", "16 clients", "64 clients"]) assert.ok(heads.includes(`innodb, ${clients}`), `${heads}`);
  await tab.locator("#scaling select").first().selectOption("reads_per_op");
  assert.match(await tab.locator("#scaling h3").first().textContent(), /^Reads per operation1\/op, less is better$/);
  assert.deepEqual(problems, []);
});

test("checkpoints, flushes and compactions are below the operations, a line for each engine", { skip }, async () => {
  const { tab, problems } = await open({ acceptDownloads: true }, "", ladder);
  const panels = await tab.locator("#timeline .panel").evaluateAll((all) => all.map(({ dataset }) => dataset.series));
  assert.deepEqual(panels.slice(0, 2), ["ops_per_s", "marks"]);
  await tab.locator("#timeline .panel[data-series=marks]").scrollIntoViewIfNeeded();
  const waiting = tab.waitForEvent("download");
  await tab.locator("#timeline .panel[data-series=marks] .save button", { hasText: "SVG" }).click();
  const svg = (await readFile(await (await waiting).path())).toString();
  for (const kind of ["chkp.", "flush", "comp."]) assert.ok(svg.includes(`>${kind}</text>`), kind);
  // Both engines with counters have a checkpoint a minute. Only the one with levels has flushes and compactions.
  const { trials } = await data(tab);
  const kinds = new Set(trials.filter(({ timeline }) => timeline.marks).map(({ engine, timeline }) => `${engine}: ${Object.keys(timeline.marks)}`));
  assert.deepEqual(kinds, new Set(["innodb: checkpoint", "myrocks.zstd: checkpoint,compaction,flush"]));
  await tab.locator("#timeline .switch button", { hasText: "Load" }).click();
  assert.equal(await tab.locator("#timeline .panel[data-series=marks]").count(), 1, "checkpoints of the load");
  assert.deepEqual(problems, []);
});

test("size, debt and any counter are drawn second by second", { skip }, async () => {
  const { tab, problems } = await open({}, "", ladder);
  assert.deepEqual(await tab.locator("#gauges .panel h3").allTextContents(), ["Size on diskMB", "checkpoint_age_bytesMB"]);
  assert.match(await tab.locator("#gauges > .about").first().textContent(), /seen about once a second while clients work/);
  await tab.locator("#gauges select").selectOption("written_wal_bytes");
  assert.equal(await tab.locator("#gauges .panel h3").last().textContent(), "written_wal_bytesMB per second");
  const { trials } = await data(tab);
  const { gauges, timeline } = trials.find(({ engine, gauges }) => engine === "myrocks.zstd" && gauges.looked);
  const seconds = timeline.phases.at(-1)[2];
  assert.ok(gauges.at_s.length > 0.8 * seconds, `${gauges.at_s.length} samples in ${seconds} s`);
  assert.deepEqual(problems, []);
});

test("an engine whose name has commas can be left out and shown again", { skip }, async () => {
  const { tab } = await open({}, "", altered(ladder, ({ summary, trials }) => {
    for (const one of [...summary.rows, ...trials]) if (one.engine === "lmdb") one.engine = "lmdb[cache=1GiB,page_size=4k]";
  }));
  const pressed = () => tab.locator(".key button").evaluateAll((all) => all.map((button) => [button.textContent, button.getAttribute("aria-pressed")]));
  const names = (await pressed()).map(([name]) => name);
  assert.ok(names.includes("lmdb[cache=1GiB,page_size=4k]"), `${names}`);
  await tab.locator(".key button", { hasText: "lmdb" }).click();
  await tab.locator(".key button", { hasText: "innodb" }).click();
  assert.deepEqual((await pressed()).filter(([, shown]) => shown === "false").map(([name]) => name), ["innodb", "lmdb[cache=1GiB,page_size=4k]"]);
  await tab.locator(".key button", { hasText: "lmdb" }).click();
  assert.deepEqual((await pressed()).filter(([, shown]) => shown === "false").map(([name]) => name), ["innodb"]);
});

test("a picture is saved as SVG and as PNG, self-contained, with its figures and its key", { skip }, async () => {
  for (const view of ["scaling", "bytes", "matrix", "verdicts", "throughput", "timeline"]) {
    const { tab, problems } = await open({ acceptDownloads: true }, "", ladder);
    await tab.locator(`#${view}`).scrollIntoViewIfNeeded();
    const saved = async (kind) => {
      const waiting = tab.waitForEvent("download");
      await tab.locator(`#${view} .save button`, { hasText: kind }).first().click();
      const download = await waiting;
      assert.match(download.suggestedFilename(), new RegExp(`^synthetic-sample-.*\\.${kind.toLowerCase()}$`));
      return readFile(await download.path());
    };
    const svg = (await saved("SVG")).toString();
    assert.match(svg, /^<svg /);
    assert.ok(svg.includes("innodb") && svg.includes("synthetic-sample · "), view);
    assert.doesNotMatch(svg, /var\(|color-mix/, "no variable of the page");
    assert.doesNotMatch(svg, /fill="rgb\(0,0,0\)"/, "what is transparent on the page is not black");
    assert.ok((svg.match(/<(path|rect|circle)/g) ?? []).length > 5, `${view} is not empty`);
    const png = await saved("PNG");
    assert.deepEqual([...png.subarray(1, 4)], [..."PNG"].map((letter) => letter.charCodeAt(0)));
    assert.ok(png.length > 5_000, `${view}: ${png.length} bytes`);
    assert.deepEqual(problems, []);
  }
});

test("a saved table is complete even if the screen shows only a part", { skip }, async () => {
  const { tab } = await open({ acceptDownloads: true, viewport: { width: 900, height: 900 } }, "", ladder);
  const waiting = tab.waitForEvent("download");
  await tab.locator("#cost .save button", { hasText: "SVG" }).first().click();
  const svg = (await readFile(await (await waiting).path())).toString();
  const width = Number(/^<svg [^>]*?width="(\d+)"/.exec(svg)?.[1]);
  const last = Math.max(...[...svg.matchAll(/<text x="([\d.]+)"/g)].map(([, x]) => Number(x)));
  assert.ok(svg.includes("memory") && last < width && width > 1000, `${last} of ${width}`);
});

test("losses after a kill have a row for each durability", { skip: noProof }, async () => {
  const { tab, problems } = await open({}, "", proof);
  const rows = await tab.locator("#promises .kills tbody tr").evaluateAll((all) => all.map((row) => [...row.children].map((cell) => cell.textContent)));
  assert.deepEqual(rows, [
    ["rocksdb.sync", "sync", "2\u2009400", "0", "0", "0.25"],
    ["rocksdb.no-sync", "no-sync", "2\u2009400", "0", "0", "0.25"],
    ["rocksdb.none", "none", "2\u2009400", "800", "4", "0.25"],
  ]);
  assert.equal(await tab.locator("#promises .promises tbody tr").count(), 1, "the promises have their own table");
  assert.deepEqual(problems, []);
});

test("a ladder of an hour opens at once", { skip: noHour }, async (t) => {
  const { size } = await stat(hour);
  const { tab, problems } = await open({}, "", hour);
  const drawn = await tab.waitForFunction(() => performance.getEntriesByName("drawn")[0]?.startTime);
  const drawn_ms = await drawn.jsonValue();
  const began = Date.now();
  await tab.locator("#cost input[type=radio]").nth(3).click();
  await tab.waitForFunction(() => document.querySelectorAll("#cost .figures tbody tr")[3].className === "baseline");
  const chosen_ms = Date.now() - began;
  t.diagnostic(`${(size / 1e6).toFixed(2)} MB, drawn ${(drawn_ms / 1000).toFixed(2)} s after the request, another baseline after ${(chosen_ms / 1000).toFixed(2)} s`);
  assert.ok(size <= 8e6, `${size} bytes`);
  // The goal is 1.5 s. The limit is three times as long, because the machine can do other work at the same time.
  assert.ok(drawn_ms < 4_500, `${drawn_ms} ms`);
  assert.deepEqual(problems, []);
});
