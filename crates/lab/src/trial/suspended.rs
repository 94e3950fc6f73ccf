//! Decides when a phase counts as suspended, and how its record shows the time.
//!
//! A measurement is suspended while its own clients cannot run or a process that it measures is stopped. During that
//! time either no client sent requests, or the server could not run. A server that does not answer, a full queue or a
//! slow disk is no suspension: the clients wait, and that is measured.

use std::time::{Duration, Instant};

use rumba_results::event::Event;
use rumba_results::metric::Metric;
use rumba_results::record::{Interval, PhaseKind, Spent, Suspension};
use rumba_results::warning::Warning;

use super::Trial;
use super::span::Span;

/// A phase with a pause this long is excluded …
const LONG_S: f64 = 1.0;
/// … or with this share of its time, or one that is longer than planned by as much, …
const SHARE: f64 = 0.05;
/// … but not with less than this: a short delay is no pause.
const LEAST_S: f64 = 0.25;
/// A phase with a shorter plan is late only by a whole second. On a busy machine, ending a loop of half a second may
/// wait for a CPU as long as the loop lasts.
const SHORT_S: f64 = 5.0;
/// The most pieces of a suspended interval; a longer pause, such as a night, is divided into longer pieces.
const MOST_PIECES: u32 = 600;
/// Why such a second has no figures.
const NO_USER_RAN: &str = "the measurement was suspended, so nothing was read";

/// Whether a phase is suspended: by the detected pauses, or because it is longer than planned. Time taken by a
/// hypervisor, or by searching a server's thousand processes, does not count.
fn weigh(seen: Option<Suspension>, seconds: f64, planned_s: Option<f64>, taken_s: f64) -> Option<Suspension> {
    let least_s = |of_s: f64| (of_s * SHARE).max(LEAST_S);
    if let Some(seen) = seen.filter(|seen| seen.seconds >= least_s(planned_s.unwrap_or(seconds)).min(LONG_S)) {
        return Some(seen);
    }
    let planned_s = planned_s?;
    let beyond_s = seconds - planned_s;
    let late_s = if planned_s < SHORT_S { LONG_S } else { least_s(planned_s) };
    (beyond_s - taken_s > late_s).then(|| Suspension {
        seconds: beyond_s,
        cause: format!("it lasted {seconds:.1} s instead of {planned_s} s: the thread that counts was delayed"),
    })
}

/// A part of an interval that is emitted separately.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Piece {
    pub(super) from: Instant,
    pub(super) until: Instant,
    pub(super) suspended_s: f64,
}

impl Piece {
    fn seconds(&self) -> f64 {
        self.until.saturating_duration_since(self.from).as_secs_f64()
    }
}

/// Divides an interval that a pause has made too long into seconds. Also returns the index of the piece with the
/// counts: the first with the shortest pause.
pub(super) fn pieces(
    from: Instant,
    until: Instant,
    second: Duration,
    suspended_s: impl Fn(Instant, Instant) -> f64,
) -> (Vec<Piece>, usize) {
    let length = until.saturating_duration_since(from);
    let whole = Piece { from, until, suspended_s: suspended_s(from, until) };
    if 2 * length <= 3 * second || whole.suspended_s < second.as_secs_f64() / 2.0 {
        return (vec![whole], 0);
    }
    let step = second.max(length / MOST_PIECES);
    let mut pieces: Vec<Piece> = Vec::new();
    let mut start = from;
    while start < until {
        let next = start + step;
        // A short rest is added to the last piece.
        let end = if next + step / 10 > until { until } else { next };
        pieces.push(Piece { from: start, until: end, suspended_s: suspended_s(start, end) });
        start = end;
    }
    let share = |piece: &Piece| piece.suspended_s / piece.seconds().max(f64::MIN_POSITIVE);
    let least = pieces.iter().map(share).fold(f64::INFINITY, f64::min);
    let counted = pieces.iter().position(|piece| share(piece) <= least).unwrap_or_default();
    (pieces, counted)
}

/// A second without counts or readings.
pub(super) fn empty(phase: PhaseKind, start_s: f64, piece: &Piece) -> Interval {
    let unknown = || Metric::absent(NO_USER_RAN);
    Interval {
        start_s,
        seconds: piece.seconds(),
        phase,
        p50_ms: unknown(),
        p99_ms: unknown(),
        max_ms: unknown(),
        suspended_s: piece.suspended_s,
        spent: Spent::absent(NO_USER_RAN),
        ..Interval::default()
    }
}

