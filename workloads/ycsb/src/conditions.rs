//! What a reader of the numbers must know about the records and the mix.

use crate::choice::Requests;
use crate::profile::Kind;
use crate::settings::{Config, ScanLengths};
use crate::value::{LONG, Lengths};

/// The conditions, by name.
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
        format!("{:.4}% {name}", config.mix[kind as usize] * 100.0)
    };
    let shares: Vec<String> = config.kinds().into_iter().map(share).collect();
    let is_changed = config.mix != config.profile.mix;
    format!("profile {}{}: {}", config.profile.name, if is_changed { ", changed" } else { "" }, shares.join(", "))
}

fn records(config: &Config) -> String {
    let length = match config.lengths {
        Lengths::Constant(length) => format!("{length} bytes"),
        Lengths::Uniform(least, most) => format!("{least} to {most} bytes, all lengths alike"),
        Lengths::Zipfian(least, most, _) => format!("{least} to {most} bytes, mostly short"),
    };
    let (reads, writes) = (asked(config.reads_all), asked(config.writes_all));
    format!("{} of {} fields of {length}; reads ask for {reads}, updates write {writes}", config.records, config.fields)
}

fn asked(all: bool) -> &'static str {
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
            format!("hotspot: {:.4}% of the operations go to the first {hot} records", share * 100.0)
        }
        Requests::Sequential => "sequential: the loaded records in turn".to_owned(),
        Requests::Exponential { rate } => {
            format!("exponential over the ages of the records that are there, {:.0} on average", 1.0 / rate)
        }
    }
}

fn keys(config: &Config) -> String {
    let form = if config.keys.is_hashed { "numbers scattered by FNV-1" } else { "numbers in order" };
    format!("user and {form}, at least {} digits", config.keys.digits)
}

fn scans(config: &Config) -> String {
    match config.scans {
        ScanLengths::Uniform(least, most) => format!("{least} to {most} records, all lengths alike"),
        ScanLengths::Zipfian(least, _) => format!("{least} records and more, mostly few"),
    }
}
