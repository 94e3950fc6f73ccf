//! The test to run: a script, or one of the built-in tests.

use std::pin::Pin;
use std::sync::Arc;

use rumba_engine_api::engine::ProcessLocation;
use rumba_engine_api::error::Result;
use rumba_engine_api::worker::{Client, ClientAddress, HostShare, Pace};
use rumba_lab::run::Driving;
use rumba_lab::run::driver::Make;
use rumba_results::record::DriverKind;
use rumba_workload_sysbench::ScriptClient;
use rumba_workload_sysbench::built_in_tests::{BuiltInTest, Started};
use rumba_workload_sysbench::cli::command_line::short_name;
use rumba_workload_sysbench::cli::report::{self, Closing, Subject};
use rumba_workload_sysbench::cli::settings::{ClientDriver, Settings};
use rumba_workload_sysbench::cli::{Refusal, Snapshot};
use rumba_workload_sysbench::counters::Counters;
use rumba_workload_sysbench::failure::Function;
use rumba_workload_sysbench::setup::Events;

use super::dry::statements_of_a_client;
use super::host::Lack;
use super::script::Script;
use super::{Ended, host, print};

/// A test that is about to run.
pub enum Test<'a> {
    Script(&'a Script),
    /// A built-in test, with the seed of its random numbers.
    BuiltIn {
        name: &'a str,
        test: &'a BuiltInTest,
        seed: u64,
        /// The output of reports.
        drivers: &'a host::Drivers,
    },
}

impl Test<'_> {
    pub fn name(&self) -> &str {
        match self {
            Test::Script(script) => script.setup.script.name(),
            Test::BuiltIn { name, .. } => name,
        }
    }

    /// The seed of all random numbers.
    pub fn seed(&self) -> u64 {
        match self {
            Test::Script(script) => script.setup.seed,
            Test::BuiltIn { seed, .. } => *seed,
        }
    }

    /// The services that print.
    pub fn drivers(&self) -> &host::Drivers {
        match self {
            Test::Script(script) => &script.drivers,
            Test::BuiltIn { drivers, .. } => drivers,
        }
    }

    /// More about why clients could not be made: how many were, or how many statements they need.
    pub fn lack(&self, threads: u32) -> String {
        match (self, self.drivers().lack()) {
            (_, Some(Lack::Connection)) => {
                format!("; {} of {threads} clients had connected", self.drivers().connected())
            }
            (Test::Script(script), Some(Lack::Statement)) => {
                let each = statements_of_a_client(&script.setup);
                format!("; {threads} clients need {} prepared statements, {each} each", each * threads as usize)
            }
            _ => String::new(),
        }
    }

    /// Runs the test's init, before anything of the run is printed.
    pub fn init(&self) -> Result<(), Ended> {
        let Test::Script(script) = self else { return Ok(()) };
        script.call(Function::Init)?;
        if script.has("event") {
            return Ok(());
        }
        let words = format!("cannot find the event() function in {}", short_name(self.name()));
        Err(Ended::refused(&Refusal::Fatal(words)))
    }

    /// The mode text that follows the general options.
    pub fn mode_text(&self) -> String {
        match self {
            Test::Script(_) => String::new(),
            Test::BuiltIn { test, .. } => test.mode_text(),
        }
    }

    /// The driver of this many clients. Clients without a server block, so each has its own thread.
    pub fn driving(&self, settings: &Settings, clients: u32) -> Driving {
        let requested = match settings.client_driver {
            ClientDriver::Auto => DriverKind::Auto,
            ClientDriver::Threads => DriverKind::Threads,
            ClientDriver::Loops => DriverKind::Loops,
        };
        match self {
            Test::Script(script) if !script.drivers.is_embedded() => {
                // It is unknown whether the server is on this host; in a benchmark on one machine, most are.
                let place = ProcessLocation::Server { pid: Some(0), data_dir: None };
                Driving::choose(requested, &place, clients)
            }
            _ => Driving::choose(DriverKind::Threads, &ProcessLocation::Embedded, clients),
        }
    }

    /// Creates the clients' shared state, then the factory of a host's clients with their counters. Also returns how
    /// many events they have.
    pub fn maker(&self, counters: &[Arc<Counters>], share: HostShare) -> Result<(Make, Events), Ended> {
        let counters = counters.to_vec();
        match self {
            Test::Script(script) => {
                let (setup, drivers) = (script.setup.clone(), script.drivers.clone());
                let events = setup.events.clone();
                let make: Make = Arc::new(move |ClientAddress { client, .. }| {
                    let client = ScriptClient::new(&setup, client, counters[share.own(client) as usize].clone())?;
                    Ok(Box::new(PassedOver { client, drivers: drivers.clone() }) as Box<dyn Client>)
                });
                Ok((make, events))
            }
            Test::BuiltIn { test, seed, drivers, .. } => {
                let started: Started = test.start().map_err(|failure| drivers.failed(&failure))?;
                let (events, seed) = (started.events().clone(), *seed);
                let make: Make = Arc::new(move |ClientAddress { client, .. }| {
                    started.client(client, counters[client as usize].clone(), seed)
                });
                Ok((make, events))
            }
        }
    }

    /// The line of an interval.
    pub fn intermediate(&self, snapshot: &Snapshot, subject: Subject) -> String {
        match self {
            Test::Script(_) => report::intermediate(snapshot, subject),
            Test::BuiltIn { test, .. } => test.intermediate(snapshot),
        }
    }

    pub fn cumulative(&self, snapshot: &Snapshot, closing: Closing) -> String {
        match self {
            Test::Script(_) => report::cumulative(snapshot, closing),
            Test::BuiltIn { test, .. } => test.cumulative(snapshot, closing),
        }
    }

    /// Calls a script's hook with the figures of a report, if the script has it.
    pub fn hook(&self, name: &str, stat: &[(&'static str, f64)]) -> bool {
        let Test::Script(script) = self else { return false };
        script.main.report(name, stat).unwrap_or_else(|error| {
            print(&format!("FATAL: {error}\n"));
            // The measurements are reported anyway.
            false
        })
    }

    /// Runs the test's done.
    pub fn done(&self) -> Result<(), Ended> {
        match self {
            Test::Script(script) => script.call(Function::Done),
            Test::BuiltIn { .. } => Ok(()),
        }
    }
}

/// A script's client, whose `thread_done` may fail.
struct PassedOver {
    client: ScriptClient,
    drivers: host::Shared,
}

impl Client for PassedOver {
    fn run<'a>(&'a mut self, pace: &'a mut dyn Pace) -> Pin<Box<dyn Future<Output = Result<()>> + 'a>> {
        let Self { client, drivers } = self;
        let work = client.work(pace);
        Box::pin(async move { drivers.pass_over(work.await) })
    }
}
