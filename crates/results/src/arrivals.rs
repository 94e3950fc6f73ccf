//! An open loop with a variable rate: steps, ramps, bursts.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How a rate changes from one point to the next.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RateShape {
    /// It stays constant until the next point.
    #[default]
    Step,
    /// It changes along a straight line.
    Ramp,
}

impl RateShape {
    /// Every shape, by the name an experiment uses.
    pub const NAMES: [(&'static str, RateShape); 2] = [("step", RateShape::Step), ("ramp", RateShape::Ramp)];
}

/// Operations per second as a function of the time since the start of the loops. After the last point the rate stays
/// constant, or the schedule repeats if it has a period.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Arrivals {
    /// Seconds since the loops' start, ascending from 0, and the rate from there on, operations per second.
    pub points: Vec<(f64, f64)>,
    /// How the rate changes from one point to the next.
    #[serde(default)]
    pub shape: RateShape,
    /// The period after which the points repeat, seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub period_s: Option<f64>,
}

/// The interval between two points.
struct Segment {
    from_s: f64,
    /// Infinite for the last without a period.
    to_s: f64,
    /// The rate at its start, per second.
    rate: f64,
    /// The growth of the rate per second.
    slope: f64,
}

impl Segment {
    /// The expected arrivals from `at_s` to `to_s`, both inside the interval.
    fn count(&self, at_s: f64, to_s: f64) -> f64 {
        let rate = self.rate + self.slope * (at_s - self.from_s);
        let seconds = to_s - at_s;
        match (rate == 0.0, self.slope == 0.0) {
            // Zero for any duration.
            (true, true) => 0.0,
            (_, true) => seconds * rate,
            _ => seconds * (rate + 0.5 * self.slope * seconds),
        }
    }
}

impl Arrivals {
    /// The rate before the loops, in the warmup: the first that is above zero.
    pub fn first_rate(&self) -> f64 {
        self.points.iter().map(|(_, rate)| *rate).find(|rate| *rate > 0.0).unwrap_or_default()
    }

    /// The mean rate over this many seconds from the loops' start.
    pub fn mean_rate(&self, seconds: f64) -> f64 {
        self.count(seconds) / seconds
    }

    /// The expected number of arrivals in this many seconds from the loops' start: the integral of the rate.
    pub fn count(&self, seconds: f64) -> f64 {
        let of_one = |until_s: f64| -> f64 {
            let begun = self.segments().take_while(|segment| segment.from_s < until_s);
            begun.map(|segment| segment.count(segment.from_s, segment.to_s.min(until_s))).sum()
        };
        match self.period_s {
            Some(period_s) => (seconds / period_s).floor() * of_one(period_s) + of_one(seconds % period_s),
            None => of_one(seconds),
        }
    }

    /// The time, in seconds since the loops' start, at which this many more arrivals than at `from_s` are expected. It
    /// is the inverse of the integral, computed from there in steps of whole periods. `None` if it is never reached.
    pub fn after_s(&self, from_s: f64, arrivals: f64) -> Option<f64> {
        // Even zero arrivals must skip an interval with a rate of zero.
        let mut left = arrivals.max(f64::MIN_POSITIVE);
        let (mut base_s, mut at_s) = match self.period_s {
            Some(period_s) => ((from_s / period_s).floor() * period_s, from_s % period_s),
            None => (0.0, from_s),
        };
        loop {
            let begun_s = at_s;
            for segment in self.segments().filter(|segment| segment.to_s > begun_s) {
                let start_s = at_s.max(segment.from_s);
                let within = segment.count(start_s, segment.to_s);
                if left <= within {
                    let rate = segment.rate + segment.slope * (start_s - segment.from_s);
                    // The root of slope/2 · t² + rate · t = left, in the numerically stable form.
                    let root = (rate * rate + 2.0 * segment.slope * left).max(0.0).sqrt();
                    return Some(base_s + start_s + 2.0 * left / (rate + root));
                }
                left -= within;
                at_s = segment.to_s;
            }
            let period_s = self.period_s?;
            let in_period = self.count(period_s);
            if in_period == 0.0 {
                return None;
            }
            // Skips whole periods at once, up to the one with the last arrival.
            let whole = ((left / in_period).ceil() - 1.0).max(0.0);
            left = (left - whole * in_period).max(f64::MIN_POSITIVE);
            base_s += period_s * (1.0 + whole);
            at_s = 0.0;
        }
    }

