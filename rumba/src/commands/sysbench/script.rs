//! A script in its main interpreter: its declarations and its commands.

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use rumba_engine_api::error::{EngineError, Result};
use rumba_engine_api::worker::{Client, ClientAddress, HostShare, Pace};
use rumba_lab::meter::ThreadCpuRegistry;
use rumba_lab::run::Driving;
use rumba_lab::run::driver::{Made, Make, Plan, Schedule};
use rumba_lab::run::group::ClientGroup;
use rumba_results::record::DriverKind;
use rumba_workload_sysbench::Interpreter;
use rumba_workload_sysbench::cli::command_line::{Available, CommandLine, Given, OwnCommand};
use rumba_workload_sysbench::cli::options::OptionInfo;
use rumba_workload_sysbench::cli::report::INITIALIZING;
use rumba_workload_sysbench::cli::settings::Settings;
use rumba_workload_sysbench::cli::{OptionSet, Refusal, help, version};
use rumba_workload_sysbench::counters::Counters;
use rumba_workload_sysbench::failure::{FAILED, Function};
use rumba_workload_sysbench::host::{Host, Rank};
use rumba_workload_sysbench::options;
use rumba_workload_sysbench::random::Unique;
use rumba_workload_sysbench::setup::{self, Events, Measures, Setup};

use super::host::{Drivers, Shared};
use super::{Ended, standard_input};

/// The interpreter, as banners name it.
pub const LUA: &str = "LuaJIT 2.1";

pub struct Script {
    /// The clients' shared setup.
    pub setup: Arc<Setup>,
    /// The connections to databases.
    pub drivers: Shared,
    /// The interpreter for one-time calls.
    pub main: Interpreter,
    declares: bool,
}

impl Script {
    /// Loads the script that the command line names, or that standard input holds. Loading may run anything: the script
    /// may connect and draw random numbers.
    pub fn load(line: &CommandLine, options: &OptionSet, settings: &Settings, share: HostShare) -> Result<Self, Ended> {
        let drivers = Arc::new(Drivers::new(options, settings.verbosity));
        let script = match &line.test {
            Some(name) if !line.reads_stdin() => setup::Script::Named(name.clone()),
            _ => setup::Script::Text { name: "stdin".to_owned(), text: standard_input() },
        };
        let seed = seed(settings);
        let setup = Arc::new(Setup {
            script,
            options: values(options)?,
            argv: line.argv.clone(),
            command: line.command.clone(),
            version: version::SYSBENCH.to_owned(),
            luajit_command: settings.luajit_command.clone(),
            is_quiet: false,
            measures: Measures::default(),
            host: drivers.clone(),
            seed,
            shapes: settings.random.shapes,
            unique: Unique::of_host(seed, share),
            events: Events::at_most(settings.events.map_or(0, |events| share_of(events, share))),
        });
        let main = Interpreter::new(&setup, 0, Arc::default()).map_err(|error| Ended::script(&error))?;
        Ok(Self { setup, drivers, main, declares: line.reads_stdin() })
    }

    /// Makes the script's options known.
    pub fn declare(&self, options: &mut OptionSet) -> Result<(), Ended> {
        options::declare(&self.main, options).map_err(|error| Ended::script(&error))
    }

    /// Whether the script accepts this value for one of its options.
    pub fn takes(&self, given: &Given) -> Result<bool, Refusal> {
        options::takes(&self.main, given)
    }

