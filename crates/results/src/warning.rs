//! Warnings that reduce the trust in a number, each with its remedy.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::prices;
use crate::rate::{RATE_GROWTH, RATE_GROWTH_8H, rate_info};

/// A warning about a host, an experiment or a trial.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(into = "WarningJson", from = "WarningJson")]
pub struct Warning {
    /// A short stable name: `debt-at-end`.
    pub code: String,
    /// The observation, with figures.
    pub message: String,
    /// The remedy.
    pub remedy: String,
}

impl Warning {
    /// A warning with this code and its text for people: the observation, with figures, and the remedy.
    pub fn new(code: &str, message: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { code: code.to_owned(), message: message.into(), remedy: remedy.into() }
    }

    /// Its severity.
    pub fn rank(&self) -> Rank {
        kind(&self.code).map_or(Rank::Unsure, |kind| kind.rank)
    }

    /// Its place among other warnings, the worst first; within a rank, a code that is not in [`WARNINGS`] comes last.
    pub fn order(&self) -> (Rank, usize) {
        (self.rank(), WARNINGS.iter().position(|kind| kind.code == self.code).unwrap_or(WARNINGS.len()))
    }

    /// The metrics that it undermines, by their stable names, the most important first; empty when it undermines all
    /// equally. Rates are listed by the name of their rule ([`rumba_engine_api::rate`]).
    pub fn undermines(&self) -> &'static [&'static str] {
        kind(&self.code).map_or(&[], |kind| kind.undermines)
    }

    /// See [`WarningKind::undermines_metric`].
    pub fn undermines_metric(&self, metric: &str) -> bool {
        kind(&self.code).is_some_and(|kind| kind.undermines_metric(metric))
    }
}

/// The severity of a warning: its effect on the meaning of a figure, the worst first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Rank {
    /// The figures are void.
    Void,
    /// A figure is easily misunderstood: read it together with the warning, or read another one.
    Misleading,
    /// A figure is less exact or less certain than it appears.
    #[default]
    Unsure,
    /// Information that affects no figure.
    Note,
}

/// The properties of a warning code.
#[derive(Clone, Copy, Debug)]
pub struct WarningKind {
    /// The code.
    pub code: &'static str,
    /// Its severity.
    pub rank: Rank,
    /// See [`Warning::undermines`].
    pub undermines: &'static [&'static str],
    /// The observation: one sentence for the reference, without the figures of [`Warning::message`].
    pub cause: &'static str,
    /// The remedy: one imperative sentence that fits every situation in which the warning occurs. [`Warning::remedy`]
    /// may be more specific.
    pub remedy: &'static str,
}

impl WarningKind {
    /// Whether it undermines a metric: by its name, by that of its rule, or through a figure that a cost is computed
    /// from.
    pub fn undermines_metric(&self, metric: &str) -> bool {
        let (rule, inputs) = (rate_info(metric).map(|info| info.name), prices::inputs(metric));
        self.undermines.iter().any(|name| *name == metric || Some(*name) == rule || inputs.contains(name))
    }

    const fn cause(self, cause: &'static str) -> Self {
        Self { cause, ..self }
    }

    const fn remedy(self, remedy: &'static str) -> Self {
        Self { remedy, ..self }
    }
}

/// The row of a code in [`WARNINGS`].
pub fn kind(code: &str) -> Option<&'static WarningKind> {
    WARNINGS.iter().find(|kind| kind.code == code)
}

