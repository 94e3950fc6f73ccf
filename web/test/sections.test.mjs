// Navigation, and the views of certain kinds of experiments: at 1280 and 390 pixels, light and dark.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { after, before, test } from "node:test";
import { altered, opener, pageOf } from "./open.mjs";
import * as made from "./made.mjs";

const { start, stop, open } = opener();
before(start);
after(stop);

const { file: ladder, skip } = pageOf("ladder");
const { file: suite, skip: noSuite } = pageOf("suite");
const { file: steps, skip: noSteps } = pageOf("steps");
const SCREENS = [1280, 390].flatMap((width) => ["light", "dark"].map((colorScheme) => ({ colorScheme, viewport: { width, height: 900 } })));

test("each view fits the screen and draws without an error, wide or narrow, light or dark", { skip: skip || noSuite || noSteps }, async () => {
  const views = [["steps", steps], ["sweep", altered(ladder, made.sweep)], ["search", altered(ladder, made.search)], ["scaling", ladder], ["scaling", altered(ladder, made.suiteLadder)], ["multiples", suite]];
  for (const [id, file] of views) {
    for (const screen of SCREENS) {
      const { tab, problems } = await open(screen, "", file);
      const name = `${id} at ${screen.viewport.width}, ${screen.colorScheme}`;
      await tab.waitForSelector(`#${id} :is(canvas, figure)`);
      const charts = await tab.locator(`#${id} :is(.uplot, .dots)`).evaluateAll((all) => all.map((one) => one.getBoundingClientRect().right));
      assert.ok(charts.every((right) => right <= screen.viewport.width), `${name}: ${charts}`);
      assert.ok((await tab.evaluate(() => document.documentElement.scrollWidth - innerWidth)) <= 0, name);
      assert.deepEqual(problems, [], name);
      await tab.context().close();
    }
  }
});

test("the table of contents stays in view, links to each section and marks the current one", { skip }, async () => {
  for (const screen of SCREENS.filter(({ colorScheme }) => colorScheme === "light")) {
    const { tab } = await open(screen, "#baseline=lmdb", ladder);
    const { hash } = new URL(tab.url());
    const links = tab.locator(".contents a");
    const ids = await tab.locator("main section[id]").evaluateAll((all) => all.map(({ id }) => id));
    assert.deepEqual(await links.evaluateAll((all) => all.map((link) => link.getAttribute("href").slice(1))), ids, "each section has a link");
    for (const heading of await tab.locator("main section h2").allTextContents()) assert.match(heading, /\?$/);
    for (const id of ["timeline", "cost"]) {
      await tab.locator(`.contents a[href="#${id}"]`).click();
      await tab.waitForSelector(`.contents a[href="#${id}"][aria-current]`);
      const top = await tab.locator(`#${id} h2`).evaluate((heading) => heading.getBoundingClientRect().top);
      const below = await tab.evaluate(() => Math.max(...[".contents", ".part:has(> .toolbar)"].map((of) => document.querySelector(of).getBoundingClientRect().bottom)));
      assert.ok(top >= Math.min(below, 130) && top < 400, `${id}: heading at ${top}, below ${below}`);
      assert.equal(await tab.locator(".contents").evaluate((nav) => nav.getBoundingClientRect().top), 0);
      assert.equal(new URL(tab.url()).hash, hash, "the reader's choices stay in the link");
    }
  }
});

test("a table that is wider than its frame shows a hint until its end, and its first column", { skip }, async () => {
  const { tab } = await open({ viewport: { width: 700, height: 900 } }, "", ladder);
  const frame = tab.locator("#cost .wide").first();
  const more = frame.locator(".more");
  await more.click();
  await tab.waitForFunction(() => document.querySelector("#cost .scroll").scrollLeft > 100);
  assert.equal(await frame.locator("th[scope=row]").first().evaluate((head) => Math.round(head.getBoundingClientRect().left)), Math.round((await frame.boundingBox()).x));
  await frame.locator(".scroll").evaluate((scroll) => scroll.scrollTo(scroll.scrollWidth, 0));
  await more.waitFor({ state: "hidden" });
  const { tab: wide } = await open({ viewport: { width: 1280, height: 900 } }, "", ladder);
  for (const id of ["cost", "verdicts", "matrix"]) assert.equal(await wide.locator(`#${id} .more`).first().isVisible(), false, `${id} fits 1280 pixels`);
});

