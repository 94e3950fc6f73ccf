//! CPU of processes that have nothing to do with a trial. What the host used beyond them and beyond the trial's own
//! is the kernel's: write-back, journals, loop devices and interrupts are in no process.

use std::collections::{HashMap, HashSet};
use std::fs;

use super::Known;
use crate::host::parse::{self, ProcessStat};

/// A process: its number, and when it started, because numbers are given again.
type Name = (u32, u64);

/// The number of the process that starts all others.
const FIRST: u32 = 1;
/// Why nothing is known of strangers that nobody sees.
const HIDDEN: &str = "/proc does not show the processes of other users (hidepid): what they use is not known; run as root, \
                      or as root: mount -o remount,hidepid=0 /proc";

/// The CPU ticks of every process that is a stranger to a trial, at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Strangers(HashMap<Name, Ticks>);

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Ticks {
    /// Of its threads.
    own: u64,
    /// Of its children that have ended and that it has waited for, theirs included.
    children: u64,
}

impl Ticks {
    fn all(self) -> u64 {
        self.own + self.children
    }
}

impl Strangers {
    /// Looks at every process of the host, so it is done between phases.
    /// None are strangers that are this process, one of `servers`, or below one of them; nor are the kernel's threads.
    ///
    /// # Errors
    /// When the processes cannot be listed, or not all of them.
    pub fn look(servers: Option<u32>) -> Known<Self> {
        let mut processes = Vec::new();
        for entry in fs::read_dir("/proc").map_err(|error| format!("/proc: {error}"))?.flatten() {
            let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse::<u32>().ok()) else { continue };
            // It may end while it is looked at.
            let text = fs::read_to_string(entry.path().join("stat")).unwrap_or_default();
            if let Some(stat) = parse::process_stat(&text) {
                processes.push((pid, Seen::of(&stat)));
            }
        }
        Self::among(processes, std::iter::once(std::process::id()).chain(servers).collect())
    }

    /// Those of all processes that are none of these and not below them.
    fn among(processes: Vec<(u32, Seen)>, ours: HashSet<u32>) -> Known<Self> {
        // It is there as long as the host, or the container, is.
        if !processes.iter().any(|(pid, _)| *pid == FIRST) {
            return Err(HIDDEN.to_owned());
        }
        let family = family(ours, &processes);
        let strangers = processes.into_iter().filter(|(pid, seen)| !seen.is_kernel && !family.contains(pid));
        Ok(Self(strangers.map(|(pid, seen)| ((pid, seen.started), seen.ticks)).collect()))
    }

    /// CPU seconds since an earlier look, those of processes that came and went in between included, if their parents
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
        // Who has ended has handed all its time to whoever waited for it, also what it had used before.
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
        let ticks = Ticks { own: stat.cpu_ticks, children: stat.children_ticks };
        Self { parent: stat.parent, started: stat.start_ticks, is_kernel: stat.is_kernel_thread, ticks }
    }
}

/// These processes and all below them.
fn family(mut family: HashSet<u32>, processes: &[(u32, Seen)]) -> HashSet<u32> {
    loop {
        let before = family.len();
        family.extend(
            processes.iter().filter(|(_, seen)| family.contains(&seen.parent)).map(|(pid, _)| *pid).collect::<Vec<_>>(),
        );
        if family.len() == before {
            return family;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn strangers(processes: &[(u32, u64, u64)]) -> Strangers {
        Strangers(processes.iter().map(|&(pid, own, children)| ((pid, 0), Ticks { own, children })).collect())
    }

    #[test]
    fn a_process_that_ended_counts_once_with_what_it_used_since() {
        // 7 had used 100 before, used 20 more, ended, and was waited for by 1; 8 came and went in between with 5.
        let earlier = strangers(&[(1, 10, 3), (7, 100, 0)]);
        let later = strangers(&[(1, 11, 3 + 120 + 5)]);
        assert_eq!(later.ticks_since(&earlier), 1 + 20 + 5);
    }

    #[test]
    fn a_process_that_nobody_waited_for_makes_no_negative_figure() {
        let earlier = strangers(&[(1, 10, 0), (7, 100, 0)]);
        assert_eq!(strangers(&[(1, 14, 0)]).ticks_since(&earlier), 4);
    }

    #[test]
    fn a_number_that_was_given_again_is_another_process() {
        let mut later = strangers(&[]);
        later.0.insert((7, 99), Ticks { own: 2, children: 0 });
        assert_eq!(later.ticks_since(&strangers(&[(7, 100, 0)])), 2);
    }

    /// Where `/proc` is mounted so that users see their own processes alone, all others' CPU was taken for none, and charged
    /// to the trial as the kernel's.
    #[test]
    fn strangers_that_are_hidden_are_not_known_and_not_idle() {
        let seen = |parent: u32| Seen { parent, started: 0, is_kernel: false, ticks: Ticks { own: 5, children: 0 } };
        let among = |processes: Vec<(u32, Seen)>| Strangers::among(processes, HashSet::from([7]));
        let hidden = among(vec![(7, seen(1)), (8, seen(7)), (9, seen(1))]).unwrap_err();
        assert!(hidden.contains("hidepid"), "{hidden}");
        let all = among(vec![(FIRST, seen(0)), (7, seen(1)), (8, seen(7)), (9, seen(1))]).unwrap();
        assert_eq!(all, strangers(&[(FIRST, 5, 0), (9, 5, 0)]));
    }

    #[test]
    fn this_process_and_what_it_starts_are_no_strangers() {
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let seen = Strangers::look(None).unwrap();
        let has = |pid: u32| seen.0.keys().any(|(known, _)| *known == pid);
        assert!(!has(std::process::id()) && !has(child.id()));
        child.kill().unwrap();
        child.wait().unwrap();
        let kernel =
            |pid: &u32| fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|name| name.contains("kthreadd"));
        assert!(!seen.0.keys().any(|(pid, _)| kernel(pid)));
    }
}
