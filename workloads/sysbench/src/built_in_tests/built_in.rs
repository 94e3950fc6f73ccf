//! The tests, as the program drives them.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::cli::log::Rank;
use crate::cli::report::{self, Closing, Snapshot, Subject, built_in};
use crate::cli::settings::{
    CpuSettings, FileSettings, FileTest, MemorySettings, MutexSettings, Settings, ThreadsSettings,
};
use crate::cli::{OptionSet, Refusal};
use crate::counters::Counters;
use crate::random::{Random, Shapes};
use crate::setup::Events;
use rumba_engine_api::error::Result;
use rumba_engine_api::worker::Client;

use crate::built_in_tests::cpu::Cpu;
use crate::built_in_tests::failure::Failure;
use crate::built_in_tests::fileio::{self, FileClient, OpenFiles};
use crate::built_in_tests::memory::Blocks;
use crate::built_in_tests::task::{Task, TaskClient};
use crate::built_in_tests::{mutex, threads};

/// The purpose of a test: only a run needs the file operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// `run`.
    Run,
    /// `prepare` or `cleanup`.
    Files,
}

/// A test with its options checked.
#[derive(Clone, Debug)]
pub struct BuiltInTest {
    test: Test,
    settings: Settings,
    folder: PathBuf,
}

#[derive(Clone, Debug)]
enum Test {
    Cpu(CpuSettings),
    Memory(MemorySettings),
    Threads(ThreadsSettings),
    Mutex(MutexSettings),
    FileIo(FileSettings),
}

impl BuiltInTest {
    /// The test with this name and these options. They were declared from
    /// [`BuiltIn::options`](crate::cli::options::BuiltIn).
    ///
    /// # Errors
    /// There is no such test, or a value is invalid.
    pub fn of(name: &str, purpose: Purpose, options: &OptionSet, settings: &Settings) -> Result<Self, Refusal> {
        let test = match name {
            "cpu" => Test::Cpu(CpuSettings::read(options)?),
            "memory" => Test::Memory(MemorySettings::read(options)?),
            "threads" => Test::Threads(ThreadsSettings::read(options)?),
            "mutex" => Test::Mutex(MutexSettings::read(options)?),
            "fileio" => Test::FileIo(fileio::read(options, settings, purpose == Purpose::Run)?),
            _ => return Err(Refusal::NoSuchTest(name.to_owned())),
        };
        Ok(Self { test, settings: settings.clone(), folder: PathBuf::new() })
    }

    /// The same, with its files in a folder; without this they are in the current one.
    #[must_use]
    pub fn within(self, folder: &Path) -> Self {
        Self { folder: folder.to_owned(), ..self }
    }

    /// Makes the files, if the test has any. `notify` receives messages as they occur; the random bytes of `--validate`
    /// are drawn from the seed.
    ///
    /// # Errors
    /// A file cannot be made or written.
    pub fn prepare(&self, seed: u64, notify: &mut dyn FnMut(&str)) -> Result<(), Failure> {
        let Test::FileIo(requested) = &self.test else { return Ok(()) };
        let random = self.settings.validate.then(|| Random::new(seed, 0, Shapes::default()));
        fileio::prepare(&self.folder, requested, random, notify)
    }

    /// Removes the files, if the test has any. `notify` receives messages.
    pub fn cleanup(&self, notify: &mut dyn FnMut(&str)) {
        if let Test::FileIo(requested) = &self.test {
            fileio::cleanup(&self.folder, requested, notify);
        }
    }

    /// The text before a run, after the general options and before the start.
    pub fn mode_text(&self) -> String {
        let more = |text: &str| if self.settings.verbosity >= Rank::Info { text.to_owned() } else { String::new() };
        match &self.test {
            Test::Cpu(requested) => {
                more("Doing CPU performance benchmark\n\n") + &built_in::cpu_mode(requested.max_prime)
            }
            Test::Memory(requested) => built_in::memory_mode(requested),
            Test::Threads(ThreadsSettings { yields, locks }) => more(&format!(
                "Doing thread subsystem performance test\nThread yields per test: {yields} Locks used: {locks}\n"
            )),
            Test::Mutex(_) => more("Doing mutex performance test\n"),
            Test::FileIo(requested) => built_in::file_mode(requested, &self.settings),
        }
    }

    /// The intermediate report.
    pub fn intermediate(&self, snapshot: &Snapshot) -> String {
        match &self.test {
            Test::Memory(requested) => built_in::memory_intermediate(snapshot, requested),
            Test::FileIo(_) => built_in::file_intermediate(snapshot),
            Test::Cpu(_) | Test::Threads(_) | Test::Mutex(_) => report::intermediate(snapshot, Subject::Other),
        }
    }

    /// The closing report, and that of a checkpoint. No test uses a database, so `closing`'s subject is ignored.
    pub fn cumulative(&self, snapshot: &Snapshot, closing: Closing) -> String {
        let closing = Closing { subject: Subject::Other, ..closing };
        match &self.test {
            Test::Cpu(_) => built_in::cpu_cumulative(snapshot, closing),
            Test::Memory(requested) => built_in::memory_cumulative(snapshot, requested, closing),
            Test::FileIo(_) => built_in::file_cumulative(snapshot, closing),
            Test::Threads(_) | Test::Mutex(_) => report::cumulative(snapshot, closing),
        }
    }

