//! Measures the phases of a trial: begins spans, follows running clients, ends spans, and emits their records.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use rumba_engine_api::check::Check;
use rumba_engine_api::engine::Gauge;
use rumba_engine_api::workload::Ops;
use rumba_results::event::Event;
use rumba_results::metric::{Metric, Metrics};
use rumba_results::record::{Interval, PhaseKind, PhaseRecord, Spent};
use rumba_results::statements::StatementTotals;

use super::hardware;
use super::metrics::{growth_bytes_per_op, iops_used_percent, metrics, receive_late_us_per_op, statements_per_op};
use super::pending_stats::{Answer, debt};
use super::span::{Span, growth, interval_end, is_run, ops};
use super::suspended::{Piece, empty, pieces};
use super::{Halt, Step, Trial, remarks};
use crate::meter::{DiskSize, OtherProcesses, Reading, ThreadSwitches, allocated, data_dir};
use crate::run::cells::Counts;
use crate::run::conflicts::merge;
use crate::run::group::{ClientGroup, Waited};
use crate::run::stats;
use crate::run::tail::Tail;

/// How often a wait checks the stop flag.
const NAP: Duration = Duration::from_millis(100);
/// How long clients may take to end their current operation after an interrupt.
const GRACE: Duration = Duration::from_secs(10);
/// A wait that ended this late may have been a pause.
const HELD_UP: Duration = Duration::from_millis(100);
/// Why a span has no count that is taken at its end.
const CUT_OFF: &str = "the phase was cut off before its end";

/// Bytes of data on disk, logs not counted.
fn data_bytes(size: &Result<DiskSize, String>) -> Metric {
    Metric::from(size.as_ref().map(|size| (size.total - size.logs) as f64).map_err(Clone::clone))
}

/// The causes of retries, in the span and in its tail.
fn conflicts(span: &Span) -> BTreeMap<String, u64> {
    let ended_late = span.tail.as_ref().map(|tail| &tail.ended);
    let mut conflicts = BTreeMap::new();
    for counts in span.counts().chain(ended_late) {
        merge(&mut conflicts, &counts.conflicts);
    }
    conflicts
}

/// An interval's counts and resources, without its time.
fn interval(phase: PhaseKind, infos: &Ops, counts: &Counts, spent: Spent) -> Interval {
    let responses = stats::percentiles(&stats::all_responses(counts));
    Interval {
        phase,
        ops: ops(phase, infos, counts),
        errors: counts.kinds.iter().map(|kind| kind.errors).sum(),
        retries: counts.kinds.iter().map(|kind| kind.retries).sum(),
        statements: StatementTotals::counted(counts.statements()),
        counts: infos.iter().zip(&counts.kinds).map(|(info, kind)| (info.name.to_string(), kind.count)).collect(),
        p50_ms: responses.p50_ms,
        p99_ms: responses.p99_ms,
        max_ms: responses.max_ms,
        spent,
        ..Interval::default()
    }
}

