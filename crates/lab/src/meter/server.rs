//! A server's process and its descendants, metered apart from rumba's own.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::time::{Duration, Instant};

use super::Known;
use super::clock::ProcessClock;
use super::memory::MemoryInTurns;
use super::proc_file::ProcFile;
use super::process::{IoCounters, IoMeter, ResidentMeter, memory_share};
use crate::host::parse;

/// Meters a server on this host.
///
/// Descendants are looked for when asked to, not at every reading. One that is
/// found counts with all that it has used since its start; one that ended before
/// is in the figure of the process that has reaped it. When the server's own process has ended there are
/// no figures any more.
pub struct ServerMeter {
    main: Process,
    /// Those that have ended and are not reaped yet among them.
    descendants: Vec<Descendant>,
    gone: Gone,
    /// The memory of its own process, as long as there is no other.
    resident: ResidentMeter,
    /// That of several.
    memory: MemoryInTurns,
    /// When it was last begun to be looked at.
    pub(super) looked: Option<Instant>,
}

/// How long the memory of a server's processes may take at a reading, at most: whoever reads counts the clients too, and on
/// a busy host waits for its turn at each process. And how many times as long it is from one reading to the next, unless
/// there are some that nobody has looked at yet.
const MEMORY_TIME: Duration = Duration::from_millis(100);
const MEMORY_SHARE: u32 = 10;

/// How long it may take at a reading that comes so long after the one before.
fn memory_time(since_last: Option<Duration>) -> Duration {
    since_last.map_or(MEMORY_TIME, |since_last| MEMORY_TIME.min(since_last / MEMORY_SHARE))
}

/// A server's counters at one moment, cumulative.
pub struct ServerCounters {
    pub cpu_ns: Known<u64>,
    pub io: Known<IoCounters>,
}

impl ServerMeter {
    pub fn of(pid: u32) -> Result<Self, String> {
        let opened = Process::of(pid).and_then(|main| Ok((ResidentMeter::of(&pid.to_string())?, main)));
        let (resident, main) = opened
            .and_then(|(resident, main)| main.living().map(|_| (resident, main)))
            .map_err(|error| format!("the server's process {pid} cannot be read: {error}"))?;
        let (descendants, gone, memory) = (Vec::new(), Gone::default(), MemoryInTurns::default());
        let mut meter = Self { main, descendants, gone, resident, memory, looked: None };
        meter.look_for_descendants();
        Ok(meter)
    }

    /// Takes in the processes that the server has started meanwhile; also those that have ended and that nobody has reaped:
    /// what they used is in no other's figure yet.
    pub fn look_for_descendants(&mut self) {
        self.dismiss_reaped();
        let mut family: HashSet<u32> = self.pids().collect();
        for pid in below(&mut family) {
            if let Ok(process) = Process::of(pid)
                // Held by an open file now: it is still the one that was found.
                && let Ok(stat) = process.stat()
                && family.contains(&stat.parent)
            {
                self.descendants.push(Descendant { process, parent: stat.parent, seen: Used::default() });
            }
        }
    }

    /// Whether it was found to have more processes than one.
    pub fn has_descendants(&self) -> bool {
        !self.descendants.is_empty()
    }

    pub fn counters(&mut self) -> ServerCounters {
        let ended = self.main.living().err();
        let (cpu_ns, io) = self.used();
        ServerCounters { cpu_ns: ended.clone().map_or(cpu_ns, Err), io: ended.map_or(io, Err) }
    }

    /// CPU time and bytes of all processes. One that is reaped while they are read may be in two figures or in none, as its
    /// parent's was read after that or before: then all are read again, without it.
    fn used(&mut self) -> (Known<u64>, Known<IoCounters>) {
        loop {
            self.dismiss_reaped();
            let (cpu_ns, io) = (self.cpu_ns(), self.io());
            if self.descendants.iter().any(|known| known.process.is_reaped()) {
                continue;
            }
            return (cpu_ns.map(|read| self.gone.cpu_ns(read)), io.map(|read| self.gone.io(read)));
        }
    }

