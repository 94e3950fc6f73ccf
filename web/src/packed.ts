// Series of numbers in the format of crates/report/src/packed.rs: four digits each, in two bytes, as base64.

/** `EXPONENT:BASE64`, or a list if a number is negative. */
export type Packed = string | (number | null)[];

/** The number of codes below the first decade with four digits, and of each decade. */
const UNITS = 10_000;
const DECADE = 9_000;

const known = new Map<string, (number | null)[]>();
/** The size of the cache, which is limited because the page of a running experiment gets new series each second. */
const KEPT = 4_000;

/** The numbers of a series. Each series is unpacked once. */
export function unpacked(packed: Packed | undefined): (number | null)[] {
  if (typeof packed !== "string") return packed ?? [];
  const before = known.get(packed);
  if (before) return before;
  const values = numbers(packed);
  if (known.size >= KEPT) known.clear();
  known.set(packed, values);
  return values;
}

function numbers(packed: string): (number | null)[] {
  const [exponent, encoded] = packed.split(":");
  const power = Number(exponent);
  const bytes = atob(encoded ?? "");
  return Array.from({ length: bytes.length / 2 }, (_, index) => number(bytes.charCodeAt(2 * index) + 256 * bytes.charCodeAt(2 * index + 1), power));
}

function number(code: number, power: number): number | null {
  if (code === 0) return null;
  if (code <= UNITS) return scaled(code - 1, power);
  const decade = Math.floor((code - 1 - UNITS) / DECADE);
  return scaled(1000 + ((code - 1 - UNITS) % DECADE), power + 1 + decade);
}

/** Multiplies by a power of ten, and rounds to the nearest number. */
function scaled(digits: number, power: number): number {
  return power >= 0 ? digits * 10 ** power : digits / 10 ** -power;
}
