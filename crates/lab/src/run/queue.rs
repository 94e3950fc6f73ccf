//! An open loop's arrivals, and how clients take them.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use rumba_results::arrivals::Arrivals;

/// Places are counted in this fraction of the mean gap, a millionth. The range lasts for two days at a hundred million
/// arrivals a second.
const PARTS: f64 = (1u64 << 20) as f64;

/// A time later than any run, but before the value that means no stop: the due time of an event that never comes.
pub const LATEST_NS: u64 = 1 << 62;

/// The most arrivals that are counted one by one, which takes a millisecond or two. A larger number is drawn.
const MOST_WALKED: f64 = 65_536.0;

/// Arrivals that no client has taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UnservedArrivals {
    /// Their number.
    pub count: u64,
    /// The due times of the first and the last, nanoseconds since the start. If the count is drawn, the second is the
    /// end of the span, which is later than the last arrival by about one gap.
    pub due_ns: Option<(u64, u64)>,
}

/// An arrival: its place in a stream of rate 1, in parts. The queue converts it to a due time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Arrival(u64);

/// Arrivals in order: exponential gaps, a Poisson stream (as sysbench's `--rate` and LinkBench's requester make). The
/// whole state is one number, the next arrival. The following arrival is computed from it and the seed. Clients that
/// share a queue therefore share one cache line, which each writes once per operation, and no lock. Arrivals that no
/// client has taken can be counted at any time.
///
/// That number is a place in a stream of rate 1, and the rate scales its time. A client that waits for an arrival
/// therefore keeps it when the rate changes: the same arrival gets another due time.
#[derive(Debug)]
#[repr(align(128))]
pub struct Queue {
    /// The place of the next arrival, in parts.
    next: AtomicU64,
    /// At the first rate of the queue.
    ns_per_part: f64,
    seed: u64,
    /// A rate that varies over time, once its time has begun.
    shaped: OnceLock<Shaped>,
}

/// A queue's share of arrivals with a varying rate.
#[derive(Debug)]
struct Shaped {
    arrivals: Arc<Arrivals>,
    /// The start of their time, nanoseconds since the start.
    from_ns: f64,
    /// The queue's share of them.
    share: f64,
}

impl Shaped {
    /// The due time of this queue's arrival number `count` since the arrivals' time began.
    fn due_ns(&self, count: f64) -> u64 {
        match self.arrivals.after_s(0.0, count / self.share) {
            Some(at_s) => (self.from_ns + at_s * 1e9) as u64,
            None => LATEST_NS,
        }
    }
}

impl Queue {
    /// Arrivals at this rate per second, determined by the seed.
    pub fn new(rate: f64, seed: u64) -> Self {
        let (next, shaped) = (AtomicU64::new(0), OnceLock::new());
        let queue = Self { next, ns_per_part: 1e9 / rate / PARTS, seed, shaped };
        queue.next.store(queue.after(Arrival(0)).0, Ordering::Relaxed);
        queue
    }

    #[inline]
    pub fn take(&self) -> Arrival {
        let mut next = self.next.load(Ordering::Relaxed);
        loop {
            let after = self.after(Arrival(next)).0;
            // A thread that sees the arrival taken also sees the earlier writes of its taker.
            match self.next.compare_exchange_weak(next, after, Ordering::AcqRel, Ordering::Relaxed) {
                Ok(_) => return Arrival(next),
                Err(other) => next = other,
            }
        }
    }

    /// The due time of an arrival, nanoseconds since the start, at the rate known now.
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

    /// From this time on the rate is this queue's share of these arrivals, whose time zero it is. Earlier arrivals keep
    /// the old rate; later ones, taken or not, get the new one. Only the first call counts.
    pub fn shape(&self, arrivals: Arc<Arrivals>, from_ns: u64, share: f64) {
        let _ = self.shaped.set(Shaped { arrivals, from_ns: from_ns as f64, share });
    }

    /// Skips the arrivals that are due before this time and that no client has taken.
    pub fn skip_to_ns(&self, now_ns: u64) {
        let mut next = self.next.load(Ordering::Relaxed);
        loop {
            let Some(later) = self.first_from(Arrival(next), now_ns) else { return };
            match self.next.compare_exchange_weak(next, later.0, Ordering::AcqRel, Ordering::Relaxed) {
                Ok(_) => return,
                Err(other) => next = other,
            }
        }
    }

    /// The first arrival that is due at a time or later, not before `first`; `None` if that is `first`.
    ///
    /// From any place in a Poisson stream, the gap to the next arrival has the same distribution as from an arrival. A
    /// long distance is therefore not walked: the next arrival is drawn from the place of `now_ns`.
    fn first_from(&self, first: Arrival, now_ns: u64) -> Option<Arrival> {
        let mut later = first;
        if self.expected(first, now_ns) > MOST_WALKED {
            later = self.after(Arrival(self.place_at(now_ns) as u64));
        }
        // The stream ends at its last place.
        while self.due_ns(later) < now_ns && later.0 < u64::MAX {
            later = self.after(later);
        }
        (later != first).then_some(later)
    }

