//! The repeats needed to detect a difference, as a table and as JSON.

use rumba_results::detection::{Detection, DetectionRow, Needed};
use rumba_results::distinct;
use rumba_results::record::FORMAT;
use schemars::JsonSchema;
use serde::Serialize;

use crate::json::schema_of;
use crate::tables::grid::Grid;

/// The result of a pilot for other programs.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(title = "rumba run --detect")]
pub struct DetectionDocument {
    /// The version of this format, increased when a field changes its meaning.
    pub format: u32,
    /// The result; each of its fields is a field of the JSON.
    #[serde(flatten)]
    pub detection: Detection,
}

/// A detection as a JSON value that follows `docs/detect.schema.json`.
pub fn detection_json(detection: &Detection) -> serde_json::Value {
    let document = DetectionDocument { format: FORMAT, detection: detection.clone() };
    serde_json::to_value(document).expect("plain values with text keys always serialise")
}

/// The JSON Schema of [`detection_json`]'s value.
pub fn detection_schema() -> serde_json::Value {
    schema_of::<DetectionDocument>("detect")
}

/// One line for each headline metric of each pair of engines, and an explanation.
pub fn detection_table(detection: &Detection) -> String {
    let change = percent(detection.change);
    if detection.rows.is_empty() {
        return format!(
            "Detecting a difference of {change} needs two engines with finished loops; this run has no such pair.\n"
        );
    }
    let heads = ["repeats", "range", "minutes", "range", "noise", "range", "clients", "metric", "engine", "over"];
    let mut grid = Grid::new(heads.map(str::to_owned).to_vec()).left(7).left(8);
    detection.rows.iter().for_each(|row| grid.push(line(row)));
    let reason = |row: &DetectionRow| Some(format!("  {}: {}\n", row.metric, row.reason.as_ref()?));
    let reasons = distinct(detection.rows.iter().filter_map(reason));
    let pilot = detection.rows.iter().map(|row| row.pilot_repeats).max().unwrap_or(0);
    format!(
        "Repeats of each engine that detect a difference of {change} in {} of cases\n{}{}  Noise: the relative standard \
         deviation of one repeat, estimated from {pilot} repeats of each engine. Few repeats estimate it badly: its\n  range \
         covers the true noise in 90% of cases, and the other ranges follow from it.\n  Minutes: at {:.1} minutes for \
         one repeat of all engines, loads included. Metrics without a range are explained above.\n",
        percent(detection.power),
        grid.render(),
        reasons.concat(),
        detection.minutes_of_a_repeat,
    )
}

fn line(row: &DetectionRow) -> Vec<String> {
    let noise = row.noise.map_or_else(|| "-".to_owned(), percent);
    let noise_range =
        row.noise_interval.map_or_else(|| "-".to_owned(), |(low, high)| span(percent(low), percent(high)));
    let (low, high) = (&row.at_least, &row.at_most);
    let known = |text: fn(&Needed) -> String, needed: &Needed| match row.noise {
        Some(_) => text(needed),
        None => "-".to_owned(),
    };
    let range = |text: fn(&Needed) -> String| match row.noise {
        Some(_) => span(text(low), text(high)),
        None => "-".to_owned(),
    };
    vec![
        known(repeats, &row.needed),
        range(repeats),
        known(minutes, &row.needed),
        range(minutes),
        noise,
        noise_range,
        row.clients.to_string(),
        row.metric.clone(),
        row.engine.clone(),
        row.base.clone(),
    ]
}

fn span(low: String, high: String) -> String {
    if low == high { low } else { format!("{low} to {high}") }
}

fn repeats(needed: &Needed) -> String {
    needed.repeats.map_or_else(|| "over 1000".to_owned(), |repeats| repeats.to_string())
}

fn minutes(needed: &Needed) -> String {
    match needed.minutes {
        None => "-".to_owned(),
        Some(minutes) if minutes < 10.0 => format!("{minutes:.1}"),
        Some(minutes) => format!("{minutes:.0}"),
    }
}

fn percent(share: f64) -> String {
    let percent = 100.0 * share;
    let text = if percent < 10.0 { format!("{percent:.2}") } else { format!("{percent:.1}") };
    let text = text.trim_end_matches('0').trim_end_matches('.');
    format!("{}%", if text.is_empty() { "0" } else { text })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_has_its_ranges_and_an_absence_its_reason() {
        let needed = |repeats: u32| Needed { repeats: Some(repeats), minutes: Some(1.5 * f64::from(repeats)) };
        let row = DetectionRow {
            base: "innodb".to_owned(),
            engine: "myrocks".to_owned(),
            clients: 8,
            metric: "ops_per_s".to_owned(),
            pilot_repeats: 3,
            noise: Some(0.05),
            noise_interval: Some((0.0325, 0.119)),
            needed: needed(25),
            at_least: needed(12),
            at_most: Needed::default(),
            reason: None,
        };
        let lacking = DetectionRow {
            metric: "reads_per_op".to_owned(),
            noise: None,
            noise_interval: None,
            reason: Some("a repeat is zero or less, so there is no relative difference".to_owned()),
            ..row.clone()
        };
        let detection = Detection { change: 0.05, power: 0.9, minutes_of_a_repeat: 1.5, rows: vec![row, lacking] };
        let table = detection_table(&detection);
        assert!(
            table.starts_with("Repeats of each engine that detect a difference of 5% in 90% of cases\n"),
            "{table}"
        );
        let words: Vec<&str> = table.lines().nth(2).unwrap_or_default().split_whitespace().collect();
        assert_eq!(words[..5], ["25", "12", "to", "over", "1000"], "{table}");
        assert!(table.contains("3.25% to 11.9%") && table.contains("  reads_per_op: a repeat is zero"), "{table}");
        assert!(detection_json(&detection)["rows"][0]["needed"]["repeats"] == 25);
    }
}
