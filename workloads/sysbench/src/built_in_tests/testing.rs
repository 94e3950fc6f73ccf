//! Shared code of this crate's tests.

use std::sync::Arc;

use crate::cli::OptionSet;
use crate::cli::options::{BuiltIn, Source};
use crate::cli::settings::{FileSettings, Settings};
use crate::counters::Counters;
use crate::random::{Random, Shapes};
use rumba_engine_api::error::Result;
use rumba_engine_api::worker::block_on;
use rumba_testkit::allocations::Counting;
use rumba_testkit::turns::Turns;

use crate::built_in_tests::built_in::{BuiltInTest, Purpose, Started};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Options as given, for a test and in general.
pub(crate) struct Given {
    pub(crate) options: OptionSet,
    pub(crate) settings: Settings,
}

impl Given {
    /// Names that neither has are skipped, so that several tests can get the same options.
    pub(crate) fn of(test: &str, given: &[(&str, &str)]) -> Self {
        let mut options = OptionSet::general();
        for info in BuiltIn::find(test).unwrap().options {
            options.declare(info.clone()).unwrap();
        }
        for (name, value) in given {
            if options.info(name).is_some() {
                options.set(name, Some(*value), Source::CommandLine).unwrap();
            }
        }
        let (settings, _) = Settings::read(&mut options).unwrap();
        Self { options, settings }
    }
}

pub(crate) fn test(name: &str, given: &[(&str, &str)]) -> BuiltInTest {
    let Given { options, settings } = Given::of(name, given);
    BuiltInTest::of(name, Purpose::Run, &options, &settings).unwrap()
}

pub(crate) fn files(given: &[(&str, &str)]) -> FileSettings {
    FileSettings::read(&Given::of("fileio", given).options, false).unwrap()
}

/// Some random numbers, always the same.
pub(crate) fn random() -> Random {
    Random::new(1, 0, Shapes::default())
}

/// Runs clients on separate threads, each for at most this many events; returns their counters.
pub(crate) fn run(started: &Started, clients: u32, events: u64) -> Result<Vec<Arc<Counters>>> {
    std::thread::scope(|scope| {
        let client = |number| {
            scope.spawn(move || {
                let counters = Arc::<Counters>::default();
                let mut client = started.client(number, counters.clone(), 7)?;
                block_on(client.run(&mut Turns::of(events as usize)))?;
                Ok(counters)
            })
        };
        let running: Vec<_> = (0..clients).map(client).collect();
        running.into_iter().map(|client| client.join().unwrap()).collect()
    })
}

/// The number of allocations of one client in this many events, on this thread.
pub(crate) fn allocations(started: &Started, events: u64) -> u64 {
    let mut client = started.client(0, Arc::default(), 7).unwrap();
    rumba_testkit::allocations::during(|| block_on(client.run(&mut Turns::of(events as usize))).unwrap())
}

pub(crate) fn events(clients: &[Arc<Counters>]) -> Vec<u64> {
    clients.iter().map(|client| client.times().events).collect()
}
