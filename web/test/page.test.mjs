// The page in a real browser: a reader's clicks, both colour schemes, a phone, paper.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { opener, skip } from "./open.mjs";

const { start, stop, open } = opener();
before(start);
after(stop);

/** Waits for this number of charts, because charts are drawn in the frame after a choice. */
const charts = (tab, count) =>
  tab.waitForFunction((wanted) => document.querySelectorAll("#timeline canvas").length === wanted, count);

const ratios = (tab) => tab.locator("#cost .figures tbody tr td:nth-child(2) .ratio").allTextContents();

test("it draws every section without an error and fetches nothing", { skip }, async () => {
  const { tab, problems } = await open();
  for (const id of ["cost", "rum", "timeline", "spectrum", "latency", "load", "conditions", "problems"]) {
    assert.equal(await tab.locator(`section#${id}`).count(), 1, id);
  }
  await charts(tab, 10);
  assert.deepEqual(problems, []);
});

test("a click on a row makes it the baseline, and the link keeps it", { skip }, async () => {
  const { tab } = await open();
  assert.equal((await ratios(tab))[0], "1.00×");
  await tab.locator("#cost .figures tbody tr").nth(2).click();
  assert.equal((await ratios(tab))[2], "1.00×");
  assert.notEqual((await ratios(tab))[0], "1.00×");
  const { tab: again } = await open({}, new URL(tab.url()).hash);
  assert.deepEqual(await ratios(again), await ratios(tab));
});

test("a decided ratio has its interval below it, an undecided one has words", { skip }, async () => {
  const { tab } = await open();
  const { baseline, verdicts } = await tab.evaluate(() => {
    const data = JSON.parse(document.getElementById("data").textContent);
    const { rows } = data.summary.relative.find(({ baseline }) => baseline === data.baseline);
    const judged = rows.map(({ engine, metrics }) => [engine, metrics.find(({ metric }) => metric === "ops_per_s")]);
    return { baseline: data.baseline, verdicts: Object.fromEntries(judged) };
  });
  const rows = await tab.locator("#cost .figures tbody tr").evaluateAll((all) =>
    all.map((row) => {
      const cell = row.querySelector("td:nth-child(2)");
      const conclusion = cell.querySelector(".conclusion");
      return {
        engine: row.querySelector("th").textContent.trim(),
        ratio: cell.querySelector(".ratio").textContent,
        words: conclusion?.textContent,
        title: conclusion?.title,
        kind: conclusion?.className,
      };
    }),
  );
  const shown = (number) => (number >= 10 ? number.toFixed(1) : number.toFixed(2));
  assert.equal(rows.length, Object.keys(verdicts).length + 1);
  const seen = new Set();
  for (const { engine, ratio, words, title, kind } of rows) {
    if (engine === baseline) {
      assert.deepEqual([ratio, words], ["1.00×", undefined], "the baseline has no conclusion");
      continue;
    }
    const judged = verdicts[engine];
    seen.add(judged.change);
    assert.equal(ratio, `${shown(judged.ratio)}×`, engine);
    assert.equal(kind, `conclusion ${judged.change}`, engine);
    if (judged.change === "worse") {
      assert.equal(words, `${shown(judged.low)}–${shown(judged.high)}`, engine);
      assert.equal(title, "95% interval of the ratio: decided");
    } else {
      assert.equal(words, "not decided", engine);
      assert.match(title, /the repeats do not decide.*1 more repeat would probably decide/);
    }
  }
  assert.deepEqual(seen, new Set(["worse", "undecided"]), "the sample has both kinds");
});

test("the page reports the loads of the repeats and the error rates of verdicts", { skip }, async () => {
  const { tab } = await open();
  assert.match(await tab.locator("header .ran").textContent(), / · 4 repeats, each from its own load$/);
  const rates = await tab.locator("#cost .rates").textContent();
  assert.match(rates, /^Each verdict on operations, reads, KB\/op with drain, µs\/op with drain and data is wrong in at most 5 of 100 cases\./);
  assert.match(rates, /All other columns together have a false discovery rate of 5%/);
});

test("a figure below the resolution has no winner and no ratio", { skip }, async () => {
  const { tab } = await open();
  const changed = await tab.evaluate(() => {
    const island = document.getElementById("data");
    const data = JSON.parse(island.textContent);
    for (const row of data.summary.rows) row.run.metrics.reads_per_op.median = 0.0001 * (1 + row.engine.length);
    // The first engine is better than all others in both metrics.
    const first = data.summary.relative.find(({ baseline }) => baseline === data.summary.rows[0].engine);
    const both = first.rows.flatMap(({ metrics }) => metrics).filter(({ metric }) => ["ops_per_s", "reads_per_op"].includes(metric));
    for (const ratio of both) ratio.change = "worse";
    return document.documentElement.outerHTML.replace(island.textContent, JSON.stringify(data));
  });
  await tab.setContent(changed);
  await tab.waitForSelector("#cost .figures");
  const reads = tab.locator("#cost .figures tbody tr td:nth-child(3)");
  assert.deepEqual(new Set(await reads.locator(".value").allTextContents()), new Set(["<0.01"]));
  assert.equal((await reads.locator(".ratio").allTextContents()).join("").trim(), "");
  assert.equal(await tab.locator("#cost .figures td.best:nth-child(3)").count(), 0);
  assert.equal(await tab.locator("#cost .figures td.best:nth-child(2)").count(), 1);
});