    fn segments(&self) -> impl Iterator<Item = Segment> + '_ {
        let end_s = self.period_s.unwrap_or(f64::INFINITY);
        self.points.iter().enumerate().map(move |(number, &(from_s, rate))| {
            let Some(&(to_s, next)) = self.points.get(number + 1) else {
                return Segment { from_s, to_s: end_s, rate, slope: 0.0 };
            };
            let slope = match self.shape {
                RateShape::Step => 0.0,
                RateShape::Ramp => (next - rate) / (to_s - from_s),
            };
            Segment { from_s, to_s, rate, slope }
        })
    }
}

impl fmt::Display for Arrivals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let points: Vec<String> = self.points.iter().map(|(at_s, rate)| format!("{rate}/s at {at_s} s")).collect();
        let way = match self.shape {
            RateShape::Step => "in steps",
            RateShape::Ramp => "along ramps",
        };
        write!(f, "{} {way}", points.join(", "))?;
        self.period_s.map_or(Ok(()), |period_s| write!(f, ", again every {period_s} s"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arrivals(points: &[(f64, f64)], shape: RateShape, period_s: Option<f64>) -> Arrivals {
        Arrivals { points: points.to_vec(), shape, period_s }
    }

    #[test]
    fn the_integral_of_steps_ramps_and_bursts_is_known_by_hand() {
        let points = [(0.0, 1000.0), (60.0, 5000.0)];
        let steps = arrivals(&points, RateShape::Step, None);
        assert_eq!((steps.count(30.0), steps.count(60.0), steps.count(61.0)), (30_000.0, 60_000.0, 65_000.0));
        let ramp = arrivals(&points, RateShape::Ramp, None);
        assert_eq!((ramp.count(30.0), ramp.count(60.0), ramp.count(70.0)), (60_000.0, 180_000.0, 230_000.0));
        let bursts = arrivals(&[(0.0, 100.0), (9.0, 2000.0)], RateShape::Step, Some(10.0));
        assert_eq!((bursts.count(9.0), bursts.count(10.0), bursts.count(25.0)), (900.0, 2900.0, 6300.0));
        assert_eq!(bursts.mean_rate(10.0), 290.0);
    }

    #[test]
    fn nth_arrival_is_when_rate_integral_reaches_n() {
        let all = [
            arrivals(&[(0.0, 1000.0), (60.0, 5000.0)], RateShape::Step, None),
            arrivals(&[(0.0, 0.0), (10.0, 5000.0), (20.0, 200.0)], RateShape::Ramp, None),
            arrivals(&[(0.0, 0.0), (0.5, 3000.0), (0.75, 0.0)], RateShape::Step, Some(1.0)),
        ];
        for arrivals in all {
            let mut at_s = 0.0;
            for number in 1..=20_000 {
                at_s = arrivals.after_s(at_s, 1.0).unwrap();
                let counted = arrivals.count(at_s);
                assert!((counted - f64::from(number)).abs() < 1e-5, "{arrivals}: {number} at {at_s}: {counted}");
            }
            let at_once = arrivals.after_s(0.0, 20_000.0).unwrap();
            assert!((at_once - at_s).abs() < 1e-8, "{arrivals}: {at_once} {at_s}");
        }
    }

    #[test]
    fn arrivals_stay_exact_after_many_periods() {
        let bursts = arrivals(&[(0.0, 100.0), (9.0, 2000.0)], RateShape::Step, Some(10.0));
        // A year of periods: 2900 in each; the last one has 900 and half of the burst.
        let periods = 3_153_600.0;
        let at_s = bursts.after_s(0.0, 2900.0 * periods + 1900.0).unwrap();
        assert!((at_s - (10.0 * periods + 9.5)).abs() < 1e-6, "{at_s}");
        assert_eq!(arrivals(&[(0.0, 0.0)], RateShape::Step, Some(1.0)).after_s(0.0, 1.0), None);
    }

    #[test]
    fn final_rate_of_zero_ends_arrivals_and_pauses_are_skipped() {
        let ended = arrivals(&[(0.0, 10.0), (1.0, 0.0)], RateShape::Step, None);
        assert_eq!(ended.after_s(0.0, 10.0), Some(1.0));
        assert_eq!(ended.after_s(1.0, 0.1), None);
        let pause = arrivals(&[(0.0, 10.0), (1.0, 0.0), (5.0, 10.0)], RateShape::Step, None);
        assert!((pause.after_s(1.0, 1.0).unwrap() - 5.1).abs() < 1e-12);
        assert_eq!(arrivals(&[(0.0, 0.0), (5.0, 7.0)], RateShape::Ramp, None).first_rate(), 7.0);
    }
}
