//! The interfaces that engines, workloads and protocols implement and use: engines, sessions, workloads, clients'
//! streams of operations, values and units.
//!
//! This crate does no I/O. The lab drives engines and workloads through these traits.
#![deny(missing_docs)]

pub mod access;
pub mod acid;
pub mod bson;
pub mod check;
pub mod common;
pub mod conflict;
pub mod cpus;
pub mod delta;
pub mod document;
pub mod engine;
pub mod error;
pub mod facts;
pub mod kv;
pub mod limits;
pub mod memory;
pub mod most_clients;
pub mod parity;
pub mod printable;
pub mod rate;
pub mod server;
pub mod setting;
pub mod sql;
pub mod units;
pub mod value;
pub mod wait;
pub mod worker;
pub mod workload;

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
    fn error_without_a_near_match_lists_all_of_few_or_one_of_many() {
        let many: Vec<String> = (0..45).map(|number| format!("innodb_{number}")).collect();
        let many = || many.iter().map(String::as_str);
        assert_eq!(instead("inodb_7", many()), "did you mean `innodb_7`?");
        let reported = instead("zzz", many());
        assert!(reported.starts_with("the nearest of the 45 known is `innodb_"), "{reported}");
        assert_eq!(instead("zzz", ["one", "two"]), "known are: one, two");
    }
}
