// Every interval has its point, however short the experiment's intervals are, and engines share places.
import assert from "node:assert/strict";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { runnerImport } from "vite";

const file = fileURLToPath(new URL("../src/places.ts", import.meta.url));
const { module: places } = await runnerImport(file, { configFile: false, logLevel: "error" });

/** So many looks, so many seconds apart and each a little late. */
const looks = (count, apart, late) => Array.from({ length: count }, (_, index) => Number((index * apart + late(index)).toFixed(3)));

test("each look has a place of its own, whatever lies between them", () => {
  for (const apart of [0.1, 0.25, 1, 5]) {
    const at = looks(200, apart, (index) => (index % 7) * apart * 0.02);
    const placed = at.map(places.placing(at));
    assert.equal(new Set(placed).size, at.length, `${apart} s`);
    assert.ok(placed.every((place, index) => Math.abs(place - at[index]) <= Math.min(0.25, apart / 4) + 1e-9), `${apart} s`);
  }
});

test("engines that were looked at at about the same time share their places", () => {
  const [one, other] = [looks(100, 1, () => 0.02), looks(100, 1, () => 0.15)];
  assert.deepEqual(one.map(places.placing(one)), other.map(places.placing(other)));
});

test("points lie apart as most of them do", () => {
  assert.equal(places.spacing([0, 1, 2, 9, 10, 11]), 1);
  assert.ok(Math.abs(places.spacing(looks(50, 0.1, () => 0)) - 0.1) < 1e-9);
  assert.equal(places.spacing([3]), 1);
});
