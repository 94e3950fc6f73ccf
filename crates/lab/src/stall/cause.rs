//! The likely cause of a stall, from two samples of a trial. The figures are included, so that a reader can check it.

use rumba_engine_api::limits::StorageLimit;
use rumba_engine_api::units::show_bytes;

use super::snapshot::{Process, Snapshot};

/// A group that uses this share of its limit has no free memory.
const FULL: f64 = 0.95;
/// CPU seconds per second in the kernel above those of a process that waits on a busy host.
const BUSY_IN_KERNEL: f64 = 0.1;
/// The ratio of kernel CPU to own CPU from which a process makes no progress.
const KERNEL_OVER_OWN: f64 = 3.0;
/// Major faults per second of a process that reads its own program again and again.
const FAULTS_PER_S: f64 = 30.0;
/// The share of the time with some process waiting for memory.
const WAITS_FOR_MEMORY: f64 = 0.3;
/// The share of its budget, or of the time, at which a device is the bottleneck.
const AT_LIMIT: f64 = 0.9;
/// CPU seconds per second of a process that computes.
const COMPUTES: f64 = 0.5;

/// The activity of a process between two samples, per second.
struct Rates {
    process: Process,
    user: f64,
    system: f64,
    faults: f64,
}

/// Two samples of a trial.
pub struct Between<'a> {
    first: &'a Snapshot,
    last: &'a Snapshot,
    storage: Option<&'a StorageLimit>,
}

impl<'a> Between<'a> {
    /// Compares the first sample with the last.
    pub fn new(first: &'a Snapshot, last: &'a Snapshot, storage: Option<&'a StorageLimit>) -> Self {
        Self { first, last, storage }
    }

    fn seconds(&self) -> f64 {
        self.last.at.saturating_duration_since(self.first.at).as_secs_f64().max(1e-3)
    }

    fn rates(&self) -> Option<Rates> {
        let process = self.last.engine()?;
        let before = self.first.engine().filter(|before| before.pid == process.pid)?;
        let rate = |now: f64, before: f64| (now - before).max(0.0) / self.seconds();
        let faults = rate(process.major_faults as f64, before.major_faults as f64);
        let (user, system) = (rate(process.user_s, before.user_s), rate(process.system_s, before.system_s));
        Some(Rates { process, user, system, faults })
    }

    /// CPU seconds per second that the engine's process spent in its own code.
    pub fn own_cpu(&self) -> f64 {
        self.rates().map_or(0.0, |rates| rates.user)
    }

    /// The likeliest cause, as text that begins with its name.
    pub fn cause(&self) -> String {
        self.stopped().or_else(|| self.memory()).or_else(|| self.device()).unwrap_or_else(|| self.inside())
    }

    fn stopped(&self) -> Option<String> {
        let Process { name, pid, state, .. } = self.last.processes.iter().find(|process| process.is_stopped())?;
        Some(format!("a stopped process: {name} (pid {pid}) is in state {state}; `kill -CONT {pid}` lets it go on"))
    }

    /// The kernel reclaims pages that are needed again at once. The group's failure counter stays 0, but the processes'
    /// kernel time rises.
    fn memory(&self) -> Option<String> {
        let rates = self.rates()?;
        let in_kernel = rates.system >= BUSY_IN_KERNEL && rates.system >= KERNEL_OVER_OWN * rates.user;
        let faults = rates.faults >= FAULTS_PER_S;
        let waits = self.host_wait().is_some_and(|share| share >= WAITS_FOR_MEMORY);
        match &self.last.memory {
            Some(group) => (group.held_bytes as f64 >= FULL * group.limit_bytes as f64
                && (in_kernel || faults || waits))
                .then(|| {
                    "pressure of memory: the memory group is too small; raise limits.memory, or lower cache or the \
                     clients"
                        .to_owned()
                }),
            None => (waits && (in_kernel || faults))
                .then(|| "pressure of memory: the host has too little; lower cache or the clients".to_owned()),
        }
    }

    fn device(&self) -> Option<String> {
        let (first, last) = (self.first.device?, self.last.device?);
        let rate = |now: u64, before: u64| now.saturating_sub(before) as f64 / self.seconds();
        let operations = rate(last.operations, first.operations);
        let budget = self.storage.and_then(|storage| storage.iops).map(f64::from);
        if let Some(budget) = budget.filter(|budget| operations >= AT_LIMIT * budget) {
            return Some(format!("the storage at its limit: {operations:.0} of {budget:.0} operations/s are used"));
        }
        let both = |storage: &StorageLimit| {
            let read = storage.read_bps.map(|limit| (rate(last.read_bytes, first.read_bytes), limit, "read"));
            let write = storage.write_bps.map(|limit| (rate(last.write_bytes, first.write_bytes), limit, "written"));
            [read, write].into_iter().flatten().find(|(rate, limit, _)| *rate >= AT_LIMIT * *limit as f64)
        };
        if let Some((rate, limit, what)) = self.storage.and_then(both) {
            let (rate, limit) = (show_bytes(rate), show_bytes(limit as f64));
            return Some(format!("the storage at its limit: {rate}/s of {limit}/s are {what}"));
        }
        let busy = rate(last.busy_ms, first.busy_ms) / 1e3;
        (busy >= AT_LIMIT).then(|| format!("the device: it was busy {:.0}% of the time", busy * 100.0))
    }

