// A picture of a page's timeline: `node scripts/picture.mjs REPORT.html OUT.png [SERIES …]`
// shows only the charts of these series, such as `ops_per_s wkb_per_op`.
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
  const wanted = series.length > 0 ? series : ["ops_per_s", "wkb_per_op"];
  // The buttons mean nothing in a picture; the key of the engines is above the section, so it comes along.
  await tab.evaluate((shown) => {
    const timeline = document.querySelector("#timeline");
    timeline.style.padding = "12px 16px 16px";
    for (const panel of timeline.querySelectorAll(".panel")) if (!shown.includes(panel.dataset.series)) panel.remove();
    for (const gone of timeline.querySelectorAll(".switch, .about, .save")) gone.remove();
    const key = document.querySelector(".toolbar .key");
    if (key) timeline.querySelector(".panel").before(key);
  }, wanted);
  await tab.waitForTimeout(300);
  await tab.locator("#timeline").screenshot({ path: out });
} finally {
  await browser.close();
}
