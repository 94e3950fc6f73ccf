//! The cut at the end of the backlog's time. Operations that ended before are counted; the others are censored, with
//! the time that they have waited.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::cells::{Collector, Counts};
use super::in_flight::{InFlight, Stage};
use super::queue::{Queue, UnservedArrivals};

/// A client needs only nanoseconds to count an operation, unless the kernel has taken its core away.
const UNSETTLED_NAP: Duration = Duration::from_micros(100);

/// An open operation, and its times until now.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Open {
    /// Its type.
    pub kind: usize,
    /// Since its start, nanoseconds.
    pub service_ns: u64,
    /// Since its intended start, nanoseconds.
    pub response_ns: u64,
}

/// The operations that had not ended at the cut.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Censored {
    /// Operations that had started.
    pub open: Vec<Open>,
    /// Arrivals that were due before the end of the run and had not started.
    pub not_begun: u64,
    /// The shortest and the longest time since such an arrival was due, nanoseconds.
    pub not_begun_ns: Option<(u64, u64)>,
}

impl Censored {
    /// Whether all operations had ended.
    pub fn is_empty(&self) -> bool {
        self.open.is_empty() && self.not_begun == 0
    }

    /// The longest wait since an intended start, nanoseconds.
    pub fn longest_ns(&self) -> Option<u64> {
        let open = self.open.iter().map(|open| open.response_ns).max();
        open.max(self.not_begun_ns.map(|(_, longest)| longest))
    }

    /// Adds the operations of other clients.
    pub fn merge(&mut self, other: Censored) {
        self.open.extend(other.open);
        self.not_begun += other.not_begun;
        self.not_begun_ns = match (self.not_begun_ns, other.not_begun_ns) {
            (Some((shortest, longest)), Some((least, most))) => Some((shortest.min(least), longest.max(most))),
            (own, others) => own.or(others),
        };
    }

    /// Adds arrivals that were due from `first_ns` to `last_ns`.
    fn add_not_begun(&mut self, count: u64, (first_ns, last_ns): (u64, u64), now_ns: u64) {
        self.not_begun += count;
        let (least, most) = (now_ns.saturating_sub(last_ns), now_ns.saturating_sub(first_ns));
        let (shortest, longest) = self.not_begun_ns.unwrap_or((least, most));
        self.not_begun_ns = Some((shortest.min(least), longest.max(most)));
    }
}

/// Collects for the last time, together with every client's operation in flight. Each operation is either in the counts
/// or among the open ones.
pub fn cut(
    collector: &mut Collector,
    in_flight: &[std::sync::Arc<InFlight>],
    queues: &[std::sync::Arc<Queue>],
    end_ns: u64,
    now_ns: impl Fn() -> u64,
) -> (Counts, Censored) {
    let all = || in_flight.iter().map(|client| client.now()).collect::<Vec<_>>();
    let mut counts = collector.collect();
    loop {
        let before = all();
        let (mut waiting, now) = (Censored::default(), now_ns());
        for queue in queues {
            let UnservedArrivals { count, due_ns } = queue.left_before(end_ns);
            if let Some(due_ns) = due_ns {
                waiting.add_not_begun(count, due_ns, now);
            }
        }
        counts.merge(&collector.collect());
        let after = all();
        if before == after && !after.contains(&Stage::Unsettled) {
            after.iter().for_each(|stage| waiting.add(stage, end_ns, now));
            return (counts, waiting);
        }
        std::thread::sleep(UNSETTLED_NAP);
    }
}

impl Censored {
    fn add(&mut self, stage: &Stage, end_ns: u64, now_ns: u64) {
        match *stage {
            Stage::Nothing | Stage::Unsettled => {}
            Stage::Arrival { intended_ns } if intended_ns < end_ns => {
                self.add_not_begun(1, (intended_ns, intended_ns), now_ns)
            }
            Stage::Arrival { .. } => {}
            Stage::Operation { kind, intended_ns, started_ns } => self.open.push(Open {
                kind,
                service_ns: now_ns.saturating_sub(started_ns),
                response_ns: now_ns.saturating_sub(intended_ns),
            }),
        }
    }
}
