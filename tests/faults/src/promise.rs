//! rumba's guarantees for a run after any fault, and the ordinary test that shows each.

/// A guarantee.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Promise {
    /// An interrupt.
    Interrupted,
    /// A kill of rumba itself.
    Killed,
    /// A trial or a server that dies.
    Named,
    /// Operations that stop making progress.
    Stall,
    /// A run that was paused and continued.
    Suspended,
    /// No room for data.
    DataDisk,
    /// No room for results.
    ResultsDisk,
    /// Results that cannot be written at all.
    ResultsGone,
    /// Two runs in one directory.
    OneWriter,
    /// Damaged results, and readers that are gone.
    Readable,
    /// Other users of the host.
    Untouched,
    /// Impossible requests.
    Early,
    /// Too little memory for the work.
    Memory,
    /// An existing server that comes back.
    Reconnected,
    /// An existing server, and its configuration.
    Existing,
}

/// A guarantee as the page presents it.
#[derive(Clone, Copy, Debug)]
pub struct PromiseEntry {
    /// The guarantee.
    pub promise: Promise,
    /// Its text.
    pub words: &'static str,
    /// The file of the test that shows it, relative to the root.
    pub file: &'static str,
    /// The test.
    pub test: &'static str,
}

const fn reported(promise: Promise, words: &'static str, file: &'static str, test: &'static str) -> PromiseEntry {
    PromiseEntry { promise, words, file, test }
}

const BAD_LUCK: &str = "rumba/tests/bad_luck.rs";
const RESULTS: &str = "rumba/tests/results.rs";
const SERVERS: &str = "rumba/tests/mysql_bad_luck.rs";
const MEMORY: &str = "rumba/tests/memory.rs";

/// Every guarantee, in the order of the page.
pub static PROMISES: &[PromiseEntry] = &[
    reported(
        Promise::Interrupted,
        "INT, TERM, HUP and QUIT end a run with exit code 130. rumba keeps the results so far and leaves nothing \
         else, and `rumba run --resume` continues.",
        "rumba/tests/hostile.rs",
        "every_termination_signal_keeps_results_and_leaves_nothing",
    ),
    reported(
        Promise::Killed,
        "After a kill -9 of rumba, its trial and its server end too. The results are readable up to the last \
         second written. `rumba doctor` lists what is left, and the next run or `rumba doctor --clean` removes \
         all of it.",
        BAD_LUCK,
        "results_stay_readable_and_cleanable_after_a_kill",
    ),
    reported(
        Promise::Named,
        "If a trial or its server dies, the trial fails. The message names the phase and the signal, and the next \
         trial runs.",
        BAD_LUCK,
        "a_killed_trial_is_named_as_that_and_the_next_one_runs",
    ),
    reported(
        Promise::Stall,
        "A trial in which no operation ends fails after `run.stall`. The message names the process that does not \
         run.",
        MEMORY,
        "stopped_server_fails_the_trial_after_the_stall_limit",
    ),
    reported(
        Promise::Suspended,
        "A loop that was paused lasts as long as planned, or it is marked and counts in no verdict.",
        "rumba/tests/faults.rs",
        "temporarily_stopped_run_is_reported",
    ),
    reported(
        Promise::DataDisk,
        "A full disk of the data fails the trial with that message. The results so far are kept.",
        SERVERS,
        "full_disk_under_a_server_is_reported_as_disk_full",
    ),
    reported(
        Promise::ResultsDisk,
        "A full disk of the results ends the trial at once, and at most one interval of measurements is lost.",
        RESULTS,
        "full_results_disk_loses_at_most_one_interval",
    ),
    reported(
        Promise::ResultsGone,
        "If results cannot be written, or are removed during the run, rumba reports that and leaves nothing else.",
        "rumba/tests/faults.rs",
        "removed_results_are_reported_and_leave_nothing",
    ),
    reported(
        Promise::OneWriter,
        "Two runs never write to one directory. The second one is refused, and without `--out` each has its own.",
        RESULTS,
        "concurrent_run_into_one_directory_is_refused_by_name",
    ),
    reported(
        Promise::Readable,
        "Damaged results are readable up to the damage, which rumba reports with its line. A run continues if its \
         output is not read.",
        BAD_LUCK,
        "closed_reader_costs_nothing",
    ),
    reported(
        Promise::Untouched,
        "rumba refuses files that other users put in its way, and touches neither them nor their targets.",
        "rumba/tests/data_places.rs",
        "data_directory_of_embedded_engines_is_exclusive",
    ),
    reported(
        Promise::Early,
        "rumba refuses an impossible run before it loads anything, and says what would work.",
        MEMORY,
        "insufficient_memory_is_refused_before_creation",
    ),
    reported(
        Promise::Memory,
        "A trial that outgrows its memory group, or stalls in it, fails with that cause.",
        "rumba/tests/limited.rs",
        "a_trial_that_outgrows_its_memory_is_named_as_that",
    ),
    reported(
        Promise::Reconnected,
        "With `on_lost = \"reconnect\"`, a restart of the server costs only the operations that it cut off.",
        "rumba/tests/faults.rs",
        "restart_of_an_existing_server_loses_only_open_operations",
    ),
    reported(
        Promise::Existing,
        "An existing server keeps its configuration at every moment. Its schema is clean again after the next \
         run.",
        "rumba/tests/faults.rs",
        "kill_during_a_drain_of_an_existing_server_alters_nothing",
    ),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::FAULTS;

    #[test]
    fn every_fault_has_a_promise_and_every_promise_a_fault() {
        for fault in FAULTS {
            let words = PROMISES.iter().filter(|reported| reported.promise == fault.promise);
            assert_eq!(words.count(), 1, "{}: {:?}", fault.name, fault.promise);
        }
        for reported in PROMISES {
            assert!(
                FAULTS.iter().any(|fault| fault.promise == reported.promise),
                "nothing tries {:?}",
                reported.promise
            );
        }
    }

    #[test]
    fn every_promise_names_an_existing_test() {
        let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
        for PromiseEntry { file, test, .. } in PROMISES {
            let text = std::fs::read_to_string(format!("{root}/{file}")).unwrap();
            assert!(text.contains(&format!("fn {test}()")), "{file} has no test {test}");
        }
    }
}
