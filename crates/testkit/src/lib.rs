//! Tests that state their needs. If a need is missing, the test shows as *ignored* with the reason, in the runner's
//! line and in a separate line at its end.
//!
//! A target of tests takes part with `harness = false` in its manifest and three lines in its root file; its tests stay
//! `#[test]` functions:
//!
//! ```
//! #[macro_use(test)]
//! extern crate rumba_testkit;
//! rumba_testkit::main!();
//!
//! #[test]
//! #[needs(Root, MariaDb)]
//! fn a_server_is_limited() {}
//! ```
//!
//! With `#[each(list)]` below it, a test runs for each entry of a list, as [`Each`] describes.
//!
//! The modules hold the shared code of tests in several crates. It panics if the system or an engine refuses.

#![deny(missing_docs)]
#![allow(clippy::test_attr_in_doctest)] // The test of the example is run.

pub mod allocations;
pub mod certificate;
pub mod contract;
pub mod corpus;
pub mod cost;
pub mod crash;
pub mod full;
pub mod instructions;
pub mod key_value;
pub mod mariadb;
pub mod mounts;
mod need;
pub mod postgresql;
mod probe;
pub mod process;
pub mod queueing;
mod runner;
pub mod secantusdb;
pub mod sql;
pub mod sql_contract;
mod template;
pub mod three_hosts;
pub mod turns;

pub use inventory;
pub use need::{Missing, Need};
pub use rumba_testkit_macros::test;
pub use runner::{Binary, run};

/// A registered test.
pub struct Test {
    /// Its path, from the name of its crate on.
    pub path: &'static str,
    /// The needs without which it cannot run.
    pub needs: &'static [Need],
    /// The reason why it runs only with `--ignored`.
    pub ignored: Option<&'static str>,
    /// Runs it.
    pub run: Run,
}

inventory::collect!(Test);

/// How a test is run.
#[derive(Clone, Copy)]
pub enum Run {
    /// Once.
    Once(fn() -> Outcome),
    /// A separate test for each entry of a list, which receives its name.
    Each(fn() -> Vec<Each>, fn(&'static str) -> Outcome),
}

/// An entry of a test's list: below the test stands `#[each(list)]`, and the function `list` returns all entries. Each
/// has a separate line. If an entry's need is missing, only that entry is ignored. An empty list is a failure.
#[derive(Clone, Copy, Debug)]
pub struct Each {
    /// The argument of the test, and the suffix of its path: `every_engine_conforms::tree`.
    pub name: &'static str,
    /// The need of this entry, if any, in addition to the test's own needs.
    pub need: Option<Need>,
}

/// The result of a test.
pub struct Outcome(Result<(), String>);

impl Outcome {
    /// Converts the value that a test function returned.
    pub fn of(returned: impl Into<Self>) -> Self {
        returned.into()
    }
}

impl From<()> for Outcome {
    fn from((): ()) -> Self {
        Self(Ok(()))
    }
}

impl<E: std::fmt::Debug> From<Result<(), E>> for Outcome {
    fn from(returned: Result<(), E>) -> Self {
        Self(returned.map_err(|error| format!("{error:?}")))
    }
}

/// The `main` of a target of tests. It does not compile if `#[test]` is still the standard library's, because such
/// tests would silently not run:
///
/// ```compile_fail
/// extern crate rumba_testkit;
/// rumba_testkit::main!();
/// ```
#[macro_export]
macro_rules! main {
    () => {
        mod the_attribute_is_the_kits {
            #[test]
            #[ignore = "run by no one"]
            pub fn fails_without_macro_use_test_extern_crate_rumba_testkit() {}
        }

        fn main() -> ::std::process::ExitCode {
            let _ = the_attribute_is_the_kits::fails_without_macro_use_test_extern_crate_rumba_testkit;
            $crate::run(&$crate::Binary { package: env!("CARGO_PKG_NAME"), rumba: option_env!("CARGO_BIN_EXE_rumba") })
        }
    };
}
