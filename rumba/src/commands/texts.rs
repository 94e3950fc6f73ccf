//! `rumba completions` and `rumba man`: shell completions and man pages, generated from the declaration of the command
//! line.

use std::path::Path;

use clap::CommandFactory;
use clap_complete::Shell;
use rumba_engine_api::printable::shown;

use super::Output;
use crate::cli::Cli;
use crate::problem::Problem;

/// Prints the completions of `rumba` for a shell.
pub fn completions(shell: Shell) -> super::Result {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "rumba", &mut script);
    Ok(Output::text(String::from_utf8_lossy(&script)))
}

/// Writes a man page of every command into a directory, which it creates if necessary.
pub fn man(directory: &Path) -> super::Result {
    let written = std::fs::create_dir_all(directory).and_then(|()| clap_mangen::generate_to(Cli::command(), directory));
    match written {
        Ok(()) => Ok(Output::default()),
        Err(error) => {
            Err(Problem::failure(format!("{}: {error}", shown(directory)), "name a directory that can be written"))
        }
    }
}
