//! Meters a server's process and its descendants, separately from rumba's own.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::time::{Duration, Instant};

use super::Known;
use super::clock::CpuClock;
use super::memory::MemoryInTurns;
use super::proc_file::ProcFile;
use super::process::{IoCounters, IoMeter, ResidentMeter, memory_share};
use crate::host::processes::{ProcessStat, family, stat_of};
use crate::host::{parse, threads};

/// Meters a server on this host.
///
/// Descendants are searched for on request, not at every reading. A descendant counts with all usage since its start.
/// One that ended before the search is in the figure of the process that reaped it. When the server's main process has
/// ended, there are no figures.
pub struct ServerMeter {
    main: Process,
    /// Includes processes that have ended and are not reaped yet.
    descendants: Vec<Descendant>,
    gone: Gone,
    /// The memory of the main process, used while it is the only one.
    resident: ResidentMeter,
    /// The memory of several processes.
    memory: MemoryInTurns,
    /// The start of the last memory reading.
    pub(super) looked: Option<Instant>,
}

/// Which of a server's processes a memory reading samples.
#[derive(Clone, Copy)]
pub enum Sampling {
    /// All of them, at the end of a phase.
    Whole,
    /// As many as the time allows; the others keep their last value.
    InTurns,
}

/// The time limit for reading the memory of a server's processes. The reading thread also counts the clients, and on a
/// busy host it waits for a CPU at each process. The second constant is the least ratio of the time between readings to
/// the time of one. It does not apply while a process has no value yet.
const MEMORY_TIME: Duration = Duration::from_millis(100);
const MEMORY_SHARE: u32 = 10;

/// The time limit for the reading at the end of a phase. Results have this one, and old values of some processes would
/// count pages twice that more processes share meanwhile.
const WHOLE_MEMORY_TIME: Duration = Duration::from_secs(1);

/// The time limit for a reading, given the time since the last one.
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

    /// Adds processes that the server has started meanwhile. Processes that have ended but are not reaped count too,
    /// because their usage is in no other figure yet.
    pub fn look_for_descendants(&mut self) {
        self.dismiss_reaped();
        let known: HashSet<u32> = self.pids().collect();
        let family = family(known.iter().copied());
        for pid in family.iter().copied().filter(|pid| !known.contains(pid)) {
            if let Ok(process) = Process::of(pid)
                // The open file pins the process, so this is still the one that was found.
                && let Ok(stat) = process.stat()
                && family.contains(&stat.parent)
            {
                self.descendants.push(Descendant { process, parent: stat.parent, seen: Used::default() });
            }
        }
    }

    /// Whether the server has more than one known process.
    pub fn has_descendants(&self) -> bool {
        !self.descendants.is_empty()
    }

    pub fn counters(&mut self) -> ServerCounters {
        let ended = self.main.living().err();
        let (cpu_ns, io) = self.used();
        ServerCounters { cpu_ns: ended.clone().map_or(cpu_ns, Err), io: ended.map_or(io, Err) }
    }

    /// CPU time and bytes of all processes. A process that is reaped during the reading may count twice or not at all,
    /// because its parent was read after that or before. Then all are read again without it.
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

    /// Forgets processes that are reaped. Their usage is in the figure of the process that reaped them; if that is no
    /// process of the server, it is kept here.
    fn dismiss_reaped(&mut self) {
        let family: HashSet<u32> = self.pids().collect();
        for known in self.descendants.extract_if(.., |known| known.process.is_reaped()) {
            self.gone.take(known.seen, family.contains(&known.parent));
        }
    }

    /// CPU time of all processes, including children that each has reaped. These children may have come and gone
    /// between two searches, as in a server with a process for each client. An ended process keeps its own time until
    /// it is reaped.
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

    /// When a process reaps a child, the kernel adds the child's bytes to the process's own; it counts CPU separately.
    fn io(&mut self) -> Known<IoCounters> {
        let mut sum = self.main.io()?.plus(self.gone.orphans.io);
        for known in &mut self.descendants {
            match known.process.io() {
                Ok(io) => known.seen.io = io,
                // Without this value, the sum would be too small.
                Err(reason) if known.process.living().is_ok() => return Err(reason),
                Err(_) => {}
            }
            sum = sum.plus(known.seen.io);
        }
        Ok(sum)
    }

    /// The pid of the server's main process.
    pub fn pid(&self) -> u32 {
        self.main.pid
    }

    /// The pids of the server's processes.
    pub fn pids(&self) -> impl Iterator<Item = u32> + '_ {
        std::iter::once(self.main.pid).chain(self.descendants.iter().map(|known| known.process.pid))
    }

    pub fn threads(&self) -> Known<Vec<u32>> {
        let threads = self.pids().flat_map(|pid| threads(&pid.to_string())).collect();
        self.main.living().map(|_| threads)
    }

    /// Resident bytes. The processes of one server share memory, such as its cache, so each page counts in proportion,
    /// once in total. A single process has all of it, which is cheaper to read. If time runs out, the other processes
    /// keep their last value and come first at the next reading.
    pub fn memory(&mut self, sampling: Sampling) -> Known<u64> {
        self.main.living()?;
        let living = self.descendants.iter().map(|known| &known.process).filter(|process| process.living().is_ok());
        let mut pids: Vec<u32> = living.map(|process| process.pid).collect();
        if pids.is_empty() {
            return self.resident.read();
        }
        pids.push(self.main.pid);
        let begun = Instant::now();
        let last = self.looked.replace(begun);
        let most = match sampling {
            Sampling::Whole => WHOLE_MEMORY_TIME,
            Sampling::InTurns => memory_time(last.map(|last| begun.saturating_duration_since(last))),
        };
        let of_unknown = most.max(MEMORY_TIME);
        self.memory.sum(pids, memory_share, |is_known| begun.elapsed() > if is_known { most } else { of_unknown })
    }

    /// Context switches of the threads of all known processes, with the CPU time that shows whether enough threads
    /// remain for a figure.
    pub fn switches(&self) -> Known<ThreadSwitches> {
        let mut switches = self.main.switches()?;
        switches.ended_cpu_ns += self.gone.orphans.cpu_ns;
        for Descendant { process, .. } in &self.descendants {
            match process.switches() {
                Ok(more) => switches.add(more),
                Err(reason) if process.living().is_ok() => return Err(reason),
                // The process ended during the reading.
                Err(_) => {}
            }
        }
        Ok(switches)
    }
}

