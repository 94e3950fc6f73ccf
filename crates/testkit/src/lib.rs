//! Tests that state what they need. Where it is missing they show as *ignored*,
//! with the reason, in the line of the runner and in a line of their own at its end.
//!
//! A target of tests takes part with `harness = false` in its manifest and three
//! lines in its root file; its tests stay `#[test]` functions:
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
//! With `#[each(list)]` below it a test is one for each of a list, as [`Each`] says.
//!
//! What tests of several crates do alike is in the modules.

#![deny(missing_docs)]
#![allow(clippy::test_attr_in_doctest)] // The test of the example is run.

pub mod allocations;
pub mod certificate;
pub mod corpus;
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
pub mod records;
mod runner;
pub mod secantusdb;
pub mod sql;
mod template;

pub use inventory;
pub use need::{Missing, Need};
pub use rumba_testkit_macros::test;
pub use runner::{Binary, run};

/// A registered test.
pub struct Test {
    /// Its path, from the name of its crate on.
    pub path: &'static str,
    /// What it cannot run without.
    pub needs: &'static [Need],
    /// Why it runs only when asked for with `--ignored`.
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
    /// As a test of its own for each of a list, handed its name.
    Each(fn() -> Vec<Each>, fn(&'static str) -> Outcome),
}

/// One of those that a test is for: below it stands `#[each(list)]`, where `list` is a function that gives them all.
/// Each has a line of its own; where what one needs is missing, that one alone is ignored. An empty list is a failure.
#[derive(Clone, Copy, Debug)]
pub struct Each {
    /// What the test is handed, and what stands behind its path: `every_engine_conforms::tree`.
    pub name: &'static str,
    /// What this one cannot run without, beside what the test states for all.
    pub need: Need,
}

/// What a test returned.
pub struct Outcome(Result<(), String>);

impl Outcome {
    /// Of a value that a test function returned.
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

/// The `main` of a target of tests. It does not compile where `#[test]` is still
/// the standard library's, whose tests would silently not be run:
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
