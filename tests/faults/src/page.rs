//! The counts in `docs/reliability.md`, by guarantee.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use strum::VariantArray;

use crate::axes::{Engine, Limit, Moment};
use crate::counts::{Counts, Tally};
use crate::promise::{PROMISES, PromiseEntry};
use crate::table::FAULTS;

/// The page, from the root.
pub const PAGE: &str = "docs/reliability.md";
/// The counts of each seed, from the root.
pub const RECORD: &str = "docs/reliability.json";

const BEGIN: &str = "<!-- counts: written by `make faults` -->\n";
const END: &str = "<!-- end of counts -->\n";

/// The page with the counts of these seeds between its marks; `None` if it has no marks.
pub fn page(text: &str, seeds: &BTreeMap<u64, Counts>) -> Option<String> {
    let (head, rest) = text.split_once(BEGIN)?;
    let (_, tail) = rest.split_once(END)?;
    Some(format!("{head}{BEGIN}\n{}\n{END}{tail}", counts(seeds)))
}

fn counts(seeds: &BTreeMap<u64, Counts>) -> String {
    let mut text = String::new();
    let each = |(seed, counts): (&u64, &Counts)| {
        let Tally { cases, misses } = counts.all();
        let late = match counts.too_late {
            0 => String::new(),
            late => format!(", {late} more were too late to take effect"),
        };
        format!("seed {seed}: {cases} cases, {misses} with a miss{late}")
    };
    let seeds_reported: Vec<String> = seeds.iter().map(each).collect();
    // Writing into a String cannot fail.
    let _ = writeln!(
        text,
        "{}.\n",
        if seeds_reported.is_empty() { "None yet".to_owned() } else { seeds_reported.join("; ") }
    );
    text.push_str("| promise | faults tried | cases | misses | test |\n|---|---|---|---|---|\n");
    for reported in PROMISES {
        text.push_str(&row(reported, seeds));
    }
    let _ = writeln!(text, "\nCases by phase: {}.", sums(Moment::PHASES, seeds, |counts| &counts.moments));
    let _ = writeln!(text, "By engine: {}.", sums(Engine::VARIANTS, seeds, |counts| &counts.engines));
    let _ = writeln!(text, "By limits: {}.", sums(Limit::ALL, seeds, |counts| &counts.limits));
    text
}

fn row(reported: &PromiseEntry, seeds: &BTreeMap<u64, Counts>) -> String {
    let faults: Vec<&str> =
        FAULTS.iter().filter(|fault| fault.promise == reported.promise).map(|fault| fault.name).collect();
    let mut sum = Tally::default();
    for counts in seeds.values() {
        faults.iter().filter_map(|name| counts.faults.get(*name)).for_each(|tally| sum.add(*tally));
    }
    let file = reported.file.rsplit('/').next().unwrap_or_default();
    let test = reported.test.replace('_', " ");
    format!(
        "| {} | {} | {} | {} | {test} ([{file}](../{})) |\n",
        reported.words,
        faults.join("; "),
        sum.cases,
        sum.misses,
        reported.file
    )
}

/// Cases of each, those that were tried.
fn sums<T: ToString>(
    all: &[T],
    seeds: &BTreeMap<u64, Counts>,
    of: impl Fn(&Counts) -> &BTreeMap<String, Tally>,
) -> String {
    let cases =
        |name: &str| seeds.values().filter_map(|counts| of(counts).get(name)).map(|tally| tally.cases).sum::<u32>();
    all.iter().map(|one| format!("{} {}", one.to_string(), cases(&one.to_string()))).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn page_follows_from_its_record_and_the_promises() {
        let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
        let text = std::fs::read_to_string(format!("{root}/{PAGE}")).unwrap();
        let record = std::fs::read_to_string(format!("{root}/{RECORD}")).unwrap();
        let seeds = serde_json::from_str(&record).unwrap();
        assert_eq!(page(&text, &seeds).unwrap(), text, "write it: cargo run -p rumba-faults -- --page-only --write .");
    }
}
