// All views together: each is present for every choice, and all are accessible.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { altered, opener, page, pageOf } from "./open.mjs";

const { start, stop, open } = opener();
before(start);
after(stop);

const { file: ladder, skip } = pageOf("ladder");
const { file: suite, skip: noSuite } = pageOf("suite");
const axe = fileURLToPath(new URL("../node_modules/axe-core/axe.min.js", import.meta.url));
const VIEWS = ["cost", "bytes", "matrix", "verdicts", "rum", "scaling", "throughput", "contention", "timeline", "spectrum", "latency", "load", "conditions"];

test("every view is present in both schemes, and every choice works", { skip }, async () => {
  for (const colorScheme of ["light", "dark"]) {
    const { tab, problems } = await open({ colorScheme }, "", ladder);
    for (const id of VIEWS) assert.equal(await tab.locator(`section#${id}`).count(), 1, `${colorScheme}: ${id}`);
    // Each choice of each view once, from the last to the first. A redraw must not lose them.
    const choices = await tab.locator("select").count();
    for (let index = 0; index < choices; index += 1) {
      const options = await tab.locator("select").nth(index).locator("option").evaluateAll((all) => all.map(({ value }) => value));
      for (const value of options.reverse()) await tab.locator("select").nth(index).selectOption(value);
    }
    const switches = await tab.locator(".switch button").count();
    for (let index = 0; index < switches; index += 1) await tab.locator(".switch button").nth(index).click();
    assert.deepEqual(problems, [], colorScheme);
  }
});

test("on a phone each engine has a card, and no figure is cut off", { skip }, async () => {
  const { tab } = await open({ viewport: { width: 390, height: 844 } }, "", ladder);
  const cut = await tab.locator("#cost .figures tbody td").evaluateAll((all) => all.filter((cell) => cell.getBoundingClientRect().right > innerWidth || cell.scrollWidth > cell.clientWidth + 1).length);
  assert.equal(cut, 0);
  const tops = await tab.locator("#cost .figures").first().locator("tbody tr").evaluateAll((all) => all.map((card) => card.getBoundingClientRect().top));
  assert.ok(tops.length === 3 && tops.every((top, index) => index === 0 || top > tops[index - 1] + 200), `${tops}`);
  const head = await tab.locator("#cost .figures tbody td").first().evaluate((cell) => getComputedStyle(cell, "::before").content);
  assert.equal(head, '"operations, per s"');
  const verdicts = await tab.locator("#verdicts tbody td, #verdicts tbody th").evaluateAll((all) => all.filter((cell) => cell.getBoundingClientRect().right > innerWidth).length);
  assert.equal(verdicts, 0, "no verdict is cut off");
  assert.ok((await tab.evaluate(() => document.documentElement.scrollWidth - innerWidth)) <= 0);
});

test("on a phone a claim is next to its verdict", { skip }, async () => {
  const long = "permutation and Welch tests, 4 and 4 repeats, each from its own load";
  const { tab } = await open({ viewport: { width: 390, height: 844 } }, "", altered(page, ({ summary }) => Object.assign(summary.claims[0], { verdict: "holds", test: long })));
  const right = await tab.locator(".claims tbody th").first().evaluate((claim) => claim.getBoundingClientRect().right);
  assert.ok(right < 390, `${right}`);
});

test("axe finds no serious accessibility problem, in both schemes, wide and narrow", { skip: skip || noSuite }, async () => {
  for (const [file, colorScheme, width] of [
    [ladder, "light", 1280],
    [ladder, "dark", 390],
    [page, "dark", 1280],
    [page, "light", 390],
    [suite, "light", 390],
    [suite, "dark", 1280],
  ]) {
    const { tab } = await open({ colorScheme, viewport: { width, height: 900 } }, "", file);
    await tab.locator("details").evaluateAll((all) => all.forEach((one) => one.toggleAttribute("open", true)));
    await tab.addScriptTag({ path: axe });
    const faults = await tab.evaluate(async () => {
      const { violations } = await window.axe.run(document, { resultTypes: ["violations"] });
      return violations
        .filter(({ impact }) => impact === "serious" || impact === "critical")
        .map(({ id, nodes }) => `${id}: ${nodes.length} × ${nodes[0].html.slice(0, 160)} ${nodes[0].failureSummary}`);
    });
    assert.deepEqual(faults, [], `${file}, ${colorScheme}, ${width} pixels`);
  }
});