impl Trial<'_> {
    pub(super) fn begin(&mut self, phase: PhaseKind) -> Span {
        let debt_start = debt(&self.instance);
        self.take_in_processes();
        let (switches, other_processes) = (self.switches(phase), self.meters.other_processes());
        let (first, counted) = (self.read_meters(), self.counted());
        let mut span = self.begun(phase, Instant::now(), first, switches, other_processes, debt_start);
        (span.hardware[0], span.counted) = (self.hardware_counts(), [counted.clone(), counted]);
        span
    }

    /// A span that began at this time, with the readings of that time.
    fn begun(
        &self,
        phase: PhaseKind,
        started: Instant,
        first: Reading,
        switches: Result<ThreadSwitches, String>,
        other_processes: Result<OtherProcesses, String>,
        debt_start: Vec<Gauge>,
    ) -> Span {
        Span {
            phase,
            started,
            ended: started,
            last: first.clone(),
            first,
            counted: Default::default(),
            switches: [switches, Err(CUT_OFF.to_owned())],
            hardware: [CUT_OFF; 2].map(|reason| Err(reason.to_owned())),
            other_processes: [other_processes, Err(CUT_OFF.to_owned())],
            debt_start,
            data_start: self.data_bytes.clone(),
            debt_end: Vec::new(),
            parts: Vec::new(),
            planned_s: None,
            suspended: None,
            is_last: false,
            looked_s: 0.0,
            requests_engine: true,
            tail: None,
            size: None,
        }
    }

    /// Finds the current processes of a server, to meter and watch them.
    pub(super) fn take_in_processes(&mut self) {
        self.meters.look_for_descendants();
        self.watch_processes();
    }

    /// Begins a span at the end of another, so that running clients are counted and metered without a gap.
    pub(super) fn begin_after(&mut self, before: &Span, phase: PhaseKind) -> Span {
        // The server's processes were found before the last reading of the span before. A process found now would bring
        // usage from that span.
        self.watch_processes();
        let ([_, switches], [_, other_processes]) = (before.switches.clone(), before.other_processes.clone());
        // A backlog has no value for deferred work: open operations may block the engine's answer.
        let (last, debt) = (before.last.clone(), before.debt_end.clone());
        let [_, counted] = before.counted.clone();
        let mut span = self.begun(phase, before.ended, last, switches, other_processes, debt);
        span.hardware[0].clone_from(&before.hardware[1]);
        span.counted = [counted.clone(), counted];
        span
    }

    /// Begins a span of work that is no client operation, at the end of a span or now. The engine's activity between
    /// the two spans belongs to that work.
    pub(super) fn begin_work(&mut self, phase: PhaseKind, after: Option<&Span>) -> Span {
        let Some(before) = after else { return self.begin(phase) };
        let mut span = self.begin_after(before, phase);
        if span.debt_start.is_empty() {
            span.debt_start = debt(&self.instance);
        }
        span
    }

    /// Reads the data's size on disk now, at the end of a span whose record is made later.
    pub(super) fn look_at_size(&mut self, span: &mut Span) {
        let size = self.size();
        self.data_bytes = data_bytes(&size);
        span.size = Some(size);
    }

    fn size(&self) -> Result<DiskSize, String> {
        let dir = data_dir(&self.place, self.job.data_dir)?;
        allocated(dir, &|file| self.instance.is_log(file)).map_err(|error| format!("{}: {error}", dir.display()))
    }

    /// Looks for the processes of a server before all counters are read, so that new processes are in that reading.
    /// Memory and context switches belong to the processes and threads of the sessions. They are read here, before the
    /// clients are requested to end. If the clients have already ended, the memory is that of the interval before.
    fn look_at_server(&mut self, span: &mut Span, is_end: bool, have_ended: bool) {
        let begun = Instant::now();
        let reports_end = span.is_last && is_end;
        if reports_end || have_ended {
            self.meters.look_for_descendants();
        } else {
            self.meters.look_for_more_descendants();
        }
        if reports_end && !have_ended {
            span.switches[1] = self.switches(span.phase);
        }
        if is_end && !have_ended {
            self.meters.read_memory_early();
        }
        if have_ended && span.ended > span.started {
            self.meters.keep_memory_of(&span.last);
        }
        span.looked_s = begun.elapsed().as_secs_f64();
    }

    fn switches(&self, phase: PhaseKind) -> Result<ThreadSwitches, String> {
        if is_run(phase) { self.meters.server_switches() } else { Ok(ThreadSwitches::default()) }
    }

    /// Follows running clients until a time or until all have ended, and emits every interval.
    pub(super) fn follow(
        &mut self,
        span: &mut Span,
        running: &mut dyn ClientGroup,
        infos: &Ops,
        until: Option<Instant>,
    ) -> Step<()> {
        let interval = Duration::from_secs_f64(self.job.plan.run.interval_s);
        loop {
            let next = interval_end(span.ended, interval, until);
            let waited = self.wait(running, next);
            let late = Instant::now().saturating_duration_since(next);
            let is_end = until.is_some_and(|until| next >= until);
            let (reports_end, have_ended) = (span.is_last && is_end, waited == Some(Waited::AllEnded));
            self.look_at_server(span, is_end, have_ended);
            if reports_end {
                // Before counts are collected: operations due in between would be in no phase.
                running.finish();
            }
            if late > HELD_UP {
                self.pulse.look();
            }
            let counts = running.collect();
            self.tick(span, infos, &counts, interval);
            self.report_losses();
            if is_end {
                span.hardware[1] = self.hardware_counts();
            }
            if is_end && !reports_end && !have_ended {
                // The clients run on, and the span has ended.
                span.switches[1] = self.switches(span.phase);
            }
            self.report_looks();
            if let Some(debt) = self.receive(Duration::ZERO).filter(|_| span.phase != PhaseKind::Backlog) {
                span.debt_start = debt;
            }
            if let Some(error) = running.failure() {
                return Err(Halt::Failed(error.to_string()));
            }
            match waited {
                None => return Err(Halt::Interrupted),
                Some(waited) if is_end || waited == Waited::AllEnded => {
                    span.other_processes[1] = self.meters.other_processes();
                    return Ok(());
                }
                Some(_) => {}
            }
        }
    }

    /// Waits in naps; `None` when interrupted, after the clients' grace period.
    pub(super) fn wait(&self, running: &mut dyn ClientGroup, until: Instant) -> Option<Waited> {
        loop {
            let nap = until.min(Instant::now() + NAP);
            match running.wait(nap) {
                Waited::AllEnded => return Some(Waited::AllEnded),
                Waited::Until if self.interrupted() => {
                    running.stop();
                    running.wait(Instant::now() + GRACE);
                    return None;
                }
                Waited::Until if nap >= until => return Some(Waited::Until),
                Waited::Until => {}
            }
        }
    }

    /// Emits the counts since the last tick. If a pause made the interval too long, it is emitted in pieces, one of
    /// which has the counts.
    fn tick(&mut self, span: &mut Span, infos: &Ops, counts: &Counts, second: Duration) {
        let now = Instant::now();
        let (reading, totals) = (self.read_meters(), self.counted());
        let spent = reading.since(&span.last);
        let grown = growth(&span.counted[1], &totals);
        let (pieces, counted) = pieces(span.ended, now, second, |from, until| self.suspended_s(from, until));
        span.add(infos, counts);
        (span.ended, span.last, span.counted[1]) = (now, reading, totals);
        for (number, piece) in pieces.iter().enumerate() {
            let start_s = self.since_epoch_s(piece.from);
            let active_clients = self.active_clients(span.phase, piece);
            if number != counted {
                let interval = Interval { active_clients, ..empty(span.phase, start_s, piece) };
                self.emit(Event::Interval(Box::new(interval)));
                continue;
            }
            let seconds = piece.until.saturating_duration_since(piece.from).as_secs_f64();
            self.emit(Event::Interval(Box::new(Interval {
                start_s,
                seconds,
                suspended_s: piece.suspended_s,
                active_clients,
                counted: grown.clone(),
                ..interval(span.phase, infos, counts, spent.clone())
            })));
            let histograms = stats::encode(infos, counts);
            if !histograms.is_empty() {
                self.emit(Event::Latency { start_s, seconds, histograms });
            }
        }
    }

    /// The mean number of clients that the plan has active in this time, if it changes.
    fn active_clients(&self, phase: PhaseKind, piece: &Piece) -> Option<f64> {
        let steps = self.job.plan.run.client_steps.as_ref()?;
        let (from, until) = match phase {
            PhaseKind::Warmup => return Some(f64::from(steps.first())),
            PhaseKind::Loop(_) => (piece.from, piece.until),
            _ => return None,
        };
        let origin = self.loops_from?;
        let [from_s, until_s] = [from, until].map(|at| at.saturating_duration_since(origin).as_secs_f64());
        (until_s > from_s).then(|| (1e3 * steps.mean(from_s, until_s)).round() / 1e3)
    }

    /// Ends a span, emits its record, and returns it for joining.
    pub(super) fn end(&mut self, mut span: Span, complete: bool, checks: Vec<Check>) -> Span {
        self.report_unanswered();
        if complete && !is_run(span.phase) {
            // In phases with clients, it is read at their end.
            span.other_processes[1] = self.meters.other_processes();
        }
        span.suspended = self.suspension(&span, complete);
        let answer = self.answer(&span, complete);
        span.debt_end.clone_from(&answer.debt);
        let record = self.record(&span, span.phase, complete, checks);
        self.report_record(record, answer);
        span
    }

    /// Ends a span while clients run on.
    pub(super) fn end_amid(&mut self, mut span: Span) -> Span {
        span.suspended = self.suspension(&span, true);
        let record = self.record(&span, span.phase, true, Vec::new());
        span.debt_end = self.report_when_answered(record);
        span
    }

    pub(super) fn report_record(&mut self, record: PhaseRecord, answer: Answer) {
        let Answer { debt: debt_end, counters } = answer;
        self.emit(Event::PhaseEnded(Box::new(PhaseRecord { debt_end, counters, ..record })));
    }

    /// Emits the record of all loops together.
    pub(super) fn end_loops(&mut self, span: &Span, complete: bool) {
        let record = self.record(span, PhaseKind::Loops, complete, Vec::new());
        // With an engine that answers at once, only the client is measured.
        let is_real = self.job.engine.info().keeps_data;
        let late = [remarks::late(&record), remarks::received_late(&record)].into_iter().flatten();
        let late = late.filter(|_| is_real);
        let stolen = remarks::stolen(&record, &span.last.steal_s_since(&span.first));
        let shared = remarks::shared_cpus(&record, &self.place).filter(|_| self.hosts.is_none());
        let (uncharged, other_processes) = (remarks::uncharged(&record), remarks::other_processes(&record));
        for warning in late.chain(stolen).chain(shared).chain(uncharged).chain(other_processes) {
            self.emit(Event::Warning(warning));
        }
        let answer = self.answer(span, complete);
        self.report_record(record, answer);
    }

    fn logical_bytes(&self) -> Metric {
        match (self.bound.logical_bytes_unknown(), self.bound.logical_bytes()) {
            (Some(reason), _) => Metric::absent(reason),
            (None, 0) => Metric::absent("no data has been loaded yet"),
            (None, bytes) => Metric::Value(bytes as f64),
        }
    }

    /// Its record, without the engine's statistics at its end.
    pub(super) fn record(&mut self, span: &Span, phase: PhaseKind, complete: bool, checks: Vec<Check>) -> PhaseRecord {
        let seconds = span.ended.saturating_duration_since(span.started).as_secs_f64();
        let ops: u64 = span.parts.iter().map(|(infos, counts)| ops(span.phase, infos, counts)).sum();
        let conflicts = conflicts(span);
        let retries: u64 = span.parts.iter().flat_map(|(_, counts)| &counts.kinds).map(|kind| kind.retries).sum();
        let mut statements = [0; 3];
        for (_, counts) in &span.parts {
            statements.iter_mut().zip(counts.statements()).for_each(|(all, part)| *all += part);
        }
        let [read_statements_per_op, write_statements_per_op, other_statements_per_op] =
            statements_per_op(statements, ops);
        let late_ns = span.parts.iter().flat_map(|(_, counts)| &counts.kinds).map(|kind| kind.late_ns).sum();
        let queued_ns = span.counts().map(|counts| counts.receive_late_ns).sum();
        let mut op_types = BTreeMap::new();
        for (infos, counts) in &span.parts {
            op_types.extend(stats::op_stats(infos, counts, span.tail.as_ref()));
        }
        let spent = span.spent();
        let size = span.size.clone().unwrap_or_else(|| self.size());
        self.data_bytes = data_bytes(&size);
        let growth_bytes_per_op = match is_run(phase) {
            true => growth_bytes_per_op(&span.data_start, &self.data_bytes, ops),
            false => Metric::absent("defined for phases in which the operations of the mix run"),
        };
        // Without it the bytes are those before the phase, and the end of the phase reports the error.
        let _ = self.adopt_state();
        let logical_bytes = self.logical_bytes();
        let storage = self.job.plan.engine.limits.storage.as_ref();
        let mut metrics = Metrics {
            iops_used_percent: iops_used_percent(phase, &spent, seconds, storage),
            read_statements_per_op,
            write_statements_per_op,
            other_statements_per_op,
            growth_bytes_per_op,
            receive_late_us_per_op: receive_late_us_per_op(queued_ns, &spent, ops),
            retries_per_op: Metric::from(retries as f64).per(ops as f64, "operations in this phase"),
            ..metrics(phase, ops, seconds, late_ns, &spent, size, logical_bytes)
        };
        if matches!(phase, PhaseKind::Loop(_) | PhaseKind::Loops) {
            hardware::add(&mut metrics, hardware::spent(&span.hardware), ops);
        }
        PhaseRecord {
            phase,
            start_s: self.since_epoch_s(span.started),
            seconds,
            ops,
            op_types,
            conflicts,
            counted: growth(&span.counted[0], &span.counted[1]),
            complete,
            suspended: span.suspended.clone(),
            backlog: span.tail.as_ref().map(Tail::reported),
            metrics,
            spent,
            debt_start: span.debt_start.clone(),
            checks,
            ..PhaseRecord::default()
        }
    }
}
