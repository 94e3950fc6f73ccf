//! The live page of a run: started before its first trial, ended after its last.

use std::net::TcpListener;
use std::path::Path;
use std::sync::Arc;

use rumba_lab::conduct::{Forecast, Outcome, Watch};
use rumba_live::{Content, Library, Live, Server, StartError};

use crate::cli::RunOptions;
use crate::problem::Problem;
use crate::progress::notify;

/// Takes the port if there is to be a page.
pub fn listen(args: &RunOptions) -> Result<Option<TcpListener>, Problem> {
    if !args.live || args.dry_run {
        return Ok(None);
    }
    rumba_live::listen(args.port.unwrap_or(0)).map(Some).map_err(not_served)
}

pub struct LivePage {
    server: Server,
    live: Arc<Live>,
}

impl LivePage {
    /// Serves the page of the run that writes to this directory, along with past results.
    pub fn start(listener: TcpListener, results: &Path, planned: usize, forecast: Forecast) -> Result<Self, Problem> {
        let unreadable = |error: rumba_lab::store::ReadError| Problem::failure(error.to_string(), "see who removes it");
        let live = Arc::new(Live::new(results, planned, forecast).map_err(unreadable)?);
        let base = results.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let content = Content { library: Library::new(base), live: Some((live.clone(), Box::new(interrupt))) };
        let server = Server::start(listener, content).map_err(not_served)?;
        notify(&format!("live page: {}live", server.address()));
        Ok(Self { server, live })
    }

    /// Receives the events of the run.
    pub fn watch(&self) -> impl Watch {
        &*self.live
    }

    /// Sends open pages the result and the outcome of the run, and ends the server.
    pub fn end(self, outcome: Result<&Outcome, String>) {
        self.live.end(outcome);
        drop(self.server);
    }
}

/// Sends the process the signal of Ctrl-C.
fn interrupt() {
    // The process may always signal itself, so an error is ignored.
    let _ = rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::INT);
}

/// The error when the page cannot be served.
pub fn not_served(error: StartError) -> Problem {
    match error {
        StartError::Port { .. } => Problem::mistake(error.to_string(), "choose another --port, or leave it out"),
        StartError::Io(_) => Problem::failure(error.to_string(), "run without the page, or report this"),
    }
}
