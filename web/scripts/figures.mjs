// The figures of `rumba report --json` as they are committed: `… --json | node scripts/figures.mjs > NAME.json`.
// Left out are the percentile spectra of single loops, which are most of its size; `loops` keeps its own.
import { readFileSync } from "node:fs";

const figures = JSON.parse(readFileSync(0, "utf8"));
for (const trial of figures.trials) {
  for (const phase of trial.phases) {
    if (phase.phase === "loops") continue;
    for (const op of Object.values(phase.op_types)) delete op.spectrum;
  }
}
process.stdout.write(`${JSON.stringify(figures)}\n`);
