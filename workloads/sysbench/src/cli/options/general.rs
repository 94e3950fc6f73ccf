//! Options that every test has.

use super::Group::{Before11, General, LogOperations, LogText, Random, Rumba};
use super::Kind::{Double, File, Flag, Int, List, Numbers, Path, Size, Text};
use super::{OptionInfo, option};

/// General options.
pub static GENERAL: &[OptionInfo] = &[
    option(General, "threads", Int, Some("1"), "how many threads run events, each with its own state of the script"),
    option(General, "events", Int, Some("0"), "end after this many events; 0 for no limit"),
    option(General, "time", Int, Some("10"), "end after this many seconds; 0 for no limit"),
    option(General, "warmup-time", Int, Some("0"), "seconds of events before those that are counted"),
    option(
        General,
        "forced-shutdown",
        Text,
        Some("off"),
        "seconds, or N% of the time, after which operations still open at the end of --time are aborted; 'off' waits \
         for them",
    ),
    option(General, "thread-stack-size", Size, Some("64K"), "stack of each thread"),
    option(
        General,
        "thread-init-timeout",
        Int,
        Some("30"),
        "seconds in which all threads have to be ready; 0 for no limit",
    ),
    option(General, "rate", Int, Some("0"), "events that arrive in a second, on average; 0 for as many as can be done"),
    option(General, "report-interval", Int, Some("0"), "seconds from one intermediate report to the next; 0 for none"),
    option(
        General,
        "report-checkpoints",
        List,
        Some(""),
        "seconds after the start at which everything counted so far is reported and counting starts again",
    ),
    option(General, "debug", Flag, Some("off"), "report more"),
    option(General, "validate", Flag, Some("off"), "check results where the test can"),
    option(General, "help", Flag, Some("off"), "print this text"),
    option(General, "version", Flag, Some("off"), "print the version"),
    option(General, "config-file", File, None, "read options from this file too, lines of NAME=VALUE"),
    option(General, "luajit-cmd", Text, None, "a command to LuaJIT, as for 'luajit -j'; 'off' disables compilation"),
];

/// Options of the random numbers.
pub static RANDOM: &[OptionInfo] = &[
    // 1.1 names {uniform, gaussian, pareto, zipfian}; special is 1.0's and works too.
    option(
        Random,
        "rand-type",
        Text,
        Some("uniform"),
        "how numbers are distributed where a script does not say: {uniform, gaussian, special, pareto, zipfian}",
    ),
    option(Random, "rand-seed", Int, Some("0"), "seed of the random numbers; 0 takes the time of day"),
    option(Random, "rand-pareto-h", Double, Some("0.2"), "parameter h of the Pareto distribution"),
    option(Random, "rand-zipfian-exp", Double, Some("0.8"), "exponent (theta) of the Zipfian distribution"),
];

/// How much is said.
pub static LOG_TEXT: &[OptionInfo] = &[option(
    LogText,
    "verbosity",
    Int,
    Some("3"),
    "how much is reported: {0 - fatal errors only, 3 - reports, 5 - everything}",
)];

/// Options for reporting latencies.
pub static LOG_OPERATIONS: &[OptionInfo] = &[
    // sysbench takes one whole number.
    option(
        LogOperations,
        "percentile",
        Numbers,
        Some("95"),
        "which percentiles of the latency are reported, above 0 and up to 100, commas between them; 0 for none",
    ),
    option(LogOperations, "histogram", Flag, Some("off"), "print the distribution of latencies too"),
];

/// Options that sysbench does not have.
pub static RUMBA: &[OptionInfo] = &[
    own("report-json", Path, None, "also write the report to this file, as one JSON document"),
    own(
        "report-layout",
        Text,
        Some("1.0"),
        "the words of the closing report: {1.0, 1.1}; without it SYSBENCH_REPORT_LAYOUT or a link sysbench-1.1 chooses",
    ),
    own(
        "client-driver",
        Text,
        Some("auto"),
        "how the clients of a server run: {auto, threads, loops}; loops use the least CPU per query",
    ),
    own("fleet", Text, None, "HOSTS@ADDRESS: run the threads on that many hosts, each with `rumba agent`"),
    own(
        "latency-max",
        Int,
        Some("100"),
        "highest latency in seconds that --histogram resolves; longer ones count as this",
    ),
];

/// Options that 1.0.20 has and 1.1 does not.
pub static BEFORE_1_1: &[OptionInfo] = &[
    old("tx-rate", Some("0"), "as --rate"),
    old("max-requests", Some("0"), "as --events"),
    old("max-time", Some("0"), "as --time"),
    old("num-threads", Some("1"), "as --threads"),
    // 1.1 has no such options, but still divides by the iterations, so its gaussian numbers are NaN.
    old("rand-spec-iter", Some("12"), "how many uniform numbers make one of the gaussian and special distributions"),
    old("rand-spec-pct", Some("1"), "percent of the range that special values come from"),
    old("rand-spec-res", Some("75"), "percent of special values"),
];

const fn own(name: &'static str, kind: super::Kind, default: Option<&'static str>, help: &'static str) -> OptionInfo {
    option(Rumba, name, kind, default, help)
}

const fn old(name: &'static str, default: Option<&'static str>, help: &'static str) -> OptionInfo {
    option(Before11, name, Int, default, help)
}
