//! Computes the repeats that detect a difference, from the noise of a pilot.

use rumba_results::comparison::{Figure, Part, Row, Summary};
use rumba_results::detection::{Detection, DetectionRow, LEAST_PILOT_REPEATS, Needed};
use rumba_results::headline::CpuHeadline;
use rumba_results::ratio::LEVEL;
use rumba_results::results::Results;

use crate::planning::{POWER, Undecided, noise_interval, pooled_deviation, repeats};
use crate::ratios::LEAST_REPEATS;
use crate::relative::headlines;

/// The repeats needed to detect this difference (0.05 is 5%) between every two engines of a pilot.
pub fn detection(results: &Results, summary: &Summary, change: f64) -> Detection {
    let minutes_of_a_repeat = minutes_of_a_repeat(results);
    let mut rows = Vec::new();
    for (index, base) in summary.rows.iter().enumerate() {
        let is_pair = |row: &&Row| row.clients == base.clients && row.test == base.test;
        for other in summary.rows[index + 1..].iter().filter(is_pair) {
            rows.extend(of_pair(base, other, change, minutes_of_a_repeat));
        }
    }
    Detection { change, power: POWER, minutes_of_a_repeat, rows }
}

/// The total time of all trials divided by the most repeats of an engine.
fn minutes_of_a_repeat(results: &Results) -> f64 {
    let records = || results.trials.iter().map(|trial| &trial.record);
    let seconds = |phases: &[rumba_results::record::PhaseRecord]| {
        phases.iter().map(|phase| phase.start_s + phase.seconds).fold(0.0, f64::max)
    };
    let all: f64 = records().map(|record| seconds(&record.phases)).sum();
    let repeats = records().map(|record| record.plan.repeat).max().unwrap_or(1).max(1);
    all / f64::from(repeats) / 60.0
}

fn of_pair(base: &Row, other: &Row, change: f64, minutes: f64) -> Vec<DetectionRow> {
    let unsound = base.why_not_judged(Part::Run).or_else(|| other.why_not_judged(Part::Run));
    let (Some(base_run), Some(other_run)) = (&base.run, &other.run) else { return Vec::new() };
    let cpu = CpuHeadline::of([(base.engine.as_str(), base_run), (other.engine.as_str(), other_run)]);
    let of_other: Vec<_> = headlines(other_run, Part::Run, &cpu).collect();
    let row = |metric: String, base_figure: &Figure, other_figure: &Figure| {
        let noise = unsound.clone().map_or_else(|| noise(base_figure, other_figure), Err);
        let (noise, reason) = match noise {
            Ok(noise) => (Some(noise), None),
            Err(reason) => (None, Some(reason)),
        };
        let needed = |pick: fn(&Noise) -> f64| {
            let repeats = noise.as_ref().and_then(|noise| needed(pick(noise), change));
            Needed { repeats, minutes: repeats.map(|repeats| f64::from(repeats) * minutes) }
        };
        DetectionRow {
            base: base.engine.clone(),
            engine: other.engine.clone(),
            clients: base.clients,
            metric,
            pilot_repeats: base_figure.numbers().len().min(other_figure.numbers().len()) as u32,
            noise: noise.as_ref().map(|noise| noise.deviation),
            noise_interval: noise.as_ref().map(|noise| noise.interval),
            needed: needed(|noise| noise.deviation),
            at_least: needed(|noise| noise.interval.0),
            at_most: needed(|noise| noise.interval.1),
            reason,
        }
    };
    let of_both = headlines(base_run, Part::Run, &cpu).filter_map(|headline| {
        let same = of_other.iter().find(|other| other.metric == headline.metric)?;
        Some(row(headline.metric, headline.figure, same.figure))
    });
    of_both.collect()
}

struct Noise {
    /// Standard deviation of logarithms.
    deviation: f64,
    /// Its 90% interval.
    interval: (f64, f64),
}

fn noise(base: &Figure, other: &Figure) -> Result<Noise, String> {
    if let Some(why) = base.lacking().or_else(|| other.lacking()) {
        return Err(why);
    }
    let sides = [base.numbers(), other.numbers()];
    let fewest = sides.each_ref().map(Vec::len).into_iter().min().unwrap_or(0);
    if fewest < LEAST_PILOT_REPEATS as usize {
        return Err(format!("{fewest} repeats are too few to estimate noise: a pilot takes {LEAST_PILOT_REPEATS}"));
    }
    if sides.iter().flatten().any(|number| *number <= 0.0) {
        return Err("a repeat is zero or less, so there is no relative difference".to_owned());
    }
    let [base, other] = sides.map(|side| side.iter().map(|number| number.ln()).collect::<Vec<f64>>());
    let deviation = pooled_deviation(&[&base, &other]).ok_or("a single repeat has no noise")?;
    let freedom = (base.len() + other.len() - 2) as f64;
    Ok(Noise { deviation, interval: noise_interval(deviation, freedom) })
}

fn needed(noise: f64, change: f64) -> Option<u32> {
    // For a rise and a fall by the same percentage, the rise is the smaller factor.
    let distance = change.ln_1p();
    repeats(&Undecided { noise, distance, alpha: (1.0 - LEVEL) / 2.0, samples: 2.0, least: LEAST_REPEATS })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::summarise;
    use crate::testing::{at_rates, results};

    fn pilot([a, b]: [&[f64]; 2]) -> Results {
        results([at_rates("a", a), at_rates("b", b)].concat())
    }

    fn rate(results: &Results, change: f64) -> DetectionRow {
        let found = detection(results, &summarise(results), change);
        found.rows.into_iter().find(|row| row.metric == "ops_per_s").unwrap()
    }

    #[test]
    fn pilot_reports_repeats_and_minutes_for_a_difference() {
        let noisy = pilot([&[100.0, 105.0, 95.0], &[200.0, 210.0, 190.0]]);
        let found = rate(&noisy, 0.05);
        assert_eq!((found.base.as_str(), found.engine.as_str(), found.pilot_repeats), ("a", "b", 3));
        assert!((found.noise.unwrap() - 0.05).abs() < 0.001, "{found:?}");
        // 2 * (0.05 / 0.0488)^2 * (1.96 + 1.28)^2 + 1.92
        assert_eq!(found.needed.repeats, Some(25), "{found:?}");
        let (low, high) = found.noise_interval.unwrap();
        assert!((low / 0.05 - 0.65).abs() < 0.02 && (high / 0.05 - 2.37).abs() < 0.05, "{low} {high}");
        assert!(found.at_least.repeats < found.needed.repeats && found.needed.repeats < found.at_most.repeats);
        let whole = detection(&noisy, &summarise(&noisy), 0.05);
        assert!((found.needed.minutes.unwrap() - 25.0 * whole.minutes_of_a_repeat).abs() < 1e-9);
        assert!(rate(&noisy, 0.2).needed.repeats.unwrap() < 5);
    }

    #[test]
    fn quiet_pilot_needs_fewest_repeats_and_two_are_no_pilot() {
        let quiet = pilot([&[100.0, 100.1, 99.9], &[200.0, 200.1, 199.9]]);
        assert_eq!(rate(&quiet, 0.05).needed.repeats, Some(LEAST_REPEATS));
        let short = rate(&pilot([&[100.0, 100.1], &[200.0, 200.1]]), 0.05);
        assert_eq!((short.noise, short.needed.repeats), (None, None));
        assert!(short.reason.unwrap().contains("2 repeats are too few"));
    }
}
