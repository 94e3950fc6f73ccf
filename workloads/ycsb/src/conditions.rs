//! The facts about the records and the mix that a reader of the numbers must know.

use crate::lengths::Lengths;
use crate::profile::Kind;
use crate::requests::{Requests, ScanLengths};
use crate::settings::Config;
use crate::value::LONG;

pub fn conditions(config: &Config) -> Vec<(String, String)> {
    let mut all = vec![
        ("mix", mix(config)),
        ("records", records(config)),
        ("requests", requests(config)),
        ("keys", keys(config)),
    ];
    if config.does(Kind::Scan) {
        all.push(("scans", scans(config)));
    }
    if config.lengths.bounds().0 < LONG {
        all.push((
            "short values",
            format!(
                "values of fewer than {LONG} bytes say whose they are and not who wrote them: lost updates among them \
                 are not seen"
            ),
        ));
    }
    all.into_iter().map(|(name, value)| (format!("ycsb {name}"), value)).collect()
}

fn mix(config: &Config) -> String {
    let share = |kind: Kind| {
        let name = match kind {
            Kind::Read => "reads",
            Kind::Update => "updates",
            Kind::Insert => "inserts",
            Kind::Scan => "scans",
            Kind::ReadModifyWrite => "read-modify-writes",
        };
        format!("{}% {name}", percent(config.mix[kind as usize]))
    };
    let shares: Vec<String> = config.kinds().into_iter().map(share).collect();
    let is_changed = config.mix != config.profile.mix;
    format!("profile {}{}: {}", config.profile.name, if is_changed { ", changed" } else { "" }, shares.join(", "))
}

/// A share in percent, without rounding.
fn percent(share: f64) -> f64 {
    (share * 1e6).round() / 1e4
}

fn records(config: &Config) -> String {
    let length = match &config.lengths {
        Lengths::Constant(length) => format!("{length} bytes"),
        Lengths::Uniform(least, most) => format!("{least} to {most} bytes, all lengths alike"),
        Lengths::Zipfian(least, most, _) => format!("{least} to {most} bytes, mostly short"),
        Lengths::Histogram(_) => {
            let (least, most) = config.lengths.bounds();
            format!("{least} to {most} bytes, {:.1} on average, as fieldlengthhistogram says", config.lengths.mean())
        }
    };
    let (reads, writes) = (requested(config.reads_all), requested(config.writes_all));
    format!("{} of {} fields of {length}; reads ask for {reads}, updates write {writes}", config.records, config.fields)
}

fn requested(all: bool) -> &'static str {
    if all { "all fields" } else { "one field" }
}

fn requests(config: &Config) -> String {
    match config.requests {
        Requests::Uniform => "uniform over the loaded records".to_owned(),
        Requests::Zipfian { range } if range > config.records => format!(
            "zipfian 0.99 over 10^10 ranks, scattered over {range} records: the loaded ones, and twice as many new ones as {} \
             operations insert; those that are not there yet are drawn again",
            config.records
        ),
        Requests::Zipfian { .. } => "zipfian 0.99 over 10^10 ranks, scattered over the loaded records".to_owned(),
        Requests::Latest => "latest: zipfian 0.99 over the ages of the records that are there".to_owned(),
        Requests::Hotspot { hot, share } => {
            format!("hotspot: {}% of the operations go to the first {hot} records", percent(share))
        }
        Requests::Sequential => "sequential: the loaded records in turn".to_owned(),
        Requests::Exponential { rate } => format!(
            "exponential over the ages of the records that are there: {:.0} on average of those that are loaded",
            mean_age(rate, config.records)
        ),
    }
}

/// The mean of an exponential law with this rate, if ages beyond the oldest of the records are drawn again.
fn mean_age(rate: f64, records: u64) -> f64 {
    let records = records as f64;
    1.0 / rate - records / (rate * records).exp_m1()
}

fn keys(config: &Config) -> String {
    let form = if config.keys.is_hashed { "numbers scattered by FNV-1a" } else { "numbers in order" };
    match config.keys.digits {
        1 => format!("user and {form}"),
        digits => format!("user and {form}, at least {digits} digits"),
    }
}

fn scans(config: &Config) -> String {
    match config.scans {
        ScanLengths::Uniform(least, most) => format!("{least} to {most} records, all lengths alike"),
        ScanLengths::Zipfian(least, _) => format!("{least} records and more, mostly few"),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use rand::SeedableRng;
    use rumba_engine_api::setting::Value;
    use rumba_workload_kit::Random;

    use super::*;
    use crate::choice::Choice;
    use crate::inserted::Inserted;

    /// Guards against the wrong mean: by the law alone it would be 286, because three in a hundred ages are beyond the
    /// oldest record.
    #[test]
    fn reported_age_is_that_of_the_displayed_records() {
        let law = Value::Text("exponential".to_owned());
        let pairs = [("requestdistribution", law), ("recordcount", Value::Int(1000))];
        let config = Config::new(&pairs.into()).unwrap();
        let words = requests(&config);
        assert!(words.contains("there: 255 on average"), "{words}");
        let mut choice = Choice::new(&config, Arc::new(Inserted::new(config.records)));
        let mut random = Random::seed_from_u64(5);
        let ages: u64 = (0..100_000).map(|_| 999 - choice.record(&mut random)).sum();
        // Its deviation is 0.8. An age is counted in whole records, which is half a record less.
        assert!((ages as f64 / 100_000.0 - 254.3).abs() < 4.0, "{ages}");
    }

    #[test]
    fn condition_states_the_mix_and_what_is_unobserved() {
        let reported = |pairs: &[(&str, Value)]| conditions(&Config::new(&pairs.iter().cloned().collect()).unwrap());
        let of = |reported: &[(String, String)], name: &str| {
            reported.iter().find(|(known, _)| known == name).map(|(_, words)| words.clone())
        };
        let plain = reported(&[]);
        assert_eq!(of(&plain, "ycsb mix").unwrap(), "profile a: 50% reads, 50% updates");
        assert_eq!((of(&plain, "ycsb scans"), of(&plain, "ycsb short values")), (None, None));
        let text = |text: &str| Value::Text(text.to_owned());
        let scans = reported(&[("profile", text("e")), ("fieldlengthdistribution", text("uniform"))]);
        assert_eq!(of(&scans, "ycsb scans").unwrap(), "1 to 100 records, all lengths alike");
        assert!(of(&scans, "ycsb requests").unwrap().contains("scattered over 1100000 records"));
        assert!(of(&scans, "ycsb short values").unwrap().contains("fewer than 25 bytes"));
    }
}
