// The live page during a real run, in a real browser, and the library of results. The tests need the program
// (RUMBA_BIN=FILE), and are skipped without it; `make web` builds it.
import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { after, afterEach, before, test } from "node:test";
import { browserFile, launch } from "../scripts/browser.mjs";

const program = process.env.RUMBA_BIN;
const skip = program ? false : "no program: set RUMBA_BIN=FILE to the path of rumba";

let browser;
let place;
const children = [];
before(async () => {
  if (skip) return;
  browser = await launch();
  place = mkdtempSync(join(tmpdir(), "rumba-live-"));
});
after(async () => {
  for (const child of children) if (child.exitCode === null) child.kill("SIGINT");
  await browser?.close();
  if (place) rmSync(place, { recursive: true, force: true });
});

const contexts = [];
// An open page polls on and slows the next test.
afterEach(async () => {
  for (const context of contexts.splice(0)) await context.close();
});

/** A run of minutes, or a server: its address, and its exit code once it has one. */
function start(args, channel) {
  const child = spawn(program, args, { cwd: place, env: { ...process.env, XDG_STATE_HOME: join(place, "state") } });
  children.push(child);
  const ended = new Promise((resolve) => child.on("exit", resolve));
  const address = new Promise((resolve, reject) => {
    const said = [];
    for (const name of ["stdout", "stderr"]) {
      createInterface({ input: child[name] }).on("line", (line) => {
        said.push(line);
        const found = /http:\/\/\S+/.exec(line);
        if (name === channel && found) resolve(found[0]);
      });
    }
    ended.then((code) => reject(new Error(`it ended with ${code}: ${said.join("\n")}`)));
  });
  return { child, address, ended };
}

const sets = ["maxid1=2000", "clients=2", "warmup=0s", "loops=2", "loop=5m"].flatMap((set) => ["--set", set]);
const run = (out) => start(["run", "linkbench", "--engine", "lmdb", "--out", `results/${out}`, "--live", ...sets], "stderr");

/** Opens a tab, and collects errors of its scripts and requests to other hosts as problems. */
async function open(address, options = {}) {
  const context = await browser.newContext(options);
  contexts.push(context);
  const tab = await context.newPage();
  const problems = [];
  tab.on("pageerror", (error) => problems.push(error.message));
  tab.on("console", (message) => message.type() === "error" && problems.push(message.text()));
  const { origin } = new URL(address);
  tab.on("request", (request) => {
    if (!request.url().startsWith(origin) && !request.url().startsWith("data:")) problems.push(`fetched ${request.url()}`);
  });
  await tab.goto(address);
  return { tab, problems };
}

/** The number of charts in the timeline. */
const charts = (tab) => tab.locator("#timeline canvas").count();

test("the live page fills during a run, and its stop button ends the run", { skip }, async () => {
  const { address, ended } = run("stopped");
  const { tab, problems } = await open(await address);
  await tab.locator("#live", { hasText: "loop 1" }).waitFor();
  await tab.locator("#live", { hasText: "operations per second" }).waitFor();
  assert.match(await tab.locator("#live").innerText(), /Trial 1 of 1: lmdb, 2 clients, repeat 1/);
  assert.match(await tab.locator("#live .left").innerText(), /left, until \d\d:\d\d/);
  // The run's part of the timeline is drawn after its first seconds.
  await tab.waitForFunction(() => document.querySelectorAll("#timeline canvas").length >= 4);
  assert.ok((await charts(tab)) >= 4);
  const rows = tab.locator("#load .figures tbody tr");
  assert.equal(await rows.count(), 1, "the load's figures are shown while its trial runs");
  assert.equal(await tab.locator("#problems").count(), 0, "a running trial has not failed");
  // From here on, requests get no response, so the result must come with the events.
  await tab.route("**/live/data", () => {});
  tab.once("dialog", (dialog) => dialog.accept());
  await tab.locator("#live .stop").click();
  assert.equal(await ended, 130);
  await tab.locator("#live.ended", { hasText: "The run has ended: interrupted by its user" }).waitFor();
  assert.match(await tab.locator("#problems").innerText(), /interrupted by its user/);
  assert.equal(await tab.locator("#live button").count(), 0);
  assert.deepEqual(problems, []);
  const record = JSON.parse(readFileSync(join(place, "results/stopped/trials/001-lmdb-c2-r1/record.json"), "utf8"));
  assert.equal(record.status.state, "interrupted");
});

