// The pictures of README.md and docs: `node scripts/views.mjs PAGE.html DIRECTORY`. Of a report it writes the top of the
// page to opening.png, and the table of all ratios to the baseline to relative.png. Of a history it writes the rates and
// the cost of the loops to history.png. All are 1280 pixels wide.
import { mkdirSync } from "node:fs";
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { launch } from "./browser.mjs";

const [page, directory] = process.argv.slice(2);
if (!page || !directory) {
  console.error("usage: node scripts/views.mjs PAGE.html DIRECTORY");
  process.exit(2);
}

async function report(tab) {
  await tab.waitForSelector("#matrix table");
  const first = await tab.locator("main section[id]").first().boundingBox();
  await tab.screenshot({ path: join(directory, "opening.png"), clip: { x: 0, y: 0, width: 1280, height: Math.floor(first.y) - 24 } });
  await tab.evaluate(() => {
    // A picture omits sticky elements and buttons.
    for (const gone of document.querySelectorAll(".contents, .toolbar, #matrix .save, #matrix .about")) gone.remove();
    document.querySelector("#matrix").style.padding = "12px 16px 16px";
    for (const row of [...document.querySelectorAll("#matrix tbody tr")].slice(10)) row.remove();
  });
  await tab.locator("#matrix").screenshot({ path: join(directory, "relative.png") });
}

async function history(tab) {
  await tab.waitForSelector("#loops canvas");
  await tab.evaluate(() => {
    const shown = document.querySelector("#loops .halves");
    for (const panel of [...shown.querySelectorAll(".panel")].slice(2)) panel.remove();
    shown.before(document.querySelector(".key"));
    for (const gone of document.querySelectorAll(".contents, .toolbar, .save, #loops :is(h2, h3 ~ details, .about)")) gone.remove();
    document.querySelector("#loops h3").style.marginTop = "0";
    document.querySelector("#loops").style.padding = "12px 16px 16px";
  });
  await tab.locator("#loops").screenshot({ path: join(directory, "history.png") });
}

const browser = await launch();
try {
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, offline: true, colorScheme: "light" });
  const tab = await context.newPage();
  await tab.goto(pathToFileURL(resolve(page)).href);
  mkdirSync(directory, { recursive: true });
  await tab.waitForSelector("#changes, #matrix");
  await ((await tab.locator("#changes").count()) > 0 ? history(tab) : report(tab));
} finally {
  await browser.close();
}
