//! The table of faults: the fault, its moments, engines and limits, and the required answers to the five questions.

use std::time::Duration;

use rustix::process::Signal;
use strum::VariantArray;

use crate::action::{Action, Who};
use crate::answers::{AllowedLeftovers, Answers, Exit, Next, RequiredResults};
use crate::axes::{Engine, Limit, Moment};
use crate::plant::Planted;
use crate::promise::Promise;

/// A fault.
#[derive(Debug)]
pub struct Fault {
    /// Its name.
    pub name: &'static str,
    /// rumba's guarantee for it.
    pub promise: Promise,
    /// The fault.
    pub action: Action,
    /// The options of the run in addition to the common ones: `key=value`, or an option.
    pub requests: &'static [&'static str],
    /// Its moments.
    pub moments: &'static [Moment],
    /// The engines.
    pub engines: &'static [Engine],
    /// The limits.
    pub limits: &'static [Limit],
    /// The number of cases that a seed draws of it.
    pub share: u32,
    /// The required answers.
    pub answers: Answers,
}

/// The fault of this name.
pub fn fault(name: &str) -> Option<&'static Fault> {
    FAULTS.iter().find(|fault| fault.name == name)
}

const PHASES: &[Moment] = Moment::PHASES;
const BEFORE: &[Moment] = &[Moment::Before];
const LOOPS: &[Moment] = &[Moment::Loops];
/// Phases in which operations complete continuously, so that a stall is detected.
const BUSY: &[Moment] = &[Moment::Load, Moment::Warmup, Moment::Loops];
const EARLY: &[Moment] = &[Moment::Load, Moment::Settle, Moment::Warmup, Moment::Loops];
const ALL: &[Engine] = Engine::VARIANTS;
const EMBEDDED: &[Engine] = &[Engine::Null, Engine::Sqlite, Engine::RocksDb, Engine::Lmdb, Engine::WiredTiger];
const FEW: &[Engine] = &[Engine::Null, Engine::Sqlite, Engine::RocksDb];
const LIMITS: &[Limit] = Limit::ALL;
const NONE: &[Limit] = Limit::NONE;

const INTERRUPTED: Answers = Answers {
    seen: &[&["all measurements so far are kept"]],
    exit: &[Exit::Code(130)],
    kept: RequiredResults::Until(&["interrupted"]),
    left: AllowedLeftovers::Nothing,
    next: Next::Runs,
};

const KILLED: Answers = Answers {
    seen: &[&["cut off"], &["leftover: "]],
    exit: &[Exit::Signal(9)],
    kept: RequiredResults::Until(&["running"]),
    left: AllowedLeftovers::Listed,
    next: Next::Runs,
};

/// A trial that completed, but is excluded as suspended.
const SUSPENDED: Answers = Answers {
    seen: &[&["SUSPENDED in "], &["in no figure, verdict or claim"]],
    exit: &[Exit::Code(1)],
    kept: RequiredResults::Marked,
    left: AllowedLeftovers::Nothing,
    next: Next::Runs,
};

