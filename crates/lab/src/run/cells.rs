//! A driver thread's counters: written only by that thread, read by the collector.
//!
//! Every cell only grows and has one writer. It adds by a plain load and store: no read-modify-write, no lock, no
//! shared cache line. The collector reads all threads' cells once a second and takes differences. The thread hands
//! nothing over, so nothing is lost even if the run ends abruptly.

use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering::Relaxed};

use rumba_engine_api::worker::{Op, OpKind, StatementCounts};
use rumba_engine_api::workload::OpInfo;

use super::buckets::{BUCKETS, index, limit_ns};
use super::conflicts::{ConflictCells, Conflicts, merge, since};
use super::counters::Counters;

/// The counts of one thread's clients, for every type of operation.
pub struct Cells {
    kinds: Box<[KindCells]>,
    /// Times by bucket: for each type, service times and then response times. 32 bits suffice, because the collector's
    /// differences are taken modulo 2^32.
    buckets: Counters,
    /// Retries by cause.
    pub conflicts: std::sync::Arc<ConflictCells>,
    /// How long answers waited for their clients on the thread's event loop.
    receive_late_ns: OwnLines,
}

/// A number on separate cache lines.
#[derive(Default)]
#[repr(align(128))]
struct OwnLines(AtomicU64);

/// The index of each kind of time.
const SERVICE: usize = 0;
const RESPONSE: usize = 1;

/// The counts of one type of operation. Aligned to two cache lines, because
/// processors fetch lines in pairs.
#[derive(Default)]
#[repr(align(128))]
struct KindCells {
    count: AtomicU64,
    errors: AtomicU64,
    errors_within: AtomicU64,
    /// The number of response buckets within the limit; 0 without a limit.
    within: AtomicUsize,
    retries: AtomicU64,
    rows: AtomicU64,
    late_ns: AtomicU64,
    statements: [AtomicU64; 3],
    service: TimeCells,
    response: TimeCells,
}

#[derive(Default)]
struct TimeCells {
    sum_ns: AtomicU64,
    /// The largest since the collector last took it.
    max_ns: AtomicU64,
}

impl TimeCells {
    #[inline]
    fn record(&self, ns: u64) {
        add(&self.sum_ns, ns);
        if ns > self.max_ns.load(Relaxed) {
            self.max_ns.store(ns, Relaxed);
        }
    }
}

#[inline]
fn add(cell: &AtomicU64, amount: u64) {
    cell.store(cell.load(Relaxed).wrapping_add(amount), Relaxed);
}

impl Cells {
    /// Cells for `kinds` types of operations.
    pub fn new(kinds: usize) -> Self {
        Self {
            kinds: (0..kinds).map(|_| KindCells::default()).collect(),
            buckets: Counters::new(kinds * 2 * BUCKETS),
            conflicts: Default::default(),
            receive_late_ns: OwnLines::default(),
        }
    }

    /// Counts how long an answer waited for its client. Called only by the owning thread.
    #[inline]
    pub fn received_late(&self, ns: u64) {
        add(&self.receive_late_ns.0, ns);
    }

    /// Allocates the memory of all counts now. A page that is allocated during a run would add to the time of the
    /// operation that first touches it, and to memory growth. Called only by the owning thread, before it counts, so
    /// that the memory is near its core.
    pub fn touch(&self) {
        self.buckets.touch();
    }

    /// Sets the limits by which failed operations are counted: a fast failure does not meet a limit. Call it before
    /// anything is counted.
    pub fn hold_to(&self, ops: &[OpInfo]) {
        for (cells, op) in self.kinds.iter().zip(ops) {
            cells.within.store(op.limit.as_ref().map_or(0, |limit| index(limit_ns(limit)) + 1), Relaxed);
        }
    }

    /// The service or response buckets of a type.
    fn buckets(&self, kind: OpKind, side: usize) -> &[AtomicU32] {
        let start = (2 * kind + side) * BUCKETS;
        &self.buckets[start..start + BUCKETS]
    }

    #[inline]
    fn count(&self, kind: OpKind, side: usize, ns: u64) {
        let bucket = &self.buckets[(2 * kind + side) * BUCKETS + index(ns)];
        bucket.store(bucket.load(Relaxed).wrapping_add(1), Relaxed);
    }

    /// Counts the statements of an operation that is about to end. Called only by the owning thread.
    #[inline]
    pub fn statements(&self, kind: OpKind, statements: StatementCounts) {
        let StatementCounts { reads, writes, others } = statements;
        for (cell, count) in self.kinds[kind].statements.iter().zip([reads, writes, others]) {
            add(cell, u64::from(count));
        }
    }

