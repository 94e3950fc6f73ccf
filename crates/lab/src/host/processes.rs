//! The processes of this host: `/proc/PID`.

use std::collections::HashSet;
use std::fs;

/// The fields of `/proc/PID/stat` that rumba uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProcessStat<'a> {
    /// The program's name, at most 15 bytes.
    pub name: &'a str,
    /// `R` running, `S` and `D` waiting, `T` stopped; `Z` when it has ended and waits to be reaped.
    pub state: char,
    pub parent: u32,
    /// The kernel's flags, `PF_*` of include/linux/sched.h.
    pub flags: u64,
    /// Page faults that waited for a device.
    pub major_faults: u64,
    /// CPU ticks of all its threads in user mode.
    pub user_ticks: u64,
    /// The same in system mode.
    pub system_ticks: u64,
    /// CPU ticks of its children that have ended and that it has waited for.
    pub children_ticks: u64,
    pub threads: u64,
    /// The start time, in ticks since the boot.
    pub start_ticks: u64,
}

impl<'a> ProcessStat<'a> {
    /// Parses the text: fields 2 to 4, 9, 12, 14 to 17, 20, 22 of proc(5). The name is in parentheses and may hold
    /// spaces and parentheses itself.
    pub fn parse(text: &'a str) -> Option<Self> {
        let (before, after) = text.rsplit_once(')')?;
        let fields: Vec<&str> = after.split_ascii_whitespace().take(20).collect();
        let figure = |number: usize| fields.get(number - 3)?.parse::<u64>().ok();
        Some(Self {
            name: before.split_once('(')?.1,
            state: fields.first()?.chars().next()?,
            parent: u32::try_from(figure(4)?).ok()?,
            flags: figure(9)?,
            major_faults: figure(12)?,
            user_ticks: figure(14)?,
            system_ticks: figure(15)?,
            children_ticks: figure(16)? + figure(17)?,
            threads: figure(20)?,
            start_ticks: figure(22)?,
        })
    }

    /// Whether it has ended: a zombie holds nothing but its number.
    pub fn has_ended(&self) -> bool {
        matches!(self.state, 'Z' | 'X')
    }

    pub fn is_kernel_thread(&self) -> bool {
        // PF_KTHREAD of include/linux/sched.h.
        const KERNEL_THREAD: u64 = 0x0020_0000;
        self.flags & KERNEL_THREAD != 0
    }

    pub fn cpu_ticks(&self) -> u64 {
        self.user_ticks + self.system_ticks
    }
}

/// The text of a process's `stat`; empty if there is no such process.
pub fn stat_of(pid: u32) -> String {
    fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default()
}

/// The pids of all visible processes.
pub fn pids() -> impl Iterator<Item = u32> {
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    processes.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

/// These processes, and all below them, parents before children.
pub fn family(roots: impl IntoIterator<Item = u32>) -> Vec<u32> {
    let parent = |pid| Some((pid, ProcessStat::parse(&stat_of(pid))?.parent));
    family_among(&pids().filter_map(parent).collect::<Vec<_>>(), roots)
}

/// The same among processes that are given with their parents.
pub fn family_among(parents: &[(u32, u32)], roots: impl IntoIterator<Item = u32>) -> Vec<u32> {
    let mut family: Vec<u32> = roots.into_iter().collect();
    let mut known: HashSet<u32> = family.iter().copied().collect();
    let mut next = 0;
    while let Some(parent) = family.get(next).copied() {
        family.extend(parents.iter().filter(|(pid, of)| *of == parent && known.insert(*pid)).map(|(pid, _)| pid));
        next += 1;
    }
    family
}

/// The ids of a process's threads, by its pid or `self`; empty when it has ended.
pub fn threads(process: &str) -> Vec<u32> {
    let tasks = fs::read_dir(format!("/proc/{process}/task")).into_iter().flatten().flatten();
    tasks.filter_map(|task| task.file_name().to_str()?.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_parentheses_and_spaces_does_not_shift_the_fields() {
        let stat = "42 (a) b (c) T 1 42 42 0 -1 4194304 100 0 77 0 11 22 3 4 20 0 31 0 98765 1000 200 1844";
        let parsed = ProcessStat {
            name: "a) b (c",
            state: 'T',
            parent: 1,
            flags: 4_194_304,
            major_faults: 77,
            user_ticks: 11,
            system_ticks: 22,
            children_ticks: 7,
            threads: 31,
            start_ticks: 98765,
        };
        assert_eq!(ProcessStat::parse(stat), Some(parsed));
        assert_eq!(ProcessStat::parse("42 (cut off"), None);
    }

    #[test]
    fn family_lists_a_process_before_its_children() {
        let own = std::process::id();
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let family = family([own]);
        assert_eq!((family.first(), family.contains(&child.id())), (Some(&own), true));
        child.kill().unwrap();
        child.wait().unwrap();
    }
}