    /// The arrivals that are due before a time and that no client has taken. The work is bounded at any rate.
    pub fn left_before(&self, end_ns: u64) -> UnservedArrivals {
        let first = Arrival(self.next.load(Ordering::Acquire));
        let first_ns = self.due_ns(first);
        if first_ns >= end_ns {
            return UnservedArrivals::default();
        }
        let expected = self.expected(first, end_ns);
        if expected > MOST_WALKED {
            let count = 1 + poisson(expected, mixed(first.0 ^ self.seed));
            return UnservedArrivals { count, due_ns: Some((first_ns, end_ns - 1)) };
        }
        let (mut count, mut last_ns, mut next) = (0, first_ns, first);
        loop {
            let due_ns = self.due_ns(next);
            if due_ns >= end_ns {
                return UnservedArrivals { count, due_ns: Some((first_ns, last_ns)) };
            }
            (count, last_ns, next) = (count + 1, due_ns, self.after(next));
        }
    }

    /// The expected number of arrivals after one until a time.
    fn expected(&self, after: Arrival, until_ns: u64) -> f64 {
        (self.place_at(until_ns) - after.0 as f64) / PARTS
    }

    /// The place in the stream, in parts, for a due time: the inverse of [`Queue::due_ns`].
    fn place_at(&self, at_ns: u64) -> f64 {
        let at_ns = at_ns as f64;
        match self.shaped.get() {
            Some(shaped) if at_ns > shaped.from_ns => {
                let count = shaped.arrivals.count((at_ns - shaped.from_ns) / 1e9) * shaped.share;
                shaped.from_ns / self.ns_per_part + count * PARTS
            }
            _ => at_ns / self.ns_per_part,
        }
    }

    /// The due times of arrivals that no client has taken, in order and without end, nanoseconds since the start.
    pub fn left_ns(&self) -> impl Iterator<Item = u64> {
        let first = Arrival(self.next.load(Ordering::Acquire));
        std::iter::successors(Some(first), |next| Some(self.after(*next))).map(|arrival| self.due_ns(arrival))
    }

