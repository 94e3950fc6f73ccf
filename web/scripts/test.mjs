// Runs the tests of the page. It also writes the results in TAP to the file that RUMBA_PAGE_REPORTED names.
import { spawnSync } from "node:child_process";
import { readdirSync } from "node:fs";

const tests = readdirSync("test").filter((name) => name.endsWith(".test.mjs"));
const reports = process.env.RUMBA_PAGE_REPORTED;
const reporters = ["--test-reporter=spec", "--test-reporter-destination=stdout"];
if (reports) reporters.push("--test-reporter=tap", `--test-reporter-destination=${reports}`);
// Most tests wait for the browser or for a run. By default, Node.js would run one file at a time on two cores.
const { status } = spawnSync(process.execPath, ["--test", "--test-concurrency=4", ...reporters, ...tests.map((name) => `test/${name}`)], {
  stdio: "inherit",
});
process.exit(status ?? 1);
