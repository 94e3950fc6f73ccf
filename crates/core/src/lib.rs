//! rumba's terms as types and traits: engines, workloads, clients' streams of operations, and records.
//!
//! This crate does no I/O. Engines and workloads depend on this crate alone; the lab drives them through these traits;
//! the report reads these records.
#![deny(missing_docs)]

pub mod access;
pub mod acid;
pub mod arrivals;
pub mod bson;
pub mod build;
pub mod charged;
pub mod check;
pub mod claim;
pub mod common;
pub mod comparability;
pub mod comparison;
pub mod condition;
pub mod conflict;
pub mod counted;
pub mod course;
pub mod delta;
pub mod detection;
pub mod document;
pub mod engine;
pub mod engine_name;
pub mod engine_samples;
pub mod error;
pub mod event;
pub mod facts;
pub mod figure;
pub mod gate;
pub mod headline;
pub mod history;
pub mod host_cpu;
pub mod kv;
pub mod limits;
pub mod memory;
pub mod metric;
pub mod most_clients;
pub mod pair;
pub mod parity;
pub mod phase;
pub mod printable;
pub mod rate;
pub mod ratio;
pub mod record;
pub mod remark;
pub mod results;
pub mod search;
pub mod server;
pub mod setting;
pub mod spent;
pub mod sql;
pub mod starts;
pub mod statements;
pub mod suspension;
pub mod units;
pub mod value;
pub mod wait;
pub mod warning;
pub mod worker;
pub mod workload;
pub mod written;

/// The known name nearest to a misspelt one, if any is near enough to suggest.
///
/// Similarity is Jaro–Winkler; below 0.75 a suggestion would only confuse.
pub fn nearest<'a>(wrong: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    closest(wrong, known).filter(|(likeness, _)| *likeness > 0.75).map(|(_, name)| name)
}

fn closest<'a>(wrong: &str, known: impl IntoIterator<Item = &'a str>) -> Option<(f64, &'a str)> {
    known.into_iter().map(|name| (strsim::jaro_winkler(wrong, name), name)).max_by(|a, b| a.0.total_cmp(&b.0))
}

/// The most names that are listed in full.
const FEW: usize = 16;

/// Suggestions for an unknown name: the nearest name. If none is near, all names, or the nearest one if there are many.
pub fn instead<'a>(wrong: &str, known: impl IntoIterator<Item = &'a str> + Clone) -> String {
    if let Some(name) = nearest(wrong, known.clone()) {
        return format!("did you mean `{name}`?");
    }
    let names: Vec<&str> = known.clone().into_iter().collect();
    match closest(wrong, known) {
        Some((_, name)) if names.len() > FEW => format!("the nearest of the {} known is `{name}`", names.len()),
        _ => format!("known are: {}", names.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_many_names_one_is_told_and_of_few_all_where_none_is_near() {
        let many: Vec<String> = (0..45).map(|number| format!("innodb_{number}")).collect();
        let many = || many.iter().map(String::as_str);
        assert_eq!(instead("inodb_7", many()), "did you mean `innodb_7`?");
        let told = instead("zzz", many());
        assert!(told.starts_with("the nearest of the 45 known is `innodb_"), "{told}");
        assert_eq!(instead("zzz", ["one", "two"]), "known are: one, two");
    }
}
