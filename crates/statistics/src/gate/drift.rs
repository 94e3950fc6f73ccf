//! The allowed drift of the host between two runs that did not take turns.

use std::fmt;

use rumba_results::comparison::ComparedRow;
use rumba_results::metric::SIZES;

/// The allowed drift of the host alone in a ratio, percent. A gate's verdict on runs that did not take turns must hold
/// beyond it, in both directions.
///
/// The default is 5. The throughput of one engine varies as much from repeat to repeat on a shared host (coefficients
/// of variation of 3 to 5%). Disturbances of neighbouring trials correlate by 0.5 to 0.9. With noise of that size, a
/// gate's test then errs in 1 to 2% of cases with four to six repeats and in about 5% with ten. Without the allowance
/// it errs in 12 to 32%. A simulation in the tests holds it below 5% with four and six repeats. With more repeats it
/// errs more often, 7% with twenty, because they make the test surer of a drift that none of them shows.
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
    /// Parses `3%`.
    pub fn parse(text: &str) -> Result<Self, String> {
        let percent = text.trim().strip_suffix('%').and_then(|number| number.trim().parse::<f64>().ok());
        let percent = percent.filter(|percent| (0.0..100.0).contains(percent));
        percent.map(|percent| Self { percent }).ok_or_else(|| "write a percentage such as 3%, or 0%".to_owned())
    }

    /// The allowance for a metric between the two sides of a row; `None` if their trials took turns.
    pub(super) fn between(self, row: &ComparedRow, metric: &str) -> Option<Self> {
        // Sizes have no allowance, because the default is the noise of throughput.
        (!row.in_turns && !SIZES.contains(&metric)).then_some(self)
    }

    pub(super) fn percent(self) -> f64 {
        self.percent
    }

    /// The factor by which a ratio is multiplied or divided.
    pub(super) fn factor(self) -> f64 {
        1.0 + self.percent / 100.0
    }
}

/// The form in a reason.
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
