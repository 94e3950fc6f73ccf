//! What an engine says of itself, and takes on disk, while its clients work: seen about once a second.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One look at an engine. In a trial's file it has what is not as it was at the look before.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct EngineSample {
    /// When the answer was there, seconds since the trial's start.
    pub at_s: f64,
    /// Bytes allocated on disk, logs included; absent where it was not asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size_bytes: Option<f64>,
    /// Work put off, by the engine's own names.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub debt: BTreeMap<String, f64>,
    /// The engine's own counters, by its own names.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub counters: BTreeMap<String, f64>,
}

impl EngineSample {
    /// Whether nothing was seen.
    pub fn is_empty(&self) -> bool {
        self.size_bytes.is_none() && self.debt.is_empty() && self.counters.is_empty()
    }

    /// What of it is not as it was at the looks before, which it then is among.
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

/// What a column of a course is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Of {
    /// The size on disk.
    Size,
    /// Work put off.
    Debt,
    /// A counter or a gauge of the engine's own.
    Counter,
}

/// One number at each look.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Column {
    /// What it is of.
    pub of: Of,
    /// Its name.
    pub name: String,
    /// How many looks came before the first that has it.
    pub before: usize,
    /// From then on.
    pub values: Vec<f64>,
}

/// What a size on disk is called among an engine's own names.
pub const SIZE: &str = "size_bytes";

/// All looks of a trial, by what was seen.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct EngineTimeSeries {
    /// When they were, seconds since the trial's start.
    pub at_s: Vec<f64>,
    /// The numbers, in the order of what they are of and of their names.
    pub columns: Vec<Column>,
}

impl EngineTimeSeries {
    /// Takes in the next look; what it does not have is as it was.
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

    /// Whether nobody looked.
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
    fn a_look_is_told_as_what_has_changed_and_read_back_whole() {
        let looks = [
            look(1.0, Some(100.0), &[("reads", 1.0)]),
            look(2.0, None, &[("reads", 1.0), ("late", 5.0)]),
            look(3.0, Some(100.0), &[("reads", 4.0), ("late", 5.0)]),
        ];
        let mut before = EngineSample::default();
        let told: Vec<EngineSample> = looks.into_iter().map(|look| look.since(&mut before)).collect();
        let text = |look: &EngineSample| serde_json::to_string(look).unwrap_or_default();
        assert_eq!(text(&told[1]), r#"{"at_s":2.0,"counters":{"late":5.0}}"#);
        assert_eq!(text(&told[2]), r#"{"at_s":3.0,"counters":{"reads":4.0}}"#);
        let mut course = EngineTimeSeries::default();
        told.into_iter().for_each(|look| course.add(look));
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
