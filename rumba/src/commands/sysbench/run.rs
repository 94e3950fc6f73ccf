//! A run: the clients, and the reports on their work.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use rumba_engine_api::worker::HostShare;
use rumba_lab::meter::ThreadCpuRegistry;
use rumba_lab::run::driver::{Made, Plan, Schedule};
use rumba_lab::run::group::Waited;
use rumba_results::record::QueueKind;
use rumba_workload_sysbench::cli::OptionSet;
use rumba_workload_sysbench::cli::failure::{Failure, QUEUE_EVENTS};
use rumba_workload_sysbench::cli::report::{self, Closing, Queue, Snapshot, Subject};
use rumba_workload_sysbench::cli::settings::{FleetAddress, Settings};
use rumba_workload_sysbench::counters::Counters;
use rumba_workload_sysbench::host::{Host, Rank};
use rumba_workload_sysbench::output;

use super::clients::{Clients, Figures, Ready};
use super::ending::{Interrupt, by_closed_output, by_signal};
use super::fleet::{Hosts, Part, words_for_agents};
use super::not_found::Searches;
use super::record::Record;
use super::reports::{Kind, Since};
use super::script::far_away;
use super::test::Test;
use super::{Ended, print};

/// The interval at which an interrupt is checked.
const LOOK: Duration = Duration::from_millis(50);
/// The time that clients get to end after an interrupt.
const GRACE: Duration = Duration::from_secs(1);

#[derive(Clone, Copy)]
pub enum ClientLocation<'a> {
    /// They are in this process.
    Here,
    /// They are on the hosts of `--fleet`, which get this command line.
    Hosts(&'a FleetAddress, &'a [String]),
    /// This host has a part of them, and another process reports.
    Part(&'a Part<'a>),
}

/// Runs a test's events and reports.
pub fn run(
    test: &Test<'_>,
    settings: &Settings,
    options: &OptionSet,
    location: ClientLocation<'_>,
) -> Result<(), Ended> {
    let mut record = Record::new(test.name(), settings, options).map_err(|refusal| Ended::refused(&refusal))?;
    let ready = match location {
        ClientLocation::Part(part) => {
            let ready = begin(test, settings, options, &record, part.share)?;
            part.run(ready);
            return Ok(());
        }
        ClientLocation::Hosts(fleet, argv) => gather(test, settings, fleet, argv).map(Prepared::Elsewhere),
        ClientLocation::Here => {
            begin(test, settings, options, &record, HostShare::ALL).map(Box::new).map(Prepared::Here)
        }
    };
    let mut ready = match ready {
        Ok(ready) => ready,
        Err(ended) => {
            record.add_failure(&ended.words);
            record.write()?;
            return Err(ended);
        }
    };
    let interrupt = Interrupt::default();
    if let Err(error) = interrupt.catch() {
        test.drivers().log(Rank::Warning, &format!("Ctrl-C will not be reported: {error}"));
    }
    // This leaves out those of `--writes_before`, which look for rows in tables that others fill.
    let searches = Searches::of(&ready.figures());
    let (started, clients) = ready.start();
    // The work of scripts in thread_init counts, as in sysbench.
    let from_start = || Since::now(Figures::default(), Duration::ZERO);
    let mut run = Run {
        test,
        settings,
        options,
        clients,
        started,
        interval: from_start(),
        all: from_start(),
        searches,
        interrupt,
        is_warm: settings.warmup.is_zero(),
        is_over: false,
        record,
    };
    if run.is_warm {
        run.limit();
    }
    let end = run.conduct();
    run.close(end)
}

/// Clients that wait for their start.
enum Prepared {
    Here(Box<Ready>),
    Elsewhere(Hosts),
}

impl Prepared {
    fn figures(&mut self) -> Figures {
        match self {
            Prepared::Here(ready) => Figures::of(&ready.counters),
            Prepared::Elsewhere(hosts) => hosts.figures(),
        }
    }

