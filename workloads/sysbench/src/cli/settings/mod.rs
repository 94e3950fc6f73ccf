//! The general settings, checked in sysbench's order and refused in its words.

mod built_in;
mod database;
mod random;
mod sqlite;

use std::path::PathBuf;
use std::time::Duration;

pub use built_in::{
    CpuSettings, FileFlags, FileIo, FileSettings, FileSync, FileTest, MemoryOperation, MemoryScope, MemorySettings,
    MutexSettings, ThreadsSettings,
};
pub use database::{DatabaseSettings, PgSslMode, SslMode, StatementMode};
pub use random::{Distribution, RandomSettings, Shapes};
pub use sqlite::SqliteSettings;

use crate::cli::histogram::{Histogram, LATENCY_MAX_MS};
use crate::cli::log::Rank;
use crate::cli::options::{OptionSet, OptionValue, Source};
use crate::cli::refusal::Refusal;
use crate::cli::report::Layout;

const FLEET_PORT: u16 = 7331;
/// The maximum number of checkpoints.
const MOST_CHECKPOINTS: usize = 256;

/// The general options, those of random numbers and those of reports.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// At least one.
    pub threads: u32,
    /// `None` means no limit.
    pub events: Option<u64>,
    /// The time after the end of the warmup; `None` means no limit.
    pub time: Option<Duration>,
    /// The time before anything is counted.
    pub warmup: Duration,
    /// The time after the limit at which a run is ended by force; `None` waits for its end, and so does a run without a
    /// limit.
    pub forced_shutdown: Option<Duration>,
    /// In which all threads have to be ready.
    pub thread_init_timeout: Duration,
    /// Arrivals per second; `None` runs events as fast as possible.
    pub rate_per_s: Option<u32>,
    /// Between intermediate reports.
    pub report_interval: Option<Duration>,
    /// After the start, in ascending order.
    pub checkpoints: Vec<Duration>,
    /// Whether to log more; verbosity is [`Rank::Debug`] then.
    pub debug: bool,
    /// Check results.
    pub validate: bool,
    /// The settings of random numbers.
    pub random: RandomSettings,
    /// The verbosity of the log.
    pub verbosity: Rank,
    /// In the order of their reports; empty if none are requested.
    pub percentiles: Vec<f64>,
    /// Print the distribution.
    pub histogram: bool,
    /// The upper end of the histogram.
    pub latency_max_ms: f64,
    /// A command to LuaJIT.
    pub luajit_command: Option<String>,
    /// The wording of the closing report.
    pub layout: Layout,
    /// The path of the JSON document.
    pub report_json: Option<PathBuf>,
    /// The driver of a server's clients.
    pub client_driver: ClientDriver,
    /// The hosts of the clients, if they are not in this process.
    pub fleet: Option<FleetAddress>,
}

/// Several client hosts, and the address by which they reach this one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FleetAddress {
    /// Their number.
    pub hosts: u32,
    /// This host's address.
    pub address: String,
    /// The port to listen on.
    pub port: u16,
}

/// The driver of clients that wait for a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClientDriver {
    /// The one that suits their number.
    Auto,
    /// A thread for each.
    Threads,
    /// Event loops that share them.
    Loops,
}

impl Settings {
    /// Reads and checks the options. As in sysbench, this is done before a script declares its own, which may have the
    /// same names. It first copies 1.0's names for `--threads`, `--time`, `--events` and `--rate`, so that scripts find
    /// them. The options that only rumba has are at their defaults until [`Settings::read_own`]. The texts are warnings.
    ///
    /// # Errors
    /// The first invalid value, in the order in which sysbench checks them.
    pub fn read(options: &mut OptionSet) -> Result<(Self, Vec<String>), Refusal> {
        let mut warnings = Vec::new();
        let threads = threads(options, &mut warnings)?;
        let thread_init_timeout = seconds(options, "thread-init-timeout")?;
        take_alias(options, ("max-requests", "events"), 0, &mut warnings)?;
        let events = u64::from(whole(options, "events")?);
        let warmup = warmup(options)?;
        take_alias(options, ("max-time", "time"), 0, &mut warnings)?;
        let time = seconds(options, "time")?;
        if events == 0 && time.is_zero() {
            warnings.push("Both event and time limits are disabled, running an endless test".to_owned());
        }
        let forced_shutdown = if time.is_zero() { None } else { forced_shutdown(options, warmup + time)? };
        check_thread_stack(options)?;
        let debug = options.flag("debug");
        if debug {
            let known = options.assign("verbosity", OptionValue::Number(5.0));
            known.map_err(|error| Refusal::fatal(error.to_string()))?;
        }
        let validate = options.flag("validate");
        let random = RandomSettings::read(options)?;
        take_alias(options, ("tx-rate", "rate"), 0, &mut warnings)?;
        let rate_per_s = whole(options, "rate")?;
        let report_interval = seconds(options, "report-interval")?;
        let checkpoints = checkpoints(options)?;
        let verbosity = verbosity(options)?;
        let percentiles = percentiles(options)?;
        let histogram = options.flag("histogram");
        if percentiles.is_empty() && histogram {
            return Err(Refusal::fatal("--histogram cannot be used with --percentile=0"));
        }
        let settings = Settings {
            threads,
            events: (events > 0).then_some(events),
            time: (!time.is_zero()).then_some(time),
            warmup,
            forced_shutdown,
            thread_init_timeout,
            rate_per_s: (rate_per_s > 0).then_some(rate_per_s),
            report_interval: (!report_interval.is_zero()).then_some(report_interval),
            checkpoints,
            debug,
            validate,
            random,
            verbosity,
            percentiles,
            histogram,
            latency_max_ms: LATENCY_MAX_MS,
            luajit_command: options.text("luajit-cmd").map(str::to_owned),
            layout: Layout::default(),
            report_json: None,
            client_driver: ClientDriver::Auto,
            fleet: None,
        };
        Ok((settings, warnings))
    }

