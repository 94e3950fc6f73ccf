//! An open loop's arrivals, and who takes the next.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use rumba_core::arrivals::Arrivals;

/// Parts of an arrival in which places are counted: gaps to a millionth of the mean one, for two days at a hundred million
/// arrivals a second.
const PARTS: f64 = (1u64 << 20) as f64;

/// A time that no run comes to, and before which a stop is told: when what never comes is due.
pub const LATEST_NS: u64 = 1 << 62;

/// An arrival: its place in a stream whose rate is 1, in parts. When it is due, its queue says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Arrival(u64);

/// Arrivals in their order: exponential gaps, a Poisson stream (as sysbench's
/// `--rate` and LinkBench's requester make). One number is all there is of it:
/// the next arrival. The one after it follows from it and from the seed, so
/// clients that share a queue share one cache line, which each writes once per
/// operation, and no lock; and what nobody has taken can be counted at any time.
///
/// That number is a place in a stream whose rate is 1, and the rate stretches its time. So who has taken an arrival and
/// waits for it needs no other when the rate changes: the same one is due at another time.
#[derive(Debug)]
#[repr(align(128))]
pub struct Queue {
    /// The place of the next arrival, in parts.
    next: AtomicU64,
    /// At the rate that the queue began with.
    ns_per_part: f64,
    seed: u64,
    /// A rate that is not the same all the time, once its time has begun.
    shaped: OnceLock<Shaped>,
}

/// A queue's share of arrivals whose rate is not the same all the time.
#[derive(Debug)]
struct Shaped {
    arrivals: Arc<Arrivals>,
    /// When their time begins, nanoseconds since the start.
    from_ns: f64,
    /// Which share of them is the queue's.
    share: f64,
}

impl Shaped {
    /// When so many arrivals of this queue have come since the arrivals' time began.
    fn due_ns(&self, count: f64) -> u64 {
        match self.arrivals.after_s(0.0, count / self.share) {
            Some(at_s) => (self.from_ns + at_s * 1e9) as u64,
            None => LATEST_NS,
        }
    }
}

impl Queue {
    /// Arrivals at this rate per second, which the seed fixes.
    pub fn new(rate: f64, seed: u64) -> Self {
        let (next, shaped) = (AtomicU64::new(0), OnceLock::new());
        let queue = Self { next, ns_per_part: 1e9 / rate / PARTS, seed, shaped };
        queue.next.store(queue.after(Arrival(0)).0, Ordering::Relaxed);
        queue
    }

    /// Takes the next arrival.
    #[inline]
    pub fn take(&self) -> Arrival {
        let mut next = self.next.load(Ordering::Relaxed);
        loop {
            let after = self.after(Arrival(next)).0;
            // Whoever sees that it was taken sees what its taker did before.
            match self.next.compare_exchange_weak(next, after, Ordering::AcqRel, Ordering::Relaxed) {
                Ok(_) => return Arrival(next),
                Err(other) => next = other,
            }
        }
    }

    /// When an arrival is due, nanoseconds since the start, as far as the rate is known now.
    #[inline]
    pub fn due_ns(&self, arrival: Arrival) -> u64 {
        let constant_ns = arrival.0 as f64 * self.ns_per_part;
        let due_ns = match self.shaped.get() {
            Some(shaped) if constant_ns > shaped.from_ns => {
                shaped.due_ns((constant_ns - shaped.from_ns) / (self.ns_per_part * PARTS))
            }
            _ => constant_ns as u64,
        };
        due_ns.min(LATEST_NS)
    }

    /// From this time on the rate is this queue's share of these arrivals, whose time begins then: what was to be due
    /// later, taken or not, was so as if the rate before went on for ever. Only the first call counts.
    pub fn shape(&self, arrivals: Arc<Arrivals>, from_ns: u64, share: f64) {
        let _ = self.shaped.set(Shaped { arrivals, from_ns: from_ns as f64, share });
    }

