// Runs the tests of the page; a second time for a program to read, in TAP, into the file that RUMBA_PAGE_REPORTED names.
import { spawnSync } from "node:child_process";
import { readdirSync } from "node:fs";

const tests = readdirSync("test").filter((name) => name.endsWith(".test.mjs"));
const reports = process.env.RUMBA_PAGE_REPORTED;
const reporters = ["--test-reporter=spec", "--test-reporter-destination=stdout"];
if (reports) reporters.push("--test-reporter=tap", `--test-reporter-destination=${reports}`);
// Most tests wait for the browser or for a run: on two cores Node.js would take one file at a time.
const { status } = spawnSync(process.execPath, ["--test", "--test-concurrency=4", ...reporters, ...tests.map((name) => `test/${name}`)], {
  stdio: "inherit",
});
process.exit(status ?? 1);
