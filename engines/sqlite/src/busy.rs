//! How a connection waits while another one writes.
//!
//! SQLite has no queue of writers: whoever finds the lock taken tries again
//! later, and a busy handler says when. SQLite's own sleeps 1, 2, 5 … 100 ms,
//! fifty and more times as long as a write takes that is not synced, so that
//! the tail of the latency is that table.

use std::time::Duration;

/// The ways to wait, by name: in the pauses of this file, and SQLite's own.
pub(crate) const HANDLERS: [&str; 2] = [SHORT, OWN];
/// For locks that are held for microseconds.
pub(crate) const SHORT: &str = "short";
/// For locks that are held for as long as the device takes to sync.
pub(crate) const OWN: &str = "sqlite";

/// The first pauses in microseconds; Linux adds about 50 to each (`PR_SET_TIMERSLACK`).
const GROWING_US: [u64; 3] = [50, 100, 200];
/// No wait for another writer is shorter: what is, is the work of a statement itself.
pub(crate) const SHORTEST: Duration = Duration::from_micros(GROWING_US[0]);
/// All further ones.
const LONGEST_US: u64 = 250;

/// How long to pause after an attempt that followed `count` pauses; `None` when
/// they have used up the timeout. Like SQLite's own it adds up what was asked
/// for, and looks at no clock.
pub(crate) fn pause(count: usize, timeout: Duration) -> Option<Duration> {
    let grown = GROWING_US.iter().take(count).sum::<u64>();
    let paused_us = grown + LONGEST_US * count.saturating_sub(GROWING_US.len()) as u64;
    let next = Duration::from_micros(GROWING_US.get(count).copied().unwrap_or(LONGEST_US));
    let left = timeout.saturating_sub(Duration::from_micros(paused_us));
    (!left.is_zero()).then(|| next.min(left))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_stay_short_and_add_up_to_the_timeout() {
        for timeout_ms in [1, 2, 123, 5000] {
            let timeout = Duration::from_millis(timeout_ms);
            let pauses: Vec<Duration> = (0..).map_while(|count| pause(count, timeout)).collect();
            assert_eq!(pauses.iter().sum::<Duration>(), timeout);
            assert!(pauses[..pauses.len() - 1].is_sorted());
            assert!(pauses.iter().all(|pause| *pause <= Duration::from_micros(LONGEST_US)));
        }
        assert_eq!(pause(0, Duration::ZERO), None);
    }
}
