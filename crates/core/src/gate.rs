//! What a gate of a comparison found: `ops_per_s < 0.95` is so, is not so, or is undecided.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::starts::Scope;

/// What a gate found of one engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Found {
    /// It is so, beyond the noise and beyond what the host is allowed to have moved: the gate closes.
    Holds,
    /// It is not so, beyond both; of `worse`, that no headline is said to be.
    Fails,
    /// The repeats cannot tell, or it lies within what the host is allowed to have moved.
    Undecided,
    /// One side has one repeat.
    SeenOnce,
    /// The base has figures of it and the other has none, or a repeat's data failed its
    /// verification: what the gate guards is not shown, so it closes.
    NotJudged,
    /// Both sides are the same engine with the same settings: the gate guards nothing, so it closes.
    Void,
}

impl Found {
    /// Whether the comparison must not pass.
    pub fn closes(self) -> bool {
        matches!(self, Found::Holds | Found::NotJudged | Found::Void)
    }
}

/// What came of a gate for one engine.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Gated {
    /// The gate as written.
    pub gate: String,
    /// The engine.
    pub engine: String,
    /// Its number of clients.
    pub clients: u32,
    /// `holds`: it is so, beyond the noise and what the host is allowed; `fails`: it is not; `not-judged`: the other does
    /// not show it.
    pub verdict: Found,
    /// What it holds for: other loads too, or this load only. A gate closes on both, because a regression may be there.
    #[serde(default)]
    pub scope: Scope,
    /// The figures and the test, or why there is no verdict.
    pub reason: String,
    /// By how many percent the host alone is allowed to have moved the ratio, where the verdict rests on that; absent
    /// elsewhere, as of sizes and where the runs took turns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allowed_drift_percent: Option<f64>,
}

impl Gated {
    /// The gate and what came of it, on a line.
    pub fn line(&self) -> String {
        let Gated { gate, engine, clients, reason, .. } = self;
        let verdict = match self.verdict {
            Found::Holds => format!("IS SO{}", self.scope.words()),
            Found::Fails => format!("is not so{}", self.scope.words()),
            Found::Undecided => "undecided".to_owned(),
            Found::SeenOnce => "seen once, no failure".to_owned(),
            Found::Void => "void".to_owned(),
            Found::NotJudged => return format!("fail-if {gate}: {engine}, {clients} clients: not judged: {reason}"),
        };
        format!("fail-if {gate}: {engine}, {clients} clients: {verdict} ({reason})")
    }
}
