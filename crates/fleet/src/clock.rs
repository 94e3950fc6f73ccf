//! Monotonic clocks of two hosts, and the offset between them.

use std::time::{Duration, Instant};

/// A host's monotonic clock, in nanoseconds since its creation. It is never set.
#[derive(Clone, Copy, Debug)]
pub struct MonotonicClock(Instant);

impl Default for MonotonicClock {
    fn default() -> Self {
        Self(Instant::now())
    }
}

impl MonotonicClock {
    /// The time now.
    pub fn now_ns(&self) -> u64 {
        self.at_ns(Instant::now())
    }

    /// The time at a moment.
    pub fn at_ns(&self, at: Instant) -> u64 {
        at.saturating_duration_since(self.0).as_nanos() as u64
    }

    /// The moment of a time.
    pub fn instant(&self, at_ns: u64) -> Instant {
        self.0 + Duration::from_nanos(at_ns)
    }
}

/// How far another host's clock is ahead of this one's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClockOffset {
    /// Nanoseconds that the other clock shows more.
    pub ahead_ns: i64,
    /// The shortest time of a ping and its answer, nanoseconds. The offset is wrong by at most half of it.
    pub round_trip_ns: u64,
}

impl ClockOffset {
    /// The offset by one ping.
    pub fn of_ping(sent_ns: u64, answered_ns: u64, received_ns: u64) -> Self {
        let middle_ns = sent_ns.midpoint(received_ns);
        let ahead_ns = (i128::from(answered_ns) - i128::from(middle_ns)) as i64;
        Self { ahead_ns, round_trip_ns: received_ns.saturating_sub(sent_ns) }
    }

    /// The more certain of two.
    #[must_use]
    pub fn or_better(self, other: Self) -> Self {
        if other.round_trip_ns < self.round_trip_ns { other } else { self }
    }

    /// A time of this host's clock by the other one.
    pub fn to_other(self, own_ns: u64) -> u64 {
        own_ns.saturating_add_signed(self.ahead_ns)
    }

    /// A time of the other clock by this one, which may be before this one's zero.
    pub fn to_own(self, other_ns: u64) -> i64 {
        (i128::from(other_ns) - i128::from(self.ahead_ns)) as i64
    }
}
