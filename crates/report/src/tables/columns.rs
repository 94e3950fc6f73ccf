//! The columns of the published tables: headings, meanings and digits.

use std::collections::{BTreeMap, BTreeSet};

use rumba_engine_api::rate::Rate;
use rumba_engine_api::workload::{ResponseLimit, Short};
use rumba_results::comparison::{KeptFigures, OpFigures, PhaseFigures, Row};
use rumba_results::counted::{Counted, NOT_COUNTED, WAITED, WRITTEN};
use rumba_results::metric::Metric;
use rumba_results::prices::PRICED;
use rumba_results::ratio::HEADLINE_CPU;
use rumba_results::tally;

use crate::format::{SizeUnit, fixed, milliseconds, price};
use crate::server::is_server;

/// How a column formats its numbers.
#[derive(Clone, Copy, Debug)]
pub enum Digits {
    Fixed(usize),
    Milliseconds,
    Size(SizeUnit),
    Price,
}

impl Digits {
    pub fn show(self, value: f64) -> String {
        match self {
            Digits::Fixed(decimals) => fixed(value, decimals),
            Digits::Milliseconds => milliseconds(value),
            Digits::Size(unit) => unit.show(value),
            Digits::Price => price(value),
        }
    }
}

/// The source of a column's number.
#[derive(Clone, Debug)]
pub enum Source {
    /// A metric by its stable name.
    Metric(&'static str),
    /// A metric made from an engine's counter, by its name.
    Counted(String),
    /// The 99th percentile of the response time of a type of operation.
    P99(String),
    /// The percentage of a type of operation within its time limit.
    Within(String),
}

/// One column of numbers.
#[derive(Clone, Debug)]
pub struct Column {
    pub head: String,
    pub source: Source,
    pub digits: Digits,
    pub legend: String,
}

impl Column {
    fn new(head: &str, source: Source, digits: Digits, legend: &str) -> Self {
        Column { head: head.to_owned(), source, digits, legend: legend.to_owned() }
    }

    fn metric(head: &str, name: &'static str, decimals: usize, legend: &str) -> Self {
        Column::new(head, Source::Metric(name), Digits::Fixed(decimals), legend)
    }

    fn size(head: &str, name: &'static str, unit: SizeUnit, legend: &str) -> Self {
        let legend = format!("{legend}; MB = 1024 KB = 1024² bytes");
        Column::new(&format!("{head} {}", unit.name), Source::Metric(name), Digits::Size(unit), &legend)
    }

    /// The name that warnings use for it.
    pub fn undermined_as(&self) -> &str {
        match &self.source {
            Source::Metric(name) => name,
            Source::Counted(name) => name,
            Source::P99(_) | Source::Within(_) => "p99_ms",
        }
    }

