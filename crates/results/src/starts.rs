//! The loads behind the repeats, which decide how far a verdict generalises.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The repeats behind a figure, and the loads that they started from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Starts {
    /// The number of repeats behind the figures.
    pub repeats: u32,
    /// The number of loads; one load with many starts does not show how another load would differ. 0 if it is not
    /// known.
    pub loads: u32,
    /// The most repeats that a run with early stopping could have had; absent if their number was fixed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_most: Option<u32>,
}

/// The first number of repeats after which a run with early stopping checks its verdicts. With four repeats, only
/// complete separation decides.
pub const FIRST_LOOK: u32 = 5;

/// The growth of the correction with the logarithm of the number of checks; by simulation, see docs/method.md.
const PER_LOG_OF_LOOKS: f64 = 3.1;

/// The scope of a verdict.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Scope {
    /// Other loads of the same data too, because every figure is of a separate load.
    #[default]
    Loads,
    /// This load only: several figures of a side are starts of one load, so that nothing is known about other loads of
    /// the same data.
    ThisLoad,
}

impl Scope {
    /// The suffix of a verdict: ` for this load`; empty if it holds for other loads.
    pub fn words(self) -> &'static str {
        match self {
            Scope::Loads => "",
            Scope::ThisLoad => " for this load",
        }
    }
}

impl Starts {
    /// The scope of a verdict over figures of these sides.
    pub fn scope(sides: &[Self]) -> Scope {
        let shares_load = |side: &Self| side.loads > 0 && side.loads < side.repeats;
        if sides.iter().any(shares_load) { Scope::ThisLoad } else { Scope::Loads }
    }

    /// The factor by which a p-value over figures of these sides is multiplied. A run that checks its verdicts after
    /// every repeat, and stops once they are decided, would err in far more than 5% of cases. With this factor it errs
    /// in at most 5%, at any stopping time. The factor is 1 if the number of repeats was fixed.
    pub fn looks_factor(sides: &[Self]) -> f64 {
        let at_most = sides.iter().filter_map(|side| side.at_most).fold(FIRST_LOOK, u32::max);
        1.0 + PER_LOG_OF_LOOKS * (f64::from(at_most) / f64::from(FIRST_LOOK)).ln()
    }

    /// The loads behind the repeats of each side, to follow their number: ` from one load`, `, each from its own load`.
    /// Empty if no side has a second repeat, or if the loads are not known, because nothing is generalised then.
    pub fn words(sides: &[Self]) -> String {
        let known = sides.iter().all(|side| side.loads > 0);
        if !known || sides.iter().all(|side| side.repeats < 2) {
            return String::new();
        }
        if sides.iter().all(|side| side.loads >= side.repeats) {
            return ", each from its own load".to_owned();
        }
        if sides.iter().all(|side| side.loads == 1) {
            return if sides.len() > 1 { " from one load of each" } else { " from one load" }.to_owned();
        }
        let loads: Vec<String> = sides.iter().map(|side| side.loads.to_string()).collect();
        format!(" from {} loads", loads.join(" and "))
    }
}

#[cfg(test)]
mod tests {
    use super::Scope::{Loads, ThisLoad};
    use super::Starts;

    #[test]
    fn loads_behind_the_repeats_are_named_and_limit_the_scope() {
        for (sides, words, scope) in [
            (&[(4, 1)][..], " from one load", ThisLoad),
            (&[(4, 1), (3, 1)], " from one load of each", ThisLoad),
            (&[(4, 4), (3, 3)], ", each from its own load", Loads),
            // One such side is enough.
            (&[(4, 1), (4, 4)], " from 1 and 4 loads", ThisLoad),
            // A load that was made again on resume does not make four.
            (&[(4, 2)], " from 2 loads", ThisLoad),
            // One repeat has no verdict, but a side with many is generalised.
            (&[(1, 1), (1, 1)], "", Loads),
            (&[(4, 1), (1, 1)], " from one load of each", ThisLoad),
            (&[(4, 0)], "", Loads),
        ] {
            let starts = sides.iter().map(|&(repeats, loads)| Starts { repeats, loads, at_most: None });
            let starts: Vec<Starts> = starts.collect();
            assert_eq!((Starts::words(&starts).as_str(), Starts::scope(&starts)), (words, scope), "{sides:?}");
        }
    }

    #[test]
    fn p_values_of_a_run_that_may_stop_early_are_multiplied() {
        let factor = |at_most: [Option<u32>; 2]| {
            Starts::looks_factor(&at_most.map(|at_most| Starts { at_most, ..Starts::default() }))
        };
        assert_eq!((factor([None, None]), factor([Some(5), Some(5)])), (1.0, 1.0));
        assert!((factor([Some(20), Some(20)]) - 5.3).abs() < 0.01, "{}", factor([Some(20), Some(20)]));
        assert_eq!(factor([None, Some(20)]), factor([Some(20), Some(20)]), "one such side is enough");
    }
}
