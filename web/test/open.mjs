// Opens pages for the tests. They need a page (RUMBA_PAGE=FILE, from
// `cargo run -p rumba-report --example sample -- FILE`), and are skipped without it. `make web` makes it, with `ladder.html`,
// `steps.html`, `suite.html`, `proof.html`, `history.html` and `hour.html` in the same directory (the same command with a
// second argument).
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { pathToFileURL } from "node:url";
import { launch } from "../scripts/browser.mjs";

export const page = process.env.RUMBA_PAGE;
export const skip = page ? false : "no page: set RUMBA_PAGE=FILE, from cargo run -p rumba-report --example sample -- FILE";

/** A page of another kind, in the directory of the first. */
export function pageOf(kind) {
  const file = join(dirname(page ?? ""), `${kind}.html`);
  const missing = `no page: ${kind}.html in the directory of RUMBA_PAGE, from cargo run -p rumba-report --example sample -- FILE ${kind}`;
  return { file, skip: page && existsSync(file) ? false : missing };
}

const ISLAND = /(<script type="application\/json" id="data">)(.*?)(<\/script>)/s;

/** The data of a page. */
export const dataOf = (file) => JSON.parse(ISLAND.exec(readFileSync(file, "utf8"))[2]);

let altered_in;
process.on("exit", () => altered_in && rmSync(altered_in, { recursive: true }));

/** A page whose data `change` has modified. */
export function altered(file, change) {
  const data = dataOf(file);
  change(data);
  altered_in ??= mkdtempSync(join(tmpdir(), "rumba-page-"));
  const other = join(altered_in, `${Math.random().toString(36).slice(2)}.html`);
  const written = JSON.stringify(data).replaceAll("<", "\\u003c");
  writeFileSync(other, readFileSync(file, "utf8").replace(ISLAND, (_, before, __, after) => before + written + after));
  return other;
}

/** Opens pages in one browser for the tests of a file. */
export function opener() {
  let browser;
  return {
    async start() {
      if (!skip) browser = await launch();
    },
    stop: () => browser?.close(),
    /** Opens a page from disk, offline, and collects errors of its scripts and requests as problems. */
    async open(options = {}, hash = "", file = page) {
      const context = await browser.newContext({ offline: true, ...options });
      const tab = await context.newPage();
      const problems = [];
      tab.on("pageerror", (error) => problems.push(error.message));
      tab.on("request", (request) => {
        if (!/^(file|data|blob):/.test(request.url())) problems.push(`fetched ${request.url()}`);
      });
      await tab.goto(pathToFileURL(file).href + hash);
      await tab.waitForSelector("#cost .figures, #changes");
      await tab.waitForSelector("#timeline canvas, #loops canvas");
      return { tab, problems };
    },
  };
}
