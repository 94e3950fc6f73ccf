//! Detects pauses of a trial: times in which the measurement could not continue.
//!
//! A thread sleeps for short naps. If a nap lasted much longer than requested, the cause may be a pause. The thread
//! must not have waited for a CPU, and no other thread of the process may have run. Then the process was stopped or the
//! machine stood still, and the engine was not slow. Too little memory also delays threads, but that is a finding about
//! the engine. Each beat also checks whether a process that the trial depends on, such as its server, is stopped.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rumba_results::record::Suspension;
use rustix::time::{ClockId, Timespec, clock_gettime};

use super::clock;
use super::cpu_roll::{Role, ThreadCpuRegistry};
use super::proc_file::ProcFile;
use crate::host::parse;
use crate::host::processes::ProcessStat;

/// The time between two beats.
const NAP: Duration = Duration::from_millis(50);
/// A nap that is longer by this much means a second in which nothing ran. A hypervisor that gives the CPUs to other
/// guests often delays a nap by some tenths of a second. The warning `stolen-cpu` reports that.
const LATE: Duration = Duration::from_millis(900);
/// A sleep of the machine below this may be the time between reading two clocks.
const SLEPT: Duration = Duration::from_millis(100);
/// CPU seconds per second of the process above which its other threads ran while this thread did not.
const RAN: f64 = 0.1;
/// The share of a nap with memory pressure on the host above which memory delayed a thread that had lost its pages.
const THRASHED: f64 = 0.3;
/// The longest wait for a requested beat.
const PATIENCE: Duration = Duration::from_secs(1);

/// The clocks at one moment; cumulative.
#[derive(Clone, Copy, Debug)]
struct Heartbeat {
    at: Instant,
    /// How far the clock that includes the machine's sleep is ahead of the one that does not.
    asleep: Duration,
    /// How long the pulse's thread has waited for a CPU.
    queued: Duration,
    /// CPU time of the process.
    worked: Duration,
    /// Major page faults of the pulse's thread.
    faults: u64,
    /// How long some process of the host has waited for memory, if the kernel reports it.
    pressed: Option<Duration>,
}

/// Why the measurement was paused.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Why {
    /// The trial's process did not run at all.
    Held,
    /// The machine slept.
    Asleep,
    /// This other process was in state T.
    Stopped(String),
}

impl Why {
    fn words(&self) -> String {
        match self {
            Why::Held => "the trial's process did not run: it was stopped (Ctrl-Z, SIGSTOP), or the machine was \
                          suspended"
                .to_owned(),
            Why::Asleep => "the machine was suspended".to_owned(),
            Why::Stopped(who) => format!("{who} was stopped (state T)"),
        }
    }
}

/// Time in which the measurement was paused.
#[derive(Clone, Debug)]
struct Stretch {
    from: Instant,
    until: Instant,
    /// Time during which the trial's clock stood still.
    off_the_clock: Duration,
    why: Why,
}

/// The pauses that were detected.
#[derive(Debug)]
struct Log {
    last: Heartbeat,
    /// Ordered by start.
    stretches: Vec<Stretch>,
    cpus: f64,
    /// Whether a caller waits for a beat.
    wanted: bool,
    over: bool,
}

impl Log {
    fn new(first: Heartbeat, cpus: f64) -> Self {
        Self { last: first, stretches: Vec::new(), cpus, wanted: false, over: false }
    }

    /// Records a beat, with the process that was found stopped.
    fn beat(&mut self, now: Heartbeat, stopped: Option<String>) {
        let last = std::mem::replace(&mut self.last, now);
        let asleep = now.asleep.saturating_sub(last.asleep);
        let why = if asleep >= SLEPT {
            Why::Asleep
        } else if self.stood_still(&last, &now) {
            Why::Held
        } else if let Some(who) = stopped {
            Why::Stopped(who)
        } else {
            return;
        };
        let off_the_clock = if why == Why::Asleep { asleep } else { Duration::ZERO };
        match self.stretches.last_mut() {
            Some(known) if known.why == why && known.until == last.at => {
                known.until = now.at;
                known.off_the_clock += off_the_clock;
            }
            _ => self.stretches.push(Stretch { from: last.at, until: now.at, off_the_clock, why }),
        }
    }

