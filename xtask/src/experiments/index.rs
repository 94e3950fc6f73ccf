//! The table of all published experiments: the question and the finding from each page, the rest from its kept run.

use std::fmt::Write as _;
use std::path::Path;

use serde_json::Value;

use super::figures::Committed;

const QUESTION: &str = "<!-- question: ";

/// The table of these pages, in their order. A page begins with its finding as the title; a comment has its question:
/// `<!-- question: What does the binary log cost? -->`.
///
/// # Errors
/// A page without a title or a question.
pub fn table(root: &Path, pages: &[String], figures: &mut Committed) -> Result<String, String> {
    let mut table = String::from("| question | finding | claims | repeats | run on |\n|---|---|---|---|---|\n");
    for path in pages {
        let text = std::fs::read_to_string(root.join(path)).map_err(|error| format!("{path}: {error}"))?;
        let title = text.lines().next().and_then(|line| line.strip_prefix("# "));
        let title = title.ok_or_else(|| format!("{path}: the first line is not a title"))?;
        let question = text.split_once(QUESTION).and_then(|(_, rest)| rest.split_once(" -->"));
        let (question, _) = question.ok_or_else(|| format!("{path}: lacks `{QUESTION}… -->`"))?;
        let name = Path::new(path).file_stem().unwrap_or_default().to_string_lossy();
        let run = match figures.experiment(&name)? {
            Some(run) => format!("{} | {} | {}", claims(run), repeats(run), date(run)),
            None => "not run | | ".to_owned(),
        };
        let _ = writeln!(table, "| [{question}](experiments/{name}.md) | {title} | {run} |");
    }
    Ok(table)
}

/// `3 hold, 1 fails`, as counted by verdict.
fn claims(run: &Value) -> String {
    let verdicts: Vec<&str> = run["summary"]["claims"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|claim| claim["verdict"].as_str())
        .collect();
    let mut kinds: Vec<&str> = Vec::new();
    verdicts.iter().for_each(|verdict| {
        if !kinds.contains(verdict) {
            kinds.push(verdict)
        }
    });
    let of_kind = |kind: &&str| {
        let count = verdicts.iter().filter(|verdict| *verdict == kind).count();
        let words = match (kind.strip_prefix("holds"), kind.strip_prefix("fails"), count) {
            (Some(rest), _, 2..) => format!("hold{rest}"),
            (_, Some(rest), 2..) => format!("fail{rest}"),
            _ => (*kind).to_owned(),
        };
        format!("{count} {}", words.replace('-', " "))
    };
    kinds.iter().map(of_kind).collect::<Vec<_>>().join(", ")
}

fn repeats(run: &Value) -> String {
    let rows = || run["summary"]["rows"].as_array().into_iter().flatten();
    let most = rows().filter_map(|row| row["run"]["repeats"].as_array().map(Vec::len)).max().unwrap_or(0);
    // With several numbers of clients, trials of one repeat start from copies of its load.
    let loads = rows().filter_map(|row| row["loads"].as_u64()).max().unwrap_or(0);
    match most {
        0 | 1 => "1".to_owned(),
        most if loads >= most as u64 || run["starts_of_one_load"] != true => format!("{most} loads"),
        most => format!("{most} starts of one load"),
    }
}

fn date(run: &Value) -> &str {
    run["started"].as_str().and_then(|started| started.get(..10)).unwrap_or_default()
}
