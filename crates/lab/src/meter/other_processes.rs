//! CPU of processes that do not belong to a trial. The host's remaining CPU, beyond these and the trial's own, is the
//! kernel's. No process is charged with write-back, journals, loop devices and interrupts.

use std::collections::{HashMap, HashSet};

use super::Known;
use crate::host::processes::{ProcessStat, family_among, pids, stat_of};

/// A process: its pid and start time, because pids are reused.
type Name = (u32, u64);

/// The pid of the first process.
const FIRST: u32 = 1;
const HIDDEN: &str = "/proc hides the processes of other users (hidepid), so their use is unknown; run as root, or as \
                      root: mount -o remount,hidepid=0 /proc";

/// The CPU ticks of every process that does not belong to a trial, at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OtherProcesses(HashMap<Name, Ticks>);

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Ticks {
    /// Ticks of its threads.
    own: u64,
    /// Ticks of its children that have ended and that it has waited for, with their children.
    children: u64,
}

impl Ticks {
    fn all(self) -> u64 {
        self.own + self.children
    }
}

impl OtherProcesses {
    /// Reads every process of the host, so call it between phases. This process, the processes of `ours`, their
    /// descendants and kernel threads are left out.
    ///
    /// # Errors
    /// When the processes cannot be listed, or not all of them are visible.
    pub fn look(ours: impl IntoIterator<Item = u32>) -> Known<Self> {
        // A process may end during the reading.
        let processes = pids().filter_map(|pid| Some((pid, Seen::of(&ProcessStat::parse(&stat_of(pid))?))));
        Self::among(processes.collect(), std::iter::once(std::process::id()).chain(ours).collect())
    }

    /// The processes that are neither in `ours` nor descendants of it.
    fn among(processes: Vec<(u32, Seen)>, ours: HashSet<u32>) -> Known<Self> {
        // The first process exists as long as the host, or the container, runs.
        if !processes.iter().any(|(pid, _)| *pid == FIRST) {
            return Err(HIDDEN.to_owned());
        }
        let parents: Vec<(u32, u32)> = processes.iter().map(|(pid, seen)| (*pid, seen.parent)).collect();
        let family: HashSet<u32> = family_among(&parents, ours).into_iter().collect();
        let other_processes = processes.into_iter().filter(|(pid, seen)| !seen.is_kernel && !family.contains(pid));
        Ok(Self(other_processes.map(|(pid, seen)| ((pid, seen.started), seen.ticks)).collect()))
    }

    /// CPU seconds since an earlier reading. Processes that came and went in between are included if their parents
    /// waited for them.
    pub fn cpu_s_since(&self, earlier: &Self) -> f64 {
        self.ticks_since(earlier) as f64 / rustix::param::clock_ticks_per_second() as f64
    }

    fn ticks_since(&self, earlier: &Self) -> u64 {
        let (mut own, mut children) = (0, 0);
        for (name, now) in &self.0 {
            let before = earlier.0.get(name).copied().unwrap_or_default();
            own += now.own.saturating_sub(before.own);
            children += now.children.saturating_sub(before.children);
        }
        // An ended process has passed all its time to the process that waited for it, including time from before.
        let ended = earlier.0.iter().filter(|(name, _)| !self.0.contains_key(name));
        own + children.saturating_sub(ended.map(|(_, ticks)| ticks.all()).sum())
    }
}

struct Seen {
    parent: u32,
    started: u64,
    is_kernel: bool,
    ticks: Ticks,
}

impl Seen {
    fn of(stat: &ProcessStat<'_>) -> Self {
        let ticks = Ticks { own: stat.cpu_ticks(), children: stat.children_ticks };
        Self { parent: stat.parent, started: stat.start_ticks, is_kernel: stat.is_kernel_thread(), ticks }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn other_processes(processes: &[(u32, u64, u64)]) -> OtherProcesses {
        OtherProcesses(processes.iter().map(|&(pid, own, children)| ((pid, 0), Ticks { own, children })).collect())
    }

    #[test]
    fn ended_process_counts_once_with_its_usage_since() {
        // 7 had used 100 before, used 20 more, ended, and was waited for by 1; 8 came and went in between with 5.
        let earlier = other_processes(&[(1, 10, 3), (7, 100, 0)]);
        let later = other_processes(&[(1, 11, 3 + 120 + 5)]);
        assert_eq!(later.ticks_since(&earlier), 1 + 20 + 5);
    }

    #[test]
    fn unreaped_process_yields_no_negative_value() {
        let earlier = other_processes(&[(1, 10, 0), (7, 100, 0)]);
        assert_eq!(other_processes(&[(1, 14, 0)]).ticks_since(&earlier), 4);
    }

    #[test]
    fn a_number_that_was_given_again_is_another_process() {
        let mut later = other_processes(&[]);
        later.0.insert((7, 99), Ticks { own: 2, children: 0 });
        assert_eq!(later.ticks_since(&other_processes(&[(7, 100, 0)])), 2);
    }

    /// Guards against a hidden `/proc`, where users see only their own processes. All other CPU then counted as zero,
    /// and the trial was charged with it as kernel time.
    #[test]
    fn hidden_processes_are_reported_as_unknown_not_idle() {
        let seen = |parent: u32| Seen { parent, started: 0, is_kernel: false, ticks: Ticks { own: 5, children: 0 } };
        let among = |processes: Vec<(u32, Seen)>| OtherProcesses::among(processes, HashSet::from([7]));
        let hidden = among(vec![(7, seen(1)), (8, seen(7)), (9, seen(1))]).unwrap_err();
        assert!(hidden.contains("hidepid"), "{hidden}");
        let all = among(vec![(FIRST, seen(0)), (7, seen(1)), (8, seen(7)), (9, seen(1))]).unwrap();
        assert_eq!(all, other_processes(&[(FIRST, 5, 0), (9, 5, 0)]));
    }
}
