//! Finds checkpoints, flushes and compactions of an engine, by the growth of its counters between two samples.
//!
//! - A counter whose name has the word `checkpoints`, `flushes` or `compactions` counts them.
//! - A counter named `written_checkpoint…_bytes`, `written_flush…_bytes` or `written_compaction…_bytes` grows during
//!   one.
//! - Deferred work with `checkpoint` in its name (`checkpoint_age_bytes`) falls with one.

use std::collections::BTreeMap;

use rumba_results::counted::WRITTEN;
use rumba_results::engine_samples::{Column, EngineTimeSeries, Of};

use crate::packed::POINTS;
use crate::packed::Packed;

/// The kinds of events, each with its plural.
const KINDS: [(&str, &str); 3] = [("checkpoint", "checkpoints"), ("flush", "flushes"), ("compaction", "compactions")];
/// The present number of running or pending events is not a count of past ones.
const NOW: [&str; 2] = ["running", "pending"];
/// A smaller relative fall of deferred work is gradual writing, not a checkpoint.
const FALL: f64 = 0.1;

/// Intervals of time as pairs of start and end, in sequence: seconds since the trial's start.
pub type Marks = BTreeMap<&'static str, Packed>;

/// The events in a time series. Intervals too near to each other to be drawn separately are merged.
pub fn marks(course: &EngineTimeSeries) -> Marks {
    let mut happened: BTreeMap<&'static str, Vec<bool>> = BTreeMap::new();
    for column in &course.columns {
        let Some(kind) = kind_of(column) else { continue };
        let of_kind = happened.entry(kind).or_insert_with(|| vec![false; course.at_s.len()]);
        for (pair, known) in column.values.windows(2).zip(&mut of_kind[column.before + 1..]) {
            *known |= match column.of {
                Of::Debt => pair[1] < pair[0] * (1.0 - FALL),
                Of::Size | Of::Counter => pair[1] > pair[0],
            };
        }
    }
    let stretches = happened.into_iter().map(|(kind, happened)| (kind, stretches(&course.at_s, &happened)));
    stretches.filter(|(_, stretches)| !stretches.0.is_empty()).collect()
}

/// The kind of event that a column shows, if any.
fn kind_of(column: &Column) -> Option<&'static str> {
    let name = column.name.to_ascii_lowercase();
    let kind = |is_it: &dyn Fn(&str, &str) -> bool| {
        KINDS.iter().find(|(one, several)| is_it(one, several)).map(|(one, _)| *one)
    };
    match column.of {
        Of::Size => None,
        Of::Debt => name.contains(KINDS[0].0).then_some(KINDS[0].0),
        Of::Counter => {
            let goes_back = column.values.windows(2).any(|pair| pair[1] < pair[0]);
            let words: Vec<&str> = name.split(|c: char| !c.is_ascii_alphanumeric()).collect();
            if goes_back || words.iter().any(|word| NOW.contains(word)) {
                return None;
            }
            let written = WRITTEN.metric_of(&name);
            kind(&|_, several| words.contains(&several))
                .or_else(|| written.and_then(|what| kind(&|one, _| what.starts_with(one))))
        }
    }
}

/// The intervals in which an event happened between two samples.
fn stretches(at_s: &[f64], happened: &[bool]) -> Packed {
    let length_s = at_s.last().zip(at_s.first()).map_or(0.0, |(last, first)| last - first);
    let apart_s = length_s / POINTS as f64;
    let mut stretches: Vec<(f64, f64)> = Vec::new();
    for (place, _) in happened.iter().enumerate().skip(1).filter(|(_, happened)| **happened) {
        let (from, until) = (at_s[place - 1], at_s[place]);
        match stretches.last_mut() {
            Some((_, end)) if from - *end <= apart_s => *end = until,
            _ => stretches.push((from, until)),
        }
    }
    Packed(stretches.into_iter().flat_map(|(from, until)| [Some(from), Some(until)]).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(columns: &[(Of, &str, &[f64])]) -> BTreeMap<&'static str, Vec<f64>> {
        let looks = columns.iter().map(|(.., values)| values.len()).max().unwrap_or_default();
        let column = |(of, name, values): &(Of, &str, &[f64])| Column {
            of: *of,
            name: (*name).to_owned(),
            before: looks - values.len(),
            values: values.to_vec(),
        };
        let at_s = (0..looks).map(|look| 100.0 + look as f64).collect();
        let course = EngineTimeSeries { at_s, columns: columns.iter().map(column).collect() };
        let numbers = |packed: Packed| packed.0.into_iter().flatten().collect();
        marks(&course).into_iter().map(|(kind, packed)| (kind, numbers(packed))).collect()
    }

    #[test]
    fn marks_show_rising_counts_written_bytes_and_falling_backlogs() {
        let found = found(&[
            (Of::Counter, "transaction: transaction checkpoints", &[3.0, 3.0, 4.0, 4.0, 4.0]),
            (Of::Debt, "checkpoint_age_bytes", &[50.0, 60.0, 59.0, 70.0, 20.0]),
            (Of::Counter, "written_compaction_level2_bytes", &[0.0, 5.0, 9.0, 9.0, 9.0]),
            // It appeared later than the others.
            (Of::Counter, "written_flush_bytes", &[7.0, 8.0]),
        ]);
        assert_eq!(found["checkpoint"], [101.0, 102.0, 103.0, 104.0]);
        assert_eq!(found["compaction"], [100.0, 102.0], "one stretch");
        assert_eq!(found["flush"], [103.0, 104.0]);
    }

    #[test]
    fn gauges_and_falling_counters_are_no_marks() {
        let rises = &[0.0, 1.0, 2.0][..];
        let none = found(&[
            (Of::Counter, "num_running_compactions", rises),
            (Of::Counter, "compactions", &[1.0, 2.0, 0.0]),
            (Of::Counter, "transaction checkpoint total time (msecs)", rises),
            (Of::Counter, "pages_flushed", rises),
            (Of::Counter, "written_pages_bytes", rises),
            (Of::Debt, "dirty_bytes", &[9.0, 1.0, 0.0]),
            (Of::Counter, "flushes", &[4.0, 4.0, 4.0]),
        ]);
        assert!(none.is_empty(), "{none:?}");
    }

    #[test]
    fn more_than_can_be_drawn_are_joined() {
        let often: Vec<f64> = (0..7200).map(|look| f64::from(look / 4)).collect();
        let found = found(&[(Of::Counter, "flushes", &often)]);
        assert!(found["flush"].len() <= 2 * POINTS, "{}", found["flush"].len());
    }
}
