// Numbers for readers.

/** Three significant digits, with thousands separated. */
export function significant(value: number): string {
  const size = Math.abs(value);
  if (size === 0) return "0";
  if (size >= 100) return whole(value);
  if (size >= 10) return value.toFixed(1);
  if (size >= 0.01) return value.toFixed(2);
  if (size >= 0.0001) return value.toFixed(4);
  return value.toExponential(1);
}

/** The resolution of a short run. Figures below it have no winner and no ratio. */
export const RESOLUTION = 0.01;

/** A figure with three digits; values between zero and the resolution are marked. */
export function measured(value: number): string {
  return value > 0 && value < RESOLUTION ? `<${RESOLUTION}` : significant(value);
}

/** A price with three significant digits and at least two decimals, never in scientific notation. */
export function price(value: number): string {
  return value.toFixed(value > 0 ? Math.min(Math.max(2 - Math.floor(Math.log10(value)), 2), 12) : 2);
}

/** The unit of a table's sizes: GB as published, MB while the largest is below 10 GB. */
export function sizeUnit(largest: number): { name: string; bytes: number } {
  return largest >= 10 * 2 ** 30 ? { name: "GB", bytes: 2 ** 30 } : { name: "MB", bytes: 2 ** 20 };
}

export function bytes(value: number): string {
  const units = ["B", "KB", "MB", "GB", "TB"];
  let unit = 0;
  while (Math.abs(value) >= 1024 && unit + 1 < units.length) {
    value /= 1024;
    unit += 1;
  }
  return `${unit === 0 ? value.toFixed(0) : significant(value)} ${units[unit]}`;
}

/** An integer, with thousands separated. */
export function whole(value: number): string {
  return Math.round(value).toLocaleString("en-US").replaceAll(",", "\u2009");
}

export function milliseconds(value: number): string {
  if (value >= 10) return whole(value);
  const decimals = value >= 1 ? 1 : value >= 0.1 ? 2 : value >= 0.01 ? 3 : 4;
  return value > 0 && value < 0.00005 ? "<0.0001" : value.toFixed(decimals);
}

/** A ratio to the baseline, without the multiplication sign. */
export function ratio(value: number): string {
  if (value > 0 && value < 0.005) return "<0.01";
  return value >= 100 ? value.toFixed(0) : value >= 10 ? value.toFixed(1) : value.toFixed(2);
}

export function percent(share: number): string {
  const value = share * 100;
  if (value > 1000) return ">1000%";
  return `${value < 10 ? value.toFixed(1) : value.toFixed(0)}%`;
}

/** `1 repeat`, `3 repeats`. */
export function counted(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? "" : "s"}`;
}

/** Tick labels: short, thousands as k, millions as M. */
export function tick(value: number): string {
  const size = Math.abs(value);
  if (size >= 1e6) return `${Number((value / 1e6).toPrecision(3))}M`;
  if (size >= 1e4) return `${Number((value / 1e3).toPrecision(3))}k`;
  return String(Number(value.toPrecision(3)));
}

export function seconds(value: number): string {
  if (value > 0 && value < 0.95) return `${Math.max(1, Math.round(value * 1000))} ms`;
  if (value < 120) return `${Number(value.toFixed(value < 10 ? 1 : 0))} s`;
  const minutes = Math.floor(value / 60);
  const rest = Math.round(value - minutes * 60);
  if (minutes < 60) return rest ? `${minutes} min ${rest} s` : `${minutes} min`;
  return `${Math.floor(minutes / 60)} h ${minutes % 60 ? `${minutes % 60} min` : ""}`.trim();
}
