//! The engine that others are compared with by default.

use crate::comparison::{Part, Row, Summary};

impl Row {
    /// Whether the row is of an engine that stores no data: it measures the harness and is not ranked.
    pub fn keeps_nothing(&self) -> bool {
        self.facts.as_ref().is_some_and(|facts| !facts.keeps_data)
    }
}

impl Summary {
    /// The default baseline: the experiment's first engine that keeps its data and has figures. Engines with complete
    /// runs are preferred.
    pub fn default_baseline(&self) -> Option<&str> {
        let keeping = || self.rows.iter().filter(|row| !row.keeps_nothing());
        let has = |row: &&Row| row.run.is_some();
        let whole = keeping().find(|row| has(row) && row.why_not_judged(Part::Run).is_none());
        whole.or(keeping().find(has)).or(keeping().next()).or(self.rows.first()).map(Row::engine_alone)
    }
}