    /// Reads the options that only rumba has, once the script has declared its own: an option of the script under such
    /// a name is not rumba's.
    ///
    /// # Errors
    /// The first invalid value.
    pub fn read_own(&mut self, options: &OptionSet) -> Result<(), Refusal> {
        let options = &options.for_rumba();
        self.latency_max_ms = latency_max_ms(options)?;
        self.layout = layout(options)?;
        self.report_json = options.text("report-json").map(PathBuf::from);
        self.client_driver = client_driver(options)?;
        self.fleet = options.text("fleet").map(|text| self.fleet(text)).transpose()?;
        Ok(())
    }

    /// Reads `3@10.0.0.1` or `3@10.0.0.1:7331`. Every host has at least one client and one event.
    fn fleet(&self, text: &str) -> Result<FleetAddress, Refusal> {
        let place = text.split_once('@').and_then(|(hosts, address)| {
            let (address, port) = match address.rsplit_once(':') {
                Some((address, port)) if !address.contains(':') => (address, port.parse().ok()?),
                _ => (address, FLEET_PORT),
            };
            Some(FleetAddress { hosts: hosts.parse().ok()?, address: address.to_owned(), port })
        });
        let least = u64::from(self.threads).min(self.events.unwrap_or(u64::MAX));
        match place.filter(|place| (1..=1024).contains(&place.hosts) && !place.address.is_empty()) {
            None => {
                let form = "HOSTS@ADDRESS or HOSTS@ADDRESS:PORT, as in 3@10.0.0.1, with 1 to 1024 hosts";
                Err(Refusal::not_allowed("fleet", text, form))
            }
            Some(place) if u64::from(place.hosts) > least => {
                let words =
                    format!("--fleet has {} hosts: --threads and --events must be at least as many", place.hosts);
                Err(Refusal::fatal(words))
            }
            Some(place) => Ok(place),
        }
    }

    /// A histogram of latencies up to the requested maximum.
    pub fn latencies(&self) -> Histogram {
        Histogram::of_latencies(self.latency_max_ms)
    }
}

/// A value given by the old name takes precedence over one given by the new name, as in 1.0. Up to `without` it has no
/// effect.
fn take_alias(
    options: &mut OptionSet,
    (old, new): (&str, &str),
    without: i32,
    warnings: &mut Vec<String>,
) -> Result<(), Refusal> {
    if options.int(old)? <= without {
        return Ok(());
    }
    warnings.push(format!("--{old} is deprecated, use --{new} instead"));
    let text = options.text(old).map(str::to_owned);
    let source = options.source(old).unwrap_or(Source::CommandLine);
    options.set(new, text.as_deref(), source).map_err(|error| Refusal::fatal(error.to_string()))
}

fn threads(options: &mut OptionSet, warnings: &mut Vec<String>) -> Result<u32, Refusal> {
    take_alias(options, ("num-threads", "threads"), 1, warnings)?;
    // sysbench ends this line twice.
    above_zero(options, "threads", |threads| format!("Invalid value for --threads: {threads}.\n"))
}

fn warmup(options: &OptionSet) -> Result<Duration, Refusal> {
    let warmup_s = options.int("warmup-time")?;
    let refusal = |_| Refusal::fatal(format!("Invalid value for --warmup-time: {warmup_s}.\n"));
    u64::try_from(warmup_s).map(Duration::from_secs).map_err(refusal)
}

/// An integer from 1 up, which is otherwise refused in these words.
fn above_zero(options: &OptionSet, name: &str, words: impl FnOnce(i32) -> String) -> Result<u32, Refusal> {
    let number = options.int(name)?;
    u32::try_from(number).ok().filter(|&number| number > 0).ok_or_else(|| Refusal::fatal(words(number)))
}