impl Trial<'_> {
    /// Lets the pulse watch the current processes that this trial depends on.
    pub(super) fn watch_processes(&self) {
        let server = self.meters.server_pids().into_iter().map(|pid| (pid, "the server"));
        // The parent process divides a budget of operations twenty times a second.
        let divides = self.job.plan.engine.limits.storage.as_ref().is_some_and(|storage| storage.iops.is_some());
        let parent = rustix::process::getppid().filter(|_| divides);
        let parent = parent.map(|pid| (pid.as_raw_pid() as u32, "rumba, which divides limits.storage.iops"));
        self.pulse.watch(server.chain(parent));
    }

    /// Whether a span that has just ended was suspended; warns if its figures are excluded. If the span was cut off,
    /// its plan does not count, because it may have waited for its clients.
    pub(super) fn suspension(&mut self, span: &Span, complete: bool) -> Option<Suspension> {
        let seconds = span.ended.saturating_duration_since(span.started).as_secs_f64();
        let weighed = |until: Instant| {
            let seen = self.pulse.within(span.started, until);
            weigh(seen, seconds, span.planned_s.filter(|_| complete), span.stolen_s() + span.looked_s)
        };
        // Operations that were started in the last loop are served after it, and belong to it.
        let found = weighed(span.ended).or_else(|| weighed(Instant::now()).filter(|_| span.is_last))?;
        if span.phase.is_timed() {
            self.emit(Event::Warning(Warning::new(
                "suspended",
                format!(
                    "{} was suspended for {:.1} s: {}; it is in no figure, verdict or claim",
                    span.phase, found.seconds, found.cause
                ),
                "leave rumba, its trial and its server to run; `rumba run --resume DIR` runs the trial again",
            )));
        }
        Some(found)
    }

    /// The paused seconds in a time.
    pub(super) fn suspended_s(&self, from: Instant, until: Instant) -> f64 {
        self.pulse.within(from, until).map_or(0.0, |suspended| suspended.seconds)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trial::span::both;

    fn seen(seconds: f64) -> Option<Suspension> {
        Some(Suspension { seconds, cause: "stopped".to_owned() })
    }

    #[test]
    fn lost_second_or_twentieth_suspends_a_phase_and_less_does_not() {
        let is_suspended = |lost, seconds, planned| weigh(seen(lost), seconds, planned, 0.0).is_some();
        assert!(is_suspended(1.0, 121.0, Some(120.0)) && !is_suspended(0.9, 120.0, Some(120.0)));
        assert!(is_suspended(0.3, 5.0, Some(5.0)) && !is_suspended(0.2, 5.0, Some(5.0)));
        assert!(!is_suspended(0.2, 0.5, Some(0.5)), "a hiccup of a busy machine");
        assert!(is_suspended(1.0, 300.0, None), "a load has no planned length");
    }

    #[test]
    fn overlong_loop_is_suspended_even_if_no_gap_was_seen() {
        let cause = weigh(None, 58.0, Some(5.0), 2.0).unwrap().cause;
        assert!(cause.starts_with("it lasted 58.0 s instead of 5 s"), "{cause}");
        assert_eq!(weigh(None, 5.2, Some(5.0), 0.0), None);
        assert_eq!(weigh(None, 1.4, Some(0.5), 0.0), None, "a loop of half a second ends late on a busy machine");
        assert!(weigh(None, 1.6, Some(0.5), 0.0).is_some() && weigh(None, 5.3, Some(5.0), 0.0).is_some());
        assert_eq!(weigh(None, 58.0, None, 0.0), None);
        assert_eq!(weigh(seen(53.0), 58.0, Some(5.0), 0.0).unwrap().cause, "stopped", "what was seen says more");
        assert_eq!(weigh(None, 5.6, Some(5.0), 1.3), None, "the hypervisor let it wait for its end");
    }

    /// Paused seconds in each piece of an interval of `length` milliseconds, with a pause from `from` to `until`; and
    /// the piece with the counts.
    fn divided(length: u64, from: u64, until: u64) -> (Vec<(u64, u64)>, usize) {
        let begun = Instant::now();
        let at = |ms| begun + Duration::from_millis(ms);
        let overlap = |start: Instant, end: Instant| {
            end.min(at(until)).saturating_duration_since(start.max(at(from))).as_secs_f64()
        };
        let (pieces, counted) = pieces(begun, at(length), Duration::from_secs(1), overlap);
        let ms = |seconds: f64| (seconds * 1e3).round() as u64;
        (pieces.iter().map(|piece| (ms(piece.seconds()), ms(piece.suspended_s))).collect(), counted)
    }

    #[test]
    fn gap_is_reported_per_second_with_counts_where_others_ran() {
        assert_eq!(divided(4_050, 400, 4_000), (vec![(1_000, 600), (1_000, 1_000), (1_000, 1_000), (1_050, 1_000)], 0));
        let (reported, counted) = divided(3_900, 0, 3_000);
        assert_eq!((reported.len(), counted), (4, 3), "it was stopped as the second began");
        assert_eq!(divided(1_000, 100, 900).0.len(), 1, "a second is a second");
        assert_eq!(divided(9_000, 0, 0).0.len(), 1, "the harness was held up, and others ran");
        assert_eq!(divided(36_000_000, 0, 36_000_000).0.len(), 600);
    }

    #[test]
    fn all_loops_are_suspended_when_one_is() {
        assert_eq!(both(None, seen(1.0).as_ref()), seen(1.0));
        assert_eq!(both(seen(1.0), None), seen(1.0));
        assert_eq!(both(seen(1.0), seen(2.0).as_ref()), seen(3.0));
        assert_eq!(both(None, None), None);
    }
}
