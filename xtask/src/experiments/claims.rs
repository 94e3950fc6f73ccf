//! The claims of a kept run with their outcomes, as a table.

use std::fmt::Write;
use std::path::Path;

use serde_json::Value;

use super::figures::Committed;
use super::page::{END, replaced};
use super::since;

/// The page with the claims of its runs. A claim whose expressions are unchanged has the wording of today's file in
/// `experiments`, because that file states it more clearly.
///
/// # Errors
/// A file of today or of a run that cannot be read.
pub fn written(text: &str, figures: &mut Committed, experiments: &Path) -> Result<String, String> {
    replaced(text, "<!-- claims:", "-->\n", END, &mut |requested| table(requested.trim(), figures, experiments))
}

fn table(experiment: &str, figures: &mut Committed, experiments: &Path) -> Result<Option<String>, String> {
    let Some(document) = figures.experiment(experiment)? else { return Ok(None) };
    let today = since::today(experiment, document, experiments)?;
    let today = today.get("claim").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let mut table = String::from("| claim | published | measured | |\n|---|---|---|---|\n");
    for claim in document["summary"]["claims"].as_array().into_iter().flatten() {
        let is_same = |other: &&Value| other["holds"] == claim["holds"] && other["measure"] == claim["measure"];
        let wording = &today.iter().find(is_same).unwrap_or(claim)["text"];
        let text = |value: &Value| value.as_str().unwrap_or_default().replace('|', "\\|");
        let number = |value: &Value| value.as_f64().map_or_else(|| "-".to_owned(), |value| format!("{value:.2}"));
        let interval = match claim["interval"].as_array().map(Vec::as_slice) {
            Some([low, high]) => format!(" ({} to {})", number(low), number(high)),
            _ => String::new(),
        };
        let (measured, published) = (number(&claim["measured"]), number(&claim["published"]));
        let verdict = text(&claim["verdict"]).replace('-', " ");
        let seen = match claim["seen"].as_bool() {
            Some(true) if verdict == "single run" => ": so",
            Some(false) if verdict == "single run" => ": not so",
            _ => "",
        };
        let _ = writeln!(table, "| {} | {published} | {measured}{interval} | {verdict}{seen} |", text(wording));
    }
    Ok(Some(table))
}
