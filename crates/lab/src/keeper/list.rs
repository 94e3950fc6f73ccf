//! The servers that are kept, as the ledger lists them.

use std::io;
use std::time::{Duration, Instant};

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use super::{NO_TRIAL, Server};
use crate::provision::{DATA_DIRECTORY, DataDir, Ledger, Life, Owner, ProvisionError};

/// How long a server may take to end: its keeper kills it before that.
const PATIENCE: Duration = Duration::from_secs(360);
/// Between two looks at a keeper that is to end.
const LOOK: Duration = Duration::from_millis(20);

/// A server that is kept.
#[derive(Clone, Debug)]
pub struct KeptServer {
    /// What it is called.
    pub name: String,
    /// Its keeper, and since when.
    pub keeper: Owner,
    /// What it says of itself; `None` while it starts or ends.
    pub server: Option<Server>,
}

/// Those that are kept now, in the order of their names.
///
/// # Errors
/// When the ledger cannot be read.
pub fn find(ledger: &Ledger) -> Result<Vec<KeptServer>, ProvisionError> {
    let living = ledger.living(&DATA_DIRECTORY)?.into_iter().filter(|(_, owner)| owner.trial == NO_TRIAL);
    let mut kept: Vec<KeptServer> = living
        .map(|(path, keeper)| {
            // What it has noted may go at any moment.
            let noted = DataDir::noted(&path).ok().flatten();
            let server = noted.and_then(|noted| serde_json::from_slice(&noted).ok());
            KeptServer { name: keeper.experiment.clone(), keeper, server }
        })
        .collect();
    kept.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(kept)
}

/// Asks a keeper to end, and waits until it has; then nothing is left of the server, or the ledger lists what is.
///
/// # Errors
/// When it is another user's, or does not end.
pub fn stop(kept: &KeptServer) -> io::Result<()> {
    let number = i32::try_from(kept.keeper.process.pid).ok().and_then(Pid::from_raw);
    let number = number.ok_or_else(|| io::Error::other("its keeper's number is none"))?;
    let process = match pidfd_open(number, PidfdFlags::empty()) {
        Err(rustix::io::Errno::SRCH) => return Ok(()),
        process => process?,
    };
    // The descriptor holds the process while it is looked at once more: its number may be another's by now.
    if kept.keeper.process.life() != Life::Lives {
        return Ok(());
    }
    match pidfd_send_signal(&process, Signal::TERM) {
        Err(rustix::io::Errno::SRCH) => return Ok(()),
        sent => sent?,
    }
    let asked = Instant::now();
    while kept.keeper.process.life() == Life::Lives {
        if asked.elapsed() > PATIENCE {
            return Err(io::Error::from(io::ErrorKind::TimedOut));
        }
        std::thread::sleep(LOOK);
    }
    Ok(())
}
