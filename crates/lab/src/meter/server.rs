//! A server's process and its descendants, metered apart from rumba's own.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::time::{Duration, Instant};

use super::Known;
use super::clock::ProcessClock;
use super::memory::MemoryInTurns;
use super::proc_file::ProcFile;
use super::process::{self, IoCounters, IoMeter, ResidentMeter};
use crate::host::parse;

/// Meters a server on this host.
///
/// Descendants are looked for when asked to, not at every reading. One that is
/// found counts with all that it has used since its start; one that ended before
/// is in the figure of the process that has reaped it. When the server's own process has ended there are
/// no figures any more.
pub struct ServerMeter {
    main: Process,
    descendants: Vec<Descendant>,
    /// The most that was read of its CPU time.
    most_cpu_ns: u64,
    memory: MemoryInTurns,
}

/// How long the memory of a server's processes may take at a reading: whoever reads counts the clients too, and on a busy
/// host waits for its turn at each process.
const MEMORY_TIME: Duration = Duration::from_millis(100);

/// A server's counters at one moment, cumulative.
pub struct ServerCounters {
    pub cpu_ns: Known<u64>,
    pub io: Known<IoCounters>,
    pub rss_bytes: Known<u64>,
}

impl ServerMeter {
    pub fn of(pid: u32) -> Result<Self, String> {
        let main = Process::of(pid).map_err(|error| format!("the server's process {pid} cannot be read: {error}"))?;
        let mut meter = Self { main, descendants: Vec::new(), most_cpu_ns: 0, memory: MemoryInTurns::default() };
        meter.look_for_descendants();
        Ok(meter)
    }

    /// Takes in the processes that the server has started meanwhile.
    pub fn look_for_descendants(&mut self) {
        let living = self.descendants.iter().filter(|known| known.process.stat().is_ok());
        let mut family: HashSet<u32> = living.map(|known| known.process.pid).collect();
        family.insert(self.main.pid);
        for pid in below(&mut family) {
            if let Ok(process) = Process::of(pid)
                // Held by an open file now: it is still the one that was found.
                && process.stat().is_ok_and(|stat| family.contains(&stat.parent))
            {
                self.descendants.push(Descendant { process, parent: 0, seen_ns: 0, seen_io: IoCounters::default() });
            }
        }
    }

    pub fn read(&mut self) -> ServerCounters {
        let ended = self.main.stat().err();
        let living = |figure: Known<u64>| ended.clone().map_or(figure, Err);
        let io = self.io();
        ServerCounters {
            cpu_ns: living(self.cpu_ns()),
            io: ended.clone().map_or(io, Err),
            rss_bytes: living(self.rss_bytes()),
        }
    }

    /// With each living process's own time goes that of the children that it has reaped, which may have come and gone
    /// between two looks: a server that has a process for each client is made of those. One that has ended is in its
    /// parent's figure once that has reaped it, and keeps its own until then, or if it is an orphan.
    fn cpu_ns(&mut self) -> Known<u64> {
        let family: HashSet<u32> = self.pids().collect();
        let mut sum = self.main.cpu_ns()?;
        for descendant in &mut self.descendants {
            match descendant.process.cpu_ns() {
                Ok(ns) => descendant.seen_ns = ns,
                Err(_) if descendant.process.is_reaped() && family.contains(&descendant.parent) => continue,
                Err(_) => {}
            }
            if let Ok(stat) = descendant.process.stat() {
                descendant.parent = stat.parent;
            }
            sum += descendant.seen_ns;
        }
        // What a process hands on is in ticks, which may be less by one than what it was seen to have used.
        self.most_cpu_ns = sum.max(self.most_cpu_ns);
        Ok(self.most_cpu_ns)
    }

