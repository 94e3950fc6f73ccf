//! `xtask bench`: what rumba itself costs, against its goals. Every figure is
//! measured by a command that is printed beside it; `--write` puts the table
//! into docs/performance.md with the machine.

mod measure;
mod page;

use std::path::Path;

/// One goal and what was measured.
pub struct Line {
    /// What is measured.
    pub what: String,
    /// The goal, in words.
    pub goal: String,
    /// The figure, with its unit.
    pub measured: String,
    /// Whether the goal is met; `None` where there is none or it cannot be judged here.
    pub met: Option<bool>,
    /// The command that measured it.
    pub command: String,
}

/// Something that kept a figure from being measured.
pub type Failure = Box<dyn std::error::Error>;

/// Measures everything; returns whether every goal was met.
///
/// # Errors
/// When a command fails or prints something else than it should.
pub fn bench(root: &Path, write: bool) -> Result<bool, Failure> {
    let bench = measure::Bench::new(root)?;
    let mut lines = Vec::new();
    for step in measure::STEPS {
        for line in step(&bench)? {
            println!("{}", page::text(&line));
            lines.push(line);
        }
    }
    if write {
        let path = root.join("docs/performance.md");
        std::fs::write(&path, page::page(&lines, &bench.conditions()?))?;
        println!("written: {}", path.display());
    }
    Ok(lines.iter().all(|line| line.met != Some(false)))
}
