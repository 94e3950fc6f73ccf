// The page of a history: the charts, the run under the cursor, and the tables, on any screen.
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { dataOf, opener, pageOf } from "./open.mjs";

const { start, stop, open } = opener();
before(start);
after(stop);

const { file, skip } = pageOf("history");
const axe = fileURLToPath(new URL("../node_modules/axe-core/axe.min.js", import.meta.url));
const SCREENS = [1280, 390].flatMap((width) => ["light", "dark"].map((colorScheme) => ({ colorScheme, viewport: { width, height: 900 } })));

test("each metric is a chart over the runs that fits every screen and is accessible", { skip }, async () => {
  const { history } = dataOf(file);
  const metrics = (part) => new Set(history.lines.filter((line) => line.part === part).map(({ metric }) => metric)).size;
  for (const screen of SCREENS) {
    const { tab, problems } = await open(screen, "", file);
    const name = `${screen.viewport.width}, ${screen.colorScheme}`;
    await tab.waitForFunction((count) => document.querySelectorAll("#load canvas").length === count, metrics("load"));
    assert.equal(await tab.locator("#loops canvas").count(), metrics("run"), name);
    const charts = await tab.locator(".uplot").evaluateAll((all) => all.map((one) => one.getBoundingClientRect().right));
    assert.ok(charts.every((right) => right <= screen.viewport.width), `${name}: ${charts}`);
    await tab.locator("details").evaluateAll((all) => all.forEach((one) => one.toggleAttribute("open", true)));
    assert.ok((await tab.evaluate(() => document.documentElement.scrollWidth - innerWidth)) <= 0, name);
    await tab.addScriptTag({ path: axe });
    const faults = await tab.evaluate(async () => {
      const { violations } = await window.axe.run(document, { resultTypes: ["violations"] });
      return violations.filter(({ impact }) => impact === "serious" || impact === "critical").map(({ id, nodes }) => `${id}: ${nodes[0].html.slice(0, 160)}`);
    });
    assert.deepEqual(faults, [], name);
    assert.deepEqual(problems, [], name);
    await tab.context().close();
  }
});

test("the run under the cursor has its version, commit, date, figures and change", { skip }, async () => {
  const { tab } = await open({ viewport: { width: 1280, height: 900 } }, "", file);
  const chart = tab.locator("#loops .panel[data-metric=ops_per_s] .u-over");
  await chart.scrollIntoViewIfNeeded();
  const { width } = await chart.boundingBox();
  // Nine runs, from half a step before the first to 0.54 after the last.
  const at = (run) => chart.hover({ position: { x: ((run + 0.5) / 9.04) * width, y: 80 } });
  const tip = tab.locator("#loops .panel[data-metric=ops_per_s] .tip");
  await at(5);
  for (const part of ["results/2026-03-06", "2026-03-06 02:00, commit 555555555555 of 2026-03-06 01:00", "rocksdb.none", "(4 repeats)", "worse", "the level changes here"]) {
    assert.ok((await tip.innerText()).includes(part), `${part}: ${await tip.innerText()}`);
  }
  await at(3);
  assert.match(await tip.innerText(), /wiredtiger\.snappy.*: – \(it failed in load: the disk was full\)/s);
  await tab.mouse.move(0, 0);
  assert.ok(await tip.isHidden());
});

test("changes are sentences, and each figure is in a table with its verdict", { skip }, async () => {
  const { tab } = await open({}, "", file);
  assert.match(await tab.locator("#changes .sentences").first().innerText(), /rocksdb\.none, 4 clients, loops: ops_per_s between 444444444444 and 555555555555: /);
  await tab.locator("#loops summary").first().click();
  const row = tab.locator("#loops .steps tbody tr").nth(5);
  assert.match(await row.innerText(), /^555555555555\s.*0\.80× \(0\.\d+–0\.\d+\), worse/s);
  assert.equal(await tab.locator("#runs tbody tr").count(), 9);
});

test("clients and engines are chosen, and the link keeps the choice", { skip }, async () => {
  const { tab } = await open({}, "", file);
  const figures = (of) => of.locator("#loops .steps tbody tr").first().innerText();
  await tab.locator("#loops summary").first().click();
  const before = await figures(tab);
  await tab.locator("select").selectOption("16");
  assert.notEqual(await figures(tab), before);
  await tab.locator(".key button", { hasText: "rocksdb" }).click();
  const { tab: again } = await open({}, new URL(tab.url()).hash, file);
  assert.equal(await again.locator("select").inputValue(), "16");
  assert.equal(await again.locator(".key button[aria-pressed=false]").innerText(), "rocksdb.none");
});

test("a saved picture has the lines, the levels and their change", { skip }, async () => {
  const { tab } = await open({ acceptDownloads: true }, "", file);
  const waiting = tab.waitForEvent("download");
  await tab.locator("#loops .panel[data-metric=ops_per_s] .save button", { hasText: "SVG" }).click();
  const download = await waiting;
  assert.equal(download.suggestedFilename(), "synthetic-sample-history-loops-ops_per_s.svg");
  const svg = (await readFile(await download.path())).toString();
  assert.match(svg, /stroke-dasharray="4 3"/);
  assert.match(svg, />−(19|20)\.\d%</);
  assert.ok(svg.includes("synthetic-sample · 9 runs · 2026-03-01 to 2026-03-09") && svg.includes(">wiredtiger.snappy<"), svg.slice(-400));
});
