// Every interval has its point, for any length of the experiment's intervals, and engines share positions.
import assert from "node:assert/strict";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { runnerImport } from "vite";

const file = fileURLToPath(new URL("../src/places.ts", import.meta.url));
const { module: places } = await runnerImport(file, { configFile: false, logLevel: "error" });

/** This number of samples, with this distance in seconds, each a little late. */
const samples = (count, apart, late) => Array.from({ length: count }, (_, index) => Number((index * apart + late(index)).toFixed(3)));

test("each sample has its own position, for any distance", () => {
  for (const apart of [0.1, 0.25, 1, 5]) {
    const at = samples(200, apart, (index) => (index % 7) * apart * 0.02);
    const placed = at.map(places.placing(at));
    assert.equal(new Set(placed).size, at.length, `${apart} s`);
    assert.ok(placed.every((place, index) => Math.abs(place - at[index]) <= Math.min(0.25, apart / 4) + 1e-9), `${apart} s`);
  }
});

test("engines that were sampled at about the same time share their positions", () => {
  const [one, other] = [samples(100, 1, () => 0.02), samples(100, 1, () => 0.15)];
  assert.deepEqual(one.map(places.placing(one)), other.map(places.placing(other)));
});

test("the spacing of points is their median distance", () => {
  assert.equal(places.spacing([0, 1, 2, 9, 10, 11]), 1);
  assert.ok(Math.abs(places.spacing(samples(50, 0.1, () => 0)) - 0.1) < 1e-9);
  assert.equal(places.spacing([3]), 1);
});
