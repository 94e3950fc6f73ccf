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
}

impl Starts {
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
    use super::Starts;

    fn words(sides: &[(u32, u32)]) -> String {
        Starts::words(&sides.iter().map(|&(repeats, loads)| Starts { repeats, loads }).collect::<Vec<_>>())
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
    fn one_repeat_generalises_over_nothing_and_nothing_is_said_of_what_is_not_known() {
        assert_eq!(words(&[(1, 1), (1, 1)]), "");
        assert_eq!(words(&[(4, 0)]), "");
        assert_eq!(words(&[(4, 1), (1, 1)]), " from one load of each", "the side of many is generalised");
    }
}