test("the ladder comes first: rates next to times, over clients that double", { skip }, async () => {
  const { tab } = await open({}, "", ladder);
  assert.equal(await tab.locator("main section[id]").first().getAttribute("id"), "scaling");
  const panels = tab.locator("#scaling .panel");
  const heads = await panels.locator("h3").evaluateAll((all) => all.map((head) => head.firstChild.textContent));
  assert.deepEqual(heads.slice(0, 2), ["Operations per second", "99th percentile of add_link"]);
  const [rate, time] = [await panels.nth(0).boundingBox(), await panels.nth(1).boundingBox()];
  assert.equal(rate.y, time.y, "next to each other");
  await tab.locator("#scaling select").nth(1).selectOption("get_node");
  assert.match(await panels.nth(1).locator("h3").textContent(), /^99th percentile of get_node/);
});

test("the ladder of a suite has a key that names each engine once", { skip }, async () => {
  const { tab } = await open({}, "", altered(ladder, made.suiteLadder));
  const key = tab.locator("#scaling .key li");
  const names = await key.allTextContents();
  assert.ok(names.length > 1 && names.every((name) => !name.includes("/")), `${names}`);
  assert.equal(new Set(names).size, names.length);
});

test("clients in steps: each engine's throughput, times and waits by name over one time axis", { skip: noSteps }, async () => {
  const { tab } = await open({}, "", steps);
  assert.equal(await tab.locator("#steps h2").textContent(), "How does it change as clients are added?");
  assert.match(await tab.locator("main").textContent(), /1→16 clients/);
  const blocks = await tab.locator("#steps .steps").evaluateAll((all) =>
    all.map((block) => ({ engine: block.querySelector("h3").textContent, series: [...block.querySelectorAll(".panel")].map((panel) => panel.dataset.series), waits: [...block.querySelectorAll(".kinds li")].map((kind) => kind.textContent) })),
  );
  assert.deepEqual(blocks.map(({ engine, series }) => [engine, series]), ["innodb", "myrocks.zstd"].map((engine) => [engine, ["ops_per_s", "p99_ms", "waits"]]));
  assert.deepEqual([blocks[0].waits.length, blocks[0].waits[0], blocks[0].waits.at(-1)], [7, "synch/sxlock/innodb/index_tree_rw_lock", "other"]);
  assert.deepEqual(blocks[1].waits, ["stalls"], "an engine without wait events shows its classes");
  const lefts = await tab.locator("#steps .panel .uplot .u-over").evaluateAll((all) => all.map((plot) => Math.round(plot.getBoundingClientRect().left)));
  assert.ok(lefts.length === 6 && new Set(lefts).size === 1, `one time axis: ${lefts}`);
  await tab.locator(".key button", { hasText: "myrocks.zstd" }).click();
  assert.equal(await tab.locator("#steps .steps").count(), 1);
  assert.equal(await tab.locator("#timeline [data-series=active_clients] canvas").count(), 1);
  const { tab: without } = await open({}, "", ladder);
  assert.equal(await without.locator("#steps, #timeline [data-series=active_clients]").count(), 0);
});

test("waits have the engine's own names, the largest apart and the others together", { skip: noSteps }, async () => {
  const { tab } = await open({}, "", steps);
  const pieces = await tab.locator("#contention table[aria-label$='own names'] tbody .piece").evaluateAll((all) => all.map(({ title }) => title.split(":")[0]));
  assert.deepEqual([pieces.length, pieces[0], pieces.at(-1)], [7, "synch/sxlock/innodb/index_tree_rw_lock", "other"]);
});

