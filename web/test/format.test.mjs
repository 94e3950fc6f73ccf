// Numbers and units look the same in the page and in the terminal's tables: `crates/report/src/format.rs` is tested with
// the same cases. The tests remove the thin spaces that the page inserts between thousands.
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { runnerImport } from "vite";

const here = (path) => fileURLToPath(new URL(path, import.meta.url));
const cases = JSON.parse(await readFile(here("formats.json"), "utf8"));
const { module: format } = await runnerImport(here("../src/format.ts"), { configFile: false, logLevel: "error" });

const shown = {
  significant: format.significant,
  price: format.price,
  milliseconds: format.milliseconds,
  ratio: format.ratio,
  percent: format.percent,
  repeats: (count) => format.counted(count, "repeat"),
  size_unit: (largest) => format.sizeUnit(largest).name,
};

for (const [what, show] of Object.entries(shown)) {
  test(`${what} is as in the tables`, () => {
    for (const [value, text] of cases[what]) {
      assert.equal(show(value).replaceAll("\u2009", ""), text, `${what} of ${value}`);
    }
  });
}

test("what is below the resolution is so for both", () => assert.equal(format.RESOLUTION, cases.resolution));
