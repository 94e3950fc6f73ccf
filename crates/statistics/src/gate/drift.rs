//! What the host may have done between two runs that did not take turns.

use std::fmt;

use rumba_core::comparison::ComparedRow;
use rumba_core::metric::SIZES;

/// How far the host alone is allowed to have moved a ratio, percent: what a gate says of runs that did not take turns
/// has to hold beyond it, either way.
///
/// Five by default. The throughput of one engine moves as much from repeat to repeat on a shared host (coefficients of
/// variation of 3 to 5%). Over noise of that size, in which the disturbances of neighbouring trials
/// correlate by 0.5 to 0.9, a gate's test then errs in 1 to 2% of cases with four to six repeats and in about 5% with ten,
/// instead of in 12 to 32%; a simulation in the tests holds it below 5% and below 9%. With more repeats it errs more
/// often, 7% with twenty, since they make the test surer of what none of them shows.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Drift {
    percent: f64,
}

impl Default for Drift {
    fn default() -> Self {
        Self { percent: 5.0 }
    }
}

impl Drift {
    /// Reads `3%`.
    ///
    /// # Errors
    /// What to write instead.
    pub fn parse(text: &str) -> Result<Self, String> {
        let percent = text.trim().strip_suffix('%').and_then(|number| number.trim().parse::<f64>().ok());
        let percent = percent.filter(|percent| (0.0..100.0).contains(percent));
        percent.map(|percent| Self { percent }).ok_or_else(|| "write a percentage such as 3%, or 0%".to_owned())
    }

    /// The allowance of a metric between the two sides of a row; none where their trials took turns.
    pub(super) fn between(self, row: &ComparedRow, metric: &str) -> Option<Self> {
        // Sizes are allowed nothing: the default is throughput's noise, which is not theirs.
        (!row.in_turns && !SIZES.contains(&metric)).then_some(self)
    }

    pub(super) fn percent(self) -> f64 {
        self.percent
    }

    /// By what it multiplies or divides a ratio.
    pub(super) fn factor(self) -> f64 {
        1.0 + self.percent / 100.0
    }
}

/// In a reason.
impl fmt::Display for Drift {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "the runs did not take turns, so that the host alone is allowed to have moved it by {}% (--allow-drift; \
             `rumba ab` takes turns)",
            self.percent
        )
    }
}
