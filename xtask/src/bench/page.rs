//! The measurements as text and as docs/performance.md.

use std::fmt::Write;

use serde_json::Value;

use super::Line;

/// The text above the table; the table is measured.
const HEAD: &str = "# Performance

This page lists the cost of rumba itself. `make bench` measures every row. `cargo run --release -p xtask -- bench --write NAME...`
measures the named rows again and writes this page. Each row has the day of its measurement, and
[performance.json](performance.json) has the data. The machines are shared and noisy, so trust ratios and instruction counts more
than microseconds.

";

fn verdict(line: &Line) -> &'static str {
    match line.met {
        Some(true) => "met",
        Some(false) => "MISSED",
        None => "",
    }
}

pub fn text(line: &Line) -> String {
    format!("{:<7} {}\n        goal {}; measured {}", verdict(line), line.what, line.goal, line.measured)
}

/// The whole page, of lines with their days.
pub fn page(lines: &[(String, Line)], conditions: &Value) -> String {
    let mut page = String::from(HEAD);
    page.push_str("| what | goal | measured | | day |\n|---|---|---|---|---|\n");
    for (day, line) in lines {
        // Writing into a String cannot fail.
        let _ = writeln!(page, "| {} | {} | {} | {} | {day} |", line.what, line.goal, line.measured, verdict(line));
    }
    page.push_str("\n## Commands\n\n");
    let mut commands: Vec<&str> = lines.iter().map(|(_, line)| line.command.as_str()).collect();
    commands.dedup();
    for command in commands {
        let _ = writeln!(page, "- `{command}`");
    }
    page.push_str("\n## The machine\n\n");
    for (name, value) in conditions.as_object().into_iter().flatten() {
        let _ = writeln!(page, "- {name}: {}", value.as_str().unwrap_or_default());
    }
    page.push_str(REASONS);
    page
}

/// The explanations for readers of the figures, kept with the code that measures them.
const REASONS: &str = include_str!("reasons.md");