    /// When a process reaps a child, the kernel adds the child's bytes to the
    /// process's own; CPU it keeps apart. So one that was reaped by one of these
    /// processes is in that one's figure, and only an orphan keeps its own.
    fn io(&mut self) -> Known<IoCounters> {
        let family: HashSet<u32> = self.pids().collect();
        let mut sum = self.main.io()?;
        for descendant in &mut self.descendants {
            let living = descendant.process.stat();
            match descendant.process.io() {
                Ok(io) => descendant.seen_io = io,
                // Its share would be missing from the sum.
                Err(reason) if living.is_ok() => return Err(reason),
                Err(_) if family.contains(&descendant.parent) => continue,
                Err(_) => {}
            }
            descendant.parent = living.map_or(descendant.parent, |stat| stat.parent);
            sum.read_bytes += descendant.seen_io.read_bytes;
            sum.write_bytes += descendant.seen_io.write_bytes;
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

    /// Processes of one server share memory, such as its cache: each page counts in parts with all that have it,
    /// together once. A single process has it all, and telling that costs less. Those that there is no time for
    /// are told as they were looked at last, and come first at the next reading.
    fn rss_bytes(&mut self) -> Known<u64> {
        let living = self.descendants.iter().map(|known| &known.process).filter(|process| process.stat().is_ok());
        let mut pids: Vec<u32> = living.map(|process| process.pid).collect();
        if pids.is_empty() {
            return self.main.resident.read();
        }
        pids.push(self.main.pid);
        let begun = Instant::now();
        self.memory.sum(pids, process::proportional_bytes, || begun.elapsed() > MEMORY_TIME)
    }

    /// Context switches of the server's own threads, by thread: the kernel keeps
    /// no sum over a process that another may read.
    pub fn switches(&self) -> Known<ThreadSwitches> {
        let tasks = format!("/proc/{}/task", self.main.pid);
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
        self.main.stat().map(|_| ThreadSwitches(threads))
    }
}

/// Context switches of each thread of a process so far.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ThreadSwitches(HashMap<u32, u64>);

impl ThreadSwitches {
    /// Switches since an earlier look, of the threads that are there now.
    pub fn since(&self, earlier: &ThreadSwitches) -> u64 {
        let grown = |(thread, switches): (&u32, &u64)| {
            // A count that went back is another thread's that got the number.
            earlier.0.get(thread).and_then(|before| switches.checked_sub(*before)).unwrap_or(*switches)
        };
        self.0.iter().map(grown).sum()
    }
}

struct Descendant {
    process: Process,
    /// Its parent's number, its CPU time and its bytes when they were last read.
    parent: u32,
    seen_ns: u64,
    seen_io: IoCounters,
}

/// A process by its open files, which stay its own whatever becomes of its number.
struct Process {
    pid: u32,
    stat: ProcFile,
    clock: Option<ProcessClock>,
    io: Known<IoMeter>,
    resident: ResidentMeter,
}

/// What is needed of a living process's `stat`.
struct Stat {
    parent: u32,
    cpu_ticks: u64,
    children_ticks: u64,
}

impl Process {
    fn of(pid: u32) -> Result<Self, String> {
        let stat = ProcFile::open(format!("/proc/{pid}/stat"))?;
        let name = pid.to_string();
        let (io, resident) = (IoMeter::of(&name), ResidentMeter::of(&name)?);
        let process = Self { pid, stat, clock: ProcessClock::of(pid), io, resident };
        // All of these are the same process's when the first still lives after the last was opened.
        process.stat().map(|_| process)
    }

    /// Fails when the process has ended.
    fn stat(&self) -> Known<Stat> {
        let ended = || format!("the server's process {} has ended", self.pid);
        let text = self.stat.read().map_err(|_| ended())?;
        let stat = parse::process_stat(&text).ok_or_else(|| self.stat.unexpected())?;
        if stat.has_ended() {
            Err(ended())
        } else {
            Ok(Stat { parent: stat.parent, cpu_ticks: stat.cpu_ticks, children_ticks: stat.children_ticks })
        }
    }

    /// Of its threads, and of the children that it has reaped: those in ticks, which is all that the kernel tells.
    /// The exact clock goes by the process's number, so the process must still
    /// live after it was read; ticks where the kernel gives no clock.
    fn cpu_ns(&self) -> Known<u64> {
        let exact = self.clock.and_then(ProcessClock::read_ns);
        let stat = self.stat()?;
        let ns_per_tick = 1_000_000_000 / rustix::param::clock_ticks_per_second();
        Ok(exact.unwrap_or(stat.cpu_ticks * ns_per_tick) + stat.children_ticks * ns_per_tick)
    }

    /// Whether nothing of it is left: one that has ended stays until its parent has taken note.
    fn is_reaped(&self) -> bool {
        self.stat.read().is_err()
    }

    fn io(&self) -> Known<IoCounters> {
        self.io.as_ref().map_err(Clone::clone).and_then(IoMeter::read)
    }
}

/// The processes below those of `family`, which grows by them.
fn below(family: &mut HashSet<u32>) -> Vec<u32> {
    let mut parents: Vec<(u32, u32)> = Vec::new();
    for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else { continue };
        let stat = fs::read_to_string(entry.path().join("stat")).unwrap_or_default();
        if let Some(stat) = parse::process_stat(&stat).filter(|stat| !stat.has_ended()) {
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
        ThreadSwitches(threads.iter().copied().collect())
    }

    #[test]
    fn a_thread_that_came_or_went_or_took_anothers_number_makes_no_negative_figure() {
        let earlier = switches(&[(1, 10), (2, 500), (3, 100)]);
        let later = switches(&[(1, 15), (3, 2), (4, 7)]);
        assert_eq!(later.since(&earlier), 5 + 2 + 7);
    }
}
