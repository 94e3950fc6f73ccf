// A picture of the main result of a page: `node scripts/picture.mjs REPORT.html OUT.png [SERIES …]`. It shows rates over a
// setting with a list of numbers, the ladder for several numbers of clients, the ratios of all tests for a suite, and otherwise
// the timeline. With SERIES, such as `ops_per_s wkb_per_op`, it shows these charts of the timeline.
import { resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { launch } from "./browser.mjs";

const [page, out, ...series] = process.argv.slice(2);
if (!page || !out) {
  console.error("usage: node scripts/picture.mjs REPORT.html OUT.png [SERIES …]");
  process.exit(2);
}
const browser = await launch();
try {
  const context = await browser.newContext({ viewport: { width: 900, height: 1200 }, offline: true, colorScheme: "light" });
  const tab = await context.newPage();
  await tab.goto(pathToFileURL(resolve(page)).href);
  await tab.waitForSelector("#timeline canvas");
  const chosen = await tab.evaluate((series) => {
    // An engine in a test of a suite is named with both: `innodb/point-query`.
    const isOfTest = (name) => name.textContent.includes("/");
    const keys = [...document.querySelectorAll(".toolbar .key li")];
    const has = (id) => series.length === 0 && document.querySelector(`#${id}`) !== null;
    const what = has("sweep") ? "sweep" : has("scaling") ? "scaling" : keys.some(isOfTest) && has("matrix") ? "matrix" : "timeline";
    const shown = document.querySelector(`#${what}`);
    shown.style.padding = "12px 16px 16px";
    const wanted = series.length > 0 ? series : ["ops_per_s", "wkb_per_op"];
    if (what === "timeline") for (const panel of shown.querySelectorAll(".panel")) if (!wanted.includes(panel.dataset.series)) panel.remove();
    // These have four charts for each test. The first is enough for a picture, also of the ladder of a suite.
    const others = ".halves + .halves, .halves > :not(:first-child), .crossings";
    if (what === "sweep" || (what === "scaling" && keys.some(isOfTest))) for (const other of shown.querySelectorAll(others)) other.remove();
    // A picture omits controls and folded details. Sticky elements would cover it.
    for (const gone of shown.querySelectorAll(".switch, .choice, .about, .save, details")) gone.remove();
    // The key to the lines is above the section, so it moves into it. The ladder of a suite and a sweep have their own.
    const key = shown.querySelector(".key") ?? document.querySelector(".toolbar .key");
    const first = shown.querySelector(".panel, h3");
    if (key && what !== "matrix" && what !== "sweep") (first?.closest("div.panel") ?? first)?.before(key);
    for (const gone of document.querySelectorAll(".toolbar, .contents")) gone.remove();
    return what;
  }, series);
  // A table of many engines is wider than the page, which scrolls it. The picture must show all of it.
  const hidden = await tab.evaluate((what) => {
    const boxes = [...document.querySelectorAll(`#${what}, #${what} *`)].filter((part) => part.clientWidth > 0);
    return Math.max(...boxes.map((box) => box.scrollWidth - box.clientWidth));
  }, chosen);
  if (chosen === "matrix" && hidden > 0) await tab.setViewportSize({ width: 900 + hidden, height: 1200 });
  await tab.waitForTimeout(300);
  await tab.locator(`#${chosen}`).screenshot({ path: out });
} finally {
  await browser.close();
}
