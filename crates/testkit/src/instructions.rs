//! User instructions of an operation, counted by callgrind, whose counts do not depend on the load of the machine. They
//! are counted in the tests' own build, and compared with that build's limit.
//!
//! The counted work is another test of the same binary, which is ignored otherwise:
//!
//! ```no_run
//! use rumba_testkit::instructions::{self, Work};
//!
//! // #[test] #[needs(Valgrind)]
//! fn a_select_takes_no_more_instructions_than_allowed() {
//!     let directory = tempfile::tempdir().unwrap();
//!     let work = Work { test: "selects", directory: directory.path(), but_for: None };
//!     work.takes_at_most(1440, 1_000..11_000, 1);
//! }
//!
//! // #[test] #[ignore = "run by the test above, under valgrind"]
//! fn selects() {
//!     let Some(requested) = instructions::requested() else { return };
//!     for _ in 0..requested.operations { /* … in requested.directory */ }
//! }
//! ```

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::process;

const DIRECTORY: &str = "RUMBA_TEST_DIRECTORY";
const OPERATIONS: &str = "RUMBA_TEST_OPERATIONS";

/// Operations that are counted.
#[derive(Clone, Copy, Debug)]
pub struct Work<'a> {
    /// The ignored test of this binary that does as many operations as [`requested`] returns.
    pub test: &'a str,
    /// The value of [`WorkRequest::directory`].
    pub directory: &'a Path,
    /// A function that is not counted, including its calls, as a callgrind pattern: `*calibrate_the_clock*`.
    pub but_for: Option<&'a str>,
}

impl Work<'_> {
    /// Counts this many operations, `few..many`. It repeats the count until they take no more than `most`, or until no
    /// `attempts` are left. One attempt is enough for deterministic code; LuaJIT's compiler is partly random, so it
    /// needs three.
    ///
    /// # Panics
    /// Each time they took more than `most` instructions each; the counted test does not end well.
    pub fn takes_at_most(&self, most: u64, operations: Range<u64>, attempts: usize) {
        let mut counted = Vec::new();
        while counted.len() < attempts && counted.iter().all(|each| *each > most) {
            counted.push(self.each(operations.clone()));
        }
        println!("{}: {counted:?} user instructions of each (allowed: {most})", self.test);
        assert!(counted.iter().any(|each| *each <= most), "{}: {counted:?} instructions of each", self.test);
    }

    /// The count with many less the count with few, because the work before and after the operations is in both.
    fn each(&self, Range { start: few, end: many }: Range<u64>) -> u64 {
        (self.instructions(many) - self.instructions(few)) / (many - few)
    }

    /// Instructions of this binary in user mode, with this many operations.
    fn instructions(&self, operations: u64) -> u64 {
        let own = process::with_test(self.test);
        let mut valgrind = Command::new("valgrind");
        valgrind.args(["--tool=callgrind", "--callgrind-out-file=/dev/null"]);
        if let Some(but_for) = self.but_for {
            valgrind.args([&format!("--toggle-collect={but_for}"), "--collect-atstart=yes"]);
        }
        valgrind.arg(own.get_program()).args(own.get_args());
        valgrind.env(DIRECTORY, self.directory).env(OPERATIONS, operations.to_string());
        let output = valgrind.output().expect("valgrind");
        let (said, printed) = (String::from_utf8_lossy(&output.stderr), String::from_utf8_lossy(&output.stdout));
        // With an unknown test name the count would be empty.
        let is_done = output.status.success() && printed.contains("1 passed");
        assert!(is_done, "{}: {printed}{said}", self.test);
        let collected = said.lines().find_map(|line| line.split_once("Collected : "));
        let number = collected.and_then(|(_, number)| number.trim().replace(',', "").parse().ok());
        number.unwrap_or_else(|| panic!("callgrind printed no number: {said}"))
    }
}

/// A request to the counted test.
#[derive(Clone, Debug)]
pub struct WorkRequest {
    /// How many operations.
    pub operations: u64,
    /// The directory to use.
    pub directory: PathBuf,
}

/// The request; `None` outside of a count.
pub fn requested() -> Option<WorkRequest> {
    let directory = std::env::var_os(DIRECTORY)?.into();
    let operations = std::env::var(OPERATIONS).ok()?.parse().expect("a number of operations");
    Some(WorkRequest { operations, directory })
}
