//! What the host may have done between two runs that did not take turns.

use std::fmt;

use rumba_core::comparison::ComparedRow;
use rumba_core::ratio::Ratio;

/// How far the host alone is allowed to have moved a ratio, percent: what a gate says of runs that did not take turns
/// has to hold beyond it, either way.
///
/// Five by default. As much does the throughput of one engine move from repeat to repeat on the host of docs/aa.txt
/// (coefficients of variation of 3.1 and 5.0%), and with it the gate's test errs in at most 5% of cases over noise of
/// that size, though the disturbances of neighbouring trials correlate by 0.9: a simulation in the tests holds it to
/// that.
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

    /// The allowance between the two sides of a row; none where their trials took turns.
    pub(super) fn between(self, row: &ComparedRow) -> Option<Self> {
        (!row.in_turns).then_some(self)
    }

    /// By what it multiplies or divides a ratio.
    pub(super) fn factor(self) -> f64 {
        1.0 + self.percent / 100.0
    }

    /// Whether a ratio that leaves 1 out does so beyond the allowance. Of one without an interval, because a figure is
    /// zero, that is not known.
    pub(super) fn is_exceeded_by(self, ratio: &Ratio) -> bool {
        let above = ratio.low.value().is_some_and(|low| low > self.factor());
        let below = ratio.high.value().is_some_and(|high| high < 1.0 / self.factor());
        self.percent == 0.0 || above || below
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