/// Context switches of each thread of a server so far.
///
/// The kernel keeps no sum over a process that another process may read. A thread or process that ends takes its count
/// with it. The CPU time of ended processes shows how large that part is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ThreadSwitches {
    threads: HashMap<u32, u64>,
    /// CPU time of each living process, nanoseconds.
    processes: HashMap<u32, u64>,
    /// CPU time of all reaped processes.
    ended_cpu_ns: u64,
}

impl ThreadSwitches {
    /// Switches since an earlier reading, of the threads that exist now.
    pub fn since(&self, earlier: &ThreadSwitches) -> u64 {
        let grown = |(thread, switches): (&u32, &u64)| {
            // A count that went back belongs to a new thread with a reused number.
            earlier.threads.get(thread).and_then(|before| switches.checked_sub(*before)).unwrap_or(*switches)
        };
        self.threads.iter().map(grown).sum()
    }

    /// CPU seconds since an earlier reading, of processes that have ended by now.
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
    /// Its parent's pid and its usage, as last read.
    parent: u32,
    seen: Used,
}

/// The resources that a process has used.
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

/// The usage of reaped processes, and the figure that holds it now.
///
/// The process that reaps a child adds the child's usage to its own figure. That is the parent, if it waits for the
/// child. A parent that ends first leaves the child to another process. If a parent ignores its children, the kernel
/// drops their usage. When both end between two readings, the case is unknown, so the new sum is compared with the last
/// one. If the sum fell, the drop is usage that no figure holds.
///
/// Usage of the other processes between the two readings makes the drop smaller, and cannot be separated from it. After
/// a loss, that much usage is missing for good; later usage is complete.
#[derive(Default)]
struct Gone {
    /// Usage of processes that no server process has reaped.
    orphans: Used,
    /// Usage of processes that ended since the last reading and whose parent is a server process.
    handed_on: Used,
    /// The number of processes in `handed_on`.
    count: u64,
    /// The last reported usage of all processes.
    reported: Used,
}

impl Gone {
    /// Takes over the last seen usage of a process; `has_parent` means that its parent is a server process.
    fn take(&mut self, seen: Used, has_parent: bool) {
        if has_parent {
            (self.handed_on, self.count) = (self.handed_on.plus(seen), self.count + 1);
        } else {
            self.orphans = self.orphans.plus(seen);
        }
    }