    /// Lets go of those of which nothing is left. What they used is in the figure of the process that has reaped them; if
    /// that is none of these, it is kept.
    fn dismiss_reaped(&mut self) {
        let family: HashSet<u32> = self.pids().collect();
        for known in self.descendants.extract_if(.., |known| known.process.is_reaped()) {
            self.gone.take(known.seen, family.contains(&known.parent));
        }
    }

    /// With each process's own time goes that of the children that it has reaped, which may have come and gone
    /// between two looks: a server that has a process for each client is made of those. One that has ended keeps its own
    /// until it is reaped.
    fn cpu_ns(&mut self) -> Known<u64> {
        let mut sum = self.main.cpu()?.0 + self.gone.orphans.cpu_ns;
        for known in &mut self.descendants {
            if let Ok((ns, stat)) = known.process.cpu() {
                known.seen.cpu_ns = ns.max(known.seen.cpu_ns);
                known.parent = stat.parent;
            }
            sum += known.seen.cpu_ns;
        }
        Ok(sum)
    }

    /// When a process reaps a child, the kernel adds the child's bytes to the
    /// process's own; CPU it keeps apart.
    fn io(&mut self) -> Known<IoCounters> {
        let mut sum = self.main.io()?.plus(self.gone.orphans.io);
        for known in &mut self.descendants {
            match known.process.io() {
                Ok(io) => known.seen.io = io,
                // Its share would be missing from the sum.
                Err(reason) if known.process.living().is_ok() => return Err(reason),
                Err(_) => {}
            }
            sum = sum.plus(known.seen.io);
        }
        Ok(sum)
    }

    /// The number of the server's own process.
    pub fn pid(&self) -> u32 {
        self.main.pid
    }

    /// The numbers of the server's processes.
    pub fn pids(&self) -> impl Iterator<Item = u32> + '_ {
        std::iter::once(self.main.pid).chain(self.descendants.iter().map(|known| known.process.pid))
    }

    /// Resident bytes. Processes of one server share memory, such as its cache: each page counts in parts with all that
    /// have it, together once. A single process has it all, and telling that costs less. Those that there is no time for
    /// are told as they were looked at last, and come first at the next reading.
    pub fn memory(&mut self) -> Known<u64> {
        self.main.living()?;
        let living = self.descendants.iter().map(|known| &known.process).filter(|process| process.living().is_ok());
        let mut pids: Vec<u32> = living.map(|process| process.pid).collect();
        if pids.is_empty() {
            return self.resident.read();
        }
        pids.push(self.main.pid);
        let begun = Instant::now();
        let last = self.looked.replace(begun);
        let most = memory_time(last.map(|last| begun.saturating_duration_since(last)));
        self.memory.sum(pids, memory_share, |is_known| begun.elapsed() > if is_known { most } else { MEMORY_TIME })
    }

    /// Context switches of the threads of all processes, as they were last looked for, and what says whether enough of
    /// them is left to be a figure.
    pub fn switches(&self) -> Known<ThreadSwitches> {
        let mut switches = self.main.switches()?;
        switches.ended_cpu_ns += self.gone.orphans.cpu_ns;
        for Descendant { process, .. } in &self.descendants {
            match process.switches() {
                Ok(more) => switches.add(more),
                Err(reason) if process.living().is_ok() => return Err(reason),
                // It ended while it was looked at.
                Err(_) => {}
            }
        }
        Ok(switches)
    }
}

/// Context switches of each thread of a server so far.
///
/// The kernel keeps no sum over a process that another may read, and a thread or a process that ends takes its count with
/// it. How much of a server that is, the CPU time of its ended processes says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ThreadSwitches {
    threads: HashMap<u32, u64>,
    /// CPU time of each living process, nanoseconds.
    processes: HashMap<u32, u64>,
    /// Of all that were reaped.
    ended_cpu_ns: u64,
}

impl ThreadSwitches {
    /// Switches since an earlier look, of the threads that are there now.
    pub fn since(&self, earlier: &ThreadSwitches) -> u64 {
        let grown = |(thread, switches): (&u32, &u64)| {
            // A count that went back is another thread's that got the number.
            earlier.threads.get(thread).and_then(|before| switches.checked_sub(*before)).unwrap_or(*switches)
        };
        self.threads.iter().map(grown).sum()
    }

