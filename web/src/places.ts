// Where the points of a timeline lie.

/** Seconds between a trial's points: most lie as far apart as the experiment's interval says. */
export function spacing(at_s: number[]): number {
  const gaps = at_s.slice(1).map((at, index) => at - (at_s[index] ?? at));
  const sorted = gaps.filter((gap) => gap > 0).sort((a, b) => a - b);
  return sorted[Math.floor(sorted.length / 2)] ?? 1;
}

/** Where points are drawn: those of several engines that lie within a quarter of a second, or of the spacing, share a place. */
export function placing(at_s: number[]): (at: number) => number {
  const perSecond = Math.max(2, Math.round(2 / spacing(at_s)));
  return (at) => Math.round(at * perSecond) / perSecond;
}