    pub fn options<'o>(&self, options: &'o OptionSet) -> Vec<&'o OptionInfo> {
        let declared = self.main.declared().unwrap_or_default();
        declared.iter().filter_map(|own| options.info(&own.name)).collect()
    }

    /// Whether undeclared options are allowed: for a script from standard input, and as in 1.0 for a script that
    /// declares none. Some existing scripts read their arguments from `sysbench.opt` without declaring them.
    pub fn keeps_unknown(&self) -> bool {
        self.declares || self.main.declared().is_ok_and(|declared| declared.is_empty())
    }

    pub fn adopt(mut self, options: &OptionSet) -> Result<Self, Ended> {
        self.drivers.adopt(options);
        self.setup = Arc::new(Setup { options: values(options)?, ..Setup::clone(&self.setup) });
        let described = help::table(self.options(options));
        let adopted = self.main.adopt(&self.setup).and_then(|()| self.main.describe_options(&described));
        adopted.map_err(|error| Ended::script(&error))?;
        Ok(self)
    }

    pub fn warn(&self, words: &str) {
        self.drivers.log(Rank::Warning, words);
    }

    /// The commands that the script offers.
    pub fn available(&self) -> Result<Available, Ended> {
        let mut own = Vec::new();
        if let Some(word) = self.setup.command.as_deref()
            && let Some(command) = self.main.command(word).map_err(|error| Ended::script(&error))?
        {
            own.push(OwnCommand { name: word.to_owned(), is_parallel: command.is_parallel });
        }
        let help = self.has("help") || self.main.declared().is_ok_and(|declared| !declared.is_empty());
        Ok(Available { own, prepare: self.has("prepare"), cleanup: self.has("cleanup"), help })
    }

    /// Whether the script defines a function.
    pub fn has(&self, function: &str) -> bool {
        self.main.has(function)
    }

    pub fn call(&self, function: Function) -> Result<(), Ended> {
        self.main.call(function).map_err(|error| Ended::script(&error))
    }

    /// Runs one of the script's own commands; a parallel one runs in one interpreter per thread.
    pub fn own_command(&self, own: &OwnCommand, settings: &Settings) -> Result<(), Ended> {
        if !own.is_parallel || settings.threads < 2 {
            return match self.main.call_command(&own.name) {
                Ok(true) => Ok(()),
                Ok(false) => Err(Ended::after(1, "")),
                Err(error) => Err(Ended::script(&error)),
            };
        }
        self.drivers.report(INITIALIZING);
        let (setup, name) = (self.setup.clone(), own.name.clone());
        let make: Make = Arc::new(move |address: ClientAddress| {
            let interpreter = Interpreter::new(&setup, address.client, Arc::new(Counters::default()))?;
            Ok(Box::new(Once { interpreter, name: name.clone() }) as Box<dyn Client>)
        });
        // The command blocks, so each interpreter needs its own thread.
        let place = rumba_engine_api::engine::ProcessLocation::Embedded;
        let driving = Driving::choose(DriverKind::Threads, &place, settings.threads);
        let plan = Plan {
            clients: settings.threads,
            share: HostShare::ALL,
            kinds: 1,
            schedule: Schedule::closed(self.setup.seed),
            driving,
        };
        let made = Made::new(&plan, &make, &ThreadCpuRegistry::new())
            .map_err(|error| self.drivers.client_failed(&error, ""))?;
        let mut running = made.start();
        running.wait(far_away());
        let failure = running.failure().cloned();
        running.join();
        failure.map_or(Ok(()), |error| Err(self.drivers.client_failed(&error, "")))
    }
}

fn share_of(events: u64, HostShare { host, hosts }: HostShare) -> u64 {
    events.saturating_sub(host.into()).div_ceil(hosts.into())
}

/// The options' values, as the script finds them.
fn values(options: &OptionSet) -> Result<Vec<(String, setup::OptionValue)>, Ended> {
    options::values(options).map_err(|refusal| Ended::refused(&refusal))
}

/// The requested seed, or one from the time of day.
pub fn seed(settings: &Settings) -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    settings.random.seed.map_or(now.as_nanos() as u64, |seed| u64::from(seed.cast_unsigned()))
}

/// A time that is never reached.
pub fn far_away() -> std::time::Instant {
    std::time::Instant::now() + std::time::Duration::from_secs(1 << 31)
}

/// A client that runs a command once.
struct Once {
    interpreter: Interpreter,
    name: String,
}

impl Client for Once {
    fn run<'a>(&'a mut self, _pace: &'a mut dyn Pace) -> std::pin::Pin<Box<dyn Future<Output = Result<()>> + 'a>> {
        Box::pin(async move {
            match self.interpreter.call_command(&self.name) {
                Ok(true) => Ok(()),
                Ok(false) => Err(EngineError::failed(FAILED, format!("command '{}' failed", self.name))),
                Err(error) => Err(error.into()),
            }
        })
    }
}
