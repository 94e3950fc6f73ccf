//! The managed servers, as the ledger lists them.

use std::io;
use std::time::{Duration, Instant};

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use super::{NO_TRIAL, Server};
use crate::provision::{DATA_DIRECTORY, DataDir, Life, Owner, ProvisionError, ResourceRegistry};

/// How long a server may take to end: its keeper kills it before this limit.
const PATIENCE: Duration = Duration::from_secs(360);
/// The interval between two checks of a keeper that is to end.
const LOOK: Duration = Duration::from_millis(20);

#[derive(Clone, Debug)]
pub struct KeptServer {
    /// The server's name.
    pub name: String,
    /// Its keeper, with the start time.
    pub keeper: Owner,
    /// The server's description of itself; `None` while it starts or ends.
    pub server: Option<Server>,
}

/// The managed servers, ordered by name.
///
/// # Errors
/// When the ledger cannot be read.
pub fn find(ledger: &ResourceRegistry) -> Result<Vec<KeptServer>, ProvisionError> {
    let living = ledger.living(&DATA_DIRECTORY)?.into_iter().filter(|(_, owner)| owner.trial == NO_TRIAL);
    let mut kept: Vec<KeptServer> = living
        .map(|(path, keeper)| {
            // The note may disappear at any moment.
            let noted = DataDir::noted(&path).ok().flatten();
            let server = noted.and_then(|noted| serde_json::from_slice(&noted).ok());
            KeptServer { name: keeper.experiment.clone(), keeper, server }
        })
        .collect();
    kept.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(kept)
}

/// Requests the end from a keeper, and waits for it. Then nothing is left of the server, or the ledger lists the rest.
///
/// # Errors
/// When the keeper belongs to another user, or does not end.
pub fn stop(kept: &KeptServer) -> io::Result<()> {
    let number = i32::try_from(kept.keeper.process.pid).ok().and_then(Pid::from_raw);
    let number = number.ok_or_else(|| io::Error::other("its keeper's number is none"))?;
    let process = match pidfd_open(number, PidfdFlags::empty()) {
        Err(rustix::io::Errno::SRCH) => return Ok(()),
        process => process?,
    };
    // The descriptor pins the process while it is checked again, because the pid may be reused by now.
    if kept.keeper.process.life() != Life::Lives {
        return Ok(());
    }
    match pidfd_send_signal(&process, Signal::TERM) {
        Err(rustix::io::Errno::SRCH) => return Ok(()),
        sent => sent?,
    }
    let requested = Instant::now();
    while kept.keeper.process.life() == Life::Lives {
        if requested.elapsed() > PATIENCE {
            return Err(io::Error::from(io::ErrorKind::TimedOut));
        }
        std::thread::sleep(LOOK);
    }
    Ok(())
}