    /// The next arrival after one.
    #[inline]
    fn after(&self, arrival: Arrival) -> Arrival {
        // 53 random bits; 1 - u is in (0, 1], so the logarithm is finite.
        let u = unit(mixed(arrival.0 ^ self.seed));
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

/// 53 random bits as a number from 0 to below 1.
#[inline]
fn unit(bits: u64) -> f64 {
    (bits >> 11) as f64 * (1.0 / 9_007_199_254_740_992.0)
}

/// The number of arrivals of a Poisson stream with this expected number, at least [`MOST_WALKED`]. It is drawn from the
/// normal distribution, corrected for the skewness (Cornish and Fisher, 1937). At these sizes the quantiles differ from
/// the exact ones by less than one arrival.
fn poisson(expected: f64, seed: u64) -> u64 {
    let radius = (-2.0 * (1.0 - unit(mixed(seed))).ln()).sqrt();
    let z = radius * (std::f64::consts::TAU * unit(mixed(!seed))).cos();
    (expected + expected.sqrt() * z + (z * z - 1.0) / 6.0).round().max(0.0) as u64
}

/// A separate seed for each number.
pub fn seed_of(seed: u64, number: u64) -> u64 {
    mixed(seed ^ mixed(number))
}

/// The position of a client's first operation in a span, from 0 to below 1.
pub fn share_of(seed: u64, number: u64) -> f64 {
    unit(seed_of(seed, number))
}

#[cfg(test)]
mod tests {
    use rumba_results::arrivals::RateShape;

    use super::*;

    #[test]
    fn gaps_are_those_of_a_poisson_stream() {
        let queue = Queue::new(1_000.0, 7);
        let arrivals: Vec<u64> = queue.left_ns().take(100_001).collect();
        let gaps: Vec<f64> = arrivals.windows(2).map(|pair| (pair[1] - pair[0]) as f64 / 1e6).collect();
        let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
        let variance = gaps.iter().map(|gap| (gap - mean).powi(2)).sum::<f64>() / gaps.len() as f64;
        // An exponential distribution has equal mean and deviation; 100,000 gaps estimate both to 1%.
        assert!((mean - 1.0).abs() < 0.02 && (variance.sqrt() - 1.0).abs() < 0.03, "{mean} {variance}");
        let neighbours = gaps.windows(2).map(|pair| (pair[0] - mean) * (pair[1] - mean)).sum::<f64>();
        assert!(
            (neighbours / gaps.len() as f64 / variance).abs() < 0.02,
            "neighbouring gaps know nothing of each other"
        );
        assert_ne!(queue.take(), Queue::new(1_000.0, 8).take());
    }

    #[test]
    fn shaped_arrivals_are_constant_ones_stretched_by_the_integral() {
        let points = vec![(0.0, 500.0), (2.0, 4000.0), (3.0, 0.0)];
        let arrivals = Arc::new(Arrivals { points, shape: RateShape::Ramp, period_s: Some(4.0) });
        let (shaped, half) = (Queue::new(1_000.0, 7), Queue::new(500.0, 7));
        let from_ns = 1_000_000_000;
        shaped.shape(arrivals.clone(), from_ns, 1.0);
        half.shape(arrivals.clone(), from_ns, 0.5);
        let times: Vec<u64> = shaped.left_ns().take(20_000).collect();
        let before = times.iter().filter(|due_ns| **due_ns < from_ns).count();
        assert!((900..1100).contains(&before), "{before}: the warmup goes on at its own rate until then");
        // The integral of the rate between two arrivals is exponential with mean 1, for any rate.
        let count = |due_ns: u64| arrivals.count((due_ns - from_ns) as f64 / 1e9);
        let gaps: Vec<f64> = times[before..].windows(2).map(|pair| count(pair[1]) - count(pair[0])).collect();
        let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
        let variance = gaps.iter().map(|gap| (gap - mean).powi(2)).sum::<f64>() / gaps.len() as f64;
        assert!((mean - 1.0).abs() < 0.03 && (variance - 1.0).abs() < 0.1, "{mean} {variance}");
        let (whole, part) = (arrivals.count(8.0), half.left_ns().take_while(|ns| *ns < 9_000_000_000).count());
        assert!((part as f64 - 500.0 - whole / 2.0).abs() < 4.0 * (500.0 + whole / 2.0).sqrt(), "{part} of {whole}");
        assert!(times.is_sorted(), "they keep their order");
    }

    /// Guards against skipping to the wrong arrival after a burst. Each of 64 idle clients holds one arrival until
    /// about a minute after the burst began.
    #[test]
    fn arrival_taken_before_a_rate_change_is_due_by_the_new_rate() {
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
        assert_eq!(all, untouched.left_ns().take(164).collect::<Vec<_>>(), "taken or not");
    }

    #[test]
    fn skip_drops_only_earlier_arrivals() {
        let (queue, all) = (Queue::new(1_000.0, 7), Queue::new(1_000.0, 7));
        queue.skip_to_ns(0);
        assert_eq!(queue.left_ns().next(), all.left_ns().next());
        queue.skip_to_ns(1_000_000_000);
        let left: Vec<u64> = all.left_ns().skip_while(|due_ns| *due_ns < 1_000_000_000).take(10).collect();
        assert_eq!(queue.left_ns().take(10).collect::<Vec<_>>(), left);
        assert_eq!(queue.due_ns(queue.take()), left[0]);
    }

    /// Guards against unbounded work: at 1e9 arrivals a second this took 56 s, at 1e12 it did not end.
    #[test]
    fn arrivals_of_an_absurd_rate_are_counted_and_skipped_at_once() {
        let queue = Queue::new(1e9, 7);
        let left = queue.left_before(100_000_000_000);
        let expected: f64 = 100e9;
        assert!((left.count as f64 - expected).abs() < 6.0 * expected.sqrt(), "{left:?}");
        assert!(left.due_ns.unwrap().0 < 100 && left.due_ns.unwrap().1 == 99_999_999_999, "{left:?}");
        queue.skip_to_ns(100_000_000_000);
        assert_eq!(queue.left_before(100_000_000_000), UnservedArrivals::default());
        let next_ns = queue.left_ns().next().unwrap();
        assert!((100_000_000_000..100_000_000_100).contains(&next_ns), "{next_ns}");
        let points = vec![(0.0, 1e9), (1.0, 0.0), (2.0, 1e9)];
        let shaped = Queue::new(1e9, 7);
        shaped.shape(Arc::new(Arrivals { points, shape: RateShape::Step, period_s: None }), 1_000_000_000, 0.5);
        let expected: f64 = 1e9 + 0.5e9 + 0.5 * 7e9;
        let left = shaped.left_before(10_000_000_000);
        assert!((left.count as f64 - expected).abs() < 6.0 * expected.sqrt(), "{left:?}");
    }

    /// At sizes where both ways are fast, they give counts of the same mean and variance, those of a Poisson
    /// distribution.
    #[test]
    fn drawn_counts_are_distributed_like_walked_ones() {
        const QUEUES: u64 = 200;
        const EXPECTED: f64 = 70_000.0;
        let moments = |count: &dyn Fn(&Queue) -> u64| {
            let counts: Vec<f64> = (0..QUEUES).map(|seed| count(&Queue::new(EXPECTED, seed)) as f64).collect();
            let mean = counts.iter().sum::<f64>() / QUEUES as f64;
            (mean, counts.iter().map(|count| (count - mean).powi(2)).sum::<f64>() / (QUEUES - 1) as f64)
        };
        let end_ns = 1_000_000_000;
        let walked = moments(&|queue| queue.left_ns().take_while(|due_ns| *due_ns < end_ns).count() as u64);
        let drawn = moments(&|queue| queue.left_before(end_ns).count);
        for (mean, variance) in [walked, drawn] {
            // Four standard errors of a mean and of a variance over this many counts.
            assert!((mean - EXPECTED).abs() < 4.0 * (EXPECTED / QUEUES as f64).sqrt(), "{walked:?} {drawn:?}");
            let error = (2.0 / (QUEUES - 1) as f64).sqrt();
            assert!((variance / EXPECTED - 1.0).abs() < 4.0 * error, "{walked:?} {drawn:?}");
        }
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
