//! `rumba serve`.

use rumba_engine_api::printable::shown;
use rumba_live::{Content, Library, Server};

use super::Output;
use super::live::not_served;
use crate::cli::ServeArgs;
use crate::problem::Problem;
use crate::progress::notify;

/// Serves past results until it is interrupted.
pub fn run(args: &ServeArgs) -> super::Result {
    if !args.directory.is_dir() {
        let message = format!("{} is no directory", shown(&args.directory));
        return Err(Problem::mistake(message, "name the directory that holds results; `rumba run` makes results/"));
    }
    let mut signals = super::signals()?;
    let listener = rumba_live::listen(args.port.unwrap_or(0)).map_err(not_served)?;
    let content = Content { library: Library::new(&args.directory), live: None };
    let server = Server::start(listener, content).map_err(not_served)?;
    super::print(server.address())?;
    notify("Ctrl-C ends it");
    signals.forever().next();
    drop(server);
    Ok(Output::default())
}