    /// The CPU time of all processes, given the time read from living processes and orphans.
    fn cpu_ns(&mut self, read: u64) -> u64 {
        let (handed_on, count) = (std::mem::take(&mut self.handed_on.cpu_ns), std::mem::take(&mut self.count));
        let fell = self.reported.cpu_ns.saturating_sub(read).min(handed_on);
        // Inherited time is in ticks, with user and system time each rounded down.
        let lost = if fell > 2 * count * ns_per_tick() { fell } else { 0 };
        self.orphans.cpu_ns += lost;
        self.reported.cpu_ns = self.reported.cpu_ns.max(read + lost);
        self.reported.cpu_ns
    }

    /// The bytes of all processes, in the same way.
    fn io(&mut self, read: IoCounters) -> IoCounters {
        let (handed_on, reported) = (std::mem::take(&mut self.handed_on.io), self.reported.io);
        let lost = IoCounters {
            read_bytes: reported.read_bytes.saturating_sub(read.read_bytes).min(handed_on.read_bytes),
            write_bytes: reported.write_bytes.saturating_sub(read.write_bytes).min(handed_on.write_bytes),
        };
        self.orphans.io = self.orphans.io.plus(lost);
        self.reported.io = read.plus(lost);
        self.reported.io
    }
}

/// CPU time of a process so far, in steps of the kernel's ticks; `None` if there is no such process.
pub fn cpu_ns(pid: u32) -> Option<u64> {
    Some(ProcessStat::parse(&stat_of(pid))?.cpu_ticks() * ns_per_tick())
}

fn ns_per_tick() -> u64 {
    1_000_000_000 / rustix::param::clock_ticks_per_second()
}

/// A process by its open files, which stay with it even if its pid is reused.
struct Process {
    pid: u32,
    stat: ProcFile,
    clock: Option<CpuClock>,
    io: Known<IoMeter>,
}

/// The used fields of a process's `stat`.
struct Stat {
    parent: u32,
    has_ended: bool,
    cpu_ns: u64,
    children_ns: u64,
}

impl Process {
    fn of(pid: u32) -> Result<Self, String> {
        let stat = ProcFile::open(format!("/proc/{pid}/stat"))?;
        let process = Self { pid, stat, clock: CpuClock::of_process(pid), io: IoMeter::of(&pid.to_string()) };
        // If the first file is still readable after the last was opened, all belong to the same process.
        process.stat().map(|_| process)
    }