    /// The median of this column.
    pub fn median(&self, figures: &PhaseFigures) -> Metric {
        match &self.source {
            Source::Metric(name) => figures.median(name),
            Source::Counted(name) => {
                let counted = figures.metrics.get(name);
                counted.map_or_else(|| Metric::absent(NOT_COUNTED), |figure| figure.median.clone())
            }
            Source::P99(op) => {
                let p99 = figures.op_types.get(op).and_then(|op| op.response.get("p99_ms"));
                p99.map_or_else(|| Metric::absent("no operation of this type"), |figure| figure.median.clone())
            }
            Source::Within(op) => {
                let kept = figures.op_types.get(op).and_then(|op| op.limit.as_ref());
                kept.map_or_else(
                    || Metric::absent("no operation of this type"),
                    |kept| kept.within_percent.median.clone(),
                )
            }
        }
    }
}

impl Source {
    /// The name of its ratio.
    pub fn ratio_name(&self) -> String {
        match self {
            Source::Metric(name) => (*name).to_owned(),
            Source::Counted(name) => name.clone(),
            Source::P99(op) => format!("{op}.p99_ms"),
            Source::Within(op) => format!("{op}.within_percent"),
        }
    }
}

/// The figures that a table shows.
pub type Pick = fn(&Row) -> Option<&PhaseFigures>;

/// The largest median of a metric decides its unit.
fn unit_of(rows: &[Row], pick: Pick, metric: &str) -> SizeUnit {
    SizeUnit::for_sizes(rows.iter().filter_map(pick).filter_map(|figures| figures.median(metric).value()))
}

/// Separate CPU of servers and clients, if some engine is a server, because only then do clients have a separate
/// process.
fn cpu_apart(rows: &[Row], pick: Pick, per: &str) -> Vec<Column> {
    let apart = |row: &Row| pick(row).is_some() && row.facts.as_ref().is_some_and(is_server);
    if !rows.iter().any(apart) {
        return Vec::new();
    }
    let (server, client) = (
        format!("of which the server's processes used, microseconds per {per}"),
        format!("of which the clients used, microseconds per {per}; embedded engines run in their clients"),
    );
    vec![
        Column::metric("scpu", "server_cpu_us_per_op", 1, &server),
        Column::metric("ccpu", "client_cpu_us_per_op", 1, &client),
    ]
}

/// The load.
pub fn load(rows: &[Row], pick: Pick) -> Vec<Column> {
    let (size, rss) = (unit_of(rows, pick, "size_bytes"), unit_of(rows, pick, "rss_bytes"));
    let mut columns = vec![
        Column::metric("ips", "ops_per_s", 0, "rows inserted per second"),
        Column::metric("wkb/i", "wkb_per_op", 2, "KB written to the device per row inserted, before the debt is paid"),
        Column::metric("wkb/i+s", "wkb_per_row_with_settle", 2, "KB written in load and settle per row inserted"),
        Column::metric("Mcpu/i", "cpu_us_per_op", 1, "CPU microseconds (clients and engine) per row inserted"),
    ];
    columns.extend(cpu_apart(rows, pick, "row"));
    columns.extend([
        Column::size("data", "data_bytes", size, "allocated on disk at the end of the load, without logs"),
        Column::size("size", "size_bytes", size, "the same with logs"),
        Column::size("rss", "rss_bytes", rss, "resident memory of the engine's process at the end of the load"),
        Column::metric("wMB/s", "write_mb_s", 1, "MB written to the device per second"),
        Column::metric("cpu", "host_cpu_percent", 1, "CPU used by the whole host, percent of all its cores"),
    ]);
    columns
}

/// Transactions: throughput, response time, CPU.
pub fn transactions(rows: &[Row], pick: Pick) -> Vec<Column> {
    let mut columns = vec![Column::metric("tps", "ops_per_s", 0, "operations per second, all loops")];
    columns.extend(rates(rows));
    for (head, op) in main_ops(rows) {
        let legend = format!("99th percentile of the response time of {op}, milliseconds");
        columns.push(Column::new(&head, Source::P99(op), Digits::Milliseconds, &legend));
    }
    let retried = |figures: &PhaseFigures| figures.median("retries_per_op").value() > Some(0.0);
    if rows.iter().filter_map(pick).any(retried) {
        columns.push(Column::metric("retr/t", "retries_per_op", 3, "rollbacks that were tried again per operation"));
    }
    columns.push(Column::metric("Mcpu/t", "cpu_us_per_op", 1, "CPU microseconds (clients and engine) per operation"));
    columns.extend(cpu_apart(rows, pick, "operation"));
    columns.push(Column::metric("cpu", "host_cpu_percent", 1, "CPU used by the whole host, percent of all its cores"));
    columns
}

/// The operations with a rate that the workload reports, by the rate's name.
fn rated(rows: &[Row]) -> BTreeMap<&str, (&str, &OpFigures, &Rate)> {
    let types = rows.iter().filter_map(|row| row.run.as_ref()).flat_map(|run| &run.op_types);
    let rated = types.filter_map(|(op, figures)| {
        let rate = figures.rate.as_ref()?;
        Some((&*rate.name, (op.as_str(), figures, rate)))
    });
    rated.collect()
}

/// The rates that the workload reports for its operations.
fn rates(rows: &[Row]) -> Vec<Column> {
    let mut columns = Vec::new();
    for (name, (op, _, rate)) in rated(rows) {
        let counted = Source::Counted(name.to_owned());
        columns.push(Column::new(name, counted, Digits::Fixed(0), &format!("{op} operations per minute, all loops")));
        if rate.most.is_some() {
            let legend = format!("{name} in percent of the most that the workload's think times allow");
            columns.push(Column::new("%most", Source::Counted(rate.percent()), Digits::Fixed(1), &legend));
        }
    }
    columns
}

/// The growth of the data at the rates that the workload reports; empty if it reports none.
pub fn growth(rows: &[Row], pick: Pick) -> Vec<Column> {
    let of_rate = |(name, (op, figures, rate)): (&str, (&str, &OpFigures, &Rate))| {
        let short = figures.short.as_ref().map_or(op, |short| &short.name);
        let (each, of_8h) = (rate.growth_per_op(), rate.growth_per_8h());
        let unit = unit_of(rows, pick, &of_8h);
        let grown = format!("bytes that the data grew by from settle to drain, per {op} of warmup, loops and backlog");
        let added = format!("growth in eight hours at this {name}; MB = 1024 KB = 1024² bytes");
        [
            Column::new(&format!("B/{short}"), Source::Counted(each), Digits::Fixed(0), &grown),
            Column::new(&format!("{}/8h", unit.name), Source::Counted(of_8h), Digits::Size(unit), &added),
        ]
    };
    rated(rows).into_iter().flat_map(of_rate).collect()
}

/// For each type of operation with a time limit, the percentage that met it.
pub fn limits(rows: &[Row], pick: Pick) -> Vec<Column> {
    let types = rows.iter().filter_map(pick).flat_map(|run| &run.op_types);
    let limited: BTreeMap<(u32, &String), (&OpFigures, &KeptFigures)> = types
        .filter_map(|(op, figures)| {
            let place = figures.short.as_ref().map_or(u32::MAX, |short| short.column);
            Some(((place, op), (figures, figures.limit.as_ref()?)))
        })
        .collect();
    let column = |((_, op), (figures, kept)): ((u32, &String), (&OpFigures, &KeptFigures))| {
        let ResponseLimit { percent, seconds } = kept.limit;
        let legend = format!("percent of {op} within {seconds} s, which is to be {percent}");
        let head = figures.short.as_ref().map_or(op.as_str(), |short| &short.name);
        Column::new(head, Source::Within(op.clone()), Digits::Fixed(1), &legend)
    };
    limited.into_iter().map(column).collect()
}

/// Transactions: hardware efficiency.
pub fn efficiency(rows: &[Row], pick: Pick) -> Vec<Column> {
    let size = unit_of(rows, pick, "size_bytes");
    let mut columns = vec![
        Column::metric("r/t", "reads_per_op", 2, "device reads per operation"),
        Column::metric("rkb/t", "rkb_per_op", 2, "KB read from the device per operation"),
        Column::metric("wkb/t", "wkb_per_op", 2, "KB written to the device per operation, before the debt is paid"),
        Column::size("data", "data_bytes", size, "allocated on disk at the end of the loops, without logs"),
        Column::size("size", "size_bytes", size, "the same with logs"),
        Column::size("log", "log_bytes", size, "logs alone, which some engines allocate ahead"),
        Column::metric("r/s", "reads_per_s", 0, "device reads per second"),
        Column::metric("rMB/s", "read_mb_s", 1, "MB read from the device per second"),
        Column::metric("wMB/s", "write_mb_s", 1, "MB written to the device per second"),
        Column::metric("w/t", "writes_per_op", 2, "device writes per operation, after merging"),
        Column::metric("w/s", "writes_per_s", 0, "device writes per second"),
    ];
    // Results of older versions lack them.
    let timed = [
        Column::metric("await", "device_await_ms", 2, "milliseconds per device read or write, including queueing"),
        Column::metric("aqu-sz", "device_queue_length", 2, "requests in flight at the device on average"),
        Column::metric("%util", "device_utilisation_percent", 0, "percent of the time with a request in flight"),
        Column::metric("cs/s", "host_ctx_switches_per_s", 0, "context switches of the whole host per second"),
    ];
    let is_known = |column: &Column| rows.iter().filter_map(pick).any(|of| column.median(of).value().is_some());
    columns.extend(timed.into_iter().filter(is_known));
    // Only if some engine has a limit on operations.
    let budget = |figures: &PhaseFigures| figures.median("iops_used_percent").value().is_some();
    if rows.iter().filter_map(pick).any(budget) {
        let legend = "share of limits.storage.iops that reads and writes used, percent";
        columns.push(Column::metric("iops%", "iops_used_percent", 0, legend));
    }
    columns
}

/// The total cost of an operation: bytes and CPU including deferred work, memory, and space per byte of data.
pub fn cost(rows: &[Row], pick: Pick) -> Vec<Column> {
    let rss = unit_of(rows, pick, "rss_bytes");
    vec![
        Column::metric("wkb/t", "wkb_per_op", 2, "KB written to the device per operation, before the debt is paid"),
        Column::metric(
            "wkb/t+d",
            "wkb_per_op_with_drain",
            2,
            "KB written in warmup, loops and drain per operation of warmup and loops",
        ),
        Column::metric("Mcpu/t", "cpu_us_per_op", 1, "CPU microseconds (clients and engine) per operation"),
        Column::metric("Mcpu/t+d", "cpu_us_per_op_with_drain", 1, "the same over warmup, loops and drain"),
        Column::metric(
            "hcpu/t",
            "host_cpu_us_per_op",
            1,
            "CPU microseconds of the whole host per operation: Mcpu/t, write-back, journal, loop devices, interrupts",
        ),
        Column::metric("hcpu/t+d", "host_cpu_us_per_op_with_drain", 1, "the same over warmup, loops and drain"),
        Column::metric("space", "space_amp", 2, "bytes allocated on disk without logs per byte of keys and payloads"),
        Column::size("rss", "rss_bytes", rss, "resident memory of the engine's process at the end of the loops"),
    ]
}

/// The costs at the experiment's prices; empty without any.
pub fn priced(rows: &[Row], pick: Pick) -> Vec<Column> {
    let all = [
        ("per M", PRICED[0], "cost of a million operations at the measured rate, in the currency of [prices]"),
        ("per M@rate", PRICED[1], "the same at the rate that [prices] states"),
        ("life y", PRICED[2], "years until the drive has taken its terabytes written, at the measured rate"),
        ("life@rate y", PRICED[3], "the same at the rate that [prices] states"),
    ];
    let is_priced = |name: &str| rows.iter().filter_map(pick).any(|figures| figures.metrics.contains_key(name));
    let priced = all.into_iter().filter(|(_, name, _)| is_priced(name));
    priced.map(|(head, name, legend)| Column::new(head, Source::Metric(name), Digits::Price, legend)).collect()
}

/// Statements that the workload sent to the engine; empty if no workload counts them.
pub fn statements(rows: &[Row], pick: Pick) -> Vec<Column> {
    let all = [
        ("reads/t", "read_statements_per_op", "statements per operation that read"),
        ("writes/t", "write_statements_per_op", "statements per operation that write"),
        (
            "others/t",
            "other_statements_per_op",
            "statements per operation that begin and end transactions, and all others",
        ),
    ];
    let is_counted = |name: &str| rows.iter().filter_map(pick).any(|figures| figures.median(name).value().is_some());
    let counted = all.into_iter().filter(|(_, name, _)| is_counted(name));
    counted.map(|(head, name, legend)| Column::metric(head, name, 2, legend)).collect()
}

/// The workload's own counters, per operation and per second; empty if it has none.
pub fn tallies(rows: &[Row], pick: Pick) -> Vec<Column> {
    let names: BTreeSet<&str> =
        rows.iter().filter_map(pick).flat_map(|figures| figures.metrics.keys()).map(String::as_str).collect();
    let column = |name: &&str| {
        let kinds = [(&tally::PER_OP, "t", "operation", 2), (&tally::PER_S, "s", "second", 0)];
        let (counter, per, unit, decimals) = kinds
            .into_iter()
            .find_map(|(kind, per, unit, decimals)| Some((tally::counter_of(name, kind)?, per, unit, decimals)))?;
        let legend = format!("the workload's counter {counter} per {unit}");
        let counted = Source::Counted((*name).to_owned());
        Some(Column::new(&format!("{counter}/{per}"), counted, Digits::Fixed(decimals), &legend))
    };
    names.iter().filter_map(column).collect()
}

/// The CPU's hardware counters; empty if none was read. JSON has the cycles, too.
pub fn hardware(rows: &[Row], pick: Pick) -> Vec<Column> {
    let of = |letter, who, [instructions, ipc, llc, dtlb]: [&'static str; 4]| {
        let legend = |what: &str| format!("{what}, {who}");
        [
            Column::metric(&format!("{letter}ins/t"), instructions, 0, &legend("instructions per operation")),
            Column::metric(&format!("{letter}IPC"), ipc, 2, &legend("instructions per CPU cycle")),
            Column::metric(
                &format!("{letter}LLC/t"),
                llc,
                1,
                &legend("loads per operation that missed the last level cache"),
            ),
            Column::metric(&format!("{letter}TLB/t"), dtlb, 1, &legend("loads per operation that missed the data TLB")),
        ]
    };
    let server = ["server_instructions_per_op", "server_ipc", "server_llc_misses_per_op", "server_dtlb_misses_per_op"];
    let client = ["client_instructions_per_op", "client_ipc", "client_llc_misses_per_op", "client_dtlb_misses_per_op"];
    let kernel = ["kernel_instructions_per_op", "kernel_ipc", "kernel_llc_misses_per_op", "kernel_dtlb_misses_per_op"];
    let counted = "share of the CPU time in which the least counted event was counted, percent";
    let all = [
        of("s", "the server in user mode", server),
        of("c", "the clients' process in user mode", client),
        of("k", "both in kernel mode", kernel),
    ];
    let all = all.into_iter().flatten().chain([Column::metric("cnt%", "hardware_counted_percent", 0, counted)]);
    all.filter(|column| rows.iter().filter_map(pick).any(|figures| column.median(figures).value().is_some())).collect()
}

/// Bytes written by purpose, as the engines report them; only purposes that some engine counts.
pub fn written(rows: &[Row], pick: Pick) -> Vec<Column> {
    counted(rows, pick, &WRITTEN, "KB")
}

/// Clients' waits by reason, as the engines report them; only reasons for which a client waited.
pub fn waited(rows: &[Row], pick: Pick) -> Vec<Column> {
    counted(rows, pick, &WAITED, "microseconds")
}

fn counted(rows: &[Row], pick: Pick, rule: &Counted, unit: &str) -> Vec<Column> {
    let figures = || rows.iter().filter_map(pick);
    let counted = |metric: &&str| figures().any(|figures| figures.median(metric).value() > Some(0.0));
    let names: BTreeSet<&str> = figures().flat_map(|figures| figures.counted_by(rule)).filter(counted).collect();
    let heads: Vec<&str> = names.iter().filter_map(|name| rule.what(name)).collect();
    let column = |name: &&str| {
        let (head, counter) = (rule.what(name)?, rule.counter_of(name)?);
        // `compaction_level2` is a part of `compaction` if both exist.
        let part = heads.iter().find_map(|whole| head.strip_prefix(whole)?.strip_prefix('_'));
        let legend = format!("{unit} per operation by the counter {counter}");
        Some(Column::new(part.unwrap_or(head), Source::Counted((*name).to_owned()), Digits::Fixed(2), &legend))
    };
    names.iter().filter_map(column).collect()
}

/// The metrics whose spread over repeats is shown; JSON has it for every metric.
pub fn repeated() -> Vec<Column> {
    [
        ("tps", "ops_per_s"),
        ("rkb/t", "rkb_per_op"),
        ("wkb/t+d", "wkb_per_op_with_drain"),
        ("Mcpu/t", "cpu_us_per_op"),
        ("data", "data_bytes"),
    ]
    .map(|(head, name)| Column::metric(head, name, 2, ""))
    .into()
}

/// The columns compared with the baseline: the metrics with verdicts, and the operations that are judged. Only the CPU
/// metric with a verdict is included.
pub fn relative(rows: &[Row], is_judged: impl Fn(&Source) -> bool, is_headline: impl Fn(&str) -> bool) -> Vec<Column> {
    let ratio = |(head, name)| Column::metric(head, name, 2, "");
    let mut columns = vec![ratio(("tps", "ops_per_s"))];
    let p99 = |(head, op): (String, String)| Column::new(&head, Source::P99(op), Digits::Fixed(2), "");
    columns.extend(all_ops(rows).into_iter().map(p99).filter(|column| is_judged(&column.source)));
    columns.extend(
        [
            ("r/t", "reads_per_op"),
            ("wkb/t+d", "wkb_per_op_with_drain"),
            ("hcpu/t+d", HEADLINE_CPU[0]),
            ("Mcpu/t+d", HEADLINE_CPU[1]),
            ("data", "data_bytes"),
        ]
        .into_iter()
        .filter(|(_, name)| is_headline(name) || !HEADLINE_CPU.contains(name))
        .map(ratio),
    );
    columns
}

/// All operations of the loops: the main ones, then the others with their full names.
fn all_ops(rows: &[Row]) -> Vec<(String, String)> {
    let mut ops = main_ops(rows);
    let names: BTreeSet<&String> =
        rows.iter().filter_map(|row| row.run.as_ref()).flat_map(|run| run.op_types.keys()).collect();
    for name in names {
        if !ops.iter().any(|(_, op)| op == name) {
            ops.push((name.clone(), name.clone()));
        }
    }
    ops
}

/// The main operations of the loops, each with its abbreviation, in the workload's order of columns.
fn main_ops(rows: &[Row]) -> Vec<(String, String)> {
    let types = rows.iter().filter_map(|row| row.run.as_ref()).flat_map(|run| &run.op_types);
    let mut ops: Vec<(&Short, &String)> =
        types.filter_map(|(op, figures)| Some((figures.short.as_ref()?, op))).collect();
    ops.sort_by_key(|(short, op)| (short.column, *op));
    ops.dedup_by_key(|(_, op)| *op);
    ops.into_iter().map(|(short, op)| (short.name.to_string(), op.clone())).collect()
}