    /// Whether no thread of the process ran between two beats. If the pulse waited for a CPU, other threads may have
    /// had it. If they computed, only the pulse was delayed. A thread that waited for its pages under memory pressure
    /// was not stopped. Pages may also be gone after a stop, but then without memory pressure.
    fn stood_still(&self, last: &Heartbeat, now: &Heartbeat) -> bool {
        let passed = now.at.saturating_duration_since(last.at);
        let late = passed.saturating_sub(NAP).saturating_sub(now.queued.saturating_sub(last.queued));
        let worked = now.worked.saturating_sub(last.worked);
        // The other threads may have worked during the nap itself.
        let hardly_ran = worked <= passed.mul_f64(RAN) + NAP.mul_f64(self.cpus);
        let pressed = now.pressed.zip(last.pressed).map(|(now, last)| now.saturating_sub(last));
        let thrashed = now.faults > last.faults && pressed.is_none_or(|pressed| pressed >= passed.mul_f64(THRASHED));
        late >= LATE && hardly_ran && !thrashed
    }

    fn within(&self, from: Instant, until: Instant) -> Option<Suspension> {
        let mut lost = Duration::ZERO;
        let mut longest: Option<(Duration, &Why)> = None;
        for stretch in &self.stretches {
            let overlap = stretch.until.min(until).saturating_duration_since(stretch.from.max(from));
            // Sleep that the clock did not count belongs to the moment of its detection.
            let is_seen = stretch.until > from && stretch.until <= until;
            let of_stretch = overlap + if is_seen { stretch.off_the_clock } else { Duration::ZERO };
            lost += of_stretch;
            if longest.is_none_or(|(known, _)| of_stretch > known) {
                longest = Some((of_stretch, &stretch.why));
            }
        }
        let (_, why) = longest.filter(|(of_stretch, _)| !of_stretch.is_zero())?;
        Some(Suspension { seconds: lost.as_secs_f64(), cause: why.words() })
    }
}

/// A process whose stop suspends the measurement.
struct Watched {
    who: String,
    stat: ProcFile,
}

impl Watched {
    /// Whether a signal or a debugger has stopped it; see proc(5).
    fn is_stopped(&self) -> bool {
        let text = self.stat.read().unwrap_or_default();
        let state = text.rsplit_once(')').and_then(|(_, after)| after.trim_start().chars().next());
        matches!(state, Some('T' | 't'))
    }
}

/// Kernel counters that are read at each beat.
struct Accounts {
    /// The thread's own.
    schedule: Option<ProcFile>,
    pressure: Option<ProcFile>,
}

impl Accounts {
    /// Opens the counters of the calling thread.
    fn open() -> Self {
        let open = |path: &str| ProcFile::open(path).ok();
        Self { schedule: open("/proc/thread-self/schedstat"), pressure: open("/proc/pressure/memory") }
    }

    fn now(&self) -> Heartbeat {
        let read = |file: &Option<ProcFile>| file.as_ref().and_then(|file| file.read().ok());
        let passed = |time: Timespec| Duration::new(time.tv_sec as u64, time.tv_nsec as u32);
        // Nanoseconds on the CPU, nanoseconds in the queue for one, and how often;
        // Documentation/scheduler/sched-stats.rst.
        let schedule = read(&self.schedule).unwrap_or_default();
        let queued_ns = schedule.split_ascii_whitespace().nth(1).and_then(|field| field.parse().ok()).unwrap_or(0);
        let pressed_us = read(&self.pressure).and_then(|text| parse::pressure_total_us(&text, "some"));
        let awake = passed(clock_gettime(ClockId::Monotonic));
        Heartbeat {
            at: Instant::now(),
            asleep: passed(clock_gettime(ClockId::Boottime)).saturating_sub(awake),
            queued: Duration::from_nanos(queued_ns),
            worked: Duration::from_nanos(clock::process_ns()),
            faults: clock::this_thread_major_faults().unwrap_or(0),
            pressed: pressed_us.map(Duration::from_micros),
        }
    }
}

