// Positions of the points of a timeline.

/** The median of the seconds between a trial's points, which is usually the experiment's interval. */
export function spacing(at_s: number[]): number {
  const gaps = at_s.slice(1).map((at, index) => at - (at_s[index] ?? at));
  const sorted = gaps.filter((gap) => gap > 0).sort((a, b) => a - b);
  return sorted[Math.floor(sorted.length / 2)] ?? 1;
}

/** The positions of points. Points of several engines within a quarter of a second, or of the spacing, share a position. */
export function placing(at_s: number[]): (at: number) => number {
  const perSecond = Math.max(2, Math.round(2 / spacing(at_s)));
  return (at) => Math.round(at * perSecond) / perSecond;
}