test("redrawing keeps focus, position and open details, and can be paused", { skip }, async () => {
  const { address, child, ended } = run("redrawn");
  const { tab, problems } = await open(await address, { colorScheme: "dark", viewport: { width: 375, height: 800 } });
  await tab.locator("#load .figures").waitFor();
  await tab.locator("#conditions summary").first().click();
  await tab.locator("#timeline .switch button").first().focus();
  const top = () => tab.evaluate(() => Math.round(document.querySelector("#timeline").getBoundingClientRect().top));
  await tab.evaluate(() => {
    // The heading loses this height when it is drawn again.
    document.querySelector("h1").style.paddingBottom = "60px";
    document.querySelector("#timeline").scrollIntoView();
    document.querySelector("#conditions").dataset.old = "";
  });
  const before = await top();
  await tab.waitForFunction(() => document.querySelector("#conditions")?.dataset.old === undefined);
  const kept = await tab.evaluate(() => ({
    focus: document.activeElement?.closest("#timeline .switch") !== null,
    open: document.querySelector("#conditions details")?.open,
    wide: document.documentElement.scrollWidth - innerWidth,
  }));
  assert.deepEqual(kept, { focus: true, open: true, wide: 0 });
  assert.ok(Math.abs((await top()) - before) <= 1, `${await top()} instead of ${before}`);
  await tab.locator("#live button", { hasText: "Pause" }).click();
  const grown = tab.waitForResponse((response) => response.url().endsWith("/live/data"), { timeout: 4000 });
  assert.equal(await grown.then(() => "requested", () => "not requested"), "not requested");
  child.kill("SIGINT");
  assert.equal(await ended, 130);
  assert.deepEqual(problems, []);
});

/** Delays the page's requests until `release` is called. `requested` resolves at the first request. */
async function hold(tab, pattern) {
  let [release, came] = [];
  const released = new Promise((resolve) => (release = resolve));
  const requested = new Promise((resolve) => (came = resolve));
  await tab.route(pattern, (route) => {
    came();
    return released.then(() => route.continue());
  });
  return { requested, release };
}

test("redrawing keeps focus and open lists, and no press blocks it", { skip }, async () => {
  const { address, child, ended } = run("grown");
  const { tab, problems } = await open(await address);
  await tab.locator("#load .figures tbody tr").first().waitFor();
  // Each additional engine inserts its button before the baseline's list.
  let others = ["b"];
  await tab.route("**/live/data", async (route) => {
    const response = await route.fetch();
    const grown = await response.json();
    const { trials, summary } = grown.data;
    summary.rows.push(...others.map((engine) => ({ ...summary.rows[0], engine })));
    trials.push(...others.map((engine, index) => ({ ...trials[0], engine, number: 2 + index })));
    await route.fulfill({ response, json: grown });
  });
  const baseline = tab.locator(".choice", { hasText: "baseline" }).locator("select");
  await baseline.focus();
  others = ["b", "a", "c"];
  await tab.waitForFunction(() => document.querySelectorAll(".toolbar .key button").length === 4);
  const focused = () => tab.evaluate(() => document.activeElement?.closest(".choice")?.firstElementChild?.textContent);
  assert.equal(await focused(), "baseline");
  // A menu that opened at the press consumes the release. The next movement shows that no button is pressed.
  await tab.evaluate(() => dispatchEvent(new PointerEvent("pointerdown", { buttons: 2 })));
  others = ["b"];
  await tab.mouse.move(40, 40);
  await tab.waitForFunction(() => document.querySelectorAll(".toolbar .key button").length === 2);
  await tab.keyboard.press("Space");
  assert.equal(await baseline.evaluate((select) => select.matches(":open")), true);
  await baseline.evaluate((select) => (select.dataset.old = ""));
  others = ["b", "a"];
  // This is longer than the pause between two redraws.
  await new Promise((resolve) => setTimeout(resolve, 4000));
  assert.equal(await baseline.getAttribute("data-old"), "", "an open list stays");
  await tab.keyboard.press("ArrowDown");
  await tab.keyboard.press("Enter");
  assert.match(new URL(tab.url()).hash, /baseline=b/);
  await tab.waitForFunction(() => document.querySelectorAll(".toolbar .key button").length === 3);
  assert.equal(await focused(), "baseline");
  // A request that is held here when the server ends would fail.
  await tab.unrouteAll({ behavior: "wait" });
  assert.deepEqual(problems, []);
  child.kill("SIGINT");
  assert.equal(await ended, 130);
});

test("a polled page shows a lost connection, and its end if paused", { skip }, async () => {
  const watched = run("watched");
  await watched.address;
  const { address, child, ended } = start(["serve"], "stdout");
  const { tab } = await open(`${await address}results/watched`);
  const bar = tab.locator("#live");
  await tab.route("**/watched/data", (route) => route.abort());
  await bar.filter({ hasText: "Connection lost" }).waitFor();
  await tab.unroute("**/watched/data");
  await bar.filter({ hasNotText: "Connection lost" }).waitFor();
  const { requested, release } = await hold(tab, "**/watched/data");
  await requested;
  await bar.locator("button", { hasText: "Pause" }).click();
  watched.child.kill("SIGINT");
  assert.equal(await watched.ended, 130);
  release();
  await tab.locator("#live.ended", { hasText: "The run has ended" }).waitFor();
  assert.match(await tab.locator("#problems").innerText(), /interrupted by its user/);
  child.kill("SIGINT");
  assert.equal(await ended, 0);
});

