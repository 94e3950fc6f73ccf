//! What repeats started from: what a verdict over them generalises over.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The repeats behind a figure, and the loads that they started from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Starts {
    /// How many repeats the figures are of.
    pub repeats: u32,
    /// How many loads: one with many starts says nothing of how another would have come out. 0 where it is not known.
    pub loads: u32,
    /// The most repeats that a run could have had which ends once every headline is decided; 0 where their number was
    /// fixed.
    #[serde(default, skip_serializing_if = "is_fixed")]
    pub at_most: u32,
}

fn is_fixed(at_most: &u32) -> bool {
    *at_most == 0
}

/// The first number of repeats after which a run that ends once everything is decided looks at its verdicts. Of four
/// repeats only complete separation decides.
pub const FIRST_LOOK: u32 = 5;

/// How fast the correction grows with the logarithm of the number of looks; by simulation, see docs/method.md.
const PER_LOG_OF_LOOKS: f64 = 3.1;

/// What a verdict holds for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Scope {
    /// For other loads of the same data too: every figure is of a load of its own.
    #[default]
    Loads,
    /// For this load only: several figures of a side are starts of one load, which say nothing about how another load of
    /// the same data would have come out.
    ThisLoad,
}

impl Scope {
    /// What stands behind a verdict: ` for this load`; empty where it holds for others.
    pub fn words(self) -> &'static str {
        match self {
            Scope::Loads => "",
            Scope::ThisLoad => " for this load",
        }
    }
}

impl Starts {
    /// What a verdict over figures of these sides holds for.
    pub fn scope(sides: &[Self]) -> Scope {
        let shares_load = |side: &Self| side.loads > 0 && side.loads < side.repeats;
        if sides.iter().any(shares_load) { Scope::ThisLoad } else { Scope::Loads }
    }

    /// What a p-value over figures of these sides is multiplied by. A run that looks after every repeat and stops when it
    /// likes what it sees would err far more often than in 5% of cases; with this factor it errs in at most 5%, whenever it
    /// stops. 1 where the number of repeats was fixed.
    pub fn looks_factor(sides: &[Self]) -> f64 {
        let at_most = sides.iter().map(|side| side.at_most).max().unwrap_or(0);
        1.0 + PER_LOG_OF_LOOKS * f64::from(at_most.max(FIRST_LOOK)).ln() - PER_LOG_OF_LOOKS * f64::from(FIRST_LOOK).ln()
    }

    /// Behind the number of repeats of each side, what they started from: ` from one load`, `, each from its own load`.
    /// Empty where no side has a second repeat, or where the loads are not known: nothing is generalised then.
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
    use super::{Scope, Starts};

    fn words(sides: &[(u32, u32)]) -> String {
        Starts::words(&sides.iter().map(|&(repeats, loads)| Starts { repeats, loads, at_most: 0 }).collect::<Vec<_>>())
    }

    #[test]
    fn one_load_and_many_are_told_apart() {
        assert_eq!(words(&[(4, 1)]), " from one load");
        assert_eq!(words(&[(4, 1), (3, 1)]), " from one load of each");
        assert_eq!(words(&[(4, 4), (3, 3)]), ", each from its own load");
        assert_eq!(words(&[(4, 1), (4, 4)]), " from 1 and 4 loads");
        assert_eq!(words(&[(4, 2)]), " from 2 loads");
    }

    #[test]
    fn p_values_of_a_run_that_may_stop_early_are_multiplied() {
        let factor = |at_most: &[u32]| {
            Starts::looks_factor(
                &at_most.iter().map(|&at_most| Starts { at_most, ..Starts::default() }).collect::<Vec<_>>(),
            )
        };
        assert_eq!((factor(&[0, 0]), factor(&[5, 5])), (1.0, 1.0));
        assert!((factor(&[20, 20]) - 5.3).abs() < 0.01, "{}", factor(&[20, 20]));
        assert_eq!(factor(&[0, 20]), factor(&[20, 20]), "one such side is enough");
    }

    #[test]
    fn a_verdict_over_starts_of_one_load_holds_for_this_load_only() {
        let scope = |sides: &[(u32, u32)]| {
            Starts::scope(
                &sides.iter().map(|&(repeats, loads)| Starts { repeats, loads, at_most: 0 }).collect::<Vec<_>>(),
            )
        };
        assert_eq!(scope(&[(4, 4), (4, 4)]), Scope::Loads);
        assert_eq!(scope(&[(4, 1), (4, 4)]), Scope::ThisLoad, "one such side is enough");
        assert_eq!(scope(&[(4, 2)]), Scope::ThisLoad, "a load that was made again on resume does not make four");
        assert_eq!(scope(&[(1, 1), (1, 1)]), Scope::Loads, "one repeat has no verdict");
    }

    #[test]
    fn single_repeat_or_unknown_loads_add_no_scope_note() {
        assert_eq!(words(&[(1, 1), (1, 1)]), "");
        assert_eq!(words(&[(4, 0)]), "");
        assert_eq!(words(&[(4, 1), (1, 1)]), " from one load of each", "the side of many is generalised");
    }
}
