//! The operations of a span that ended after it, or did not end.

use std::time::Duration;

use rumba_results::metric::Metric;
use rumba_results::record::Backlog;

use super::cells::{Counts, KindCounts};
use super::cut::Censored;

/// The operations that were started or due in a span and had not ended with it.
#[derive(Clone, Debug)]
pub struct Tail {
    /// The duration of serving them, seconds.
    pub seconds: f64,
    /// Operations that ended in that time.
    pub ended: Counts,
    /// Operations that did not end.
    pub censored: Censored,
}

/// The known facts about a type's open operations: their number, and that each takes longer than it had waited at the
/// cut.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Unended {
    /// The number entered into the times, at their time until the cut.
    pub entered: u64,
    /// The number left out: arrivals, of which each type gets its share.
    pub apart: u64,
    /// The shortest wait, nanoseconds: times above it are unknown.
    pub shortest_ns: u64,
    /// The longest wait, nanoseconds.
    pub longest_ns: u64,
}

impl Unended {
    /// The total number.
    pub fn count(&self) -> u64 {
        self.entered + self.apart
    }

    fn enter(&mut self, ns: u64) {
        self.bound(ns, ns);
        self.entered += 1;
    }

    fn bound(&mut self, shortest_ns: u64, longest_ns: u64) {
        self.shortest_ns = if self.count() > 0 { self.shortest_ns.min(shortest_ns) } else { shortest_ns };
        self.longest_ns = self.longest_ns.max(longest_ns);
    }
}

impl Tail {
    /// A tail of this duration, with its counts and open operations.
    pub fn new(seconds: Duration, ended: Counts, censored: Censored) -> Self {
        Self { seconds: seconds.as_secs_f64(), ended, censored }
    }

    /// As in the record.
    pub fn reported(&self) -> Backlog {
        let ended = self.ended.kinds.iter().map(|kind| kind.count + kind.errors).sum();
        let longest = self.censored.longest_ns();
        Backlog {
            seconds: self.seconds,
            ended,
            open: self.censored.open.len() as u64,
            not_begun: self.censored.not_begun,
            longest_wait_ms: longest
                .map_or_else(|| Metric::absent("all operations had ended"), |ns| Metric::from(ns as f64 / 1e6)),
        }
    }

    /// Adds operations that ended after the span to a type's times, errors, retries and statements. Open operations are
    /// added at their time until the cut.
    pub fn enter(&self, kind: usize, counts: &mut KindCounts) {
        if let Some(ended) = self.ended.kinds.get(kind) {
            counts.errors += ended.errors;
            counts.errors_within += ended.errors_within;
            counts.retries += ended.retries;
            counts.add_statements(ended.statements);
            counts.service.merge(&ended.service);
            counts.response.merge(&ended.response);
        }
        for open in self.open(kind) {
            counts.service.add(open.service_ns);
            counts.response.add(open.response_ns);
        }
    }

    /// Operations of a type that ended after the span, with or without an error.
    pub fn ended_late(&self, kind: usize) -> u64 {
        self.ended.kinds.get(kind).map_or(0, |kind| kind.count + kind.errors)
    }

    /// Operations of a type that were still open.
    pub fn open_count(&self, kind: usize) -> u64 {
        self.open(kind).count() as u64
    }

    fn open(&self, kind: usize) -> impl Iterator<Item = &super::cut::Open> {
        self.censored.open.iter().filter(move |open| open.kind == kind)
    }

    /// The open operations of a type, for service times.
    pub fn unended_service(&self, kind: usize) -> Unended {
        let mut unended = Unended::default();
        self.open(kind).for_each(|open| unended.enter(open.service_ns));
        unended
    }

    /// The open operations of a type, for response times. Arrivals that have not started have no type yet; `share` of
    /// them counts for this type.
    pub fn unended_response(&self, kind: usize, share: f64) -> Unended {
        let mut unended = Unended::default();
        self.open(kind).for_each(|open| unended.enter(open.response_ns));
        if let Some((shortest_ns, longest_ns)) = self.censored.not_begun_ns {
            unended.bound(shortest_ns, longest_ns);
            // Round up, because an arrival that may be of this type must not be left out.
            unended.apart = (self.censored.not_begun as f64 * share).ceil() as u64;
        }
        unended
    }
}