const fn failed(causes: &'static [&'static [&'static str]]) -> Answers {
    let kept = RequiredResults::Until(&["failed"]);
    Answers { seen: causes, exit: &[Exit::Code(1)], kept, left: AllowedLeftovers::Nothing, next: Next::Runs }
}

/// A run that ends as planned and prints these words.
const fn ran(seen: &'static [&'static [&'static str]]) -> Answers {
    Answers {
        seen,
        exit: &[Exit::Code(0)],
        kept: RequiredResults::All,
        left: AllowedLeftovers::Nothing,
        next: Next::Runs,
    }
}

/// A run that is refused before anything is made, and works once its user has fixed the cause.
const fn refused(seen: &'static [&'static [&'static str]]) -> Answers {
    Answers {
        seen,
        exit: &[Exit::Code(2)],
        kept: RequiredResults::Nothing,
        left: AllowedLeftovers::Nothing,
        next: Next::RunsOnceMended,
    }
}

/// The same, or a trial that fails at its start.
const fn refused_or_failed(seen: &'static [&'static [&'static str]]) -> Answers {
    Answers { exit: &[Exit::Code(1), Exit::Code(2)], ..refused(seen) }
}

const NOT_OURS: &[&[&str]] = &[&["not made by rumba", "another user", "belongs to", "owned by", "writable by"]];

const fn to_rumba(name: &'static str, signal: Signal, share: u32, answers: Answers) -> Fault {
    Fault {
        name,
        promise: Promise::Interrupted,
        action: Action::Signal(Who::Rumba, signal),
        requests: &[],
        moments: PHASES,
        engines: ALL,
        limits: LIMITS,
        share,
        answers,
    }
}

/// Something that another user has planted.
const fn planted(name: &'static str, what: Planted, limits: &'static [Limit]) -> Fault {
    Fault {
        name,
        promise: Promise::Untouched,
        action: Action::Plant(what),
        requests: &[],
        moments: BEFORE,
        engines: FEW,
        limits,
        share: 1,
        answers: refused(NOT_OURS),
    }
}

const fn requested(
    name: &'static str,
    requests: &'static [&'static str],
    engines: &'static [Engine],
    answers: Answers,
) -> Fault {
    Fault {
        name,
        promise: Promise::Early,
        action: Action::Requested,
        requests,
        moments: BEFORE,
        engines,
        limits: NONE,
        share: 1,
        answers,
    }
}

/// All faults.
pub static FAULTS: &[Fault] = &[
    to_rumba("INT to rumba", Signal::INT, 6, INTERRUPTED),
    to_rumba("TERM to rumba", Signal::TERM, 4, INTERRUPTED),
    to_rumba("HUP to rumba", Signal::HUP, 3, INTERRUPTED),
    to_rumba("QUIT to rumba", Signal::QUIT, 3, INTERRUPTED),
    Fault { action: Action::Twice(Signal::INT), ..to_rumba("INT to rumba twice", Signal::INT, 3, INTERRUPTED) },
    Fault { promise: Promise::Killed, ..to_rumba("kill -9 of rumba", Signal::KILL, 14, KILLED) },
    Fault {
        promise: Promise::Killed,
        action: Action::CorruptMarker,
        engines: Engine::STORING,
        limits: NONE,
        answers: Answers { left: AllowedLeftovers::Named, ..KILLED },
        ..to_rumba("kill -9 of rumba, and a damaged marker", Signal::KILL, 2, KILLED)
    },
    died("kill -9 of the trial", Who::Trial, Signal::KILL, 7, ALL, &[&["signal 9"], &["FAILED in "]]),
    died("abort of the trial", Who::Trial, Signal::ABORT, 3, ALL, &[&["signal 6"], &["FAILED in "]]),
    died(
        "kill -9 of the server",
        Who::Server,
        Signal::KILL,
        7,
        Engine::SERVERS,
        &[&["signal: 9", "signal 9"], &["FAILED in "]],
    ),
    stopped("STOP of the trial", Who::Trial, EMBEDDED),
    stopped("STOP of the server", Who::Server, Engine::SERVERS),
    paused("STOP and CONT of the trial", Who::Trial, ALL, SUSPENDED),
    paused("STOP and CONT of rumba and its trial (Ctrl-Z)", Who::Group, ALL, SUSPENDED),
    paused("STOP and CONT of the server", Who::Server, Engine::SERVERS, SUSPENDED),
    // rumba does not measure, and its input waits for it.
    paused("STOP and CONT of rumba alone", Who::Rumba, ALL, ran(&[])),
    Fault {
        name: "the disk of the data is full",
        promise: Promise::DataDisk,
        action: Action::FillData,
        requests: &["loop=30s", "storage={size=\"512MiB\",backing=\"tmpfs\"}"],
        moments: &[Moment::Load, Moment::Loops],
        engines: Engine::STORING,
        limits: &[Limit::Storage],
        share: 7,
        answers: failed(&[&["full"], &["FAILED in "]]),
    },
    Fault {
        name: "the disk of the results is full",
        promise: Promise::ResultsDisk,
        action: Action::FillResults,
        requests: &[],
        moments: EARLY,
        engines: ALL,
        limits: &[Limit::None, Limit::Memory],
        share: 7,
        answers: Answers {
            kept: RequiredResults::Until(&["failed", "results-disk-full"]),
            next: Next::RunsOnceMended,
            ..failed(&[&["results-disk-full"]])
        },
    },
    Fault {
        name: "the results directory is removed",
        promise: Promise::ResultsGone,
        action: Action::RemoveResults,
        requests: &[],
        moments: PHASES,
        engines: ALL,
        limits: LIMITS,
        share: 5,
        answers: Answers {
            seen: &[&["writing the results", "cannot be written", "No such file", "removed", "is gone"]],
            exit: &[Exit::Code(1)],
            kept: RequiredResults::Gone,
            left: AllowedLeftovers::Nothing,
            next: Next::Runs,
        },
    },
    Fault {
        name: "read-only results",
        promise: Promise::ResultsGone,
        action: Action::ReadOnlyResults,
        requests: &[],
        moments: BEFORE,
        engines: FEW,
        limits: NONE,
        share: 2,
        answers: refused_or_failed(&[&["Read-only", "read-only"]]),
    },
    one_writer("a second rumba on the same --out", Action::SecondRun, &[Moment::Load, Moment::Loops, Moment::Drain]),
    one_writer("two at once on the same --out", Action::TwoAtOnce, BEFORE),
    one_writer("two at once without --out", Action::TwoUnnamed, BEFORE),
    Fault {
        name: "a byte of intervals.ndjson is damaged",
        promise: Promise::Readable,
        action: Action::Damage,
        requests: &[],
        moments: &[Moment::After],
        engines: EMBEDDED,
        limits: NONE,
        share: 2,
        answers: ran(&[&["intervals.ndjson"]]),
    },
    Fault {
        name: "the output of rumba is not read",
        promise: Promise::Readable,
        action: Action::NoReader,
        requests: &[],
        moments: BEFORE,
        engines: ALL,
        limits: LIMITS,
        share: 2,
        answers: ran(&[]),
    },
    planted("another user's files where data goes", Planted::Files, NONE),
    planted("another user's marker, naming a directory of root's", Planted::OwnerTag, NONE),
    planted("another user's volume, naming a file of root's", Planted::Volume, &[Limit::Storage]),
    planted("another user's link where data goes", Planted::Link, NONE),
    Fault {
        engines: &[Engine::Null],
        answers: Answers {
            exit: &[Exit::Code(0), Exit::Code(1), Exit::Code(2)],
            kept: RequiredResults::AllOrNothing,
            ..refused(&[])
        },
        ..planted("another user's link where the ledger goes, without HOME", Planted::ResourceRegistry, NONE)
    },
    requested("too little memory", &["memory=16MiB"], Engine::STORING, refused(&[&["too small"]])),
    requested(
        "more clients than an existing server lets in",
        &["clients=400"],
        Engine::EXISTING,
        refused_or_failed(&[&["max_connections"]]),
    ),
    Fault {
        name: "few descriptors",
        action: Action::Descriptors(100),
        ..requested("", &["clients=64"], Engine::SERVERS, refused_or_failed(&[&["descriptor", "open files", "ulimit"]]))
    },
    outgrown(
        "RocksDB outgrows its memory",
        &[Engine::RocksDb],
        &["memory=16MiB", "cache=2GiB", "rocksdb.write_buffer_size=256MiB", "maxid1=200000", "--allow-tight-memory"],
    ),
    outgrown(
        "InnoDB outgrows its memory",
        &[Engine::InnoDb],
        &["memory=80MiB", "cache=512MiB", "maxid1=200000", "--allow-tight-memory"],
    ),
    restarted("an existing server is restarted (TERM)", Signal::TERM),
    restarted("an existing server is restarted (kill -9)", Signal::KILL),
    Fault {
        name: "kill -9 of an existing server",
        promise: Promise::Existing,
        action: Action::Signal(Who::Existing, Signal::KILL),
        requests: &[],
        moments: PHASES,
        engines: Engine::EXISTING,
        limits: NONE,
        share: 4,
        answers: Answers {
            left: AllowedLeftovers::Listed,
            next: Next::RunsOnceMended,
            ..failed(&[&["connect", "lost", "closed", "end of file", "gone away"], &["FAILED in "]])
        },
    },
    existing("kill -9 of rumba over an existing server", Signal::KILL, KILLED),
    existing("INT to rumba over an existing server", Signal::INT, INTERRUPTED),
];

/// A process of the run dies, and its cause is reported.
const fn died(
    name: &'static str,
    who: Who,
    signal: Signal,
    share: u32,
    engines: &'static [Engine],
    causes: &'static [&'static [&'static str]],
) -> Fault {
    Fault {
        promise: Promise::Named,
        action: Action::Signal(who, signal),
        engines,
        ..to_rumba(name, signal, share, failed(causes))
    }
}

/// Stopped for good while operations are expected.
const fn stopped(name: &'static str, who: Who, engines: &'static [Engine]) -> Fault {
    Fault {
        promise: Promise::Stall,
        action: Action::Signal(who, Signal::STOP),
        // Loops that end before the stall is detected would fail in another way.
        requests: &["loop=30s"],
        moments: BUSY,
        engines,
        ..to_rumba(name, Signal::STOP, 2, failed(&[&["stalled: "], &["in state T"]]))
    }
}

/// Stopped for a while in a loop; each loop is as long as planned, or marked.
const fn paused(name: &'static str, who: Who, engines: &'static [Engine], answers: Answers) -> Fault {
    Fault {
        name,
        promise: Promise::Suspended,
        action: Action::Pause(who, Duration::from_millis(3000)),
        requests: &["loop=2s"],
        moments: LOOPS,
        engines,
        limits: &[Limit::None, Limit::Memory],
        share: 3,
        answers,
    }
}

/// Two runs for one directory.
const fn one_writer(name: &'static str, action: Action, moments: &'static [Moment]) -> Fault {
    Fault {
        name,
        promise: Promise::OneWriter,
        action,
        requests: &[],
        moments,
        engines: FEW,
        limits: NONE,
        share: 2,
        answers: ran(&[]),
    }
}

/// A trial that the kernel kills for lack of memory, or that stalls.
const fn outgrown(name: &'static str, engines: &'static [Engine], requests: &'static [&'static str]) -> Fault {
    Fault {
        name,
        promise: Promise::Memory,
        action: Action::Requested,
        requests,
        moments: BEFORE,
        engines,
        limits: NONE,
        share: 1,
        answers: failed(&[&["killed by the memory group", "stalled: "]]),
    }
}

/// The existing server disappears and returns during the measurement.
const fn restarted(name: &'static str, signal: Signal) -> Fault {
    Fault {
        name,
        promise: Promise::Reconnected,
        action: Action::Restart(signal),
        requests: &["loop=4s", "innodb.on_lost=reconnect"],
        moments: LOOPS,
        engines: Engine::EXISTING,
        limits: NONE,
        share: 2,
        answers: ran(&[&["lost", "given up"]]),
    }
}

/// A signal while an existing server is settled or drained, with statements that change none of its variables.
const fn existing(name: &'static str, signal: Signal, answers: Answers) -> Fault {
    Fault {
        promise: Promise::Existing,
        moments: &[Moment::Settle, Moment::Drain],
        engines: Engine::EXISTING,
        limits: NONE,
        ..to_rumba(name, signal, 4, answers)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_fault_has_a_unique_name_and_nonempty_choices() {
        let names: BTreeSet<&str> = FAULTS.iter().map(|fault| fault.name).collect();
        assert_eq!(names.len(), FAULTS.len());
        assert!(!names.contains(""));
        for fault in FAULTS {
            let Fault { name, moments, engines, limits, share, .. } = fault;
            assert!(!moments.is_empty() && !engines.is_empty() && !limits.is_empty() && *share > 0, "{name}");
        }
    }

    #[test]
    fn fault_injected_after_the_start_is_an_action_not_a_setup() {
        for fault in FAULTS {
            let strikes = fault.moments.iter().any(|moment| *moment != Moment::Before);
            let is_wish = matches!(
                fault.action,
                Action::Requested
                    | Action::ReadOnlyResults
                    | Action::Descriptors(_)
                    | Action::Plant(_)
                    | Action::TwoAtOnce
                    | Action::TwoUnnamed
                    | Action::NoReader
            );
            assert_ne!(strikes, is_wish, "{}", fault.name);
        }
    }
}
