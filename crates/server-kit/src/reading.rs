//! Readings of a server's statistics.

use rumba_engine_api::engine::Gauge;

/// The gauges that a server reports. Those that cannot be read are left out.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Reading {
    /// The values, by the server's own names with the unit last.
    pub gauges: Vec<Gauge>,
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

    /// Adds a value if it is available.
    pub fn put_any(&mut self, name: &str, value: Option<f64>) {
        self.gauges.extend(value.map(|value| Gauge::new(name, value)));
    }
}