struct Shared {
    log: Mutex<Log>,
    watched: Mutex<Vec<Watched>>,
    wake: Condvar,
    /// Signals a completed beat.
    beaten: Condvar,
}

impl Shared {
    fn log(&self) -> MutexGuard<'_, Log> {
        self.log.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn watched(&self) -> MutexGuard<'_, Vec<Watched>> {
        self.watched.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn run(&self) {
        let accounts = Accounts::open();
        // The beat before came from another thread.
        self.log().last = accounts.now();
        loop {
            let nap = |log: &mut Log| !log.wanted && !log.over;
            let napped = self.wake.wait_timeout_while(self.log(), NAP, nap);
            let (mut log, _) = napped.unwrap_or_else(PoisonError::into_inner);
            if log.over {
                return;
            }
            // Clear the flag before the clocks are read, so that a later request gets the next beat.
            log.wanted = false;
            drop(log);
            let stopped = self.watched().iter().find(|watched| watched.is_stopped()).map(|found| found.who.clone());
            self.log().beat(accounts.now(), stopped);
            self.beaten.notify_all();
        }
    }
}

/// The pause detector of this process; it stops when dropped.
pub struct SuspendDetector {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

impl SuspendDetector {
    /// Starts the detector. If the host provides no thread for it, no pause is ever detected.
    pub fn start(roll: &Arc<ThreadCpuRegistry>) -> Self {
        let cpus = std::thread::available_parallelism().map_or(1.0, |cpus| cpus.get() as f64);
        let shared = Arc::new(Shared {
            log: Mutex::new(Log::new(Accounts::open().now(), cpus)),
            watched: Mutex::default(),
            wake: Condvar::new(),
            beaten: Condvar::new(),
        });
        let (own, roll) = (shared.clone(), roll.clone());
        let body = move || {
            let _present = roll.enter(Role::Harness);
            own.run();
        };
        Self { shared, thread: std::thread::Builder::new().name("pulse".to_owned()).spawn(body).ok() }
    }