    fn inside(&self) -> String {
        let Some(Rates { process, user, system, .. }) = self.rates() else {
            return "not known: the trial's processes cannot be looked at".to_owned();
        };
        let name = &process.name;
        if user + system >= COMPUTES {
            return format!(
                "{name} computes without ending an operation (in its own code {user:.2}, in the kernel {system:.2} s/s)"
            );
        }
        let at_locks = process.at_locks.map(|count| format!(": {count} of {} threads are at one", process.threads));
        format!("a lock, or another wait inside {name}{}", at_locks.unwrap_or_default())
    }

    fn host_wait(&self) -> Option<f64> {
        let us = self.last.host_memory_wait_us?.saturating_sub(self.first.host_memory_wait_us?);
        Some(us as f64 / 1e6 / self.seconds())
    }

    pub fn figures(&self) -> String {
        let mut seen = Vec::new();
        if let Some(Rates { process, user, system, faults }) = self.rates() {
            let Process { name, state, threads, .. } = process;
            seen.push(format!(
                "{name}: state {state}, {threads} threads, {user:.2} s CPU/s in its own code and {system:.2} in the \
                 kernel, {faults:.0} major faults/s"
            ));
        }
        if let Some(group) = &self.last.memory {
            let (held, limit) = (show_bytes(group.held_bytes as f64), show_bytes(group.limit_bytes as f64));
            seen.push(format!("the memory group holds {held} of {limit}"));
        }
        if let Some(share) = self.host_wait() {
            let percent = share * 100.0;
            seen.push(format!("processes of the host waited for memory {percent:.0}% of the time (/proc/pressure)"));
        }
        if let (Some(first), Some(last)) = (self.first.device, self.last.device) {
            let rate = |now: u64, before: u64| now.saturating_sub(before) as f64 / self.seconds();
            seen.push(format!(
                "the device served {:.0} operations/s ({}/s read, {}/s written) and was busy {:.0}% of the time",
                rate(last.operations, first.operations),
                show_bytes(rate(last.read_bytes, first.read_bytes)),
                show_bytes(rate(last.write_bytes, first.write_bytes)),
                rate(last.busy_ms, first.busy_ms) / 10.0
            ));
        }
        if seen.is_empty() { "nothing could be seen".to_owned() } else { seen.join("; ") }
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::super::snapshot::Device;
    use super::*;
    use crate::limits::MemoryPressure;

    fn look(at: Instant) -> Snapshot {
        let process = Process {
            pid: 7,
            name: "mariadbd".to_owned(),
            state: 'S',
            user_s: 1.0,
            system_s: 1.0,
            major_faults: 0,
            threads: 30,
            at_locks: Some(28),
        };
        let device = Device { operations: 0, read_bytes: 0, write_bytes: 0, busy_ms: 0 };
        let memory = MemoryPressure { held_bytes: 50, limit_bytes: 100 };
        Snapshot {
            at,
            processes: vec![process],
            memory: Some(memory),
            host_memory_wait_us: Some(0),
            device: Some(device),
        }
    }

    fn cause(change: impl FnOnce(&mut Snapshot), storage: Option<&StorageLimit>) -> String {
        let first = look(Instant::now());
        let mut last = Snapshot { at: first.at + Duration::from_secs(10), ..first.clone() };
        change(&mut last);
        let between = Between::new(&first, &last, storage);
        assert!(between.figures().contains("mariadbd"), "{}", between.figures());
        between.cause()
    }

    #[test]
    fn each_stall_cause_is_identified() {
        let full =
            |snapshot: &mut Snapshot| snapshot.memory = Some(MemoryPressure { held_bytes: 99, limit_bytes: 100 });
        let stopped = cause(|snapshot| snapshot.processes[0].state = 'T', None);
        assert!(stopped.starts_with("a stopped process: mariadbd (pid 7)"), "{stopped}");
        let spins = |snapshot: &mut Snapshot| snapshot.processes[0].system_s += 9.8;
        let memory = cause(|snapshot| [full(snapshot), spins(snapshot)].into_iter().collect(), None);
        assert!(memory.starts_with("pressure of memory: the memory group"), "{memory}");
        let faults = |snapshot: &mut Snapshot| snapshot.processes[0].major_faults += 2000;
        let memory = cause(|snapshot| [full(snapshot), faults(snapshot)].into_iter().collect(), None);
        assert!(memory.starts_with("pressure of memory"), "{memory}");
        let roomy = cause(spins, None);
        assert!(roomy.starts_with("mariadbd computes"), "a group that has room is not the cause: {roomy}");
        let waits = cause(full, None);
        assert!(waits.starts_with("a lock") && waits.contains("28 of 30"), "page cache fills every group: {waits}");
    }

    #[test]
    fn a_device_is_at_its_limit_by_its_budget_or_by_its_time() {
        let storage = StorageLimit { iops: Some(1000), ..StorageLimit::unthrottled() };
        let served = |operations, busy_ms| {
            let device = Device { operations, read_bytes: 0, write_bytes: 0, busy_ms };
            move |snapshot: &mut Snapshot| snapshot.device = Some(device)
        };
        assert!(cause(served(9_900, 0), Some(&storage)).contains("990 of 1000 operations/s"));
        assert!(cause(served(9_900, 0), None).starts_with("a lock"));
        assert!(cause(served(10, 9_900), None).contains("busy 99% of the time"));
        let slow = StorageLimit { write_bps: Some(1 << 20), ..StorageLimit::unthrottled() };
        let device = Device { operations: 10, read_bytes: 0, write_bytes: 10 << 20, busy_ms: 0 };
        let written = cause(|snapshot| snapshot.device = Some(device), Some(&slow));
        assert!(written.contains("1.00 MiB/s of 1.00 MiB/s are written"), "{written}");
    }
}
