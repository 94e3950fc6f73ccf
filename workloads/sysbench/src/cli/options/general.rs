//! Options that every test has.

use super::Group::Random;
use super::Kind::{Double, File, Flag, Int, List, Numbers, Path, Size, Text};
use super::{OptionInfo, of, option, own};

/// General options.
pub static GENERAL: &[OptionInfo] = &[
    option("threads", Int, Some("1"), "how many threads run events, each with its own state of the script"),
    option("events", Int, Some("0"), "end after this many events; 0 for no limit"),
    option("time", Int, Some("10"), "end after this many seconds; 0 for no limit"),
    option("warmup-time", Int, Some("0"), "seconds of events before those that are counted"),
    option(
        "forced-shutdown",
        Text,
        Some("off"),
        "seconds, or N% of the time, after which operations still open at the end of --time are aborted; 'off' waits \
         for them",
    ),
    option("thread-stack-size", Size, Some("64K"), "stack of each thread"),
    option("thread-init-timeout", Int, Some("30"), "seconds in which all threads have to be ready; 0 for no limit"),
    option("rate", Int, Some("0"), "events that arrive in a second, on average; 0 for as many as can be done"),
    option("report-interval", Int, Some("0"), "seconds from one intermediate report to the next; 0 for none"),
    option(
        "report-checkpoints",
        List,
        Some(""),
        "seconds after the start at which everything counted so far is reported and counting starts again",
    ),
    option("debug", Flag, Some("off"), "report more"),
    option("validate", Flag, Some("off"), "check results where the test can"),
    option("help", Flag, Some("off"), "print this text"),
    option("version", Flag, Some("off"), "print the version"),
    option("config-file", File, None, "read options from this file too, lines of NAME=VALUE"),
    option("luajit-cmd", Text, None, "a command to LuaJIT, as for 'luajit -j'; 'off' disables compilation"),
];

/// Options of the random numbers.
pub static RANDOM: &[OptionInfo] = &[
    // 1.1 names {uniform, gaussian, pareto, zipfian}; special is 1.0's and works too.
    of(
        Random,
        "rand-type",
        Text,
        Some("uniform"),
        "how numbers are distributed where a script does not say: {uniform, gaussian, special, pareto, zipfian}",
    ),
    of(Random, "rand-seed", Int, Some("0"), "seed of the random numbers; 0 takes the time of day"),
    of(Random, "rand-pareto-h", Double, Some("0.2"), "parameter h of the Pareto distribution"),
    of(Random, "rand-zipfian-exp", Double, Some("0.8"), "exponent (theta) of the Zipfian distribution"),
];

/// The verbosity.
pub static LOG_TEXT: &[OptionInfo] = &[option(
    "verbosity",
    Int,
    Some("3"),
    "how much is reported: {0 - fatal errors only, 3 - reports, 5 - everything}",
)];

/// Options for reporting latencies.
pub static LOG_OPERATIONS: &[OptionInfo] = &[
    // sysbench takes one whole number.
    option(
        "percentile",
        Numbers,
        Some("95"),
        "which percentiles of the latency are reported, above 0 and up to 100, commas between them; 0 for none",
    ),
    option("histogram", Flag, Some("off"), "print the distribution of latencies too"),
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
    option("tx-rate", Int, Some("0"), "as --rate"),
    option("max-requests", Int, Some("0"), "as --events"),
    option("max-time", Int, Some("0"), "as --time"),
    option("num-threads", Int, Some("1"), "as --threads"),
    // 1.1 has no such options, but still divides by the iterations, so its gaussian numbers are NaN.
    option(
        "rand-spec-iter",
        Int,
        Some("12"),
        "how many uniform numbers make one of the gaussian and special distributions",
    ),
    option("rand-spec-pct", Int, Some("1"), "percent of the range that special values come from"),
    option("rand-spec-res", Int, Some("75"), "percent of special values"),
];
