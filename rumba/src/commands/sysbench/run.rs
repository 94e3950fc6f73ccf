//! A run: clients, and the reports of what they do.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use rumba_core::record::QueueKind;
use rumba_lab::meter::CpuRoll;
use rumba_lab::run::driver::{Made, Plan, Running, Schedule, Waited};
use rumba_sysbench::OptionSet;
use rumba_sysbench::failure::{Failure, QUEUE_EVENTS};
use rumba_sysbench::report::{self, Closing, Document, Queue, Snapshot, Subject};
use rumba_sysbench::settings::Settings;
use rumba_workload_sysbench::counters::Counters;
use rumba_workload_sysbench::host::{Host, Level};

use super::reports::{Kind, Since};
use super::script::far_away;
use super::test::Test;
use super::{Ended, print};

/// How often an interrupt is looked for.
const LOOK: Duration = Duration::from_millis(50);

/// Runs a test's events and reports.
pub fn run(test: &Test<'_>, settings: &Settings, options: &OptionSet) -> Result<(), Ended> {
    let drivers = test.drivers();
    drivers.report(&report::running_with(settings));
    drivers.report(&test.before()?);
    drivers.report(report::INITIALIZING);
    let counters: Vec<Arc<Counters>> = (0..settings.threads).map(|_| Arc::default()).collect();
    let schedule = match settings.rate_per_s {
        Some(rate) => Schedule::open(f64::from(rate), QueueKind::Shared, test.seed()),
        None => Schedule::closed(test.seed()),
    };
    let plan = Plan { clients: settings.threads, kinds: 1, schedule, driving: test.driving(settings) };
    // What scripts do in thread_init counts, as in sysbench.
    let from_now = || Since::now(&counters, Duration::ZERO);
    let (interval, all) = (from_now(), from_now());
    // What is asked for in so many events takes as long as they take.
    let is_long = options.double("writes-before") > 0.0;
    let watch = watch_init(if is_long { Duration::ZERO } else { settings.thread_init_timeout });
    let made = Made::new(&plan, &test.maker(&counters)?, &CpuRoll::new()).map_err(|error| {
        let ended = drivers.client_failed(&error);
        print(&format!("{}\n", Failure::ThreadInit));
        ended
    })?;
    drop(watch);
    drivers.report(report::THREADS_STARTED);
    let interrupt = Arc::new(AtomicBool::new(false));
    // A second interrupt ends the program at once, as it would without this.
    let registered =
        signal_hook::flag::register_conditional_shutdown(signal_hook::consts::SIGINT, 130, interrupt.clone())
            .and_then(|_| signal_hook::flag::register(signal_hook::consts::SIGINT, interrupt.clone()));
    if let Err(error) = registered {
        drivers.log(Level::Warning, &format!("Ctrl-C will not be reported: {error}"));
    }
    let started = Instant::now();
    let document = Document::new(test.name(), options);
    let mut run = Run {
        test,
        settings,
        counters,
        running: made.start(),
        started,
        interval,
        all,
        interrupt,
        is_over: false,
        document,
    };
    let ended = run.conduct();
    run.close(ended)
}

/// Ends the program when clients are not ready in time: a script that hangs has nothing else to end it. What is returned
/// is dropped when they are.
fn watch_init(timeout: Duration) -> Option<Sender<()>> {
    let (ready, is_ready) = channel();
    let watch = move || {
        if is_ready.recv_timeout(timeout) == Err(RecvTimeoutError::Timeout) {
            let failure = Failure::ThreadInitTimeout(timeout);
            print(&format!("{failure}\n"));
            std::process::exit(failure.exit_code().into());
        }
    };
    if timeout.is_zero() {
        return None;
    }
    // Without a thread to give, the clients' are not made either.
    std::thread::Builder::new().name("init-timeout".to_owned()).spawn(watch).ok().map(|_| ready)
}

