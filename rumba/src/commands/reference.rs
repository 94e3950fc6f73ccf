//! `rumba reference`: the reference pages of docs/reference, generated from what the program itself uses.

use std::fmt::Write as _;
use std::path::Path;

use clap::{Command, CommandFactory};
use rumba_engine_api::printable::shown;
use rumba_engine_api::setting::SettingInfo;
use rumba_lab::registry::Registry;
use rumba_results::comparison::CHARGED;
use rumba_results::counted::{WAITED, WRITTEN};
use rumba_results::metric::{Better, METRICS, MetricInfo};
use rumba_results::rate::{RATE, RATE_GROWTH, RATE_GROWTH_8H, RATE_PERCENT};
use rumba_results::tally::{PER_OP, PER_S};
use rumba_results::warning::{Rank, WARNINGS};

use crate::cli::Cli;
use crate::problem::Problem;

/// The width of help texts, characters.
const WIDTH: usize = 100;

/// Writes the pages into a directory, which it creates if necessary.
pub fn run(directory: &Path, registry: &Registry) -> super::Result {
    let pages = [
        ("command-line.md", command_line()),
        ("metrics.md", metrics()),
        ("warnings.md", warnings()),
        ("settings.md", settings(registry)),
    ];
    let write = || {
        std::fs::create_dir_all(directory)?;
        pages.iter().try_for_each(|(name, text)| std::fs::write(directory.join(name), text))
    };
    write().map(|()| super::Output::default()).map_err(|error| {
        Problem::failure(format!("{}: {error}", shown(directory)), "name a directory that can be written")
    })
}

fn head(title: &str, about: &str) -> String {
    format!("# {title}\n\n<!-- generated: cargo run -p rumba -- reference docs/reference -->\n\n{about}\n")
}

fn command_line() -> String {
    let mut text = head("Command line", "The output of `--help` of each command.");
    let mut command = Cli::command().term_width(WIDTH);
    command.build();
    help(&mut text, &mut command);
    text
}

/// The help of a command and of those below it that are not hidden.
fn help(text: &mut String, command: &mut Command) {
    let name = command.get_bin_name().unwrap_or("rumba").to_owned();
    let shown = command.clone().term_width(WIDTH).render_long_help().to_string();
    let lines: Vec<&str> = shown.lines().map(str::trim_end).collect();
    let _ = write!(text, "\n## {name}\n\n```text\n{}\n```\n", lines.join("\n").trim_end());
    for below in command.get_subcommands_mut().filter(|below| !below.is_hide_set() && below.get_name() != "help") {
        help(text, below);
    }
}

fn metrics() -> String {
    let about = "All metrics by their stable names, which JSON, CSV, claims and gates use. [Metrics](../metrics.md) explains \
                 how they are measured. Behind `load_`, a metric is that of the load. `OP.p99_ms` is a percentile of the \
                 response time of one type of operation.";
    let mut text = head("Metrics", about);
    text += "\n| metric | unit | better | meaning |\n|---|---|---|---|\n";
    let by_rule = [&WRITTEN.info, &WAITED.info, &RATE, &RATE_PERCENT, &RATE_GROWTH, &RATE_GROWTH_8H, &PER_OP, &PER_S];
    METRICS.iter().chain(CHARGED).chain(by_rule).for_each(|info| text += &metric(info));
    text
}

fn metric(info: &MetricInfo) -> String {
    let better = match info.better {
        Better::More => "more",
        Better::Less => "less",
        Better::Neither => "–",
    };
    format!("| `{}` | {} | {better} | {} |\n", info.name, info.unit, cell(info.help))
}

fn warnings() -> String {
    let about = "All warnings, the worst first. A *void* figure has no meaning. A *misleading* one is easily \
                 misunderstood. An *unsure* one is less exact or less certain than it appears. A *note* affects no \
                 figure.";
    let mut text = head("Warnings", about);
    text += "\n| warning | severity | cause | what to do | figures |\n|---|---|---|---|---|\n";
    for kind in WARNINGS {
        let rank = match kind.rank {
            Rank::Void => "void",
            Rank::Misleading => "misleading",
            Rank::Unsure => "unsure",
            Rank::Note => "note",
        };
        let figures: Vec<String> = kind.undermines.iter().map(|name| format!("`{name}`")).collect();
        let figures = if figures.is_empty() { "all".to_owned() } else { figures.join(" ") };
        let figures = if kind.rank == Rank::Note { "none" } else { &figures };
        let (cause, remedy) = (cell(kind.cause), cell(kind.remedy));
        let _ = writeln!(text, "| `{}` | {rank} | {cause} | {remedy} | {figures} |", kind.code);
    }
    text
}

fn settings(registry: &Registry) -> String {
    let about = "The settings of engines and workloads. A server engine takes every variable of its server, too.";
    let mut text = head("Settings", about);
    for engine in &registry.engines {
        let info = engine.info();
        list(&mut text, &format!("Engine {}", info.name), info.about, info.settings);
    }
    for workload in &registry.workloads {
        list(&mut text, &format!("Workload {}", workload.name()), workload.about(), workload.settings());
    }
    text
}

fn list(text: &mut String, title: &str, about: &str, settings: &[SettingInfo]) {
    let _ = write!(text, "\n## {title}\n\n{about}\n");
    if settings.is_empty() {
        return;
    }
    *text += "\n| setting | values | default | meaning |\n|---|---|---|---|\n";
    for info in settings {
        let values = cell(&super::values(info.kind));
        let _ = writeln!(text, "| `{}` | {values} | {} | {} |", info.name, cell(info.default), cell(info.help));
    }
}

/// A text within a cell of a table.
fn cell(text: &str) -> String {
    text.replace('|', "\\|").replace('\n', " ")
}
