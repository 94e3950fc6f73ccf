//! What a gate of a comparison found: `ops_per_s < 0.95` is so, is not so, or is undecided.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::claim::Verdict;

/// What a gate found of one engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Found {
    /// It is so, beyond the noise: the gate closes.
    Holds,
    /// It is not so, beyond the noise.
    Fails,
    /// The repeats cannot tell.
    Undecided,
    /// One side has one repeat.
    SeenOnce,
    /// The base has figures of it and the other has none, or a repeat's data failed its
    /// verification: what the gate guards is not shown, so it closes.
    NotJudged,
}

impl Found {
    /// Whether the comparison must not pass.
    pub fn closes(self) -> bool {
        matches!(self, Found::Holds | Found::NotJudged)
    }
}

impl From<Verdict> for Found {
    fn from(verdict: Verdict) -> Self {
        match verdict {
            Verdict::Holds => Found::Holds,
            Verdict::Fails => Found::Fails,
            Verdict::Undecided => Found::Undecided,
            Verdict::SeenOnce => Found::SeenOnce,
        }
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
    /// `holds`: it is so, beyond the noise; `fails`: it is not; `not-judged`: the other does not show it.
    pub verdict: Found,
    /// The figures and the test, or why there is no verdict.
    pub reason: String,
}

impl Gated {
    /// The gate and what came of it, on a line.
    pub fn line(&self) -> String {
        let Gated { gate, engine, clients, reason, .. } = self;
        let verdict = match self.verdict {
            Found::Holds => "IS SO",
            Found::Fails => "is not so",
            Found::Undecided => "undecided",
            Found::SeenOnce => "seen once, no failure",
            Found::NotJudged => return format!("fail-if {gate}: {engine}, {clients} clients: not judged: {reason}"),
        };
        format!("fail-if {gate}: {engine}, {clients} clients: {verdict} ({reason})")
    }
}