    /// CPU seconds that processes have used since an earlier look which have ended by now.
    pub fn ended_cpu_s_since(&self, earlier: &ThreadSwitches) -> f64 {
        let gone = earlier.processes.iter().filter(|(pid, _)| !self.processes.contains_key(*pid));
        let before_ns = earlier.ended_cpu_ns + gone.map(|(_, ns)| ns).sum::<u64>();
        self.ended_cpu_ns.saturating_sub(before_ns) as f64 / 1e9
    }

    fn add(&mut self, other: ThreadSwitches) {
        self.threads.extend(other.threads);
        self.processes.extend(other.processes);
        self.ended_cpu_ns += other.ended_cpu_ns;
    }
}

struct Descendant {
    process: Process,
    /// Its parent's number, and what it had used, when they were last read.
    parent: u32,
    seen: Used,
}

/// What a process has used.
#[derive(Clone, Copy, Default)]
struct Used {
    cpu_ns: u64,
    io: IoCounters,
}

impl Used {
    fn plus(self, other: Self) -> Self {
        Self { cpu_ns: self.cpu_ns + other.cpu_ns, io: self.io.plus(other.io) }
    }
}

/// What processes had used of which nothing is left, and where that is now.
///
/// Who reaps a process adds what it used to its own figure. Its parent does, if it waits for it; but one that ends
/// first leaves it to another, and one that ignores its children has the kernel drop them. When both end between two
/// readings nobody sees which it was. So the sum is held against the one before: by as much as it fell, what these had
/// used is in nobody's figure. It fell by that less what the others used meanwhile, which nobody can tell apart: of what
/// is lost as much is missing for good as the server used between these two readings, and of what it uses later nothing.
#[derive(Default)]
struct Gone {
    /// What none of the server's processes has reaped.
    orphans: Used,
    /// What those had used that are gone since the last reading, and whose parent is one of the server's processes.
    handed_on: Used,
    /// How many these are.
    count: u64,
    /// What was last told of all processes.
    told: Used,
}

impl Gone {
    /// Takes over what a process was last seen to have used, whose parent is one of the server's processes or is not.
    fn take(&mut self, seen: Used, has_parent: bool) {
        if has_parent {
            (self.handed_on, self.count) = (self.handed_on.plus(seen), self.count + 1);
        } else {
            self.orphans = self.orphans.plus(seen);
        }
    }

    /// The CPU time of all, if so much is read of those that are left and of the orphans.
    fn cpu_ns(&mut self, read: u64) -> u64 {
        let (handed_on, count) = (std::mem::take(&mut self.handed_on.cpu_ns), std::mem::take(&mut self.count));
        let fell = self.told.cpu_ns.saturating_sub(read).min(handed_on);
        // What a process hands on is in ticks, of user and of system time, each of them cut off.
        let lost = if fell > 2 * count * ns_per_tick() { fell } else { 0 };
        self.orphans.cpu_ns += lost;
        self.told.cpu_ns = self.told.cpu_ns.max(read + lost);
        self.told.cpu_ns
    }

    /// The bytes of all, likewise.
    fn io(&mut self, read: IoCounters) -> IoCounters {
        let (handed_on, told) = (std::mem::take(&mut self.handed_on.io), self.told.io);
        let lost = IoCounters {
            read_bytes: told.read_bytes.saturating_sub(read.read_bytes).min(handed_on.read_bytes),
            write_bytes: told.write_bytes.saturating_sub(read.write_bytes).min(handed_on.write_bytes),
        };
        self.orphans.io = self.orphans.io.plus(lost);
        self.told.io = read.plus(lost);
        self.told.io
    }
}

fn ns_per_tick() -> u64 {
    1_000_000_000 / rustix::param::clock_ticks_per_second()
}

/// A process by its open files, which stay its own whatever becomes of its number.
struct Process {
    pid: u32,
    stat: ProcFile,
    clock: Option<ProcessClock>,
    io: Known<IoMeter>,
}

/// What is needed of a process's `stat`.
struct Stat {
    parent: u32,
    has_ended: bool,
    cpu_ns: u64,
    children_ns: u64,
}

