//! Which driver runs the clients.

use std::fmt;

use rumba_core::engine::Place;
use rumba_core::record::DriverKind;

/// Clients per core up to which `auto` takes a thread for each of them.
const THREADS_PER_CORE: usize = 4;

/// A driver, with as many threads as it has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Driving {
    /// A thread for each client.
    Threads {
        /// Threads, and clients.
        threads: u32,
    },
    /// Event loops that share the clients.
    Loops {
        /// Threads, each with a loop.
        threads: u32,
    },
}

impl Driving {
    /// The driver that is asked for; `auto` chooses by what this machine has.
    ///
    /// Over an embedded engine the client's thread does the engine's work, and
    /// never waits: a thread each. Over a wire docs/method.md has the rule and its figures.
    pub fn choose(asked: DriverKind, place: &Place, clients: u32) -> Self {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        Self::choose_on(cores, asked, place, clients)
    }

    fn choose_on(cores: usize, asked: DriverKind, place: &Place, clients: u32) -> Self {
        let wants_loops = match asked {
            DriverKind::Threads => false,
            DriverKind::Loops => true,
            DriverKind::Auto => *place != Place::Embedded && clients as usize > THREADS_PER_CORE * cores,
        };
        if wants_loops {
            Driving::Loops { threads: clients.min(u32::try_from(cores).unwrap_or(u32::MAX)).max(1) }
        } else {
            Driving::Threads { threads: clients }
        }
    }

    /// How many threads it has.
    pub fn threads(self) -> u32 {
        match self {
            Driving::Threads { threads } | Driving::Loops { threads } => threads,
        }
    }
}

/// As a record's conditions say it: `loops, 4 threads`.
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

    const SERVER: Place = Place::Server { pid: None, data_dir: None };

    fn told(asked: DriverKind, place: &Place, clients: u32) -> String {
        Driving::choose_on(4, asked, place, clients).to_string()
    }

    #[test]
    fn auto_gives_embedded_engines_a_thread_per_client_whatever_their_number() {
        assert_eq!(told(DriverKind::Auto, &Place::Embedded, 1), "threads, 1 thread");
        assert_eq!(told(DriverKind::Auto, &Place::Embedded, 256), "threads, 256 threads");
    }

    #[test]
    fn auto_takes_loops_for_many_connections() {
        assert_eq!(told(DriverKind::Auto, &SERVER, 16), "threads, 16 threads");
        assert_eq!(told(DriverKind::Auto, &SERVER, 17), "loops, 4 threads");
    }

    #[test]
    fn what_is_asked_for_is_what_runs_and_no_loop_is_without_clients() {
        assert_eq!(told(DriverKind::Loops, &Place::Embedded, 2), "loops, 2 threads");
        assert_eq!(told(DriverKind::Threads, &SERVER, 1024), "threads, 1024 threads");
    }
}