test("a swept setting has a numeric axis, and shows crossings with their intervals", { skip }, async () => {
  const { tab } = await open({}, "", altered(ladder, made.sweep));
  assert.deepEqual(await tab.locator("#sweep .kinds li").allTextContents(), ["innodb", "myrocks"]);
  const crossings = await tab.locator("#sweep .crossings li").allTextContents();
  assert.equal(crossings.length, 1);
  const [, at, from, to] = /^operations per second: innodb and myrocks cross at page_size ([\d.]+) KB \(interval ([\d.]+) KB to ([\d.]+) KB\)$/.exec(crossings[0]) ?? [];
  assert.ok(Math.abs(at - 16) < 0.1 && from > 12 && Number(from) < at && Number(to) > at && to < 20, crossings[0]);
  const { tab: without } = await open({}, "", ladder);
  assert.equal(await without.locator("#sweep").count(), 0);
});

test("a rate search shows its probes, its limit and the rate it found", { skip }, async () => {
  const { tab } = await open({}, "", altered(ladder, made.search));
  assert.equal(await tab.locator("#search h3").evaluate((head) => head.firstChild.textContent), "p99 below 10 ms with 64 clients");
  const rows = await tab.locator("#search tbody tr").evaluateAll((all) => all.map((row) => [...row.children].map((cell) => cell.textContent)));
  assert.deepEqual(rows, [["innodb", "1", "7\u2009000confirmed", "7\u2009400", "7"], ["lmdb", "1", "nonenot confirmed", "2\u2009000", "1"]]);
  await tab.locator(".key button", { hasText: "lmdb" }).click();
  assert.equal(await tab.locator("#search tbody tr").count(), 1);
});

test("engines are labelled by their differences in the title, the key and the tables", { skip }, async () => {
  const named = altered(ladder, (data) => {
    data.title = "mine: mysql 5.6.24 against mysql 9.7.4";
    data.labels = { innodb: "mysql 5.6.24", lmdb: "mysql 9.7.4" };
  });
  const { tab } = await open({}, "", named);
  const { tab: sides } = await open({}, "", altered(ladder, (data) => {
    data.labels = { "base/a": "a, cache 1.00 MiB", "base/a[b=c]": "b=c" };
    data.opening.careful = "Be careful: the caches differ: base/a; base/a[b=c].";
  }));
  assert.equal(await sides.locator(".opening p").nth(2).textContent(), "Be careful: the caches differ: a, cache 1.00 MiB; b=c.");
  assert.equal(await tab.locator("h1").textContent(), "mine: mysql 5.6.24 against mysql 9.7.4");
  assert.deepEqual(await tab.locator(".key button").allTextContents(), ["mysql 5.6.24", "myrocks.zstd", "mysql 9.7.4"]);
  const names = await tab.locator("#page :is(.engine, .winner, thead th, tbody th, option, .dots-name, .reading)").allTextContents();
  assert.ok(names.length > 60 && names.some((name) => name.includes("mysql 9.7.4")));
  assert.deepEqual(names.filter((name) => /\b(innodb|lmdb)\b/.test(name)), []);
});

test("the tests of a suite are small multiples, each on its own axis", { skip: noSuite }, async () => {
  const { tab } = await open({}, "", suite);
  const strips = tab.locator("#multiples .strip");
  const names = await strips.locator("figcaption").allTextContents();
  assert.deepEqual(names.slice(0, 3), ["point-query", "distinct-pk", "read-only-100"]);
  assert.equal(names.length, 6, "rates and times");
  assert.deepEqual(await strips.first().locator(".dots:not(.scale) .dots-name").evaluateAll((all) => all.map(({ title }) => title)), ["innodb", "innodb[doublewrite=off]"]);
  assert.equal(await strips.first().locator(".dot").count(), 8, "four repeats of each engine");
  await tab.locator(".key button", { hasText: "innodb/point-query" }).click();
  assert.equal(await strips.first().locator(".dot").count(), 4);
});

