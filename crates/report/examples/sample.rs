//! Writes a page (first argument) from synthetic results and prints its tables: for the development of the report only.
//! No figure in it was measured.
//!
//! The second argument selects the results:
//!
//! - `ladder`: several numbers of clients
//! - `servers`: engines in servers
//! - `suite`: tests of a suite
//! - `steps`: numbers of clients that change within a trial
//! - `proof`: an engine that was killed
//! - `history`: the history of nine runs
//! - `hour`: the largest page that must open at once; also prints how long it took to make
#[path = "../tests/report/support/mod.rs"]
mod support;

use std::time::Instant;

use support::ladder::{hour, ladder, steps, suite};
use support::proof::proof;
use support::synthetic::{sample, servers};

fn main() -> std::io::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let file = arguments.next();
    let which = arguments.next();
    if which.as_deref() == Some("history") {
        let history = support::compare::history(&support::history::commits(), None);
        print!("{}", rumba_report::history_table(&history));
        return file.map_or(Ok(()), |file| {
            std::fs::write(file, rumba_report::history_html(&history, &rumba_report::HistoryNotes::default()))
        });
    }
    let results = match which.as_deref() {
        Some("servers") => servers(),
        Some("suite") => suite(),
        Some("steps") => steps(),
        Some("hour") => hour(),
        Some("proof") => proof(),
        Some(_) => ladder(),
        None => sample(),
    };
    let began = Instant::now();
    let summary = support::compare::summarise(&results);
    let summarised = began.elapsed();
    let page = rumba_report::html(&results, &summary);
    let made = began.elapsed();
    if which.as_deref() == Some("hour") {
        println!(
            "{} trials, {} intervals: summarised in {:.2} s, with the page {:.2} s, {:.2} MB",
            results.trials.len(),
            results.trials.iter().map(|trial| trial.intervals.len()).sum::<usize>(),
            summarised.as_secs_f64(),
            made.as_secs_f64(),
            page.len() as f64 / 1e6
        );
    } else {
        print!("{}", rumba_report::tables(&results, &summary, &rumba_report::TableOptions::default()));
    }
    if let Some(file) = file {
        std::fs::write(file, page)?;
    }
    Ok(())
}