test("past results are searched, noted and compared by keyboard alone", { skip }, async () => {
  const { address, child, ended } = start(["serve"], "stdout");
  const { tab, problems } = await open(await address);
  await tab.locator("input[name=q]:focus").waitFor();
  await tab.setViewportSize({ width: 390, height: 800 });
  const cut = () => tab.locator("tbody tr > *, .search > *").evaluateAll((all) => all.filter((cell) => cell.getBoundingClientRect().right > innerWidth || cell.scrollWidth > cell.clientWidth + 1).length);
  assert.equal(await cut(), 0, "nothing is cut off on a phone");
  await tab.locator("tbody tr").first().locator("td").nth(4).evaluate((figures) => figures.prepend("rocksdb[block_size=16KiB,compression=zstd,target_file_size=64MiB]"));
  assert.equal(await cut(), 0, "nor is a long name of an engine");
  const all = await tab.locator("tbody tr").count();
  await tab.keyboard.type("stopped");
  await tab.keyboard.press("Enter");
  await tab.locator("p", { hasText: `1 of ${all} results` }).waitFor();
  await tab.locator("button", { hasText: "note" }).first().focus();
  // The keys come without pauses, because a reader need not wait.
  await tab.keyboard.press("Enter");
  await tab.keyboard.type("upgrade");
  await tab.keyboard.press("Enter");
  await tab.locator("a.tag", { hasText: "#upgrade" }).waitFor();
  await tab.locator("input[name=base]").first().focus();
  await tab.keyboard.press("Space");
  await tab.locator("input[name=other]").last().focus();
  await tab.keyboard.press("Space");
  await tab.keyboard.press("Enter");
  await tab.locator("h1", { hasText: "Compared" }).waitFor();
  child.kill("SIGINT");
  assert.equal(await ended, 0);
  assert.deepEqual(problems, []);
});

test("the history of an experiment opens from the list, and leads to its results", { skip }, async () => {
  const { address, child, ended } = start(["serve"], "stdout");
  const { tab, problems } = await open(await address, { viewport: { width: 390, height: 800 } });
  await tab.locator("a", { hasText: /history of \d+ runs/ }).first().click();
  await tab.locator("canvas").first().waitFor();
  assert.ok((await tab.evaluate(() => document.documentElement.scrollWidth - innerWidth)) <= 0);
  const name = await tab.locator("#runs tbody a").first().innerText();
  await tab.locator("#runs tbody a").first().click();
  await tab.locator("#cost").waitFor();
  assert.match(tab.url(), new RegExp(`/results/${name}$`));
  child.kill("SIGINT");
  assert.equal(await ended, 0);
  assert.deepEqual(problems, []);
});

test("the command line writes every picture of a page, and leaves nothing else", { skip }, () => {
  const temporary = join(place, "tmp");
  mkdirSync(temporary, { recursive: true });
  const env = { ...process.env, TMPDIR: temporary, RUMBA_BROWSER: browserFile };
  const { status, stdout, stderr } = spawnSync(program, ["report", "results/stopped", "--svg", "pictures/svg", "--png", "pictures/png"], { cwd: place, env, encoding: "utf8" });
  assert.equal(status, 0, stderr);
  assert.equal(stdout, "");
  const files = (kind) => readdirSync(join(place, "pictures", kind)).sort();
  assert.deepEqual(files("svg").map((name) => name.replace(/svg$/, "png")), files("png"), "the same pictures in both formats");
  for (const name of ["cost", "timeline-ops_per_s", "spectrum"]) assert.ok(files("svg").some((file) => file.startsWith(`linkbench-${name}`)), `${name}: ${files("svg")}`);
  for (const name of files("svg")) assert.match(readFileSync(join(place, "pictures/svg", name), "utf8"), /^<svg .*<\/svg>$/s, name);
  for (const name of files("png")) assert.equal(readFileSync(join(place, "pictures/png", name)).subarray(1, 4).toString(), "PNG", name);
  assert.deepEqual(readdirSync(temporary), []);
});

test("samples are a flame graph that a click enlarges", { skip }, async () => {
  const stacks = "client 1;main;get 60\nclient 2;main;put;write 30\nidle;wait 10\n";
  writeFileSync(join(place, "results/stopped/trials/001-lmdb-c2-r1/stacks.folded"), stacks);
  const { address, child, ended } = start(["serve"], "stdout");
  const { tab, problems } = await open(`${await address}results/stopped`);
  const frame = (name) => tab.locator("#flame .frame", { hasText: new RegExp(`^${name}$`) });
  await frame("put").waitFor();
  const width = async (name) => (await frame(name).boundingBox()).width / (await tab.locator(".flame").boundingBox()).width;
  assert.ok(Math.abs((await width("put")) - 0.3) < 0.01, `${await width("put")}`);
  await frame("put").click();
  assert.ok(Math.abs((await width("write")) - 1) < 0.01);
  assert.equal(await frame("get").count(), 0);
  await frame("all").click();
  assert.equal(await frame("get").count(), 1);
  assert.match(await tab.locator("#flame .hottest tbody tr").first().innerText(), /get\s+60%/);
  child.kill("SIGINT");
  assert.equal(await ended, 0);
  assert.deepEqual(problems, []);
});
