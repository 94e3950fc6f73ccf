//! Prices of hardware, and the cost of operations at these prices.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::metric::Metric;

/// `[prices]` of an experiment, in one currency. A resource without a price costs nothing.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Prices {
    /// A CPU for an hour.
    pub vcpu_hour: f64,
    /// 2³⁰ bytes of memory for an hour.
    pub memory_gb_hour: f64,
    /// 2³⁰ bytes of storage for a month of 730 hours.
    pub storage_gb_month: f64,
    /// A million reads or writes of the device.
    pub million_ios: f64,
    /// A drive.
    pub drive: f64,
    /// The terabytes (10¹² bytes) that may be written to the drive.
    pub drive_tb_written: f64,
    /// Operations per second for which the cost is computed too; absent for the measured rate alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate: Option<f64>,
}

/// The keys of `[prices]`.
pub const KEYS: &[&str] =
    &["vcpu_hour", "memory_gb_hour", "storage_gb_month", "million_ios", "drive", "drive_tb_written", "rate"];

/// The metrics that exist only with prices; those with `_at_rate` need a stated rate.
pub const PRICED: [&str; 4] =
    ["cost_per_million_ops", "cost_per_million_ops_at_rate", "drive_life_years", "drive_life_years_at_rate"];

/// The resources that a trial used.
#[derive(Clone, Debug, Default)]
pub struct Usage {
    /// Operations per second.
    pub ops_per_s: Metric,
    /// CPU microseconds per operation.
    pub cpu_us_per_op: Metric,
    /// Reads and writes of the device per operation.
    pub ios_per_op: Metric,
    /// KB written to the device per operation.
    pub wkb_per_op: Metric,
    /// Memory reserved or used.
    pub memory_bytes: Metric,
    /// Space on disk, with logs.
    pub storage_bytes: Metric,
}

/// The figures that a metric of [`PRICED`] is computed from; a warning about one of them is about it too.
pub fn inputs(metric: &str) -> &'static [&'static str] {
    const COST: &[&str] = &[
        "ops_per_s",
        "cpu_us_per_op_with_drain",
        "host_cpu_us_per_op_with_drain",
        "wkb_per_op_with_drain",
        "reads_per_op",
        "writes_per_op",
        "rss_bytes",
        "size_bytes",
    ];
    const LIFE: &[&str] = &["ops_per_s", "wkb_per_op_with_drain"];
    match PRICED.iter().position(|priced| *priced == metric) {
        Some(0) => COST,
        Some(1) => &COST[1..],
        Some(2) => LIFE,
        Some(_) => &LIFE[1..],
        None => &[],
    }
}

const GB: f64 = (1_u64 << 30) as f64;
const HOURS_OF_MONTH: f64 = 730.0;
const HOURS_OF_YEAR: f64 = 8766.0;

impl fmt::Display for Prices {
    /// The given prices by key.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let values = [
            self.vcpu_hour,
            self.memory_gb_hour,
            self.storage_gb_month,
            self.million_ios,
            self.drive,
            self.drive_tb_written,
            self.rate.unwrap_or_default(),
        ];
        let given = KEYS.iter().zip(values).filter(|(_, value)| *value > 0.0);
        let given: Vec<String> = given.map(|(key, value)| format!("{key} {value}")).collect();
        f.write_str(&given.join(", "))
    }
}

impl Prices {
    /// The metrics of [`PRICED`] by name.
    pub fn metrics(&self, usage: &Usage) -> Vec<(String, Metric)> {
        let rates = [(Some(usage.ops_per_s.clone()), [0, 2]), (self.rate.map(Metric::from), [1, 3])];
        let mut all = Vec::new();
        for (rate, [cost, life]) in rates {
            let Some(rate) = rate else { continue };
            all.push((PRICED[cost].to_owned(), self.per_million(usage, &rate)));
            if self.drive_tb_written > 0.0 {
                all.push((PRICED[life].to_owned(), self.drive_life_years(usage, &rate)));
            }
        }
        all
    }

