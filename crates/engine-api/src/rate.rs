//! The rate that a workload's specification reports, under its own name.
//!
//! A type of operation that has a [`Rate`] makes the metric of that name, in operations per minute, and metrics derived
//! from it, whose names add a suffix.

use std::borrow::Cow;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The rate of one type of operation, operations per minute, under the name by which it is reported.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Rate {
    /// The metric's name: `tpm` and what follows it.
    pub name: Cow<'static, str>,
    /// The most that the workload's own pace allows, if it sets one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub most: Option<f64>,
}

impl Rate {
    /// The name of the metric with the reached share of the limit.
    pub fn percent(&self) -> String {
        format!("{}_percent", self.name)
    }

    /// The name of the metric with the growth of the data per operation.
    pub fn growth_per_op(&self) -> String {
        format!("{}_growth_bytes_per_op", self.name)
    }

    /// The name of the metric with the growth of the data in eight hours at this rate.
    pub fn growth_per_8h(&self) -> String {
        format!("{}_growth_bytes_per_8h", self.name)
    }

    /// The names of all metrics that it makes.
    pub fn metrics(&self) -> impl Iterator<Item = String> {
        let percent = self.most.map(|_| self.percent());
        [self.name.to_string(), self.growth_per_op(), self.growth_per_8h()].into_iter().chain(percent)
    }
}