    /// Counts one operation: its times, and how late the client itself started it. Called only by the owning thread.
    #[inline]
    pub fn record(&self, kind: OpKind, op: Op, service_ns: u64, response_ns: u64, late_ns: u64) {
        let cells = &self.kinds[kind];
        if op.failed {
            add(&cells.errors, 1);
            add(&cells.errors_within, u64::from(index(response_ns) < cells.within.load(Relaxed)));
        } else {
            add(&cells.count, 1);
            add(&cells.rows, op.rows);
        }
        if op.retries > 0 {
            add(&cells.retries, u64::from(op.retries));
        }
        add(&cells.late_ns, late_ns);
        cells.service.record(service_ns);
        self.count(kind, SERVICE, service_ns);
        cells.response.record(response_ns);
        self.count(kind, RESPONSE, response_ns);
    }
}

/// Plain counts of service or response times.
#[derive(Clone, Debug, PartialEq)]
pub struct Times {
    /// Sum, nanoseconds.
    pub sum_ns: u64,
    /// Largest, nanoseconds.
    pub max_ns: u64,
    pub buckets: Vec<u64>,
}

/// Plain counts of one type of operation over some span.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct KindCounts {
    /// Operations that succeeded.
    pub count: u64,
    /// Operations that failed for good.
    pub errors: u64,
    /// Failed operations with a response within the limit of their type, if it has one.
    pub errors_within: u64,
    pub retries: u64,
    pub rows: u64,
    /// Nanoseconds that operations started late because of the client itself.
    pub late_ns: u64,
    /// Statements: those that read, that write, and all others.
    pub statements: [u64; 3],
    pub service: Times,
    pub response: Times,
}

/// Plain counts over some span, all clients together.
#[derive(Clone, Debug, PartialEq)]
pub struct Counts {
    /// By type of operation.
    pub kinds: Vec<KindCounts>,
    /// Retries by cause.
    pub conflicts: Conflicts,
    /// Nanoseconds that readable answers waited for their clients on event loops, summed.
    pub receive_late_ns: u64,
}

impl Default for Times {
    fn default() -> Self {
        Self { sum_ns: 0, max_ns: 0, buckets: vec![0; BUCKETS] }
    }
}

impl Times {
    pub fn add(&mut self, ns: u64) {
        self.sum_ns += ns;
        self.max_ns = self.max_ns.max(ns);
        self.buckets[index(ns)] += 1;
    }

    /// Adds the times of another span.
    pub fn merge(&mut self, other: &Times) {
        self.sum_ns += other.sum_ns;
        self.max_ns = self.max_ns.max(other.max_ns);
        for (mine, theirs) in self.buckets.iter_mut().zip(&other.buckets) {
            *mine += theirs;
        }
    }
}

impl KindCounts {
    /// The numbers besides its buckets and its largest times.
    fn numbers(&mut self) -> [&mut u64; 11] {
        let Self { count, errors, errors_within, retries, rows, late_ns, statements, service, response } = self;
        let [reads, writes, others] = statements;
        let (service_ns, response_ns) = (&mut service.sum_ns, &mut response.sum_ns);
        [count, errors, errors_within, retries, rows, late_ns, reads, writes, others, service_ns, response_ns]
    }

    /// Adds the statements of another span.
    pub fn add_statements(&mut self, others: [u64; 3]) {
        self.statements.iter_mut().zip(others).for_each(|(mine, theirs)| *mine += theirs);
    }
}

impl Counts {
    /// Zero counts for `kinds` types of operations.
    pub fn new(kinds: usize) -> Self {
        Self { kinds: vec![KindCounts::default(); kinds], conflicts: Conflicts::new(), receive_late_ns: 0 }
    }

    /// Adds the counts of another span or other clients.
    pub fn merge(&mut self, other: &Counts) {
        merge(&mut self.conflicts, &other.conflicts);
        self.receive_late_ns += other.receive_late_ns;
        for (mine, theirs) in self.kinds.iter_mut().zip(&other.kinds) {
            mine.count += theirs.count;
            mine.errors += theirs.errors;
            mine.errors_within += theirs.errors_within;
            mine.retries += theirs.retries;
            mine.rows += theirs.rows;
            mine.late_ns += theirs.late_ns;
            mine.add_statements(theirs.statements);
            mine.service.merge(&theirs.service);
            mine.response.merge(&theirs.response);
        }
    }

    /// Operations of all types that succeeded.
    pub fn ops(&self) -> u64 {
        self.kinds.iter().map(|kind| kind.count).sum()
    }

    /// Statements of all types: those that read, that write, and all others.
    pub fn statements(&self) -> [u64; 3] {
        let mut all = [0; 3];
        for kind in &self.kinds {
            all.iter_mut().zip(kind.statements).for_each(|(sum, count)| *sum += count);
        }
        all
    }

    pub fn rows(&self) -> u64 {
        self.kinds.iter().map(|kind| kind.rows).sum()
    }
}

/// Reads all threads' cells and returns the difference from its last reading.
pub struct Collector {
    threads: Vec<std::sync::Arc<Cells>>,
    /// Running totals, wrapping as the cells do.
    last: Counts,
}

impl Collector {
    /// A collector over the cells of these threads.
    pub fn new(threads: Vec<std::sync::Arc<Cells>>, kinds: usize) -> Self {
        Self { threads, last: Counts::new(kinds) }
    }

