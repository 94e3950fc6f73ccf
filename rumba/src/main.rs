//! rumba: the storage-engine lab.

mod build;
mod cli;
mod commands;
mod experiments;
mod problem;
mod progress;
mod registry;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::Parser;
use rumba_lab::registry::Registry;

use cli::{Cli, Command};
use commands::Output;
use problem::Problem;

fn main() -> ExitCode {
    let words: Result<Vec<String>, OsString> = std::env::args_os().map(OsString::into_string).collect();
    let words = match words {
        Ok(words) => words,
        Err(word) => {
            let problem = format!("the argument `{}` is not UTF-8", word.display());
            return Problem::mistake(problem, "rename the file, or write the argument in UTF-8").report();
        }
    };
    if let Some(argv) = commands::sysbench::requested(words) {
        return commands::sysbench::main(argv);
    }
    let cli = Cli::parse();
    let registry = Registry {
        engines: registry::engines(),
        workloads: registry::workloads(),
        catalogues: registry::catalogues(),
        process: Some(commands::own),
        build: build::build(),
    };
    let result = match cli.command {
        Command::Run(args) => match args.detect {
            Some(change) if args.resume.is_none() => commands::detect::run(change, &args, &registry),
            _ => commands::run::run(&args, &registry),
        },
        Command::Ab(args) => commands::ab::run(&args, &registry),
        Command::Reproduce(args) => commands::reproduce::run(&args, &registry),
        Command::Report(args) => commands::report::run(&args),
        Command::History(args) => commands::history::run(&args),
        Command::Compare(args) => commands::compare::run(&args),
        Command::Serve(args) => commands::serve::run(&args),
        Command::Engines(args) => commands::engines::run(&args, &registry),
        Command::Workloads(args) => commands::workloads::run(&args, &registry),
        Command::Doctor(args) => commands::doctor::run(&args, &registry),
        Command::Sysbench { words } => return commands::sysbench::main(words),
        Command::NullServer(args) => commands::null_server::run(&args),
        Command::Agent(args) => commands::agent::run(&args, &registry),
        Command::Server(args) => commands::server::run(&args, &registry),
        Command::Completions { shell } => commands::texts::completions(shell),
        Command::Man { directory } => commands::texts::man(&directory),
        Command::Reference { directory } => commands::reference::run(&directory, &registry),
        Command::Trial => commands::trial(&registry),
        Command::Keep => commands::keep(),
        Command::Hold => commands::hold(&registry),
        Command::Probe => commands::probe(&registry),
        Command::Delay => commands::delay(),
        Command::Harness => commands::harness(&registry),
    };
    result.and_then(Output::print).unwrap_or_else(Problem::report)
}