    /// Lets be what arrives before this time and is not taken.
    pub fn skip_to_ns(&self, now_ns: u64) {
        let mut next = self.next.load(Ordering::Relaxed);
        loop {
            let Some(later) = self.after_all(Arrival(next), now_ns) else { return };
            match self.next.compare_exchange_weak(next, later.0, Ordering::AcqRel, Ordering::Relaxed) {
                Ok(_) => return,
                Err(other) => next = other,
            }
        }
    }

    /// The first arrival that is not before a time; none if that is the given one.
    fn after_all(&self, first: Arrival, now_ns: u64) -> Option<Arrival> {
        let mut later = first;
        while self.due_ns(later) < now_ns {
            later = self.after(later);
        }
        (later != first).then_some(later)
    }

    /// When the arrivals are due that nobody has taken yet, in their order and without end, nanoseconds since the start.
    pub fn left_ns(&self) -> impl Iterator<Item = u64> {
        let first = Arrival(self.next.load(Ordering::Acquire));
        std::iter::successors(Some(first), |next| Some(self.after(*next))).map(|arrival| self.due_ns(arrival))
    }

    /// The arrival that follows one.
    #[inline]
    fn after(&self, arrival: Arrival) -> Arrival {
        // 53 random bits; 1 - u is in (0, 1], so the logarithm is finite.
        let u = (mixed(arrival.0 ^ self.seed) >> 11) as f64 * (1.0 / 9_007_199_254_740_992.0);
        let gap = -(1.0 - u).ln() * PARTS;
        Arrival(arrival.0.saturating_add((gap as u64).max(1)))
    }
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
        assert_ne!(queue.take(), Queue::new(1_000.0, 8).take());
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
        assert!(times.is_sorted(), "they keep their order");
    }

    /// Each of 64 idle clients holds one: they slept through a burst, until about a minute after it had begun.
    #[test]
    fn an_arrival_that_was_taken_before_the_rate_changed_is_due_when_the_new_rate_says() {
        let (queue, untouched) = (Queue::new(1.0, 7), Queue::new(1.0, 7));
        let taken: Vec<Arrival> = (0..64).map(|_| queue.take()).collect();
        let is_late = taken.iter().filter(|arrival| queue.due_ns(**arrival) > 2_000_000_000).count();
        assert!(is_late > 32, "{is_late}: by the rate before");
        let points = vec![(0.0, 1.0), (1.0, 2000.0)];
        let arrivals = Arc::new(Arrivals { points, shape: RateShape::Step, period_s: None });
        queue.shape(arrivals.clone(), 0, 1.0);
        untouched.shape(arrivals, 0, 1.0);
        let due: Vec<u64> = taken.iter().map(|arrival| queue.due_ns(*arrival)).collect();
        assert!(due.iter().all(|due_ns| *due_ns < 1_100_000_000), "{due:?}");
        let all: Vec<u64> = due.into_iter().chain(queue.left_ns().take(100)).collect();
        assert_eq!(all, untouched.left_ns().take(164).collect::<Vec<_>>(), "whoever has taken them");
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
        assert_eq!(queue.due_ns(queue.take()), left[0]);
    }

    #[test]
    fn clients_that_share_a_queue_take_each_arrival_once() {
        const EACH: usize = 5_000;
        let queue = Arc::new(Queue::new(1e6, 7));
        let schedule: Vec<u64> = queue.left_ns().take(4 * EACH).collect();
        let takers: Vec<_> = (0..4)
            .map(|_| {
                let queue = queue.clone();
                std::thread::spawn(move || (0..EACH).map(|_| queue.due_ns(queue.take())).collect::<Vec<_>>())
            })
            .collect();
        let mut taken: Vec<u64> = takers.into_iter().flat_map(|taker| taker.join().unwrap()).collect();
        taken.sort_unstable();
        assert_eq!(taken, schedule);
        assert!(queue.left_ns().next() > taken.last().copied());
    }
}