    /// Sets the limits of these types of operations on all threads.
    pub fn hold_to(&self, ops: &[OpInfo]) {
        self.threads.iter().for_each(|cells| cells.hold_to(ops));
    }

    /// The counts since the last call.
    pub fn collect(&mut self) -> Counts {
        let mut now = Counts::new(self.last.kinds.len());
        for all in &self.threads {
            all.conflicts.add_to(&mut now.conflicts);
            now.receive_late_ns = now.receive_late_ns.wrapping_add(all.receive_late_ns.0.load(Relaxed));
            for (kind, (cells, total)) in all.kinds.iter().zip(&mut now.kinds).enumerate() {
                let [reads, writes, others] = &cells.statements;
                let times = [&cells.service.sum_ns, &cells.response.sum_ns];
                let KindCells { count, errors, errors_within, retries, rows, late_ns, .. } = cells;
                let numbers = [count, errors, errors_within, retries, rows, late_ns, reads, writes, others];
                for (number, cell) in total.numbers().into_iter().zip(numbers.into_iter().chain(times)) {
                    *number = number.wrapping_add(cell.load(Relaxed));
                }
                if total.count == 0 && total.errors == 0 {
                    continue; // Never used: nothing to read.
                }
                let sides = [(&mut total.service, &cells.service), (&mut total.response, &cells.response)];
                for (side, (times, cells)) in sides.into_iter().enumerate() {
                    times.max_ns = times.max_ns.max(cells.max_ns.swap(0, Relaxed));
                    for (count, bucket) in times.buckets.iter_mut().zip(all.buckets(kind, side)) {
                        *count += u64::from(bucket.load(Relaxed));
                    }
                }
            }
        }
        self.difference(now)
    }

    /// The growth of these totals since the last ones, which they replace.
    fn difference(&mut self, mut now: Counts) -> Counts {
        let conflicts = since(&now.conflicts, &self.last.conflicts);
        self.last.conflicts = std::mem::replace(&mut now.conflicts, conflicts);
        let grow = |total: &mut u64, last: &mut u64| *last = std::mem::replace(total, total.wrapping_sub(*last));
        grow(&mut now.receive_late_ns, &mut self.last.receive_late_ns);
        for (now, last) in now.kinds.iter_mut().zip(&mut self.last.kinds) {
            now.numbers().into_iter().zip(last.numbers()).for_each(|(total, last)| grow(total, last));
            for (now, last) in [(&mut now.service, &mut last.service), (&mut now.response, &mut last.response)] {
                for (total, last) in now.buckets.iter_mut().zip(&mut last.buckets) {
                    grow(total, last);
                    // The cells of buckets wrap at 32 bits.
                    *total = u64::from(*total as u32);
                }
            }
        }
        now
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[test]
    fn collector_takes_each_record_exactly_once() {
        let clients = [Arc::new(Cells::new(2)), Arc::new(Cells::new(2))];
        let mut collector = Collector::new(clients.to_vec(), 2);
        clients[0].record(0, Op { rows: 5, retries: 2, failed: false }, 1_000, 2_000, 50);
        clients[0].statements(0, StatementCounts { reads: 2, writes: 1, others: 3 });
        clients[1].statements(0, StatementCounts { reads: 1, ..StatementCounts::NONE });
        clients[1].record(1, Op { rows: 1, retries: 0, failed: true }, 3_000, 3_000, 0);
        let counts = collector.collect();
        assert_eq!((counts.kinds[0].count, counts.kinds[0].rows, counts.kinds[0].retries), (1, 5, 2));
        assert_eq!((counts.kinds[1].count, counts.kinds[1].errors, counts.kinds[1].rows), (0, 1, 0));
        assert_eq!((counts.kinds[0].statements, counts.kinds[1].statements), ([3, 1, 3], [0; 3]));
        assert_eq!((counts.kinds[0].response.max_ns, counts.kinds[0].late_ns), (2_000, 50));
        assert_eq!(counts.kinds[0].service.buckets[index(1_000)], 1);
        let nothing = collector.collect();
        assert_eq!(nothing, Counts::new(2));
    }

    #[test]
    fn no_count_is_lost_while_client_records_and_collector_reads() {
        let cells = Arc::new(Cells::new(1));
        let mut collector = Collector::new(vec![cells.clone()], 1);
        let writer = std::thread::spawn(move || {
            for number in 0..200_000u64 {
                cells.record(0, Op { rows: 1, ..Op::default() }, number, number, 0);
            }
        });
        let mut total = Counts::new(1);
        while !writer.is_finished() {
            total.merge(&collector.collect());
        }
        writer.join().unwrap();
        total.merge(&collector.collect());
        assert_eq!(total.ops(), 200_000);
        assert_eq!(total.kinds[0].service.buckets.iter().sum::<u64>(), 200_000);
        assert_eq!(total.kinds[0].service.max_ns, 199_999);
    }
}