    /// Starts them, and returns when.
    fn start(self) -> (Instant, Box<dyn Clients>) {
        match self {
            Prepared::Here(ready) => (Instant::now(), Box::new(ready.start())),
            Prepared::Elsewhere(mut hosts) => (hosts.start(), Box::new(hosts)),
        }
    }
}

fn gather(test: &Test<'_>, settings: &Settings, fleet: &FleetAddress, argv: &[String]) -> Result<Hosts, Ended> {
    let drivers = test.drivers();
    test.init()?;
    drivers.report(&report::running_with(settings));
    drivers.report(report::INITIALIZING);
    let seed = settings.random.seed.is_none().then(|| test.seed());
    let hosts = Hosts::gather(fleet, &words_for_agents(argv, seed))?;
    drivers.report(report::THREADS_STARTED);
    Ok(hosts)
}

/// Prepares the events: runs the test's init, makes the clients' shared state, then this host's clients.
fn begin(
    test: &Test<'_>,
    settings: &Settings,
    options: &OptionSet,
    record: &Record,
    share: HostShare,
) -> Result<Ready, Ended> {
    let drivers = test.drivers();
    test.init()?;
    drivers.report(&report::running_with(settings));
    drivers.report(&test.mode_text());
    let counters: Vec<Arc<Counters>> = (0..share.count(settings.threads)).map(|_| Arc::default()).collect();
    let (make, events) = test.maker(&counters, share)?;
    events.count(settings.warmup.is_zero());
    drivers.report(report::INITIALIZING);
    let schedule = match settings.rate_per_s {
        Some(rate) => Schedule::open(f64::from(rate), QueueKind::Shared, test.seed()),
        None => Schedule::closed(test.seed()),
    };
    let driving = test.driving(settings, share.count(settings.threads));
    let plan = Plan { clients: settings.threads, share, kinds: 1, schedule, driving };
    // A fixed number of initial writes takes as long as it takes, so there is no timeout.
    let is_long = options.double("writes-before") > 0.0;
    let timeout = if is_long { Duration::ZERO } else { settings.thread_init_timeout };
    drivers.begin_clients();
    let watch = watch_init(timeout, drivers.connect_failed(), record.clone());
    let made = Made::new(&plan, &make, &ThreadCpuRegistry::new()).map_err(|error| {
        let ended = drivers.client_failed(&error, &test.lack(share.count(settings.threads)));
        print(&format!("{}\n", Failure::ThreadInit));
        ended
    })?;
    drop(watch);
    drivers.report(report::THREADS_STARTED);
    Ok(Ready { made, counters, events, has_rate: settings.rate_per_s.is_some() })
}

/// Ends the program when clients are not ready in time, because nothing else would end a script that hangs. The
/// returned sender is dropped once the clients are ready. Once a client could not connect, the others end within the
/// timeout as well, and the error is reported instead.
fn watch_init(timeout: Duration, connect_failed: Arc<AtomicBool>, mut record: Record) -> Option<Sender<()>> {
    let (ready, is_ready) = channel();
    let watch = move || {
        let passed = || is_ready.recv_timeout(timeout) == Err(RecvTimeoutError::Timeout);
        if passed() && (!connect_failed.load(Relaxed) || passed()) {
            let ended = Ended::run(&Failure::ThreadInitTimeout(timeout));
            record.add_failure(&ended.words);
            // A write error is printed, and the program ends either way.
            let _ = record.write();
            std::process::exit(ended.code.into());
        }
    };
    if timeout.is_zero() {
        return None;
    }
    // If no thread can be started here, the clients' threads will not start either.
    std::thread::Builder::new().name("init-timeout".to_owned()).spawn(watch).ok().map(|_| ready)
}

struct Run<'a> {
    test: &'a Test<'a>,
    settings: &'a Settings,
    options: &'a OptionSet,
    clients: Box<dyn Clients>,
    started: Instant,
    interval: Since,
    all: Since,
    /// The statements before those that are measured.
    searches: Searches,
    interrupt: Interrupt,
    /// Whether events are counted, which they are after the warmup.
    is_warm: bool,
    /// Whether the time is over: events that arrive later do not count as waiting.
    is_over: bool,
    record: Record,
}