test("charts over time show one test of a suite, and the reader chooses it", { skip: noSuite }, async () => {
  const { tab, problems } = await open({ acceptDownloads: true }, "", suite);
  const lines = async () => {
    const waiting = tab.waitForEvent("download");
    await tab.locator("#timeline .panel[data-series=ops_per_s] .save button", { hasText: "SVG" }).click();
    return [...readFileSync(await (await waiting).path(), "utf8").matchAll(/<path d="M[^"]*" fill="none"/g)].length;
  };
  assert.equal(await lines(), 8, "two engines, four repeats each");
  const choice = tab.locator("#timeline .choice", { hasText: "test" }).locator("select");
  assert.deepEqual(await choice.locator("option").allTextContents(), ["point-query", "distinct-pk", "read-only-100"]);
  await choice.selectOption("read-only-100");
  assert.match(await tab.evaluate(() => location.hash), /test=read-only-100/);
  assert.equal(await tab.locator("#spectrum .choice", { hasText: "test" }).locator("select").inputValue(), "read-only-100");
  assert.equal(await lines(), 8);
  assert.deepEqual(problems, []);
});

test("a zero in the drain is not drawn as a rate and not marked as a stall", { skip }, async () => {
  const { tab } = await open({ acceptDownloads: true }, "", altered(ladder, made.stalled));
  const drawn = await tab.evaluate(() => document.querySelector("#timeline .about").textContent);
  assert.match(drawn, /^One second per point/);
  assert.match(drawn, /Phases without clients are hatched/);
  const waiting = tab.waitForEvent("download");
  await tab.locator("#timeline .panel[data-series=ops_per_s] .save button", { hasText: "SVG" }).click();
  const svg = readFileSync(await (await waiting).path(), "utf8");
  // Each line ends at zero at the stall in loop 3, and has no later point.
  const [width] = /<svg width="([\d.]+)" height="[\d.]+" overflow/.exec(svg).slice(1).map(Number);
  const ends = [...svg.matchAll(/<path d="(M[^"]*)" fill="none"/g)].map(([, path]) => Number(/([\d.]+) [\d.]+$/.exec(path)[1]));
  assert.ok(ends.length >= 3 && ends.every((end) => end < 0.95 * width), `${ends} of ${width}`);
});

test("a key of many lines folds, and engines without a finished repeat are marked", { skip: skip || noSuite }, async () => {
  const { tab } = await open({}, "", altered(suite, ({ summary, trials }) => {
    for (const of of [summary.rows, trials]) of.push(...[1, 2].flatMap((copy) => structuredClone(of).map((one) => ({ ...one, engine: one.engine.replace("innodb", `copy${copy}`) }))));
  }));
  assert.equal(await tab.locator(".toolbar details.fold summary").textContent(), "18 lines");
  assert.equal(await tab.locator(".key button").first().isVisible(), false);
  await tab.locator(".toolbar summary").click();
  assert.equal(await tab.locator(".key button").first().isVisible(), true);
  const { tab: growing } = await open({}, "", altered(ladder, ({ summary }) => {
    for (const row of summary.rows) if (row.clients === 64 || row.engine === "lmdb") row.run.partial = true;
  }));
  assert.equal(await growing.locator(".choice", { hasText: "clients" }).locator("select").inputValue(), "16", "the largest number that most engines have finished");
  assert.deepEqual(await growing.locator(".key li:has(.flag)").evaluateAll((all) => all.map((item) => item.firstChild.textContent)), ["lmdb"]);
});

test("hardware counters have a table only where some were read, with a column for each", { skip }, async () => {
  const { tab: without } = await open({}, "", ladder);
  assert.equal(await without.locator("#cost .hardware").count(), 0);
  const { tab, problems } = await open({}, "", altered(ladder, made.hardware));
  const heads = await tab.locator("#cost .hardware thead th").evaluateAll((all) => all.map((head) => head.firstChild.textContent));
  assert.deepEqual(heads, ["engine", "server instructions"]);
  assert.deepEqual(problems, []);
});

test("a program without symbols is named above the flame graph, with the remedy", { skip }, async () => {
  const { tab, problems } = await open({}, "#clients=64", altered(ladder, made.unnamed));
  assert.deepEqual(await tab.locator("#flame .footnotes li").allTextContents(), ["40% without names; install mariadb-server-core-dbgsym."]);
  assert.equal(await tab.locator("#flame .frame", { hasText: "[mariadbd]" }).count(), 1);
  assert.deepEqual(problems, []);
});