/// An integer from 0 up. sysbench takes a negative one for a very large one, and runs.
fn whole(options: &OptionSet, name: &str) -> Result<u32, Refusal> {
    let number = options.int(name)?;
    u32::try_from(number).map_err(|_| Refusal::fatal(format!("Invalid value for --{name}: {number}.")))
}

fn seconds(options: &OptionSet, name: &str) -> Result<Duration, Refusal> {
    Ok(Duration::from_secs(u64::from(whole(options, name)?)))
}

/// The time after the limit: seconds, `N%` of the limit with its warmup, or 5% of it for the option alone.
fn forced_shutdown(options: &OptionSet, limit: Duration) -> Result<Option<Duration>, Refusal> {
    let limit_s = limit.as_secs();
    let Some(text) = options.text("forced-shutdown") else {
        return Ok(Some(Duration::from_secs(limit_s / 20)));
    };
    if text.eq_ignore_ascii_case("off") {
        return Ok(None);
    }
    let refusal = |_| Refusal::fatal(format!("Invalid value for --forced-shutdown: '{text}'"));
    let grace_s = match text.strip_suffix('%') {
        Some(percent) => percent.parse::<u32>().map(|percent| u64::from(percent) * limit_s / 100),
        None => text.parse::<u32>().map(u64::from),
    };
    grace_s.map(|grace_s| Some(Duration::from_secs(grace_s))).map_err(refusal)
}

fn check_thread_stack(options: &OptionSet) -> Result<(), Refusal> {
    let bytes = options.size_bytes("thread-stack-size");
    let refusal = || Refusal::fatal(format!("Invalid value for thread-stack-size: {bytes}.\n"));
    (bytes > 0).then_some(()).ok_or_else(refusal)
}

fn checkpoints(options: &OptionSet) -> Result<Vec<Duration>, Refusal> {
    let texts = options.list("report-checkpoints");
    let mut all = Vec::new();
    for text in texts {
        let seconds = text.trim_start().parse::<u64>().ok().filter(|&seconds| seconds <= i32::MAX as u64);
        let refusal = || Refusal::fatal(format!("Invalid value for --report-checkpoints: '{text}'"));
        all.push(Duration::from_secs(seconds.ok_or_else(refusal)?));
        if all.len() > MOST_CHECKPOINTS {
            let most =
                format!("Too many checkpoints in --report-checkpoints (up to {MOST_CHECKPOINTS} can be defined)");
            return Err(Refusal::fatal(most));
        }
    }
    all.sort_unstable();
    Ok(all)
}

fn verbosity(options: &OptionSet) -> Result<Rank, Refusal> {
    // sysbench stores it in one byte, and names that value in its error.
    let byte = options.int("verbosity")? as u8;
    Rank::of(byte).ok_or(Refusal::Verbosity(byte))
}

fn percentiles(options: &OptionSet) -> Result<Vec<f64>, Refusal> {
    let all = options.numbers("percentile")?;
    if all.is_empty() || all == [0.0] {
        return Ok(Vec::new());
    }
    let refusal = |wrong: &f64| Err(Refusal::fatal(format!("Invalid value for --percentile: {wrong}")));
    let is_wrong = |rank: &&f64| **rank <= 0.0 || **rank > 100.0;
    all.iter().find(is_wrong).map_or_else(|| Ok(all.clone()), refusal)
}

fn latency_max_ms(options: &OptionSet) -> Result<f64, Refusal> {
    let max_s = options.int("latency-max")?;
    let max_ms = f64::from(max_s) * 1000.0;
    let least_s = LATENCY_MAX_MS / 1000.0;
    let refusal = || Refusal::fatal(format!("Invalid value for --latency-max: {max_s}; it is {least_s} or more"));
    (max_ms >= LATENCY_MAX_MS).then_some(max_ms).ok_or_else(refusal)
}

fn layout(options: &OptionSet) -> Result<Layout, Refusal> {
    match options.text("report-layout") {
        None => Ok(Layout::default()),
        Some(name) => Layout::named(name).ok_or_else(|| Refusal::not_allowed("report-layout", name, "1.0 or 1.1")),
    }
}

fn client_driver(options: &OptionSet) -> Result<ClientDriver, Refusal> {
    match options.text("client-driver") {
        Some("auto") | None => Ok(ClientDriver::Auto),
        Some("threads") => Ok(ClientDriver::Threads),
        Some("loops") => Ok(ClientDriver::Loops),
        Some(other) => Err(Refusal::not_allowed("client-driver", other, "auto, threads or loops")),
    }
}

#[cfg(test)]
mod tests;