impl Process {
    fn of(pid: u32) -> Result<Self, String> {
        let stat = ProcFile::open(format!("/proc/{pid}/stat"))?;
        let process = Self { pid, stat, clock: ProcessClock::of(pid), io: IoMeter::of(&pid.to_string()) };
        // All of these are the same process's when the first is still there after the last was opened.
        process.stat().map(|_| process)
    }

    /// Fails when nothing is left of it: one that has ended stays until its parent has taken note.
    fn stat(&self) -> Known<Stat> {
        let text = self.stat.read().map_err(|_| self.ended())?;
        let stat = parse::process_stat(&text).ok_or_else(|| self.stat.unexpected())?;
        Ok(Stat {
            parent: stat.parent,
            has_ended: stat.has_ended(),
            cpu_ns: stat.cpu_ticks * ns_per_tick(),
            children_ns: stat.children_ticks * ns_per_tick(),
        })
    }

    /// The same; fails when the process has ended.
    fn living(&self) -> Known<Stat> {
        self.stat().and_then(|stat| if stat.has_ended { Err(self.ended()) } else { Ok(stat) })
    }

    fn ended(&self) -> String {
        format!("the server's process {} has ended", self.pid)
    }

    /// CPU time of its threads, and of the children that it has reaped: those in ticks, which is all that the kernel tells.
    /// The exact clock goes by the process's number, so something of the process must still
    /// be there after it was read; ticks where the kernel gives no clock.
    fn cpu(&self) -> Known<(u64, Stat)> {
        let exact = self.clock.and_then(ProcessClock::read_ns);
        let stat = self.stat()?;
        Ok((exact.unwrap_or(stat.cpu_ns) + stat.children_ns, stat))
    }

    /// Whether nothing of it is left.
    fn is_reaped(&self) -> bool {
        self.stat.read().is_err()
    }

    fn io(&self) -> Known<IoCounters> {
        self.io.as_ref().map_err(Clone::clone).and_then(IoMeter::read)
    }

    /// Of its threads, with its CPU time and that of the children that it has reaped.
    fn switches(&self) -> Known<ThreadSwitches> {
        let tasks = format!("/proc/{}/task", self.pid);
        let mut threads = HashMap::new();
        for entry in fs::read_dir(&tasks).map_err(|error| format!("{tasks}: {error}"))?.flatten() {
            // A thread may end while it is looked at.
            let Ok(status) = fs::read_to_string(entry.path().join("status")) else { continue };
            let figure = |key| parse::field(&status, key)?.parse::<u64>().ok();
            let thread = entry.file_name().to_str().and_then(|name| name.parse::<u32>().ok());
            let switches = figure("voluntary_ctxt_switches").zip(figure("nonvoluntary_ctxt_switches"));
            let (Some(thread), Some((voluntary, not))) = (thread, switches) else {
                return Err(format!("{tasks}/*/status: not as expected"));
            };
            threads.insert(thread, voluntary + not);
        }
        // Last: it was this process's tasks that were read, and not a later one's.
        let (cpu_ns, stat) = self.cpu()?;
        if stat.has_ended {
            return Err(self.ended());
        }
        let processes = HashMap::from([(self.pid, cpu_ns - stat.children_ns)]);
        Ok(ThreadSwitches { threads, processes, ended_cpu_ns: stat.children_ns })
    }
}

