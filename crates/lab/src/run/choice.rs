//! Chooses the driver of the clients.

use std::fmt;

use rumba_engine_api::engine::ProcessLocation;
use rumba_results::record::DriverKind;

/// Clients per core up to which `auto` uses a thread for each, when the server has other cores.
const THREADS_PER_OWN_CORE: usize = 4;

/// The same when the server shares the cores. There a loop waits for a core behind the server's many threads while they
/// wait for the loop. A thread per client gets more queries through. With hundreds of threads, clients measure mostly
/// their own waiting.
const THREADS_PER_SHARED_CORE: usize = 32;

/// The fewest clients per loop: a loop saves time by taking many answers at once.
const CLIENTS_PER_LOOP: usize = 8;

/// A driver, with its number of threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Driving {
    /// A thread for each client.
    Threads { threads: u32 },
    /// Event loops that share the clients.
    Loops { threads: u32 },
}

impl Driving {
    /// The requested driver; `auto` chooses by the machine.
    ///
    /// With an embedded engine the client's thread does the engine's work and never waits, so each client gets a
    /// thread. For servers, docs/performance.md has the rule and its reason.
    pub fn choose(requested: DriverKind, place: &ProcessLocation, clients: u32) -> Self {
        Self::choose_on(&Cores::of_this_process(), requested, place, clients)
    }

    fn choose_on(cores: &Cores, requested: DriverKind, place: &ProcessLocation, clients: u32) -> Self {
        let threads_per_core = match place {
            ProcessLocation::Embedded => usize::MAX,
            ProcessLocation::Server { pid: Some(_), .. } if cores.are_all => THREADS_PER_SHARED_CORE,
            ProcessLocation::Server { .. } => THREADS_PER_OWN_CORE,
        };
        let wants_loops = match requested {
            DriverKind::Threads => false,
            DriverKind::Loops => true,
            DriverKind::Auto => clients as usize > threads_per_core.saturating_mul(cores.count),
        };
        if wants_loops {
            let loops = (clients as usize / CLIENTS_PER_LOOP).clamp(1, cores.count);
            Driving::Loops { threads: u32::try_from(loops).unwrap_or(u32::MAX) }
        } else {
            Driving::Threads { threads: clients }
        }
    }

    pub fn threads(self) -> u32 {
        match self {
            Driving::Threads { threads } | Driving::Loops { threads } => threads,
        }
    }
}

/// The cores that this process may run on.
struct Cores {
    count: usize,
    /// Whether the host has no other cores: a server on it then shares them.
    are_all: bool,
}

impl Cores {
    fn of_this_process() -> Self {
        let count = std::thread::available_parallelism().map_or(1, usize::from);
        // SAFETY: it takes a number and returns one, which is negative if unknown.
        let online = unsafe { libc::sysconf(libc::_SC_NPROCESSORS_ONLN) };
        Self { count, are_all: usize::try_from(online).is_ok_and(|online| count >= online) }
    }
}

/// As in a record's conditions: `loops, 4 threads`.
impl fmt::Display for Driving {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = match self {
            Driving::Threads { .. } => "threads",
            Driving::Loops { .. } => "loops",
        };
        let threads = self.threads();
        write!(f, "{name}, {threads} thread{}", if threads == 1 { "" } else { "s" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HERE: ProcessLocation = ProcessLocation::Server { pid: Some(1), data_dir: None };
    const ELSEWHERE: ProcessLocation = ProcessLocation::Server { pid: None, data_dir: None };

    fn reported_on(are_all: bool, requested: DriverKind, place: &ProcessLocation, clients: u32) -> String {
        Driving::choose_on(&Cores { count: 4, are_all }, requested, place, clients).to_string()
    }

    #[test]
    fn driver_follows_request_place_and_number_of_clients() {
        use DriverKind::{Auto, Loops, Threads};
        for (requested, place, clients, driving) in [
            (Auto, &ProcessLocation::Embedded, 1, "threads, 1 thread"),
            (Auto, &ProcessLocation::Embedded, 256, "threads, 256 threads"),
            (Auto, &ELSEWHERE, 16, "threads, 16 threads"),
            (Auto, &ELSEWHERE, 17, "loops, 2 threads"),
            (Auto, &ELSEWHERE, 256, "loops, 4 threads"),
            (Auto, &HERE, 128, "threads, 128 threads"),
            (Auto, &HERE, 129, "loops, 4 threads"),
            (Loops, &ProcessLocation::Embedded, 2, "loops, 1 thread"),
            (Loops, &HERE, 1, "loops, 1 thread"),
            (Threads, &HERE, 1024, "threads, 1024 threads"),
        ] {
            assert_eq!(reported_on(true, requested, place, clients), driving, "{requested:?}, {place:?}");
        }
        assert_eq!(reported_on(false, Auto, &HERE, 128), "loops, 4 threads", "the clients are pinned");
    }
}
