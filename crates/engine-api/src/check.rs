//! Results of checking the data.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The most faults that a check describes in words.
pub const EXAMPLES: usize = 5;

/// One proven (or disproven) property of the data.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Check {
    /// The property: `every count equals its visible links`.
    pub name: String,
    /// The number of items checked.
    pub examined: u64,
    /// The number of items that broke the property.
    pub wrong: u64,
    /// The first few that did, in words.
    pub examples: Vec<String>,
}

impl Check {
    /// A property without any checked item yet.
    pub fn new(name: impl Into<String>) -> Self {
        Self { name: name.into(), examined: 0, wrong: 0, examples: Vec::new() }
    }

    /// Counts one more fault, with its description.
    pub fn fail(&mut self, words: impl FnOnce() -> String) {
        self.wrong += 1;
        keep_example(&mut self.examples, words);
    }
}

/// Adds a description of a fault, if it is among the first few.
pub fn keep_example(examples: &mut Vec<String>, words: impl FnOnce() -> String) {
    if examples.len() < EXAMPLES {
        examples.push(words());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_errors_are_counted_and_the_first_few_are_reported() {
        let mut check = Check::new("every row is there");
        for row in 1..=7 {
            check.fail(|| if row <= 5 { format!("row {row}") } else { panic!("words for row {row}") });
        }
        assert_eq!((check.examined, check.wrong), (0, 7));
        assert_eq!(check.examples, ["row 1", "row 2", "row 3", "row 4", "row 5"]);
    }
}