    /// Fails when the process is reaped; an ended process stays until its parent waits for it.
    fn stat(&self) -> Known<Stat> {
        let text = self.stat.read().map_err(|_| self.ended())?;
        let stat = ProcessStat::parse(&text).ok_or_else(|| self.stat.unexpected())?;
        Ok(Stat {
            parent: stat.parent,
            has_ended: stat.has_ended(),
            cpu_ns: stat.cpu_ticks() * ns_per_tick(),
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

    /// CPU time of its threads and of the children that it has reaped. The children's time is in ticks, because the
    /// kernel reports nothing finer. The exact clock is addressed by pid, so the process must still exist after the
    /// reading. Ticks are used if there is no clock.
    fn cpu(&self) -> Known<(u64, Stat)> {
        let exact = self.clock.and_then(CpuClock::read_ns);
        let stat = self.stat()?;
        Ok((exact.unwrap_or(stat.cpu_ns) + stat.children_ns, stat))
    }

    /// Whether the process is reaped.
    fn is_reaped(&self) -> bool {
        self.stat.read().is_err()
    }

    fn io(&self) -> Known<IoCounters> {
        self.io.as_ref().map_err(Clone::clone).and_then(IoMeter::read)
    }

    /// Context switches of its threads, with its CPU time and that of its reaped children.
    fn switches(&self) -> Known<ThreadSwitches> {
        let tasks = format!("/proc/{}/task", self.pid);
        let mut threads = HashMap::new();
        for entry in fs::read_dir(&tasks).map_err(|error| format!("{tasks}: {error}"))?.flatten() {
            // A thread may end during the reading.
            let Ok(status) = fs::read_to_string(entry.path().join("status")) else { continue };
            let figure = |key| parse::field(&status, key)?.parse::<u64>().ok();
            let thread = entry.file_name().to_str().and_then(|name| name.parse::<u32>().ok());
            let switches = figure("voluntary_ctxt_switches").zip(figure("nonvoluntary_ctxt_switches"));
            let (Some(thread), Some((voluntary, not))) = (thread, switches) else {
                return Err(format!("{tasks}/*/status: not as expected"));
            };
            threads.insert(thread, voluntary + not);
        }
        // Read this last, to prove that the tasks belonged to this process and not to a later one with its pid.
        let (cpu_ns, stat) = self.cpu()?;
        if stat.has_ended {
            return Err(self.ended());
        }
        let processes = HashMap::from([(self.pid, cpu_ns - stat.children_ns)]);
        Ok(ThreadSwitches { threads, processes, ended_cpu_ns: stat.children_ns })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn switches(threads: &[(u32, u64)]) -> ThreadSwitches {
        ThreadSwitches { threads: threads.iter().copied().collect(), ..ThreadSwitches::default() }
    }

    /// This many seconds, and as many megabytes written.
    fn used(seconds: u64) -> Used {
        Used { cpu_ns: seconds * 1_000_000_000, io: IoCounters { read_bytes: 0, write_bytes: seconds * 1_000_000 } }
    }

    /// The reported total if the living processes read `left`; the orphans' usage is added to it.
    fn reported(gone: &mut Gone, left: u64) -> (u64, u64) {
        let read = used(left).plus(gone.orphans);
        (gone.cpu_ns(read.cpu_ns) / 1_000_000_000, gone.io(read.io).write_bytes / 1_000_000)
    }

    #[test]
    fn usage_of_process_and_child_ended_between_readings_is_kept() {
        // The server has used 10 s, its child 20 and that one's child 30.
        let with_all = || {
            let mut gone = Gone::default();
            assert_eq!(reported(&mut gone, 60), (60, 60));
            [20, 30].into_iter().for_each(|seconds| gone.take(used(seconds), true));
            gone
        };
        // The grandchild ended last and was reaped by another process, because its parent had ended.
        let mut orphaned = with_all();
        assert_eq!(reported(&mut orphaned, 30), (60, 60));
        assert_eq!(reported(&mut orphaned, 35), (65, 65), "what the server uses from then on is not hidden");
        // The server used 3 s between the same two readings, and they are lost: 63 would be true.
        let mut meanwhile = with_all();
        assert_eq!(reported(&mut meanwhile, 33), (60, 60));
        assert_eq!(reported(&mut meanwhile, 38), (65, 65), "and no more than that: 68 are true");
        // Each parent had waited for its child; meanwhile the server used 3 s.
        let mut handed_on = with_all();
        assert_eq!(reported(&mut handed_on, 63), (63, 63));
        assert_eq!(reported(&mut handed_on, 65), (65, 65));
        // The kernel dropped both, since the server ignores its children.
        let mut dropped = with_all();
        assert_eq!(reported(&mut dropped, 10), (60, 60));
        assert_eq!(reported(&mut dropped, 11), (61, 61));
    }

    /// Guards against endless sampling: at intervals of a tenth of a second, the thread that counts the clients did
    /// nothing else.
    #[test]
    fn memory_sampling_takes_at_most_a_tenth_of_any_interval() {
        let after = |ms: u64| memory_time(Some(Duration::from_millis(ms)));
        assert_eq!([after(100), after(1000), after(60_000)], [10, 100, 100].map(Duration::from_millis));
        assert_eq!(memory_time(None), MEMORY_TIME, "there is no sample yet");
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
    fn ended_processes_count_their_cpu_since_the_last_reading() {
        let look = |processes: &[(u32, u64)], ended_s: u64| ThreadSwitches {
            processes: processes.iter().map(|(pid, seconds)| (*pid, seconds * 1_000_000_000)).collect(),
            ended_cpu_ns: ended_s * 1_000_000_000,
            ..ThreadSwitches::default()
        };
        // 7 had used 40 s, used 2 more and ended; 8 came and went in between with 3.
        let earlier = look(&[(1, 5), (7, 40)], 10);
        assert_eq!(look(&[(1, 9)], 10 + 42 + 3).ended_cpu_s_since(&earlier), 5.0);
        assert_eq!(look(&[(1, 9)], 10).ended_cpu_s_since(&earlier), 0.0, "7 is not reaped yet");
    }
}