/// The next thing due.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Due {
    WarmedUp,
    Interval,
    Checkpoint,
    Limit,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    ByThemselves,
    Forced,
    /// By this signal.
    Interrupted(i32),
    /// The output has no reader any more.
    OutputClosed,
    /// More `--rate` events are waiting than allowed.
    QueueFull,
}

impl Run<'_> {
    /// Runs the clients until their end, with reports in between.
    fn conduct(&mut self) -> End {
        let settings = self.settings;
        if !self.is_warm {
            self.test.drivers().report(&report::warming_up(settings.warmup));
        }
        let mut reports = 0;
        // Checkpoints count from the start of the warmup; those during the warmup are left out.
        let of_measured = settings.checkpoints.iter().filter_map(|at| at.checked_sub(settings.warmup));
        let mut checkpoints = of_measured.filter(|at| !at.is_zero()).peekable();
        loop {
            let limit = settings.time.map(|time| (time, Due::Limit));
            let next_report = settings.report_interval.map(|every| (every * (reports + 1), Due::Interval));
            let checkpoint = checkpoints.peek().map(|&at| (at, Due::Checkpoint));
            let due = if self.is_warm {
                [next_report, checkpoint, limit].into_iter().flatten().min_by_key(|(at, _)| *at)
            } else {
                Some((settings.warmup, Due::WarmedUp))
            };
            let until = due.map_or_else(far_away, |(at, _)| self.started + at);
            match self.wait(until) {
                Some(end) => {
                    // The last clients ended at the time of this report.
                    if let Some((at, Due::Interval)) = due
                        && self.elapsed() >= at
                    {
                        self.report_interval();
                    }
                    return end;
                }
                None => match due.map(|(_, due)| due) {
                    Some(Due::WarmedUp) => self.warmed_up(),
                    Some(Due::Interval) => {
                        self.report_interval();
                        // This report covers all intervals that passed while the process was stopped; they are not
                        // reported separately.
                        let passed = settings
                            .report_interval
                            .map_or(0, |every| self.started.elapsed().as_nanos() / every.as_nanos().max(1));
                        reports = (reports + 1).max(u32::try_from(passed).unwrap_or(u32::MAX));
                    }
                    Some(Due::Checkpoint) => {
                        checkpoints.next();
                        self.report_checkpoint();
                        // Checkpoints that have passed meanwhile, or occur twice, have nothing to report.
                        let passed = self.started.elapsed();
                        while checkpoints.next_if(|at| *at <= passed).is_some() {}
                    }
                    Some(Due::Limit) => return self.finish(),
                    None => {}
                },
            }
        }
    }

    /// Makes the clients end on their own, because this thread may be in a script's hook then. Clients with a rate wait
    /// for arrivals after the end, and would be gone before it.
    fn limit(&mut self) {
        if let (Some(time), None) = (self.settings.time, self.settings.rate_per_s) {
            self.clients.end_by(self.started + time);
        }
    }

    /// The time since the start, up to the end of the last client.
    fn elapsed(&self) -> Duration {
        self.clients.ended_at().unwrap_or_else(Instant::now).saturating_duration_since(self.started)
    }

    /// Waits; returns how the clients ended, if they did.
    fn wait(&mut self, until: Instant) -> Option<End> {
        loop {
            let next = until.min(Instant::now() + LOOK);
            if self.clients.wait(next) == Waited::AllEnded {
                return Some(End::ByThemselves);
            }
            if let Some(end) = self.interrupted() {
                self.clients.stop();
                self.clients.wait(Instant::now() + GRACE);
                return Some(end);
            }
            if next >= until {
                return None;
            }
        }
    }

    /// The reason to end the clients before their time, if there is one.
    fn interrupted(&self) -> Option<End> {
        if let Some(signal) = self.interrupt.received() {
            return Some(End::Interrupted(signal));
        }
        if output::is_closed() {
            return Some(End::OutputClosed);
        }
        self.is_queue_full().then_some(End::QueueFull)
    }

    /// Whether more `--rate` events are waiting than allowed.
    fn is_queue_full(&self) -> bool {
        self.settings.rate_per_s.is_some() && !self.is_over && self.waiting() > QUEUE_EVENTS as u64
    }

    /// The `--rate` events that have arrived and are not begun, counted only up to a full queue.
    fn waiting(&self) -> u64 {
        self.clients.waiting(QUEUE_EVENTS + 1)
    }

    /// The waiting and the active events, with `--rate`.
    fn queue(&self) -> Option<Queue> {
        self.settings.rate_per_s?;
        Some(Queue { length: self.waiting(), concurrency: self.clients.inside() as u64 })
    }

    /// Ends the measured time: active events complete if they do so in time; waiting events are not begun.
    fn finish(&mut self) -> End {
        self.clients.stop();
        self.is_over = true;
        let until = match self.settings.forced_shutdown {
            Some(grace) => Instant::now() + grace,
            None => far_away(),
        };
        self.wait(until).unwrap_or(End::Forced)
    }

    /// Ends the warmup; none of its events count.
    fn warmed_up(&mut self) {
        self.clients.end_warmup();
        let _ = self.test.drivers().statement_times();
        self.started = Instant::now();
        self.is_warm = true;
        let figures = self.clients.figures();
        self.searches = Searches::of(&figures);
        (self.interval, self.all) = (Since::now(figures.clone(), Duration::ZERO), Since::now(figures, Duration::ZERO));
        self.limit();
    }

    /// Takes the counts since the last time.
    fn collect(&mut self) {
        let counts = self.clients.collect();
        self.interval.span.merge(&counts);
        self.all.span.merge(&counts);
    }

    /// Statements are reported once a driver is requested, even before the first statement, and if a script counts
    /// them.
    fn subject(&self) -> Subject {
        let are_counted = || self.interval.has_statements() || self.all.has_statements();
        if self.test.drivers().are_requested_for() || are_counted() { Subject::Sql } else { Subject::Other }
    }

    fn report_interval(&mut self) {
        self.collect();
        let (elapsed, running) = (self.elapsed(), self.clients.active() as u32);
        let queue = self.queue();
        let figures = self.clients.figures();
        let reported = self.interval.notify(Kind::Intermediate, self.settings, figures, running, elapsed);
        let snapshot = Snapshot { queue, ..reported };
        self.record.document.add_interval(&snapshot);
        if !self.test.hook("report_intermediate", &stat(&snapshot)) {
            self.test.drivers().report(&self.test.intermediate(&snapshot, self.subject()));
        }
    }

    fn report_checkpoint(&mut self) {
        self.collect();
        let since_start = self.settings.warmup + self.started.elapsed();
        self.test.drivers().report(&report::checkpoint(since_start.as_secs_f64()));
        let snapshot = self.cumulative(0);
        self.report_cumulative(&snapshot);
        self.record.document.add_checkpoint(&snapshot);
    }

    /// A snapshot since the last checkpoint, or since the start.
    fn cumulative(&mut self, unfinished: u32) -> Snapshot {
        let (elapsed, running) = (self.elapsed(), self.clients.active() as u32);
        let figures = self.clients.figures();
        self.clients.begin_extremes();
        let mut snapshot = self.all.notify(Kind::Cumulative, self.settings, figures, running, elapsed);
        snapshot.unfinished_events = unfinished;
        snapshot.statements = self.test.drivers().statement_times();
        snapshot
    }

    fn report_cumulative(&self, snapshot: &Snapshot) {
        if !snapshot.histogram.is_empty() {
            self.test.drivers().report(&report::histogram(snapshot));
        }
        if !self.test.hook("report_cumulative", &stat(snapshot)) {
            let closing = Closing { layout: self.settings.layout, subject: self.subject(), debug: self.settings.debug };
            self.test.drivers().report(&self.test.cumulative(snapshot, closing));
            self.test.drivers().report(&report::ignored_errors(snapshot));
        }
    }

    /// Says once why statements found no row. It asks the database, so it does not delay an end by force.
    fn warn_of_rows_not_found(&mut self) {
        let drivers = self.test.drivers();
        let searches = Searches::of(&self.clients.figures()).since(self.searches);
        if let Some(words) = searches.warning(self.test.name(), self.options, drivers) {
            drivers.log(Rank::Warning, &words);
            self.record.document.add_warning(&words);
        }
    }

    /// Prints the closing report, and runs the script's `done`.
    fn close(mut self, end: End) -> Result<(), Ended> {
        let failed = self.failed(end);
        let unfinished = self.count_the_rest(end);
        let is_broken = self.clients.failure().is_some() || end == End::QueueFull;
        if !is_broken && !self.is_warm {
            // The run ended before the warmup did.
            self.warmed_up();
        }
        if !is_broken || self.has_measured() {
            let snapshot = self.cumulative(unfinished);
            // As in sysbench: a reader of the report alone must not take the part for the whole.
            if !is_broken {
                self.report_cumulative(&snapshot);
            }
            if !is_broken && end == End::ByThemselves {
                self.warn_of_rows_not_found();
            }
            self.record.document.finish(&snapshot);
        }
        let of_threads = self.test.drivers().end_failure();
        for words in failed.iter().map(|ended| ended.words.as_str()).chain(of_threads) {
            self.record.add_failure(words);
        }
        let is_done = self.clients.active() == 0 && matches!(end, End::ByThemselves | End::QueueFull);
        if is_done {
            self.record.write_ahead();
            self.clients.join();
            // As with `thread_done`: the error is recorded, and the measurements stay.
            if let Err(ended) = self.test.done() {
                self.record.add_failure(&ended.words);
            }
        }
        failed.map_or(self.record.write(), Err)
    }

    /// Why the run did not complete, which is printed.
    fn failed(&self, end: End) -> Option<Ended> {
        let of_run = match end {
            End::ByThemselves => None,
            End::Forced => Some(Ended::run(&Failure::ForcedShutdown)),
            End::QueueFull => Some(Ended::run(&Failure::QueueFull)),
            End::Interrupted(signal) => Some(by_signal(signal)),
            End::OutputClosed => Some(by_closed_output()),
        };
        let of_client = self.clients.failure().map(|error| self.test.drivers().client_failed(error, ""));
        of_client.or(of_run)
    }

    /// Takes the counts since the last time. Returns the number of events that a forced end interrupted.
    fn count_the_rest(&mut self, end: End) -> u32 {
        if end != End::Forced {
            self.collect();
            return 0;
        }
        let (counts, open) = self.clients.cut();
        self.interval.span.merge(&counts);
        self.all.span.merge(&counts);
        open
    }

    /// Whether there are events to report: a run that fails at once has none.
    fn has_measured(&self) -> bool {
        self.is_warm && (self.all.span.ops() > 0 || !self.record.document.checkpoints.is_empty())
    }
}

/// The figures that hooks receive.
fn stat(snapshot: &Snapshot) -> Vec<(&'static str, f64)> {
    let (counts, latency) = (&snapshot.counts, &snapshot.latency);
    let seconds = |ns: u64| ns as f64 / 1e9;
    let percentile_ms = snapshot.percentiles.first().map_or(0.0, |first| first.latency_ms);
    let queue = snapshot.queue.unwrap_or_default();
    vec![
        ("threads_running", f64::from(snapshot.threads_running)),
        ("time_interval", snapshot.interval_s),
        ("time_total", snapshot.elapsed_s),
        ("latency_pct", percentile_ms / 1000.0),
        ("events", counts.events as f64),
        ("reads", counts.reads as f64),
        ("writes", counts.writes as f64),
        ("other", counts.others as f64),
        ("errors", counts.ignored_errors as f64),
        ("reconnects", counts.reconnects as f64),
        ("queue_length", queue.length as f64),
        ("concurrency", queue.concurrency as f64),
        ("latency_min", seconds(latency.min_ns)),
        ("latency_max", seconds(latency.max_ns)),
        ("latency_avg", seconds(latency.avg_ns)),
        ("latency_sum", seconds(latency.sum_ns)),
    ]
}