test("a logarithmic axis ends for every smallest figure", { skip }, async () => {
  const { tab } = await open();
  const changed = await tab.evaluate(() => {
    const island = document.getElementById("data");
    const data = JSON.parse(island.textContent);
    // From 0.009792, uPlot stepped over the decade and counted its lines forever.
    for (const { timeline } of data.trials) {
      const p99 = timeline.series.find(({ name }) => name === "p99_ms");
      p99.values = timeline.at_s.map((_, index) => (index % 2 === 0 ? 0.01152 : 45.4));
    }
    return document.documentElement.outerHTML.replace(island.textContent, JSON.stringify(data));
  });
  const problems = [];
  tab.on("pageerror", (error) => problems.push(error.message));
  await tab.setContent(changed);
  await charts(tab, 10);
  assert.deepEqual(problems, []);
});

test("an interrupted verification is not shown as inconsistent data", { skip }, async () => {
  for (const [proof, flag] of [["cut-off", "verification cut off"], ["failed", "data inconsistent"]]) {
    const { tab } = await open();
    const changed = await tab.evaluate((proof) => {
      const island = document.getElementById("data");
      const data = JSON.parse(island.textContent);
      data.summary.rows[1].unsound = [{ trial: 2, repeat: 1, proof: "cut-off", reason: "killed by signal 9" }];
      if (proof === "failed") data.summary.rows[1].unsound.push({ trial: 6, repeat: 2, proof, reason: "counts match: not so for 2 of 9" });
      return document.documentElement.outerHTML.replace(island.textContent, JSON.stringify(data));
    }, proof);
    await tab.setContent(changed);
    await tab.waitForSelector("#cost .figures");
    assert.deepEqual(await tab.locator("#cost .figures .flag").first().allTextContents(), [flag]);
    assert.match(await tab.locator("#cost .figures .flag").first().getAttribute("title"), /^repeat 1: killed by signal 9/);
  }
});

test("the keyboard alone reaches and changes the baseline", { skip }, async () => {
  const { tab } = await open();
  await tab.locator("#cost input[type=radio]").first().focus();
  await tab.keyboard.press("ArrowDown");
  assert.equal((await ratios(tab))[1], "1.00×");
  assert.equal(await tab.evaluate(() => document.activeElement?.getAttribute("type")), "radio");
});

test("the operation and the kind of time can be chosen", { skip }, async () => {
  const { tab, problems } = await open();
  await tab.locator("#spectrum select").selectOption("get_node");
  await tab.locator("#latency .switch button", { hasText: "service" }).click();
  await tab.locator("#timeline .switch button", { hasText: "Load" }).click();
  const hash = new URL(tab.url()).hash;
  for (const chosen of ["op=get_node", "time=service", "part=load"]) assert.ok(hash.includes(chosen), hash);
  await charts(tab, 9);
  assert.deepEqual(problems, []);
});

test("an engine can be left out of the charts but not of the tables", { skip }, async () => {
  const { tab, problems } = await open();
  const rows = await tab.locator("#cost .figures tbody tr").count();
  const dots = await tab.locator("#rum .dots:not(.scale)").count();
  await tab.locator(".key button").first().click();
  assert.equal(await tab.locator("#rum .dots:not(.scale)").count(), dots - 4);
  assert.equal(await tab.locator("#cost .figures tbody tr").count(), rows);
  assert.equal(await tab.locator(".key button").first().getAttribute("aria-pressed"), "false");
  assert.deepEqual(problems, []);
});

test("a hash from other results falls back to what is here", { skip }, async () => {
  const { tab, problems } = await open({}, "#baseline=gone&clients=999&op=none");
  assert.equal((await ratios(tab))[0], "1.00×");
  assert.deepEqual(problems, []);
});

test("on a phone and on paper nothing is wider than the page, in both schemes", { skip }, async () => {
  for (const colorScheme of ["light", "dark"]) {
    const { tab, problems } = await open({ colorScheme, viewport: { width: 375, height: 800 } });
    const overflow = () => tab.evaluate(() => document.documentElement.scrollWidth - window.innerWidth);
    assert.ok((await overflow()) <= 0, `${colorScheme}: ${await overflow()} pixels too wide`);
    const [paper, ink] = await tab.evaluate(() => {
      const style = getComputedStyle(document.body);
      return [style.backgroundColor, style.color];
    });
    assert.equal(paper === "rgb(255, 255, 255)", colorScheme === "light", paper);
    assert.notEqual(paper, ink);
    await tab.evaluate(() => dispatchEvent(new Event("beforeprint")));
    const charts = await tab.locator(".uplot").evaluateAll((all) => all.map((chart) => chart.clientWidth));
    assert.ok(charts.every((width) => width === 660), `${charts} do not fit on paper`);
    await tab.emulateMedia({ media: "print" });
    assert.equal(await tab.evaluate(() => getComputedStyle(document.body).backgroundColor), "rgb(255, 255, 255)");
    assert.deepEqual(problems, []);
  }
});