struct Run<'a> {
    test: &'a Test<'a>,
    settings: &'a Settings,
    counters: Vec<Arc<Counters>>,
    running: Running,
    started: Instant,
    interval: Since,
    all: Since,
    interrupt: Arc<AtomicBool>,
    /// Its time is: what would have arrived since is not waited for by anybody.
    is_over: bool,
    document: Document,
}

/// What is due next.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Due {
    WarmedUp,
    Interval,
    Checkpoint,
    Limit,
}

/// How the clients came to their end.
#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    ByThemselves,
    Forced,
    Interrupted,
    /// More events of `--rate` waited than may.
    QueueFull,
}

impl Run<'_> {
    /// Has the clients run until their end, and reports meanwhile.
    fn conduct(&mut self) -> End {
        let settings = self.settings;
        let mut is_warm = settings.warmup.is_zero();
        if !is_warm {
            self.test.drivers().report(&report::warming_up(settings.warmup));
        }
        let mut reports = 0;
        let mut checkpoints = settings.checkpoints.iter().copied().peekable();
        loop {
            let limit = settings.time.map(|time| (time, Due::Limit));
            let next_report = settings.report_interval.map(|every| (every * (reports + 1), Due::Interval));
            let checkpoint = checkpoints.peek().map(|&at| (at, Due::Checkpoint));
            let due = if is_warm {
                [next_report, checkpoint, limit].into_iter().flatten().min_by_key(|(at, _)| *at)
            } else {
                Some((settings.warmup, Due::WarmedUp))
            };
            let until = due.map_or_else(far_away, |(at, _)| self.started + at);
            match self.wait(until) {
                Some(end) => return end,
                None => match due.map(|(_, due)| due) {
                    Some(Due::WarmedUp) => {
                        is_warm = true;
                        self.warmed_up();
                    }
                    Some(Due::Interval) => {
                        self.report_interval();
                        // What a stop of the process has passed over is in this report; it is not told again in pieces.
                        let passed = settings
                            .report_interval
                            .map_or(0, |every| self.started.elapsed().as_nanos() / every.as_nanos().max(1));
                        reports = (reports + 1).max(u32::try_from(passed).unwrap_or(u32::MAX));
                    }
                    Some(Due::Checkpoint) => {
                        checkpoints.next();
                        self.report_checkpoint();
                    }
                    Some(Due::Limit) => return self.finish(),
                    None => {}
                },
            }
        }
    }

    /// Waits; how the clients ended, if they did.
    fn wait(&mut self, until: Instant) -> Option<End> {
        loop {
            let next = until.min(Instant::now() + LOOK);
            if self.running.wait(next) == Waited::AllEnded {
                return Some(End::ByThemselves);
            }
            if self.interrupt.load(Relaxed) {
                self.running.stop();
                self.running.wait(Instant::now() + Duration::from_secs(1));
                return Some(End::Interrupted);
            }
            if self.is_queue_full() {
                self.running.stop();
                self.running.wait(Instant::now() + Duration::from_secs(1));
                return Some(End::QueueFull);
            }
            if next >= until {
                return None;
            }
        }
    }

    /// Whether more events of `--rate` wait than may.
    fn is_queue_full(&self) -> bool {
        self.settings.rate_per_s.is_some() && !self.is_over && self.waiting() > QUEUE_EVENTS as u64
    }

    /// The events of `--rate` that have arrived and are not begun; no more are counted than make the queue full.
    fn waiting(&self) -> u64 {
        self.running.waiting(QUEUE_EVENTS + 1)
    }

    /// What waits and what is under way, with `--rate`.
    fn queue(&self) -> Option<Queue> {
        self.settings.rate_per_s?;
        Some(Queue { length: self.waiting(), concurrency: self.running.inside() as u64 })
    }

    /// The time is over: what has begun ends, if it does so in time; what still waits is not begun.
    fn finish(&mut self) -> End {
        self.running.stop();
        self.is_over = true;
        let until = match self.settings.forced_shutdown {
            Some(grace) => Instant::now() + grace,
            None => far_away(),
        };
        self.wait(until).unwrap_or(End::Forced)
    }

    /// Nothing of the warmup counts.
    fn warmed_up(&mut self) {
        if self.settings.rate_per_s.is_some() {
            self.running.forget_waiting();
        }
        self.running.collect();
        self.counters.iter().for_each(|client| client.begin_extremes());
        let _ = self.test.drivers().statement_times();
        self.started = Instant::now();
        let from_now = || Since::now(&self.counters, Duration::ZERO);
        (self.interval, self.all) = (from_now(), from_now());
    }

    /// Takes what was counted since the last time.
    fn collect(&mut self) {
        let counts = self.running.collect();
        self.interval.span.merge(&counts);
        self.all.span.merge(&counts);
    }

    fn subject(&self) -> Subject {
        if self.counters.iter().any(|client| client.read().iter().take(3).any(|&count| count > 0)) {
            Subject::Sql
        } else {
            Subject::Other
        }
    }

    fn report_interval(&mut self) {
        self.collect();
        let (elapsed, running) = (self.started.elapsed(), self.running.active() as u32);
        let queue = self.queue();
        let told = self.interval.tell(Kind::Intermediate, self.settings, &self.counters, running, elapsed);
        let snapshot = Snapshot { queue, ..told };
        self.document.add_interval(&snapshot);
        if !self.test.hook("report_intermediate", &stat(&snapshot)) {
            self.test.drivers().report(&self.test.intermediate(&snapshot, self.subject()));
        }
    }

    fn report_checkpoint(&mut self) {
        self.collect();
        self.test.drivers().report(&report::checkpoint(self.started.elapsed().as_secs_f64()));
        let snapshot = self.cumulative(0);
        self.tell_cumulative(&snapshot);
        self.document.add_checkpoint(&snapshot);
    }

    /// What happened since the last checkpoint, or since the start.
    fn cumulative(&mut self, unfinished: u32) -> Snapshot {
        let (elapsed, running) = (self.started.elapsed(), self.running.active() as u32);
        let mut snapshot = self.all.tell(Kind::Cumulative, self.settings, &self.counters, running, elapsed);
        snapshot.unfinished_events = unfinished;
        snapshot.statements = self.test.drivers().statement_times();
        snapshot
    }

    fn tell_cumulative(&self, snapshot: &Snapshot) {
        if !snapshot.histogram.is_empty() {
            self.test.drivers().report(&report::histogram(snapshot));
        }
        if !self.test.hook("report_cumulative", &stat(snapshot)) {
            let closing = Closing { layout: self.settings.layout, subject: self.subject(), debug: self.settings.debug };
            self.test.drivers().report(&self.test.cumulative(snapshot, closing));
        }
    }

    /// The closing report, and what the script does at its end.
    fn close(mut self, end: End) -> Result<(), Ended> {
        let failure = self.running.failure().cloned();
        let unfinished = if end == End::Forced {
            print(&format!("{}\n", Failure::ForcedShutdown));
            let (counts, censored) = self.running.cut();
            self.interval.span.merge(&counts);
            self.all.span.merge(&counts);
            u32::try_from(censored.open.len()).unwrap_or(u32::MAX)
        } else {
            self.collect();
            0
        };
        if let Some(error) = &failure {
            return Err(self.test.drivers().client_failed(error));
        }
        if end == End::QueueFull {
            print(&format!("{}\n", Failure::QueueFull));
            return Err(Ended(Failure::QueueFull.exit_code()));
        }
        let snapshot = self.cumulative(unfinished);
        self.tell_cumulative(&snapshot);
        if let Some(file) = &self.settings.report_json {
            self.document.finish(&snapshot);
            let text = self.document.json().map_err(std::io::Error::other);
            if let Err(error) = text.and_then(|text| std::fs::write(file, text)) {
                print(&format!("FATAL: {}: {error}\n", file.display()));
                return Err(Ended(1));
            }
        }
        match end {
            End::Forced => return Err(Ended(Failure::ForcedShutdown.exit_code())),
            End::Interrupted => return Err(Ended(130)),
            End::ByThemselves | End::QueueFull => self.running.join(),
        }
        self.test.done()
    }
}

/// What hooks are given.
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
