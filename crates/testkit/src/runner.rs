//! Runs registered tests like the standard runner: same arguments, same lines.

use std::process::ExitCode;
use std::thread;

use libtest_mimic::{Arguments, Completion, Failed, FormatSetting, Trial};

use crate::need::{self, Missing, Need};
use crate::{Each, Outcome, Run, Test};

/// The target that is run.
pub struct Binary {
    /// The name of its package.
    pub package: &'static str,
    /// The program `rumba`, if it was built for the target.
    pub rumba: Option<&'static str>,
}

/// Runs the tests that the command line selects.
pub fn run(binary: &Binary) -> ExitCode {
    need::rumba_is_at(binary.rumba);
    let mut arguments = Arguments::from_args();
    let threads = || std::env::var("RUST_TEST_THREADS").ok()?.parse().ok();
    arguments.test_threads = arguments.test_threads.or_else(threads);
    let tests = inventory::iter::<Test>.into_iter();
    let mut cases: Vec<Case> = tests.flat_map(Case::all).filter(|case| !case.is_the_kits()).collect();
    cases.sort_by(|a, b| a.name().cmp(b.name()));
    let trials = cases.into_iter().map(|case| case.trial(&arguments)).collect();
    let conclusion = libtest_mimic::run(&arguments, trials);
    if !matches!(arguments.format, Some(FormatSetting::Json)) {
        print!("{}", need::skipped(binary.package));
    }
    conclusion.exit_code()
}

/// A test in the runner's output: a test over a list is several cases.
struct Case {
    /// Its path, from the name of its crate on.
    path: String,
    needs: Vec<Need>,
    ignored: Option<&'static str>,
    run: Box<dyn FnOnce() -> Outcome + Send>,
}

impl Case {
    fn all(test: &'static Test) -> Vec<Self> {
        let (list, run) = match test.run {
            Run::Once(run) => return vec![Self::of(test, Box::new(run))],
            Run::Each(list, run) => (list(), run),
        };
        if list.is_empty() {
            // Otherwise the test would silently be missing.
            let fails = || Outcome(Err("it is for each of a list that is empty: nothing is tested".to_owned()));
            return vec![Self::of(test, Box::new(fails))];
        }
        let case = |Each { name, need }| Self {
            path: format!("{}::{name}", test.path),
            needs: test.needs.iter().copied().chain(need).collect(),
            ..Self::of(test, Box::new(move || run(name)))
        };
        list.into_iter().map(case).collect()
    }

    fn of(test: &Test, run: Box<dyn FnOnce() -> Outcome + Send>) -> Self {
        Self { path: test.path.to_owned(), needs: test.needs.to_vec(), ignored: test.ignored, run }
    }

    /// Its path without its crate, as the standard runner shows it.
    fn name(&self) -> &str {
        self.path.split_once("::").map_or(self.path.as_str(), |(_, name)| name)
    }

    fn is_the_kits(&self) -> bool {
        self.name().starts_with("the_attribute_is_the_kits::")
    }

    /// The line of an ignored test has its reason if the test is ignored at its turn. For a list, or a run of ignored
    /// tests, this is decided beforehand.
    fn trial(self, arguments: &Arguments) -> Trial {
        let name = self.name().to_owned();
        if arguments.list || arguments.ignored || arguments.include_ignored {
            let ignored = self.ignored.is_some() || (arguments.list && need::first_missing(&self.needs).is_some());
            return Trial::test(name, move || self.alone()).with_ignored_flag(ignored);
        }
        Trial::ignorable_test(name, move || {
            if let Some(reason) = self.ignored {
                return Ok(Completion::ignored_with(reason));
            }
            match need::first_missing(&self.needs) {
                Some(missing) => Ok(Completion::ignored_with(self.skipped(&missing))),
                None => self.alone().map(|()| Completion::Completed),
            }
        })
    }

    fn skipped(&self, missing: &Missing) -> String {
        need::note_skipped(&self.path, missing);
        missing.to_string()
    }

    /// Runs the test on a separate thread with its name, like the standard runner. The thread's local state ends with
    /// it, and a panic names the test.
    fn alone(self) -> Result<(), Failed> {
        let thread = thread::Builder::new().name(self.name().to_owned());
        let Outcome(outcome) = match thread.spawn(self.run).map(thread::JoinHandle::join) {
            Ok(Ok(outcome)) => outcome,
            Ok(Err(panic)) => std::panic::resume_unwind(panic),
            Err(error) => return Err(Failed::from(format!("no thread for the test: {error}"))),
        };
        outcome.map_err(Failed::from)
    }
}
