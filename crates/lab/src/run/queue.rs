//! An open loop's arrivals, and who takes the next.

use std::sync::atomic::{AtomicU64, Ordering};

/// Parts of a nanosecond in which arrivals are counted, so that even at a
/// hundred million a second no two fall together.
const PARTS_PER_NS: f64 = 256.0;

/// Arrivals in their order: exponential gaps, a Poisson stream (as sysbench's
/// `--rate` and LinkBench's requester make). One number is all there is of it:
/// the next arrival. The one after it follows from it and from the seed, so
/// clients that share a queue share one cache line, which each writes once per
/// operation, and no lock; and what nobody has taken can be counted at any time.
#[derive(Debug)]
#[repr(align(128))]
pub struct Queue {
    /// The next arrival, in parts of a nanosecond since the start.
    next: AtomicU64,
    mean_gap: f64,
    seed: u64,
}

impl Queue {
    /// Arrivals at this rate per second, which the seed fixes.
    pub fn new(rate: f64, seed: u64) -> Self {
        let queue = Self { next: AtomicU64::new(0), mean_gap: 1e9 * PARTS_PER_NS / rate, seed };
        queue.next.store(queue.after(0), Ordering::Relaxed);
        queue
    }

    /// Takes the next arrival, nanoseconds since the start.
    #[inline]
    pub fn take_ns(&self) -> u64 {
        let mut next = self.next.load(Ordering::Relaxed);
        loop {
            // Whoever sees that it was taken sees what its taker did before.
            match self.next.compare_exchange_weak(next, self.after(next), Ordering::AcqRel, Ordering::Relaxed) {
                Ok(_) => return ns(next),
                Err(other) => next = other,
            }
        }
    }

    /// Lets be what arrives before this time and is not taken.
    pub fn skip_to_ns(&self, now_ns: u64) {
        let mut next = self.next.load(Ordering::Relaxed);
        loop {
            let Some(later) = self.after_all(next, now_ns) else { return };
            match self.next.compare_exchange_weak(next, later, Ordering::AcqRel, Ordering::Relaxed) {
                Ok(_) => return,
                Err(other) => next = other,
            }
        }
    }

    /// The first arrival that is not before a time; none if that is the given one.
    fn after_all(&self, first: u64, now_ns: u64) -> Option<u64> {
        let mut later = first;
        while ns(later) < now_ns {
            later = self.after(later);
        }
        (later != first).then_some(later)
    }

    /// The arrivals that nobody has taken yet, in their order and without end, nanoseconds since the start.
    pub fn left_ns(&self) -> impl Iterator<Item = u64> {
        let first = self.next.load(Ordering::Acquire);
        std::iter::successors(Some(first), |next| Some(self.after(*next))).map(ns)
    }

    /// The arrival that follows one.
    #[inline]
    fn after(&self, arrival: u64) -> u64 {
        // 53 random bits; 1 - u is in (0, 1], so the logarithm is finite.
        let u = (mixed(arrival ^ self.seed) >> 11) as f64 * (1.0 / 9_007_199_254_740_992.0);
        let gap = -(1.0 - u).ln() * self.mean_gap;
        arrival.saturating_add((gap as u64).max(1))
    }
}

fn ns(parts: u64) -> u64 {
    (parts as f64 / PARTS_PER_NS) as u64
}

/// SplitMix64's output function (Steele, Lea and Flood, OOPSLA 2014), of a state that never repeats.
#[inline]
fn mixed(state: u64) -> u64 {
    let mut z = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

/// A seed of its own for each number.
pub fn seed_of(seed: u64, number: u64) -> u64 {
    mixed(seed ^ mixed(number))
}

/// Where in a span the first operation of a client falls, from 0 to below 1.
pub fn share_of(seed: u64, number: u64) -> f64 {
    (seed_of(seed, number) >> 11) as f64 * (1.0 / 9_007_199_254_740_992.0)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::sync::Arc;

    use super::*;

    #[test]
    fn gaps_are_those_of_a_poisson_stream() {
        let queue = Queue::new(1_000.0, 7);
        let arrivals: Vec<u64> = queue.left_ns().take(100_001).collect();
        let gaps: Vec<f64> = arrivals.windows(2).map(|pair| (pair[1] - pair[0]) as f64 / 1e6).collect();
        let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
        let variance = gaps.iter().map(|gap| (gap - mean).powi(2)).sum::<f64>() / gaps.len() as f64;
        // Of an exponential distribution mean and deviation are alike; 100,000 gaps know both to 1%.
        assert!((mean - 1.0).abs() < 0.02 && (variance.sqrt() - 1.0).abs() < 0.03, "{mean} {variance}");
        let neighbours = gaps.windows(2).map(|pair| (pair[0] - mean) * (pair[1] - mean)).sum::<f64>();
        assert!(
            (neighbours / gaps.len() as f64 / variance).abs() < 0.02,
            "neighbouring gaps know nothing of each other"
        );
        assert_ne!(queue.take_ns(), Queue::new(1_000.0, 8).take_ns());
    }

    #[test]
    fn what_is_skipped_is_what_came_before() {
        let (queue, all) = (Queue::new(1_000.0, 7), Queue::new(1_000.0, 7));
        queue.skip_to_ns(0);
        assert_eq!(queue.left_ns().next(), all.left_ns().next());
        queue.skip_to_ns(1_000_000_000);
        let left: Vec<u64> = all.left_ns().skip_while(|due_ns| *due_ns < 1_000_000_000).take(10).collect();
        assert_eq!(queue.left_ns().take(10).collect::<Vec<_>>(), left);
        assert_eq!(queue.take_ns(), left[0]);
    }

    #[test]
    fn clients_that_share_a_queue_take_each_arrival_once() {
        const EACH: usize = 5_000;
        let queue = Arc::new(Queue::new(1e6, 7));
        let schedule: Vec<u64> = queue.left_ns().take(4 * EACH).collect();
        let takers: Vec<_> = (0..4)
            .map(|_| {
                let queue = queue.clone();
                std::thread::spawn(move || (0..EACH).map(|_| queue.take_ns()).collect::<Vec<_>>())
            })
            .collect();
        let mut taken: Vec<u64> = takers.into_iter().flat_map(|taker| taker.join().unwrap()).collect();
        taken.sort_unstable();
        assert_eq!(taken, schedule);
        assert!(queue.left_ns().next() > taken.last().copied());
    }
}
