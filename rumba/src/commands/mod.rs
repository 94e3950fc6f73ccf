//! The commands, one file each.

/// Like `println!`, but without a panic when the reader has gone (`| head`), and without terminal control sequences.
macro_rules! say {
    ($($text:tt)*) => {{
        let line = format!("{}\n", rumba_engine_api::printable::printable(&format!($($text)*)));
        let _ = std::io::Write::write_all(&mut std::io::stdout(), line.as_bytes());
    }};
}

pub mod ab;
pub mod agent;
pub mod compare;
pub mod detect;
pub mod doctor;
pub mod engines;
pub mod history;
mod live;
pub mod null_server;
mod page;
mod pictures;
pub mod reference;
pub mod report;
pub mod reproduce;
pub mod run;
pub mod serve;
pub mod server;
pub mod sysbench;
pub mod texts;
pub mod workloads;

use std::io::Write;
use std::process::{Command, ExitCode};

use rumba_engine_api::printable::printable;
use rumba_engine_api::setting::{Kind, SettingInfo};
use rumba_lab::registry::Registry;
use rumba_lab::trial::child::stop_signals;
use signal_hook::iterator::Signals;

use crate::problem::Problem;
use crate::progress::notify;

pub type Result = std::result::Result<Output, Problem>;

/// The output of a command that has ended.
#[derive(Default)]
pub struct Output {
    /// For standard output.
    text: String,
    /// For standard error, after the text.
    notes: Vec<String>,
    /// Reported last. It decides the exit code.
    problem: Option<Problem>,
    exit_code: ExitCode,
}

impl Output {
    fn text(text: impl std::fmt::Display) -> Self {
        Self { text: text.to_string(), ..Self::default() }
    }

    fn json(value: &serde_json::Value) -> Self {
        Self::text(format_args!("{value:#}"))
    }

    /// Prints all of it and returns the exit code. The notes follow also when the text cannot be printed.
    pub fn print(self) -> std::result::Result<ExitCode, Problem> {
        let text = self.text.trim_end();
        let printed = if text.is_empty() { Ok(()) } else { print(text) };
        self.notes.iter().for_each(|note| notify(note));
        printed.and(self.problem.map_or(Ok(self.exit_code), Err))
    }
}

impl From<ExitCode> for Output {
    fn from(exit_code: ExitCode) -> Self {
        Self { exit_code, ..Self::default() }
    }
}

/// The end of a command that rumba starts itself.
fn ended(served: std::io::Result<()>, what: &str, remedy: &str) -> Result {
    served.map(|()| Output::default()).map_err(|error| Problem::failure(format!("{what}: {error}"), remedy))
}

/// `rumba trial`: one trial in this process.
pub fn trial(registry: &Registry) -> Result {
    let served = rumba_lab::trial::child::serve(registry);
    ended(served, "the trial's order", "`rumba run` gives it; do not run it by hand")
}

/// `rumba probe`: checks in this process whether an engine can run a configuration.
pub fn probe(registry: &Registry) -> Result {
    ended(rumba_lab::probe::serve(registry), "the probe", "`rumba run` asks it; do not run it by hand")
}

/// `rumba keep`: supervises a managed server until it is stopped.
pub fn keep() -> Result {
    let managed = rumba_lab::provision::ResourceRegistry::of_user()?;
    let served = rumba_lab::keeper::keep(&managed, own);
    ended(served, "the server's keeper", "`rumba server start` orders it; see `rumba doctor`")
}

/// `rumba hold`: holds an instance open within its limits.
pub fn hold(registry: &Registry) -> Result {
    ended(rumba_lab::keeper::hold(registry), "the server's holder", "`rumba keep` starts it")
}

/// `rumba delay`: serves the file of a volume, and delays its requests.
pub fn delay() -> Result {
    let served = rumba_lab::limits::delay_requests();
    ended(served, "the delay of a volume", "`rumba run` starts it; do not run it by hand")
}

/// `rumba harness`: measures rumba's own cost per operation, in this process.
pub fn harness(registry: &Registry) -> Result {
    let served = rumba_lab::harness::serve(registry);
    ended(served, "the harness's own cost", "`rumba run` asks for it; do not run it by hand")
}

/// The signals that end a command.
fn signals() -> std::result::Result<Signals, Problem> {
    Signals::new(stop_signals())
        .map_err(|error| Problem::failure(format!("signals cannot be caught: {error}"), "report this"))
}

/// This binary as another process with one argument.
pub fn own(argument: &str) -> std::io::Result<Command> {
    let mut command = Command::new(std::env::current_exe()?);
    command.arg(argument);
    Ok(command)
}

/// Prints to standard output, without terminal control sequences. A closed pipe (`| head`) is not an error.
fn print(text: impl std::fmt::Display) -> std::result::Result<(), Problem> {
    match writeln!(std::io::stdout(), "{}", printable(&text.to_string())) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
            Err(Problem::failure(format!("standard output: {error}"), "send it somewhere else"))
        }
        _ => Ok(()),
    }
}

fn setting_line(info: &SettingInfo<&str>) -> String {
    format!("  {:<28} {} [{}; default: {}]", info.name, info.help, values(info.kind), info.default)
}

fn values(kind: Kind) -> String {
    match kind {
        Kind::Bool => "true or false".to_owned(),
        Kind::Int(low, high) => format!("{low} to {high}"),
        Kind::Float(f64::NEG_INFINITY, f64::INFINITY) => "a number".to_owned(),
        Kind::Float(low, high) => format!("{low} to {high}"),
        Kind::Bytes => "a size".to_owned(),
        Kind::Duration => "a duration".to_owned(),
        Kind::Choice(words) => words.join(" | "),
        Kind::Text => "text".to_owned(),
    }
}

fn setting_json(info: &SettingInfo<&str>) -> serde_json::Value {
    serde_json::json!({ "name": info.name, "default": info.default, "help": info.help })
}
