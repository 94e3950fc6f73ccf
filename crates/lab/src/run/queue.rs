//! An open loop's arrivals, and who takes the next.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use rumba_core::arrivals::Arrivals;

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
    /// A rate that is not the same all the time, once its time has begun.
    shaped: OnceLock<Shaped>,
}

/// No arrival follows.
const NEVER: u64 = u64::MAX;

/// A queue's share of arrivals whose rate is not the same all the time.
#[derive(Debug)]
struct Shaped {
    arrivals: Arc<Arrivals>,
    /// When their time begins, in parts of a nanosecond since the start.
    from: u64,
    /// Which share of them is the queue's.
    share: f64,
}

impl Shaped {
    /// When so many arrivals of this queue have come after one, which lies in the arrivals' time.
    fn after(&self, arrival: u64, count: f64) -> u64 {
        const PARTS_PER_S: f64 = 1e9 * PARTS_PER_NS;
        let from_s = (arrival - self.from) as f64 / PARTS_PER_S;
        match self.arrivals.after_s(from_s, count / self.share) {
            Some(at_s) => self.from.saturating_add((at_s * PARTS_PER_S) as u64).max(arrival.saturating_add(1)),
            None => NEVER,
        }
    }
}

impl Queue {
    /// Arrivals at this rate per second, which the seed fixes.
    pub fn new(rate: f64, seed: u64) -> Self {
        let (next, shaped) = (AtomicU64::new(0), OnceLock::new());
        let queue = Self { next, mean_gap: 1e9 * PARTS_PER_NS / rate, seed, shaped };
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

    /// From this time on the rate is this queue's share of these arrivals, whose time begins then.
    pub fn shape(&self, arrivals: Arc<Arrivals>, from_ns: u64, share: f64) {
        let from = (from_ns as f64 * PARTS_PER_NS) as u64;
        if self.shaped.set(Shaped { arrivals, from, share }).is_err() {
            return;
        }
        // The next one was drawn as if the rate before went on for ever: what of it lies beyond is drawn out anew.
        let mut next = self.next.load(Ordering::Relaxed);
        while next > from {
            let Some(shaped) = self.shaped.get() else { return };
            let later = shaped.after(from, (next - from) as f64 / self.mean_gap);
            match self.next.compare_exchange_weak(next, later, Ordering::AcqRel, Ordering::Relaxed) {
                Ok(_) => return,
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
        let count = -(1.0 - u).ln();
        let Some(shaped) = self.shaped.get() else { return self.constant(arrival, count) };
        if arrival >= shaped.from {
            return shaped.after(arrival, count);
        }
        let before = (shaped.from - arrival) as f64 / self.mean_gap;
        if count <= before { self.constant(arrival, count) } else { shaped.after(shaped.from, count - before) }
    }

    /// When so many arrivals have come after one at the rate that the queue began with.
    fn constant(&self, arrival: u64, count: f64) -> u64 {
        arrival.saturating_add(((count * self.mean_gap) as u64).max(1))
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
    use rumba_core::arrivals::RateShape;

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
    fn shaped_arrivals_are_the_constant_ones_with_their_time_stretched_to_the_integral_of_the_rate() {
        let points = vec![(0.0, 500.0), (2.0, 4000.0), (3.0, 0.0)];
        let arrivals = Arc::new(Arrivals { points, shape: RateShape::Ramp, period_s: Some(4.0) });
        let (shaped, half) = (Queue::new(1_000.0, 7), Queue::new(500.0, 7));
        let from_ns = 1_000_000_000;
        shaped.shape(arrivals.clone(), from_ns, 1.0);
        half.shape(arrivals.clone(), from_ns, 0.5);
        let times: Vec<u64> = shaped.left_ns().take(20_000).collect();
        let before = times.iter().filter(|due_ns| **due_ns < from_ns).count();
        assert!((900..1100).contains(&before), "{before}: the warmup goes on at its own rate until then");
        // The integral over the time between two arrivals is exponential with mean 1, whatever the rate is there.
        let count = |due_ns: u64| arrivals.count((due_ns - from_ns) as f64 / 1e9);
        let gaps: Vec<f64> = times[before..].windows(2).map(|pair| count(pair[1]) - count(pair[0])).collect();
        let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
        let variance = gaps.iter().map(|gap| (gap - mean).powi(2)).sum::<f64>() / gaps.len() as f64;
        assert!((mean - 1.0).abs() < 0.03 && (variance - 1.0).abs() < 0.1, "{mean} {variance}");
        let (whole, part) = (arrivals.count(8.0), half.left_ns().take_while(|ns| *ns < 9_000_000_000).count());
        assert!((part as f64 - 500.0 - whole / 2.0).abs() < 4.0 * (500.0 + whole / 2.0).sqrt(), "{part} of {whole}");
        assert!(times.windows(2).all(|pair| pair[0] < pair[1]), "they keep their order");
    }

    #[test]
    fn of_a_rate_that_ends_no_arrival_follows() {
        let queue = Queue::new(1_000.0, 7);
        let points = vec![(0.0, 1000.0), (1.0, 0.0)];
        queue.shape(Arc::new(Arrivals { points, shape: RateShape::Step, period_s: None }), 0, 1.0);
        let all = queue.left_ns().take_while(|due_ns| *due_ns < u64::MAX / 512).count();
        assert!((850..1150).contains(&all), "{all}");
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
