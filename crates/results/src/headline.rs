//! Selects the CPU metric for verdicts about CPU.
//!
//! Engines that write through the page cache leave work to the kernel's own threads (write-back, loop devices), and no
//! process is charged with it. The host's figure includes that work, but also the kernel's work for other processes. It
//! is therefore used only if all compared engines have it.

use crate::comparison::{PhaseFigures, Row};
use crate::ratio::HEADLINE_CPU;

/// The CPU metric of a comparison, the same for both sides.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CpuHeadline {
    /// Its stable name, one of [`HEADLINE_CPU`].
    pub metric: &'static str,
    /// The reason why it is not the host's.
    pub why_not_host: Option<String>,
}

impl CpuHeadline {
    /// The metric for these sides, each with its name: the host's if every repeat of each has it.
    pub fn of<'a>(sides: impl IntoIterator<Item = (&'a str, &'a PhaseFigures)>) -> Self {
        let [host, charged] = HEADLINE_CPU;
        let why = |(name, figures): (&str, &PhaseFigures)| {
            let reason = match figures.metrics.get(host) {
                None => "it was not measured".to_owned(),
                Some(figure) => figure.lacking().or_else(|| figure.median.reason().map(str::to_owned))?,
            };
            Some(format!("{name}: {reason}"))
        };
        let why_not_host = sides.into_iter().find_map(why);
        Self { metric: if why_not_host.is_none() { host } else { charged }, why_not_host }
    }

    /// The metric for the loops of these rows. Engines that keep no data measure rumba and are ignored.
    pub fn of_rows<'a>(rows: impl IntoIterator<Item = &'a Row>) -> Self {
        let keeps_data = |row: &&Row| row.facts.as_ref().is_none_or(|facts| facts.keeps_data);
        Self::of(rows.into_iter().filter(keeps_data).filter_map(|row| Some((row.engine.as_str(), row.run.as_ref()?))))
    }

    /// Whether a metric is the one of the two that carries no verdict.
    pub fn excludes(&self, metric: &str) -> bool {
        HEADLINE_CPU.contains(&metric) && metric != self.metric
    }
}
