//! How a connection waits while another one writes.
//!
//! SQLite has no queue of writers: a connection that finds the lock taken retries later, and a busy handler decides
//! when. SQLite's own handler sleeps 1, 2, 5 … 100 ms. That is at least fifty times as long as an unsynced write takes,
//! so those sleeps would dominate the latency tail.

use std::time::Duration;

/// The busy handlers by name: the pauses of this file, and SQLite's own.
pub(crate) const HANDLERS: [&str; 2] = [SHORT, OWN];
/// For locks held for microseconds.
pub(crate) const SHORT: &str = "short";
/// For locks held until the device has synced.
pub(crate) const OWN: &str = "sqlite";

/// The first pauses in microseconds; Linux adds about 50 to each (`PR_SET_TIMERSLACK`).
const GROWING_US: [u64; 3] = [50, 100, 200];
/// Shorter times are not counted as waits, because they are the work of a statement itself.
pub(crate) const SHORTEST: Duration = Duration::from_micros(GROWING_US[0]);
/// All further pauses.
const LONGEST_US: u64 = 250;

/// The pause after an attempt that followed `count` pauses; `None` when they have used up the timeout. Like SQLite's
/// own handler it adds up the requested pauses and reads no clock.
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
