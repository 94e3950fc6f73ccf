//! Runs registered tests as the standard runner does: same arguments, same lines.

use std::process::ExitCode;
use std::thread;

use libtest_mimic::{Arguments, Completion, Failed, FormatSetting, Trial};

use crate::need::{self, Missing};
use crate::{Outcome, Test};

/// The target that is run.
pub struct Binary {
    /// The name of its package.
    pub package: &'static str,
    /// The program `rumba`, where it was built for the target.
    pub rumba: Option<&'static str>,
}

/// Runs the tests that the command line asks for.
pub fn run(binary: &Binary) -> ExitCode {
    need::rumba_is_at(binary.rumba);
    let mut arguments = Arguments::from_args();
    let threads = || std::env::var("RUST_TEST_THREADS").ok()?.parse().ok();
    arguments.test_threads = arguments.test_threads.or_else(threads);
    let mut tests: Vec<&'static Test> = inventory::iter::<Test>.into_iter().filter(|test| !is_the_kits(test)).collect();
    tests.sort_by_key(|test| name(test));
    let trials = tests.iter().map(|test| trial(test, &arguments)).collect();
    let conclusion = libtest_mimic::run(&arguments, trials);
    if !matches!(arguments.format, Some(FormatSetting::Json)) {
        print!("{}", need::skipped(binary.package));
    }
    conclusion.exit_code()
}

/// Its path without its crate, as the standard runner shows it.
fn name(test: &Test) -> &'static str {
    test.path.split_once("::").map_or(test.path, |(_, name)| name)
}

fn is_the_kits(test: &Test) -> bool {
    name(test).starts_with("the_attribute_is_the_kits::")
}

/// The line of an ignored test has its reason when the runner is told at the
/// test's turn; those who list tests, or ask for the ignored ones, are told beforehand.
fn trial(test: &'static Test, arguments: &Arguments) -> Trial {
    if arguments.list || arguments.ignored || arguments.include_ignored {
        let ignored = test.ignored.is_some() || (arguments.list && need::first_missing(test.needs).is_some());
        return Trial::test(name(test), move || alone(test)).with_ignored_flag(ignored);
    }
    Trial::ignorable_test(name(test), move || {
        if let Some(reason) = test.ignored {
            return Ok(Completion::ignored_with(reason));
        }
        match need::first_missing(test.needs) {
            Some(missing) => Ok(Completion::ignored_with(told(test, &missing))),
            None => alone(test).map(|()| Completion::Completed),
        }
    })
}

fn told(test: &'static Test, missing: &Missing) -> String {
    need::note_skipped(test.path, missing);
    missing.to_string()
}

/// On a thread of its own that bears its name, as the standard runner does it:
/// what a test leaves in its thread is gone with it, and a panic says whose it is.
fn alone(test: &'static Test) -> Result<(), Failed> {
    let thread = thread::Builder::new().name(name(test).to_owned());
    let Outcome(outcome) = match thread.spawn(test.run).map(thread::JoinHandle::join) {
        Ok(Ok(outcome)) => outcome,
        Ok(Err(panic)) => std::panic::resume_unwind(panic),
        Err(error) => return Err(Failed::from(format!("no thread for the test: {error}"))),
    };
    outcome.map_err(Failed::from)
}