/// The processes below those of `family`, which grows by them.
fn below(family: &mut HashSet<u32>) -> Vec<u32> {
    let mut parents: Vec<(u32, u32)> = Vec::new();
    for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else { continue };
        let stat = fs::read_to_string(entry.path().join("stat")).unwrap_or_default();
        if let Some(stat) = parse::process_stat(&stat) {
            parents.push((pid, stat.parent));
        }
    }
    let mut found = Vec::new();
    loop {
        let before = found.len();
        for (pid, parent) in &parents {
            if family.contains(parent) && family.insert(*pid) {
                found.push(*pid);
            }
        }
        if found.len() == before {
            return found;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn switches(threads: &[(u32, u64)]) -> ThreadSwitches {
        ThreadSwitches { threads: threads.iter().copied().collect(), ..ThreadSwitches::default() }
    }

    /// So many seconds, and as many megabytes written.
    fn used(seconds: u64) -> Used {
        Used { cpu_ns: seconds * 1_000_000_000, io: IoCounters { read_bytes: 0, write_bytes: seconds * 1_000_000 } }
    }

    /// What is told of all processes if so much is read of those that are left, to which the orphans' is added.
    fn told(gone: &mut Gone, left: u64) -> (u64, u64) {
        let read = used(left).plus(gone.orphans);
        (gone.cpu_ns(read.cpu_ns) / 1_000_000_000, gone.io(read.io).write_bytes / 1_000_000)
    }

    #[test]
    fn usage_of_process_and_child_ended_between_readings_is_kept() {
        // The server has used 10 s, a process of its 20 and that one's child 30.
        let with_all = || {
            let mut gone = Gone::default();
            assert_eq!(told(&mut gone, 60), (60, 60));
            [20, 30].into_iter().for_each(|seconds| gone.take(used(seconds), true));
            gone
        };
        // The child ended last, and another has reaped it: nobody had waited for it.
        let mut orphaned = with_all();
        assert_eq!(told(&mut orphaned, 30), (60, 60));
        assert_eq!(told(&mut orphaned, 35), (65, 65), "what the server uses from then on is not hidden");
        // What the server used between the same two readings is: 63 are true.
        let mut meanwhile = with_all();
        assert_eq!(told(&mut meanwhile, 33), (60, 60));
        assert_eq!(told(&mut meanwhile, 38), (65, 65), "and no more than that: 68 are true");
        // Its parent had waited for it, and the server for that one; meanwhile the server used 3 s.
        let mut handed_on = with_all();
        assert_eq!(told(&mut handed_on, 63), (63, 63));
        assert_eq!(told(&mut handed_on, 65), (65, 65));
        // The kernel dropped both, since the server ignores its children.
        let mut dropped = with_all();
        assert_eq!(told(&mut dropped, 10), (60, 60));
        assert_eq!(told(&mut dropped, 11), (61, 61));
    }

    /// At intervals of a tenth of a second whoever counts the clients did nothing else.
    #[test]
    fn memory_sampling_takes_at_most_a_tenth_of_any_interval() {
        let after = |ms: u64| memory_time(Some(Duration::from_millis(ms)));
        assert_eq!([after(100), after(1000), after(60_000)], [10, 100, 100].map(Duration::from_millis));
        assert_eq!(memory_time(None), MEMORY_TIME, "nobody has looked yet");
    }

    #[test]
    fn ticks_truncated_when_a_process_is_reaped_are_not_orphans() {
        let mut gone = Gone::default();
        assert_eq!(gone.cpu_ns(5_015_000_000), 5_015_000_000);
        gone.take(used(5), true);
        assert_eq!(gone.cpu_ns(5_000_000_000), 5_015_000_000, "it does not fall");
        assert_eq!((gone.orphans.cpu_ns, gone.cpu_ns(5_020_000_000)), (0, 5_020_000_000), "nor is it counted twice");
    }

    #[test]
    fn thread_churn_and_reused_ids_make_no_negative_figure() {
        let earlier = switches(&[(1, 10), (2, 500), (3, 100)]);
        let later = switches(&[(1, 15), (3, 2), (4, 7)]);
        assert_eq!(later.since(&earlier), 5 + 2 + 7);
    }

    #[test]
    fn of_processes_that_ended_counts_what_they_have_used_since() {
        let look = |processes: &[(u32, u64)], ended_s: u64| ThreadSwitches {
            processes: processes.iter().map(|(pid, seconds)| (*pid, seconds * 1_000_000_000)).collect(),
            ended_cpu_ns: ended_s * 1_000_000_000,
            ..ThreadSwitches::default()
        };
        // 7 had used 40 s, used 2 more and ended; 8 came and went in between with 3.
        let earlier = look(&[(1, 5), (7, 40)], 10);
        assert_eq!(look(&[(1, 9)], 10 + 42 + 3).ended_cpu_s_since(&earlier), 5.0);
        assert_eq!(look(&[(1, 9)], 10).ended_cpu_s_since(&earlier), 0.0, "nobody has waited for 7 yet");
    }
}
