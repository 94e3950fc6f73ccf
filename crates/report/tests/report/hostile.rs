//! Records with manipulated content: all numbers and names in them are either refused or shown. They cause no panic,
//! and they do not stop a library's server.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use rumba_results::record::{Interval, Record};
use rumba_results::results::Results;
use rumba_statistics::{Run, compare, history, summarise};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::support::synthetic::{BTREE, LSM, Plan, results};

/// The replacements for each value.
fn hostile() -> [Value; 8] {
    let far = 1e308;
    [json!(0), json!(-1), json!(far), json!(-far), json!(u64::MAX), json!("</script>\n\u{1b}[2J"), json!([]), json!({})]
}

/// The positions of values, one for each kind: the first item of a list, and the first of similar phases.
fn places(value: &Value, at: &str, kind: &str, found: &mut BTreeMap<String, String>) {
    found.entry(kind.to_owned()).or_insert_with(|| at.to_owned());
    let mut below = |name: &str, kind_of: &str, value: &Value| {
        let name = name.replace('~', "~0").replace('/', "~1");
        places(value, &format!("{at}/{name}"), &format!("{kind}/{kind_of}"), found);
    };
    match value {
        Value::Array(items) => items.iter().enumerate().for_each(|(at, item)| below(&at.to_string(), "*", item)),
        Value::Object(fields) => fields.iter().for_each(|(name, field)| below(name, name, field)),
        _ => {}
    }
}

/// Two engines, two repeats of a few seconds, because it is rendered thousands of times.
static SAMPLE: LazyLock<Results> =
    LazyLock::new(|| results(&[LSM, BTREE], Plan { clients: &[4], repeats: 2, loops: 1, loop_s: 3 }));

/// Renders results in every format.
fn show(results: &Results) {
    let summary = summarise(results);
    let options = rumba_report::TableOptions::default().with_all_warnings(true);
    rumba_report::tables(results, &summary, &options);
    rumba_report::markdown(results, &summary, &options);
    rumba_report::report_csv(results, &summary);
    rumba_report::html(results, &summary);
    let _ = serde_json::to_string(&rumba_report::json(results, &summary, None)).unwrap();
    let other = &*SAMPLE;
    for (base, other) in [(results, other), (other, results)] {
        let comparison = compare(base, other);
        rumba_report::comparison_table(&comparison, true);
        rumba_report::comparison_csv(&comparison);
    }
    let run = |results: &Results| Run { directory: "results/x".to_owned(), results: results.clone() };
    let history = history(&[run(other), run(results), run(other)], None);
    rumba_report::history_table(&history);
    rumba_report::history_csv(&history);
    rumba_report::history_html(&history, &rumba_report::HistoryNotes::default());
    let _ = serde_json::to_string(&rumba_report::history_json(&history, &[])).unwrap();
}

/// Shows the sample with each hostile value in each place of a part of it, unless the part is refused; returns how
/// many were shown.
fn plant<T: DeserializeOwned>(part: &Value, put: impl Fn(&mut Results, T)) -> usize {
    let mut found = BTreeMap::new();
    places(part, "", "", &mut found);
    let mut shown = 0;
    for place in found.values() {
        for value in hostile() {
            let mut planted = part.clone();
            *planted.pointer_mut(place).unwrap() = value.clone();
            let Ok(planted) = serde_json::from_value::<T>(planted) else { continue };
            let mut results = Results::clone(&SAMPLE);
            put(&mut results, planted);
            let whole = std::panic::catch_unwind(|| show(&results));
            assert!(whole.is_ok(), "{place} = {value}");
            shown += 1;
        }
    }
    shown
}

#[test]
fn hostile_value_in_a_record_is_refused_or_shown() {
    let record = serde_json::to_value(&SAMPLE.trials[0].record).unwrap();
    let shown = plant(&record, |results, record: Record| results.trials[0].record = record);
    assert!(shown > 100, "{shown}");
}

#[test]
fn hostile_value_in_an_interval_is_refused_or_shown() {
    let interval = serde_json::to_value(&SAMPLE.trials[0].intervals[0]).unwrap();
    let shown = plant(&interval, |results, interval: Interval| results.trials[0].intervals[1] = interval);
    assert!(shown > 10, "{shown}");
}