/// A row without its texts. They are chained, so that each has a separate line.
const fn row(code: &'static str, rank: Rank, undermines: &'static [&'static str]) -> WarningKind {
    WarningKind { code, rank, undermines, cause: "", remedy: "" }
}

const READS: &[&str] = &["reads_per_op", "rkb_per_op", "reads_per_s", "read_mb_s"];
const WRITES: &[&str] = &["wkb_per_op", "wkb_per_op_with_drain", "writes_per_op", "writes_per_s", "write_mb_s"];
const DEVICE: &[&str] = &[
    "reads_per_op",
    "rkb_per_op",
    "wkb_per_op",
    "wkb_per_op_with_drain",
    "writes_per_op",
    "reads_per_s",
    "read_mb_s",
    "writes_per_s",
    "write_mb_s",
    "device_await_ms",
    "device_read_await_ms",
    "device_write_await_ms",
    "device_queue_length",
    "device_utilisation_percent",
    "device_busy_us_per_op",
    "device_request_us_per_op",
];
const CPU: &[&str] = &[
    "cpu_us_per_op",
    "cpu_us_per_op_with_drain",
    "host_cpu_us_per_op",
    "host_cpu_us_per_op_with_drain",
    "server_cpu_us_per_op",
    "client_cpu_us_per_op",
];
/// Metrics that compression reduces.
const COMPRESSED: &[&str] =
    &["data_bytes", "size_bytes", "space_amp", "wkb_per_op_with_drain", "wkb_per_op", "reads_per_op", "rkb_per_op"];
const SPEED: &[&str] = &["ops_per_s", "p99_ms"];

const ASSERTING: &[&str] =
    &["cpu_us_per_op", "cpu_us_per_op_with_drain", "host_cpu_us_per_op", "host_cpu_us_per_op_with_drain", "ops_per_s"];

/// Metrics that lack deferred work left after the drain.
const UNPAID: &[&str] = &["wkb_per_op_with_drain", "wkb_per_op", RATE_GROWTH.name, RATE_GROWTH_8H.name];

/// Metrics that lack files outside the data directory.
const ELSEWHERE: &[&str] = &[
    "wkb_per_op",
    "wkb_per_op_with_drain",
    "rkb_per_op",
    "reads_per_op",
    "writes_per_op",
    "data_bytes",
    "size_bytes",
    "log_bytes",
];

/// All codes in the order of their ranking, also within a severity. `p99_ms` means all response times.
pub const WARNINGS: &[WarningKind] = &[
    row("verification-failed", Rank::Void, &[])
        .cause("A consistency check found wrong or missing data in this trial.")
        .remedy("Discard this trial's figures, and report the engine, its version and its settings to its developers."),
    row("suspended", Rank::Void, &[])
        .cause("A timed phase was paused, because rumba, the trial, its server or the whole host did not run.")
        .remedy("Keep rumba and the server running, and repeat the trial with `rumba run --resume DIR`."),
    row("iops-not-divided", Rank::Void, SPEED)
        .cause("rumba could not keep dividing `limits.storage.iops` between reads and writes during the trial.")
        .remedy("Discard this trial's throughput and response times, and run the trial again."),
    row("host-lost", Rank::Misleading, &["ops_per_s", "p99_ms"])
        .cause("A client host was lost, and its share of the load was missing from then on.")
        .remedy("Read the figures as those of a smaller load, or run the trial again."),
    row("same-engine", Rank::Misleading, &[])
        .cause("Two compared engines have the same build or server and the same effective settings.")
        .remedy("Change a setting that takes effect, remove one engine, or set `aa = true` in `[run]`."),
    row("limit-not-enforced", Rank::Misleading, &[])
        .cause("A memory or storage limit of the experiment was not in force.")
        .remedy("Run on a host that can enforce the limit, and set no `limits` for existing servers."),
    row("durability-differs", Rank::Misleading, &["ops_per_s", "wkb_per_op", "wkb_per_op_with_drain", "p99_ms"])
        .cause("The engines guarantee different durability at commit.")
        .remedy("Unless you compare durability itself, compare only engines that guarantee the same."),
    row("log-differs", Rank::Misleading, WRITES)
        .cause("Under `no-sync`, only some engines keep a log from which they recover after a crash of the host.")
        .remedy("Compare under durability `sync`, or account for the cost of the log."),
    row("page-cache", Rank::Misleading, READS)
        .cause("The data fits in memory, so the page cache serves most reads that miss the engine's own cache.")
        .remedy("Use more data, direct I/O, or a lower `limits.memory` for engines that rumba runs."),
    row("page-cache-differs", Rank::Misleading, READS)
        .cause("Some engines use free memory as page cache, and others bypass the page cache.")
        .remedy("Give all engines that rumba runs the same `limits.memory`, or compare reads with this in mind."),
    row("compression-differs", Rank::Misleading, COMPRESSED)
        .cause("The engines compress their data differently.")
        .remedy("Account for compression when you compare sizes and bytes, or set the same `compression`."),
    row("memory-unused", Rank::Misleading, READS)
        .cause("An engine bypasses the page cache, and its own cache leaves much of `limits.memory` unused.")
        .remedy("Unless you compare cache sizes, size the engine's cache to fill `limits.memory`."),
    row("no-cache", Rank::Misleading, &["rss_bytes", "reads_per_op", "rkb_per_op"])
        .cause("An engine has no internal cache and uses as much page cache as the host gives it.")
        .remedy("Account for the page cache in reads and memory, or limit the memory of engines that rumba runs."),
    row("cache-differs", Rank::Misleading, &["reads_per_op", "rkb_per_op", "rss_bytes"])
        .cause("The engines' caches differ in size.")
        .remedy("Unless you compare cache sizes, make the caches equal, or account for them in reads and memory."),
    row("no-transactions", Rank::Misleading, SPEED)
        .cause("An engine has no transactions, so it saves the cost of isolation and rollback that other engines have.")
        .remedy("Account for this saving when you compare its speed with that of transactional engines."),
    row("isolation-differs", Rank::Misleading, SPEED)
        .cause("The engines run transactions at different isolation levels.")
        .remedy("Set the same isolation where engines offer it, or account for what the weaker level saves."),
    row("writes-unsteady", Rank::Misleading, WRITES)
        .cause("Bytes written per operation rose or fell significantly during the measured loops.")
        .remedy("Lengthen the warmup (`warmup_most`) and the loops, and read `wkb_per_op_with_drain`."),
    row("unsteady", Rank::Misleading, &["ops_per_s"])
        .cause("Throughput rose or fell significantly during the measured loops.")
        .remedy("Lengthen the warmup, or set `warmup_most` to let it last until the engine is steady."),
    row("change-point", Rank::Misleading, &["ops_per_s", "wkb_per_op"])
        .cause("Throughput or bytes written per operation changed abruptly within the measured loops.")
        .remedy("Look in the timeline for a checkpoint, a compaction, a full cache or other work on the host."),
    row("warmup-not-steady", Rank::Misleading, WRITES)
        .cause("The warmup reached `warmup_most` before the engine was steady.")
        .remedy("Raise `warmup_most`, age the loaded data with `age`, or use less data."),
    row("not-aged", Rank::Misleading, WRITES)
        .cause("Ageing of the loaded data reached its time limit before the engine was steady.")
        .remedy("Raise `age`, or use less data so that the engine becomes steady sooner."),
    row("stall", Rank::Misleading, SPEED)
        .cause("No operation ended for 10 s, or for half of `run.stall` if that is shorter.")
        .remedy("Check the likeliest cause that the message names, or interrupt the run if the stall continues."),
    row("open-at-end", Rank::Misleading, SPEED)
        .cause("Operations were still open, or arrivals not begun, when `run.backlog` ended after the last loop.")
        .remedy("Look for a stall at the end of the timeline, lower the rate if one is set, or raise `run.backlog`."),
    row("debt-at-end", Rank::Misleading, &["wkb_per_op", "cpu_us_per_op"])
        .cause("The drain after the loops wrote more than 10% of what warmup and loops wrote.")
        .remedy("Read `wkb_per_op_with_drain` and `cpu_us_per_op_with_drain`, or run longer loops."),
    row("debt-unpaid", Rank::Misleading, UNPAID)
        .cause("After the drain, the engine still held deferred work, and no figure includes its writes.")
        .remedy("Read bytes written with the remaining work in mind, or run loops that write many times as much."),
    row("debt-deferred", Rank::Misleading, &["wkb_per_op_with_drain", "wkb_per_op"])
        .cause("The engine left work that its own triggers had not yet started, so the bytes written are too few.")
        .remedy("Add `wkb_per_op_deferred` to `wkb_per_op_with_drain` for an estimate, or run longer loops."),
    row("not-synced", Rank::Misleading, &["wkb_per_op_with_drain"])
        .cause("rumba could not sync the server's files after settle and drain, so figures may lack writes.")
        .remedy("Give rumba access to the server's data directory, or let the server write with direct I/O."),
    row("data-elsewhere", Rank::Misleading, ELSEWHERE)
        .cause("Links lead out of the server's data directory, so sizes and device figures lack the files there.")
        .remedy("Read `proc_wkb_per_op` and `proc_rkb_per_op`, or keep all of the server's data in one directory."),
    row("client-errors", Rank::Misleading, &["ops_per_s"])
        .cause("Clients gave up operations after their retries.")
        .remedy("Use fewer clients or more rows, so that transactions conflict less."),
    row("target-missed", Rank::Misleading, SPEED)
        .cause("Throughput stayed below the requested rate, so response times include a growing queue.")
        .remedy("Request a rate that the engine can sustain, or use more clients."),
    row("cpu-uncharged", Rank::Misleading, &["cpu_us_per_op", "cpu_us_per_op_with_drain"])
        .cause("The host used CPU that clients and engine are not charged with, such as write-back and interrupts.")
        .remedy("Compare `host_cpu_us_per_op` instead of `cpu_us_per_op`."),
    row("built-with-assertions", Rank::Misleading, ASSERTING)
        .cause("The engine's build checks assertions, which slows it down.")
        .remedy("Use a release build of the engine; `rumba engines NAME` lists those that rumba can install."),
    row("throttled-latency", Rank::Misleading, &["p99_ms"])
        .cause("The storage limit lets requests through in bursts, which distorts p99 and higher percentiles.")
        .remedy("Compare throughput, reads and bytes, and measure response times on storage without a throttle."),
    row("storage-slower-than-asked", Rank::Misleading, &["ops_per_s"])
        .cause("The storage reached less than 90% of the reads per second that `limits.storage` requests.")
        .remedy("Request fewer IOPS, or change the storage's `backing` from `file` to `tmpfs`."),
    row("storage-latency-missed", Rank::Misleading, &["ops_per_s", "p99_ms"])
        .cause("The storage's latency missed the one that `limits.storage` requests by more than 25%.")
        .remedy("Request a longer latency, or change the storage's `backing` from `file` to `tmpfs`."),
    row("device-shared", Rank::Misleading, DEVICE)
        .cause("The device wrote much more than the engine's process: others use it, or its filesystem adds metadata.")
        .remedy("Give the data its own device (`limits.storage` if rumba runs the engine), or read `proc_wkb_per_op`."),
    row("results-on-device", Rank::Misleading, WRITES)
        .cause("rumba's own results are a visible share of the bytes that the data's device wrote.")
        .remedy("Put results and data on different devices, for example with `--out`."),
    row("data-in-memory", Rank::Misleading, DEVICE)
        .cause("The data directory is in memory, so syncs are free and device I/O cannot be measured.")
        .remedy("Put the data directory on a local disk's own filesystem, such as ext4 or xfs."),
    row("layered-filesystem", Rank::Misleading, DEVICE)
        .cause("The data directory is on a layered filesystem, such as overlayfs, whose device cannot be measured.")
        .remedy("Put the data directory on a local disk's own filesystem, such as ext4 or xfs."),
    row("network-filesystem", Rank::Misleading, DEVICE)
        .cause("The data directory is on a network filesystem, so the network or the sharing host is measured too.")
        .remedy("Put the data directory on a local disk's own filesystem, such as ext4 or xfs."),
    row("lost-commits", Rank::Misleading, &["ops_per_s", "wkb_per_op", "wkb_per_op_with_drain"])
        .cause("Acknowledged transactions were missing after rumba killed the database.")
        .remedy("Set durability to `no-sync` or `sync` if a killed process must lose nothing."),
    row("damaged-by-kill", Rank::Misleading, &["ops_per_s", "wkb_per_op", "wkb_per_op_with_drain"])
        .cause("Data was inconsistent after rumba killed the database, which durability `none` allows.")
        .remedy("Set durability to `buffered` or higher if a crash of the database must not damage data."),
    row("cut-off", Rank::Misleading, &[])
        .cause("A measured loop was cut off, so its figures cover only the time until then.")
        .remedy("Read the cause in the trial's status before you use its figures."),
    row("warmup-levels-unknown", Rank::Unsure, WRITES)
        .cause("It is unknown whether the engine had rewritten each of its LSM levels before it counted as steady.")
        .remedy("Enable the engine's compaction counters, or check whether writes still rise from loop to loop."),
    row("one-repeat", Rank::Unsure, &[])
        .cause("The experiment has one repeat, so a difference cannot be distinguished from noise.")
        .remedy("Set `repeats` to 4 or more."),
    row("parity-unknown", Rank::Unsure, &[])
        .cause("Durability, isolation, log, reads or cache is unknown for some engines and known for others.")
        .remedy("Look it up, and account for its savings or costs in the comparison."),
    row("loaded-again", Rank::Unsure, &[])
        .cause("A repeat loaded its own data, because the data of the planned load could not be used.")
        .remedy("Fix the cause that the message names, and run the experiment again."),
    row("loads-differ", Rank::Unsure, &[])
        .cause("Some engines load for every trial, because their data cannot be kept, while others share loads.")
        .remedy("Use one number of clients and `repeats_from = \"load\"`, or account for caches warmed by a load."),
    row("host-changed", Rank::Unsure, &[])
        .cause("The run was resumed under other host conditions than it began with.")
        .remedy("Compare trials from before and after the change with care, or run the experiment again."),
    row("stall-ended", Rank::Unsure, SPEED)
        .cause("Operations ended again after a reported stall.")
        .remedy("Look at the largest response time and the timeline to see the effect of the stall."),
    row("memory-tight", Rank::Unsure, SPEED)
        .cause("The memory limit is close to, or below, what the engine was measured to need.")
        .remedy("Raise `limits.memory`, lower the engine's cache if you do not compare it, or use fewer clients."),
    row("few-repeats", Rank::Unsure, &[])
        .cause("The experiment has fewer repeats than a comparison needs to find any difference.")
        .remedy("Set `repeats` to 4 or more, or leave it out."),
    row("client-late", Rank::Unsure, &["p99_ms"])
        .cause("Clients started operations late by more than 10% of the mean response time.")
        .remedy("Read the service times, or give the clients more CPU."),
    row("receive-late", Rank::Unsure, &["p99_ms", "ops_per_s"])
        .cause("Answers waited for busy clients for more than 10% of the mean response time.")
        .remedy("Give the clients more CPU or their own host, use fewer, or set `driver = \"threads\"`."),
    row("client-shares-cpus", Rank::Unsure, SPEED)
        .cause("Server and clients share a host, and the clients used more than 20% of its CPU.")
        .remedy("Compare `server_cpu_us_per_op`, use fewer clients, or run the server on another host."),
    row("loops-embedded", Rank::Unsure, SPEED)
        .cause("Several clients of an embedded engine share an event loop, so their operations wait for each other.")
        .remedy("Leave out `driver`, or set `driver = \"threads\"`."),
    row("stolen-cpu", Rank::Unsure, SPEED)
        .cause("The hypervisor gave more than 1% of the host's CPU to other guests during the loops.")
        .remedy("Run on a dedicated host, or compare CPU per operation instead of throughput."),
    row("others-cpu", Rank::Unsure, SPEED)
        .cause("Other processes used more than 5% of the host's CPU during the loops.")
        .remedy("End the other processes, or compare costs per operation instead of throughput."),
    row("busy-host", Rank::Unsure, SPEED)
        .cause("The load average exceeded a quarter of the host's CPUs before the run began.")
        .remedy("Wait until other work has ended, or stop it."),
    row("busy-device", Rank::Unsure, DEVICE)
        .cause("Other processes moved more than 1 MiB/s on the data's device before the run began.")
        .remedy("Stop the other processes, or put the data on its own device."),
    row("one-cpu", Rank::Unsure, SPEED)
        .cause("Clients, the engine's background threads and rumba's measurement share one CPU.")
        .remedy("Give the machine or container at least two CPUs."),
    row("slow-clock", Rank::Unsure, CPU)
        .cause("Each time stamp needs a system call with the kernel's clock source, and operations include its cost.")
        .remedy("Switch the kernel to a clock source that needs no system call, such as a stable `tsc`."),
    row("governor", Rank::Unsure, SPEED)
        .cause("The CPU frequency governor is not `performance`, so the frequency follows the load.")
        .remedy("Set the frequency governor of all CPUs to `performance`, as root."),
    row("turbo-on", Rank::Unsure, SPEED)
        .cause("Turbo boost is on, so the CPU frequency depends on load and temperature.")
        .remedy("Turn turbo boost off in the kernel or the firmware."),
    row("huge-pages-always", Rank::Unsure, &["rss_bytes", "p99_ms"])
        .cause("Transparent huge pages are set to `always`, which can stall engines and inflate their memory.")
        .remedy("Write `madvise` to `/sys/kernel/mm/transparent_hugepage/enabled`, as root."),
    row("swap", Rank::Unsure, SPEED)
        .cause("Swap is enabled, so the kernel may swap out the engine's cache.")
        .remedy("Run `swapoff -a` or `sysctl vm.swappiness=0`, as root."),
    row("discard", Rank::Unsure, SPEED)
        .cause("The data's filesystem is mounted with `discard`, so deleting files costs device time during the run.")
        .remedy("Remount the filesystem with `nodiscard` as root, and run `fstrim` between runs."),
    row("device-full", Rank::Unsure, SPEED)
        .cause("The data's filesystem is at least 90% full, and flash storage slows down as it fills.")
        .remedy("Free space until the filesystem is at most 80% full, then run `fstrim`."),
    row("client-host-busy", Rank::Unsure, &["ops_per_s", "p99_ms"])
        .cause("A client host used more than 90% of its CPUs during warmup and loops.")
        .remedy("Add client hosts, or give this one more CPUs."),
    row("few-samples", Rank::Unsure, &["p99_ms"])
        .cause("A type of operation ran fewer than 1,000 times, which is too few for a 99th percentile.")
        .remedy("Run longer loops."),
    row("response-limit", Rank::Note, &[])
        .cause("More operations were slow or given up than the workload's specification allows.")
        .remedy("Treat the rate as one that the specification does not accept, or use fewer clients."),
    row("scaling-ended", Rank::Note, &[])
        .cause("Throughput stopped growing from some number of clients on.")
        .remedy("Compare at fewer clients, or remove the bottleneck that the message names and run again."),
    row("no-device", Rank::Note, &[])
        .cause("rumba found no block device below the data directory, so device figures are absent.")
        .remedy("Put the data directory on a local disk's own filesystem, such as ext4 or xfs."),
    row("engine-left-out", Rank::Note, &[])
        .cause("An engine is not installed, so the run leaves out the engine and the claims about it.")
        .remedy("Install the engine as the message describes if you want to compare it."),
    row("claims-left-out", Rank::Note, &[])
        .cause(
            "The command line changed the experiment, and some claims name engines, tests or clients that it removed.",
        )
        .remedy("Keep what a claim names if you need its verdict."),
    row("not-verified", Rank::Note, &[])
        .cause("The engine keeps no data, or a client host was lost with its list of writes, so nothing is verified.")
        .remedy("Use such an engine only to measure rumba's own cost, or run the trial again with all hosts."),
    row("closed-loop", Rank::Note, &[])
        .cause("Clients of an existing server begin their next operation as soon as the last one has ended.")
        .remedy("Bound the load with `rate` if others need the server."),
    row("not-killed", Rank::Note, &[])
        .cause("rumba did not kill the database, because rumba could not open it again afterwards.")
        .remedy("Use an engine and configuration that rumba can open again, to test what survives a kill."),
    row("nothing-acknowledged", Rank::Note, &[])
        .cause("No transaction was acknowledged before the kill, so the absence of losses shows nothing.")
        .remedy("Let clients work longer before the kill, for example with `crash = \"5s\"`."),
    row("not-calibrated", Rank::Note, &[])
        .cause("The speed of the limited storage could not be measured before the trial.")
        .remedy("Read the storage's speed from the trial's own reads per second."),
    row("throttle-not-lifted", Rank::Note, &[])
        .cause("The storage throttle could not be removed after the measurement, so verification is slower.")
        .remedy("Use the figures as they are, because only unmeasured work is slower."),
    row("memory-not-lifted", Rank::Note, &[])
        .cause("The memory limit could not be removed after the measurement, so verification runs under it.")
        .remedy("Use the figures as they are, even if verification is killed for lack of memory."),
    row("not-kept", Rank::Note, &[])
        .cause("rumba could not keep the trial's data, or could not copy the engine's files to the results.")
        .remedy("Fix the cause that the message names, and repeat the trial with `keep_data = true`."),
    row("results-disk-full", Rank::Note, &[])
        .cause("The disk of the results is full, so the run stopped. The results so far are kept.")
        .remedy("Free bytes or inodes there, then continue with `rumba run --resume DIR`."),
    row("results-not-written", Rank::Note, &[])
        .cause("The results could not be written, so the run stopped.")
        .remedy("Check the disk of the results, then continue with `rumba run --resume DIR`."),
    row("missing-symbols", Rank::Note, &[])
        .cause("More than 10% of the profile's samples have functions of a program that has no names for them.")
        .remedy("Install the program's debug symbols (Debian: `-dbgsym`), or build it with them, and profile again."),
    row("no-hardware-counters", Rank::Note, &[])
        .cause("`hardware_counters = true` is set, and rumba cannot read some of the CPU's counters.")
        .remedy("Set `kernel.perf_event_paranoid` to 1, as root, or use a host that exposes its CPU's counters."),
    row("few-intervals", Rank::Note, &[])
        .cause("The measured loops have too few intervals to decide whether they were steady.")
        .remedy("Run longer loops, or set a shorter `interval`."),
    row("steadiness-undecided", Rank::Note, &[])
        .cause("It is undecided whether the measured loops were steady, because the trend is uncertain.")
        .remedy("Look at the timeline, and run longer loops or at least three repeats."),
    row("warmup-undecided", Rank::Note, &[])
        .cause("The warmup or ageing ended with an uncertain trend, so the engine may not have been steady.")
        .remedy("Read the change over the loops of at least three repeats, or run longer loops."),
];

/// A warning in files and for programs, with the properties of its code from [`WARNINGS`], so that readers do not need
/// the table.
#[derive(Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Warning")]
struct WarningJson {
    /// A short stable name: `debt-at-end`.
    code: String,
    /// The observation, with figures.
    message: String,
    /// The remedy.
    remedy: String,
    /// Its severity.
    #[serde(default)]
    rank: Rank,
    /// The metrics that it undermines, the most important first; `p99_ms` means all response times; empty when it
    /// undermines all equally.
    #[serde(default)]
    undermines: Vec<String>,
}

impl From<Warning> for WarningJson {
    fn from(warning: Warning) -> Self {
        let (rank, undermines) = (warning.rank(), warning.undermines().iter().map(|name| (*name).to_owned()).collect());
        let Warning { code, message, remedy } = warning;
        Self { code, message, remedy, rank, undermines }
    }
}

/// A code of older files, and its name today.
const RENAMED: (&str, &str) = ("strangers-cpu", "others-cpu");

impl From<WarningJson> for Warning {
    /// Severity and metrics are those of the version that reads the file.
    fn from(WarningJson { code, message, remedy, .. }: WarningJson) -> Self {
        let code = if code == RENAMED.0 { RENAMED.1.to_owned() } else { code };
        Self { code, message, remedy }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::comparison::metric_info;

    #[test]
    fn warning_ranking_has_unique_ordered_codes_and_known_metrics() {
        for pair in WARNINGS.windows(2) {
            assert!(pair[0].rank <= pair[1].rank, "{} comes before {}", pair[0].code, pair[1].code);
        }
        for (at, kind) in WARNINGS.iter().enumerate() {
            assert!(WARNINGS[at + 1..].iter().all(|other| other.code != kind.code), "{} is there twice", kind.code);
            for name in kind.undermines {
                assert!(*name == "p99_ms" || metric_info(name).is_some(), "{}: {name}", kind.code);
            }
        }
    }

    #[test]
    fn every_warning_code_has_a_short_cause_and_remedy() {
        for kind in WARNINGS {
            for (what, text) in [("cause", kind.cause), ("remedy", kind.remedy)] {
                let words = text.split_whitespace().count();
                assert!(text.ends_with('.') && (3..=25).contains(&words), "{what} of {}: `{text}`", kind.code);
            }
        }
    }

    #[test]
    fn deferred_writes_after_drain_undermine_all_growth_metrics() {
        let unpaid = Warning::new("debt-unpaid", "seen", "do");
        for metric in ["wkb_per_op", "tpmC_growth_bytes_per_op", "tpmU_growth_bytes_per_8h"] {
            assert!(unpaid.undermines_metric(metric), "{metric}");
        }
        for metric in ["tpmC", "tpmC_percent", "growth_bytes_per_op", "cpu_us_per_op"] {
            assert!(!unpaid.undermines_metric(metric), "{metric}");
        }
        let paid = Warning::new("debt-at-end", "seen", "do");
        assert!(!paid.undermines_metric("tpmC_growth_bytes_per_op"));
    }

    #[test]
    fn warning_json_adds_rank_and_metrics_and_reads_without_them() {
        let warning = Warning::new("cpu-uncharged", "seen", "do");
        let json = serde_json::to_value(&warning).unwrap();
        assert_eq!(json["rank"], "misleading");
        assert_eq!(json["undermines"][0], "cpu_us_per_op");
        assert_eq!(serde_json::from_value::<Warning>(json).unwrap(), warning);
        let older = serde_json::json!({ "code": "cpu-uncharged", "message": "seen", "remedy": "do" });
        assert_eq!(serde_json::from_value::<Warning>(older).unwrap(), warning);
        let renamed = serde_json::json!({ "code": "strangers-cpu", "message": "seen", "remedy": "do" });
        assert_eq!(serde_json::from_value::<Warning>(renamed).unwrap().code, "others-cpu");
    }
}
