//! What a server says of itself: figures, and what could not be had.

use rumba_core::engine::Gauge;

/// Figures, and what could not be had.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Reading {
    /// What was read, by the server's own names with the unit last.
    pub gauges: Vec<Gauge>,
    /// What could not be had.
    pub absent: Vec<Absence>,
}

/// A figure that could not be had.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Absence {
    /// The name that the figure would have had.
    pub name: String,
    /// Why, and where there is one, the remedy.
    pub reason: String,
}

impl Reading {
    /// A figure by its name.
    pub fn get(&self, name: &str) -> Option<f64> {
        self.gauges.iter().find(|gauge| gauge.name == name).map(|gauge| gauge.value)
    }

    /// Adds a figure.
    pub fn put(&mut self, name: impl Into<String>, value: f64) {
        self.gauges.push(Gauge::new(name, value));
    }

    /// Adds a figure, or why there is none.
    pub fn put_or(&mut self, name: &str, value: Result<f64, String>) {
        match value {
            Ok(value) => self.put(name, value),
            Err(reason) => self.miss(name, reason),
        }
    }

    /// Says why there is no figure of this name.
    pub fn miss(&mut self, name: impl Into<String>, reason: impl Into<String>) {
        self.absent.push(Absence { name: name.into(), reason: reason.into() });
    }

    /// Adds what another has.
    pub fn join(&mut self, other: Reading) {
        self.gauges.extend(other.gauges);
        self.absent.extend(other.absent);
    }
}
