//! Samples of an engine's own counters and size on disk, taken about once a second while its clients work.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One sample of an engine. A trial's file stores only the values that changed since the sample before.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct EngineSample {
    /// The time of the answer, seconds since the trial's start.
    pub at_s: f64,
    /// Bytes allocated on disk, logs included; absent if the size was not read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size_bytes: Option<f64>,
    /// Deferred work, by the engine's own names.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub debt: BTreeMap<String, f64>,
    /// The engine's own counters, by its own names.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub counters: BTreeMap<String, f64>,
}

impl EngineSample {
    /// Whether the sample is empty.
    pub fn is_empty(&self) -> bool {
        self.size_bytes.is_none() && self.debt.is_empty() && self.counters.is_empty()
    }

    /// The values that changed since the earlier samples; `before` is updated with this one.
    #[must_use]
    pub fn since(self, before: &mut EngineSample) -> EngineSample {
        let changed = |mut seen: BTreeMap<String, f64>, known: &mut BTreeMap<String, f64>| {
            seen.retain(|name, value| known.insert(name.clone(), *value) != Some(*value));
            seen
        };
        let size_bytes = self.size_bytes.filter(|size| before.size_bytes != Some(*size));
        before.size_bytes = self.size_bytes.or(before.size_bytes);
        EngineSample {
            at_s: self.at_s,
            size_bytes,
            debt: changed(self.debt, &mut before.debt),
            counters: changed(self.counters, &mut before.counters),
        }
    }
}

/// The kind of a column in a time series.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Of {
    /// The size on disk.
    Size,
    /// Deferred work.
    Debt,
    /// The engine's own counter or gauge.
    Counter,
}

/// One number for each sample.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Column {
    /// The kind of the numbers.
    pub of: Of,
    /// Its name.
    pub name: String,
    /// The number of samples before the first that has it.
    pub before: usize,
    /// The values from then on.
    pub values: Vec<f64>,
}

/// The name under which the size on disk appears among an engine's own names.
pub const SIZE: &str = "size_bytes";

/// All samples of a trial, by column.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct EngineTimeSeries {
    /// The times of the samples, seconds since the trial's start.
    pub at_s: Vec<f64>,
    /// The columns, ordered by kind and name.
    pub columns: Vec<Column>,
}

impl EngineTimeSeries {
    /// Adds the next sample; values that it lacks are unchanged.
    pub fn add(&mut self, look: EngineSample) {
        let looks = self.at_s.len();
        self.at_s.push(look.at_s);
        let size = look.size_bytes.map(|size| (SIZE.to_owned(), size));
        let debt = look.debt.into_iter().map(|(name, value)| (Of::Debt, name, value));
        let counters = look.counters.into_iter().map(|(name, value)| (Of::Counter, name, value));
        for (of, name, value) in
            size.into_iter().map(|(name, value)| (Of::Size, name, value)).chain(debt).chain(counters)
        {
            match self.columns.binary_search_by(|column| (column.of, &column.name).cmp(&(of, &name))) {
                Ok(place) => self.columns[place].values.push(value),
                Err(place) => self.columns.insert(place, Column { of, name, before: looks, values: vec![value] }),
            }
        }
        for column in &mut self.columns {
            let last = column.values.last().copied();
            column.values.extend(last.filter(|_| column.before + column.values.len() <= looks));
        }
    }

    /// Whether there is no sample.
    pub fn is_empty(&self) -> bool {
        self.at_s.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn look(at_s: f64, size_bytes: Option<f64>, counters: &[(&str, f64)]) -> EngineSample {
        let counters = counters.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect();
        EngineSample { at_s, size_bytes, counters, debt: BTreeMap::from([("dirty_bytes".to_owned(), 7.0)]) }
    }

    #[test]
    fn sample_is_emitted_as_a_delta_and_restored_in_full() {
        let looks = [
            look(1.0, Some(100.0), &[("reads", 1.0)]),
            look(2.0, None, &[("reads", 1.0), ("late", 5.0)]),
            look(3.0, Some(100.0), &[("reads", 4.0), ("late", 5.0)]),
        ];
        let mut before = EngineSample::default();
        let reported: Vec<EngineSample> = looks.into_iter().map(|look| look.since(&mut before)).collect();
        let text = |look: &EngineSample| serde_json::to_string(look).unwrap_or_default();
        assert_eq!(text(&reported[1]), r#"{"at_s":2.0,"counters":{"late":5.0}}"#);
        assert_eq!(text(&reported[2]), r#"{"at_s":3.0,"counters":{"reads":4.0}}"#);
        let mut course = EngineTimeSeries::default();
        reported.into_iter().for_each(|look| course.add(look));
        let column = |name: &str| {
            course.columns.iter().find(|column| column.name == name).map(|column| (column.before, &column.values[..]))
        };
        assert_eq!(course.at_s, [1.0, 2.0, 3.0]);
        assert_eq!(column(SIZE), Some((0, &[100.0; 3][..])));
        assert_eq!(column("dirty_bytes"), Some((0, &[7.0; 3][..])));
        assert_eq!(column("reads"), Some((0, &[1.0, 1.0, 4.0][..])));
        assert_eq!(column("late"), Some((1, &[5.0, 5.0][..])));
    }
}