    /// CPU, device requests and wear cost as much for an operation at any rate. Memory and storage cost by time, so an
    /// operation's share of them falls as the rate rises.
    fn per_million(&self, usage: &Usage, rate: &Metric) -> Metric {
        let hours = Metric::Value(1e6 / 3600.0).over(rate, "operations");
        let wear_per_tb = if self.drive_tb_written > 0.0 { self.drive / self.drive_tb_written } else { 0.0 };
        // A million operations of 1 µs each take a second.
        let by_use = [
            (self.vcpu_hour / 3600.0, &usage.cpu_us_per_op),
            (self.million_ios, &usage.ios_per_op),
            (wear_per_tb * 1024.0 * 1e6 / 1e12, &usage.wkb_per_op),
        ];
        let by_time = [
            (self.memory_gb_hour / GB, &usage.memory_bytes),
            (self.storage_gb_month / HOURS_OF_MONTH / GB, &usage.storage_bytes),
        ];
        let sum = |parts: &[(f64, &Metric)]| {
            let priced = parts.iter().filter(|(price, _)| *price > 0.0);
            priced.fold(Metric::Value(0.0), |sum, (price, used)| sum.plus(&used.map(|used| used * price)))
        };
        let held = sum(&by_time);
        let held = if held == Metric::Value(0.0) { held } else { held.times(&hours) };
        sum(&by_use).plus(&held)
    }

    fn drive_life_years(&self, usage: &Usage, rate: &Metric) -> Metric {
        let written_per_s = usage.wkb_per_op.map(|kb| kb * 1024.0).times(rate);
        Metric::Value(self.drive_tb_written * 1e12 / 3600.0 / HOURS_OF_YEAR).over(&written_per_s, "bytes written")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::warning::Warning;

    fn usage() -> Usage {
        Usage {
            ops_per_s: Metric::Value(1000.0),
            cpu_us_per_op: Metric::Value(360.0),
            ios_per_op: Metric::Value(2.0),
            wkb_per_op: Metric::Value(1.0),
            memory_bytes: Metric::Value(4.0 * GB),
            storage_bytes: Metric::Value(73.0 * GB),
        }
    }

    fn found(prices: &Prices, usage: &Usage, name: &str) -> Option<Metric> {
        prices.metrics(usage).into_iter().find(|(metric, _)| metric == name).map(|(_, metric)| metric)
    }

    #[test]
    fn each_resource_adds_its_price() {
        let cost = |prices: Prices| found(&prices, &usage(), PRICED[0]).unwrap().value().unwrap();
        let near = |found: f64, expected: f64| assert!((found / expected - 1.0).abs() < 1e-9, "{found} {expected}");
        // 360 µs a million times are 0.1 hours; 1,000,000 operations at 1,000/s take 1,000 s.
        near(cost(Prices { vcpu_hour: 0.5, ..Prices::default() }), 0.05);
        near(cost(Prices { memory_gb_hour: 0.9, ..Prices::default() }), 1.0);
        near(cost(Prices { storage_gb_month: 3.6, ..Prices::default() }), 0.1);
        near(cost(Prices { million_ios: 0.2, ..Prices::default() }), 0.4);
        // 1.024 GB written of a drive that takes 1,000 TB.
        let drive = Prices { drive: 500.0, drive_tb_written: 1000.0, ..Prices::default() };
        near(cost(drive.clone()), 0.000_512);
        let years = found(&drive, &usage(), "drive_life_years").unwrap().value().unwrap();
        near(years, 1e15 / (1024.0 * 1000.0) / 3600.0 / 8766.0);
    }

    #[test]
    fn at_a_lower_rate_memory_costs_more_and_cpu_the_same() {
        let prices = Prices { vcpu_hour: 0.5, memory_gb_hour: 0.9, rate: Some(100.0), ..Prices::default() };
        let cost = |name: &str| found(&prices, &usage(), name).unwrap().value().unwrap();
        assert!((cost("cost_per_million_ops") - 1.05).abs() < 1e-9);
        assert!((cost("cost_per_million_ops_at_rate") - 10.05).abs() < 1e-9);
        assert!(found(&prices, &usage(), "drive_life_years").is_none(), "no drive has a price");
    }

    #[test]
    fn warning_about_an_input_is_about_the_cost_too() {
        let undermines = |code: &str| PRICED.map(|metric| Warning::new(code, "", "").undermines_metric(metric));
        assert_eq!(undermines("iops-not-divided"), [true, false, true, false], "speed matters at the measured rate");
        assert_eq!(undermines("debt-unpaid"), [true; 4]);
        assert_eq!(undermines("cpu-uncharged"), [true, true, false, false]);
    }

    #[test]
    fn unmeasured_resource_matters_only_if_it_has_a_price() {
        let unmetered = Usage { ios_per_op: Metric::absent("no device"), ..usage() };
        let free = Prices { vcpu_hour: 0.5, ..Prices::default() };
        assert_eq!(found(&free, &unmetered, PRICED[0]).unwrap(), Metric::Value(0.05));
        let charged = Prices { million_ios: 0.2, ..free };
        assert_eq!(found(&charged, &unmetered, PRICED[0]).unwrap().reason(), Some("no device"));
    }
}
