//! Readings of a server's statistics: gauges, and those that are unavailable.

use rumba_engine_api::engine::Gauge;

/// Gauges, and those that are unavailable.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Reading {
    /// The values, by the server's own names with the unit last.
    pub gauges: Vec<Gauge>,
    /// The unavailable gauges.
    pub absent: Vec<Absence>,
}

/// An unavailable gauge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Absence {
    /// The gauge's name.
    pub name: String,
    /// The reason, and the remedy if there is one.
    pub reason: String,
}

impl Reading {
    /// Returns a value by its name.
    pub fn get(&self, name: &str) -> Option<f64> {
        self.gauges.iter().find(|gauge| gauge.name == name).map(|gauge| gauge.value)
    }

    /// Adds a value.
    pub fn put(&mut self, name: impl Into<String>, value: f64) {
        self.gauges.push(Gauge::new(name, value));
    }

    /// Adds a value, or the reason why it is unavailable.
    pub fn put_or(&mut self, name: &str, value: Result<f64, String>) {
        match value {
            Ok(value) => self.put(name, value),
            Err(reason) => self.miss(name, reason),
        }
    }

    /// Records why a gauge is unavailable.
    pub fn miss(&mut self, name: impl Into<String>, reason: impl Into<String>) {
        self.absent.push(Absence { name: name.into(), reason: reason.into() });
    }

    /// Adds the contents of another reading.
    pub fn join(&mut self, other: Reading) {
        self.gauges.extend(other.gauges);
        self.absent.extend(other.absent);
    }
}
