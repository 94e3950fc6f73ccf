// The README's pictures of a page: `node scripts/views.mjs REPORT.html DIRECTORY`. It writes the top of the page to
// opening.png, and the table of all ratios to the baseline to relative.png. Both are 1280 pixels wide.
import { mkdirSync } from "node:fs";
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { launch } from "./browser.mjs";

const [page, directory] = process.argv.slice(2);
if (!page || !directory) {
  console.error("usage: node scripts/views.mjs REPORT.html DIRECTORY");
  process.exit(2);
}
const browser = await launch();
try {
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, offline: true, colorScheme: "light" });
  const tab = await context.newPage();
  await tab.goto(pathToFileURL(resolve(page)).href);
  await tab.waitForSelector("#matrix table");
  mkdirSync(directory, { recursive: true });
  const first = await tab.locator("main section[id]").first().boundingBox();
  await tab.screenshot({ path: join(directory, "opening.png"), clip: { x: 0, y: 0, width: 1280, height: Math.floor(first.y) - 24 } });
  await tab.evaluate(() => {
    // A picture omits sticky elements and buttons.
    for (const gone of document.querySelectorAll(".contents, .toolbar, #matrix .save, #matrix .about")) gone.remove();
    document.querySelector("#matrix").style.padding = "12px 16px 16px";
    for (const row of [...document.querySelectorAll("#matrix tbody tr")].slice(10)) row.remove();
  });
  await tab.locator("#matrix").screenshot({ path: join(directory, "relative.png") });
} finally {
  await browser.close();
}