    /// Watches only these processes from now on: each with its pid and its role in the trial.
    pub fn watch(&self, processes: impl IntoIterator<Item = (u32, &'static str)>) {
        let watched = processes.into_iter().filter_map(|(pid, what)| {
            let stat = ProcFile::open(format!("/proc/{pid}/stat")).ok()?;
            let text = stat.read().ok()?;
            let name = ProcessStat::parse(&text)?.name;
            Some(Watched { who: format!("{what}, {name} (pid {pid}),"), stat })
        });
        *self.shared.watched() = watched.collect();
    }

    /// Requests a beat and waits for it, so that all pauses until this moment are known.
    pub fn look(&self) {
        if self.thread.is_none() {
            return;
        }
        let requested = Instant::now();
        let mut log = self.shared.log();
        log.wanted = true;
        self.shared.wake.notify_one();
        // If the beat is late, its pause counts for the next span.
        let _ = self.shared.beaten.wait_timeout_while(log, PATIENCE, |log| log.last.at < requested);
    }

    /// How long the measurement was paused in this time, and the main reason; `None` without a pause.
    pub fn within(&self, from: Instant, until: Instant) -> Option<Suspension> {
        self.shared.log().within(from, until)
    }
}

impl Drop for SuspendDetector {
    fn drop(&mut self) {
        self.shared.log().over = true;
        self.shared.wake.notify_one();
        if let Some(thread) = self.thread.take() {
            // The thread returns no value.
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A log of a process with two CPUs, and its clocks, in milliseconds.
    struct Made {
        log: Log,
        beat: Heartbeat,
        begun: Instant,
    }

    impl Made {
        fn new() -> Self {
            let begun = Instant::now();
            let (asleep, queued, worked) = Default::default();
            let beat = Heartbeat { at: begun, asleep, queued, worked, faults: 0, pressed: Some(Duration::ZERO) };
            Self { log: Log::new(beat, 2.0), beat, begun }
        }

        /// Advances the clocks: total time, machine asleep, pulse waiting for a CPU, process working.
        fn pass(&mut self, [passed, asleep, queued, worked]: [u64; 4], stopped: Option<&str>) -> &mut Self {
            self.beat.at += Duration::from_millis(passed);
            self.beat.asleep += Duration::from_millis(asleep);
            self.beat.queued += Duration::from_millis(queued);
            self.beat.worked += Duration::from_millis(worked);
            self.log.beat(self.beat, stopped.map(str::to_owned));
            self
        }

        fn within(&self, from: u64, until: u64) -> Option<(f64, String)> {
            let at = |ms| self.begun + Duration::from_millis(ms);
            let found = self.log.within(at(from), at(until))?;
            Some(((found.seconds * 1e3).round(), found.cause))
        }
    }

    #[test]
    fn stopped_process_is_distinguished_from_busy_or_cpu_starved() {
        let mut made = Made::new();
        made.pass([60, 0, 5, 100], None).pass([10_000, 0, 3, 95], None).pass([50, 0, 0, 100], None);
        let (lost_ms, cause) = made.within(0, 20_000).unwrap();
        assert_eq!(lost_ms, 10_000.0);
        assert!(cause.contains("Ctrl-Z"), "{cause}");
        // A machine full of other work; threads of the process that compute; a page fault.
        for fine in [[3_000, 0, 2_900, 10], [3_000, 0, 0, 900], [949, 0, 0, 0]] {
            assert_eq!(Made::new().pass(fine, None).within(0, 20_000), None, "{fine:?}");
        }
    }

    #[test]
    fn page_faults_come_from_memory_pressure_or_a_suspension() {
        let after = |faults: u64, pressed_ms: Option<u64>| {
            let mut made = Made::new();
            made.beat.faults = faults;
            made.beat.pressed = pressed_ms.map(Duration::from_millis);
            made.pass([2_000, 0, 0, 0], None).within(0, 3_000).is_some()
        };
        assert!(!after(3, Some(1_500)), "the group is too small: that is what the engine was given");
        assert!(after(3, Some(20)) && after(0, Some(1_500)), "others' memory is not what held it up");
        assert!(!after(3, None), "a kernel without this counter");
    }

    #[test]
    fn time_belongs_to_its_span() {
        let mut made = Made::new();
        made.pass([50, 0, 0, 0], None).pass([3_000, 0, 0, 0], None).pass([50, 0, 0, 0], None);
        let of = |from, until| made.within(from, until).map_or(0.0, |(lost_ms, _)| lost_ms);
        assert_eq!(
            (of(0, 1_050), of(1_050, 2_050), of(2_050, 5_000), of(3_050, 5_000)),
            (1_000.0, 1_000.0, 1_000.0, 0.0)
        );
    }

    #[test]
    fn a_stopped_server_is_named_and_one_stop_is_one_stretch() {
        let mut made = Made::new();
        for _ in 0..40 {
            made.pass([50, 0, 0, 20], Some("its server, mariadbd (pid 7),"));
        }
        made.pass([50, 0, 0, 20], None);
        assert_eq!(made.log.stretches.len(), 1);
        let (lost_ms, cause) = made.within(0, 10_000).unwrap();
        assert_eq!((lost_ms, cause.as_str()), (2_000.0, "its server, mariadbd (pid 7), was stopped (state T)"));
    }

    #[test]
    fn a_sleep_of_the_machine_is_seen_though_the_clock_stood() {
        let mut made = Made::new();
        made.pass([50, 0, 0, 0], None).pass([60, 60_000, 0, 0], None);
        let (lost_ms, cause) = made.within(0, 110).unwrap();
        assert_eq!((lost_ms, cause.as_str()), (60_060.0, "the machine was suspended"));
        assert_eq!(made.within(110, 1_000), None);
    }
}
