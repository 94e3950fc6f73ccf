//! What looking over the data came to.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One proven (or disproven) property of the data.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Check {
    /// The property: `every count equals its visible links`.
    pub name: String,
    /// How many things were looked at.
    pub examined: u64,
    /// How many of them broke the property.
    pub wrong: u64,
    /// The first few that did, in words.
    pub examples: Vec<String>,
}