    /// Takes the memory and opens the files: the shared state of all clients. Dropping it releases them.
    ///
    /// # Errors
    /// There is not enough memory; files are missing or too short.
    pub fn start(&self) -> Result<Started, Failure> {
        let threads = self.settings.threads;
        let shared = match &self.test {
            Test::Cpu(requested) => Shared::Cpu { max_prime: requested.max_prime },
            Test::Memory(requested) => Shared::Memory(Blocks::new(requested, threads)?),
            Test::Threads(requested) => Shared::Threads(Arc::new(threads::Locks::new(requested))),
            Test::Mutex(requested) => Shared::Mutex(Arc::new(mutex::Locks::new(requested))),
            Test::FileIo(requested) => {
                // A run always has a mode.
                let test = requested.test.unwrap_or(FileTest::SequentialRead);
                let validated_threads = self.settings.validate.then_some(threads);
                Shared::Files(Arc::new(OpenFiles::open(&self.folder, requested, test, validated_threads)?))
            }
        };
        // `memory` has its own limit.
        let events = if matches!(self.test, Test::Memory(_)) { 0 } else { self.settings.events.unwrap_or(0) };
        Ok(Started { shared, events: Events::at_most(events), shapes: self.settings.random.shapes })
    }
}

/// A test that is ready for its clients.
pub struct Started {
    shared: Shared,
    events: Events,
    shapes: Shapes,
}

enum Shared {
    Cpu { max_prime: u32 },
    Memory(Blocks),
    Threads(Arc<threads::Locks>),
    Mutex(Arc<mutex::Locks>),
    Files(Arc<OpenFiles>),
}

impl Started {
    /// How many events there are.
    pub fn events(&self) -> &Events {
        &self.events
    }

    /// The client with this number, counted from 0. It blocks, so it needs its own thread. Each event is counted with
    /// its time; reads, writes, syncs and bytes of files are counted too.
    ///
    /// A client ends when all events were run, when its part is done, or when its pace ends. Then it syncs files if
    /// requested.
    ///
    /// # Errors
    /// There is no memory for a buffer, or no room in the system for requests.
    pub fn client(&self, number: u32, counters: Arc<Counters>, seed: u64) -> Result<Box<dyn Client>> {
        let random = Random::new(seed, number, self.shapes);
        let client: Box<dyn Client> = match &self.shared {
            Shared::Cpu { max_prime } => self.boxed(Cpu { max_prime: *max_prime }, counters),
            Shared::Memory(blocks) => self.boxed(blocks.task(number, random), counters),
            Shared::Threads(locks) => self.boxed(threads::Threads(locks.clone()), counters),
            Shared::Mutex(locks) => self.boxed(mutex::Mutex::new(locks.clone(), random), counters),
            Shared::Files(files) => {
                let task = FileClient::new(files.clone(), number, random, counters.clone())?;
                self.boxed(task, counters)
            }
        };
        Ok(client)
    }

    fn boxed<T: Task + 'static>(&self, task: T, counters: Arc<Counters>) -> Box<dyn Client> {
        Box::new(TaskClient { task, counters, events: self.events.clone() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::built_in_tests::testing::{allocations, events, run, test};
    use crate::cli::report::Layout;

    #[test]
    fn uncounted_events_do_not_use_the_limit() {
        let started = test("cpu", &[("events", "3"), ("cpu-max-prime", "10")]).start().unwrap();
        started.events().count(false);
        assert_eq!(events(&run(&started, 1, 7).unwrap()), [7]);
        started.events().count(true);
        assert_eq!(events(&run(&started, 1, 7).unwrap()), [3]);
    }

    /// From test_memory.t, but smaller: `--events` is no limit.
    #[test]
    fn memory_test_transfers_the_requested_number_of_bytes() {
        let given = [("threads", "2"), ("events", "1"), ("memory-block-size", "4K"), ("memory-total-size", "1M")];
        let counters = run(&test("memory", &given).start().unwrap(), 2, u64::MAX).unwrap();
        assert_eq!(events(&counters), [128, 128]);
    }

    #[test]
    fn reports_mention_no_database() {
        let snapshot = Snapshot { interval_s: 1.0, elapsed_s: 1.0, ..Snapshot::default() };
        let closing = Closing { layout: Layout::V1_1, subject: Subject::Sql, debug: false };
        for (name, begins) in [
            ("cpu", "CPU speed:\n    events per second:     0.00\n\nThroughput:\n"),
            ("memory", "Total operations: 0 (    0.00 per second)\n\n0.00 MiB transferred"),
            ("threads", "\nThroughput:\n    events/s (eps):"),
            ("mutex", "\nThroughput:\n    events/s (eps):"),
            ("fileio", "\nThroughput:\n         read:  IOPS=0.00"),
        ] {
            let text = test(name, &[("file-test-mode", "rndrd")]).cumulative(&snapshot, closing);
            assert!(text.starts_with(begins), "{name}: {text}");
        }
        let memory = test("memory", &[]).intermediate(&snapshot);
        assert_eq!(memory, "[ 1s ] 0.00 MiB/sec\n");
    }

    #[test]
    fn test_announces_its_next_step() {
        assert_eq!(test("cpu", &[("cpu-max-prime", "7")]).mode_text(), "Prime numbers limit: 7\n\n");
        assert_eq!(test("mutex", &[]).mode_text(), "");
        assert_eq!(test("mutex", &[("verbosity", "4")]).mode_text(), "Doing mutex performance test\n");
    }

    #[test]
    fn events_allocate_nothing() {
        for name in ["cpu", "memory", "threads"] {
            let given = [("cpu-max-prime", "10"), ("thread-yields", "1"), ("memory-access-mode", "rnd")];
            let started = test(name, &given).start().unwrap();
            assert_eq!(allocations(&started, 10), allocations(&started, 1000), "{name}");
        }
    }
}
