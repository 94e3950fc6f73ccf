//! A span of a trial: its counts, and the hardware spent in it.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use rumba_engine_api::engine::Gauge;
use rumba_engine_api::workload::Ops;
use rumba_results::metric::Metric;
use rumba_results::record::{PhaseKind, Spent, Suspension};

use crate::meter::{DiskSize, HardwareCounts, OtherProcesses, Reading, ThreadSwitches};
use crate::run::cells::Counts;
use crate::run::tail::Tail;

/// The largest share of a server's CPU time for processes that ended in a span: above it, too many context switches
/// would be missing. The second constant, in seconds, allows for the rounding to ticks.
const ENDED_SHARE: f64 = 0.05;
const ENDED_ROUNDING_S: f64 = 0.02;

/// A span in progress, or just ended.
#[derive(Clone)]
pub struct Span {
    pub(super) phase: PhaseKind,
    pub(super) started: Instant,
    /// Its end, or the last reading.
    pub(super) ended: Instant,
    pub(super) first: Reading,
    pub(super) last: Reading,
    /// The workload's own counters at both ends.
    pub(super) counted: [BTreeMap<String, u64>; 2],
    /// Context switches of a server's threads at both ends.
    pub(super) switches: [Result<ThreadSwitches, String>; 2],
    /// Hardware counters at both ends.
    pub(super) hardware: [Result<HardwareCounts, String>; 2],
    /// The CPU of other processes, at both ends.
    pub(super) other_processes: [Result<OtherProcesses, String>; 2],
    pub(super) debt_start: Vec<Gauge>,
    /// Bytes of data on disk as it began, logs not counted.
    pub(super) data_start: Metric,
    /// The deferred work at its end, if the next span begins there and it is known.
    pub(super) debt_end: Vec<Gauge>,
    /// Counts by list of operations; the stages of a load have separate lists.
    pub(super) parts: Vec<(Ops, Counts)>,
    /// The planned duration, seconds, if known.
    pub planned_s: Option<f64>,
    /// The pause in it; known when it has ended.
    pub(super) suspended: Option<Suspension>,
    /// Whether the clients are to finish when it ends.
    pub is_last: bool,
    /// The duration of the last search for server processes, seconds, by which the span may be longer than planned.
    pub looked_s: f64,
    /// Whether the engine's counters are requested at the end. An engine with open operations may be stalled, and the
    /// request would block.
    pub requests_engine: bool,
    /// The results of its operations after its end, if they were waited for.
    pub tail: Option<Tail>,
    /// Its data's size on disk at its end, if the record is made later.
    pub(super) size: Option<Result<DiskSize, String>>,
}

impl Span {
    pub(super) fn add(&mut self, infos: &Ops, counts: &Counts) {
        match self.parts.iter_mut().find(|(known, _)| Ops::ptr_eq(known, infos)) {
            Some((_, all)) => all.merge(counts),
            None => self.parts.push((infos.clone(), counts.clone())),
        }
    }

    /// CPU seconds that a hypervisor gave to other guests in it, as far as known.
    pub fn stolen_s(&self) -> f64 {
        self.last.steal_s_since(&self.first).value().unwrap_or_default()
    }

    pub fn counts(&self) -> impl Iterator<Item = &Counts> {
        self.parts.iter().map(|(_, counts)| counts)
    }

    /// Operations and bytes written to the device, so far.
    pub fn served(&self) -> (u64, Metric) {
        let ops = self.parts.iter().map(|(infos, counts)| ops(self.phase, infos, counts)).sum();
        (ops, self.last.since(&self.first).device_write_bytes)
    }

    /// This span and the directly following one, joined.
    pub fn join(mut self, next: &Span) -> Span {
        for (infos, counts) in &next.parts {
            self.add(infos, counts);
        }
        let [first, _] = self.switches.clone();
        let [counted_first, _] = self.counted.clone();
        let [hardware_first, _] = self.hardware.clone();
        Span {
            ended: next.ended,
            last: next.last.clone(),
            counted: [counted_first, next.counted[1].clone()],
            switches: [first, next.switches[1].clone()],
            hardware: [hardware_first, next.hardware[1].clone()],
            other_processes: [self.other_processes[0].clone(), next.other_processes[1].clone()],
            tail: next.tail.clone(),
            size: next.size.clone(),
            requests_engine: next.requests_engine,
            suspended: both(self.suspended.clone(), next.suspended.as_ref()),
            ..self
        }
    }

    pub(super) fn spent(&self) -> Spent {
        let mut spent = self.last.since(&self.first);
        spent.others_cpu_s = match &self.other_processes {
            [Ok(first), Ok(last)] => Metric::from(last.cpu_s_since(first)),
            [Err(reason), _] | [_, Err(reason)] => Metric::absent(reason),
        };
        if is_run(self.phase) {
            spent.server_ctx_switches = self.server_ctx_switches(&spent.server_cpu_s);
        }
        spent
    }

    /// Context switches of the server, given its CPU time; absent if too much of it has ended.
    fn server_ctx_switches(&self, cpu_s: &Metric) -> Metric {
        let (first, last) = match &self.switches {
            [Ok(first), Ok(last)] => (first, last),
            [Err(reason), _] | [_, Err(reason)] => return Metric::absent(reason),
        };
        let ended_s = last.ended_cpu_s_since(first);
        let Some(cpu_s) = cpu_s.value() else { return cpu_s.clone() };
        if ended_s > cpu_s * ENDED_SHARE + ENDED_ROUNDING_S {
            return Metric::absent(format!(
                "server processes that ended meanwhile used {ended_s:.2} s of CPU, and their counts are gone"
            ));
        }
        Metric::from(last.since(first) as f64)
    }
}

/// The growth of a workload's own counters between two readings.
pub(super) fn growth(first: &BTreeMap<String, u64>, last: &BTreeMap<String, u64>) -> BTreeMap<String, u64> {
    let before = |name: &String| first.get(name).copied().unwrap_or_default();
    last.iter().map(|(name, count)| (name.clone(), count.saturating_sub(before(name)))).collect()
}

/// The end of the interval that begins at `from`, in a span until `until`. A short rest is added to the last interval.
pub fn interval_end(from: Instant, interval: Duration, until: Option<Instant>) -> Instant {
    let next = from + interval;
    until.map_or(next, |until| if next + interval / 10 > until { until } else { next })
}

/// Whether clients run through the phase. A server's thread that ends takes its count of context switches with it; the
/// threads of these clients live until its end.
pub(super) fn is_run(phase: PhaseKind) -> bool {
    matches!(phase, PhaseKind::Age | PhaseKind::Warmup | PhaseKind::Loop(_) | PhaseKind::Loops | PhaseKind::Backlog)
}

/// The number of operations: a load's rows, elsewhere all operations except those that are rolled back on purpose.
pub(super) fn ops(phase: PhaseKind, infos: &Ops, counts: &Counts) -> u64 {
    if phase == PhaseKind::Load {
        return counts.rows();
    }
    infos.iter().zip(&counts.kinds).filter(|(info, _)| !info.is_undone).map(|(_, kind)| kind.count).sum()
}

/// Joins the pauses of two consecutive spans.
pub(super) fn both(first: Option<Suspension>, next: Option<&Suspension>) -> Option<Suspension> {
    match (first, next) {
        (Some(first), Some(next)) => Some(Suspension { seconds: first.seconds + next.seconds, ..first }),
        (first, next) => first.or(next.cloned()),
    }
}
