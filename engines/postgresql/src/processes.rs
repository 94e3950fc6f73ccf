//! CPU time of the server's processes by their kind, which each process shows in its title.

use std::collections::HashMap;
use std::fs;

/// The kind of a server process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Kind {
    Backend,
    Checkpointer,
    BackgroundWriter,
    WalWriter,
    Autovacuum,
    Other,
}

/// Kinds by the prefix of the title after `postgres: `. A process without any of these prefixes serves a client.
const TITLES: [(&str, Kind); 12] = [
    ("checkpointer", Kind::Checkpointer),
    ("background writer", Kind::BackgroundWriter),
    ("walwriter", Kind::WalWriter),
    ("autovacuum", Kind::Autovacuum),
    ("logical replication", Kind::Other),
    ("startup", Kind::Other),
    ("io worker", Kind::Other),
    ("archiver", Kind::Other),
    ("logger", Kind::Other),
    ("parallel worker", Kind::Backend),
    ("stats collector", Kind::Other),
    ("walsender", Kind::Other),
];

const GAUGES: [(Kind, &str); 5] = [
    (Kind::Backend, "backends_cpu_s"),
    (Kind::Checkpointer, "checkpointer_cpu_s"),
    (Kind::BackgroundWriter, "background_writer_cpu_s"),
    (Kind::WalWriter, "wal_writer_cpu_s"),
    (Kind::Autovacuum, "autovacuum_cpu_s"),
];

/// CPU time of all processes seen, including those that have ended.
#[derive(Default)]
pub struct Processes {
    seen: HashMap<(u32, u64), (Kind, f64)>,
}

impl Processes {
    /// Samples the server's processes and returns the CPU seconds of each kind since the server's start. CPU time that
    /// a process used after its last sample is missing.
    pub fn look(&mut self, server: u32) -> Vec<(&'static str, f64)> {
        for process in children(server) {
            self.seen.insert((process.pid, process.started), (process.kind, process.cpu_s));
        }
        let of = |kind: Kind| self.seen.values().filter(|(own, _)| *own == kind).map(|(_, cpu_s)| cpu_s).sum();
        GAUGES.iter().map(|(kind, name)| (*name, of(*kind))).collect()
    }
}

struct Child {
    pid: u32,
    /// Start time in clock ticks, because the kernel may reuse a process number.
    started: u64,
    kind: Kind,
    cpu_s: f64,
}

fn children(server: u32) -> Vec<Child> {
    let listed = fs::read_to_string(format!("/proc/{server}/task/{server}/children")).unwrap_or_default();
    listed.split_whitespace().filter_map(|pid| child(pid.parse().ok()?)).collect()
}

fn child(pid: u32) -> Option<Child> {
    let title = fs::read(format!("/proc/{pid}/cmdline")).ok()?;
    let kind = kind_of(&String::from_utf8_lossy(&title))?;
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name in parentheses may contain anything; the state is the first field after it.
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    let number = |at: usize| fields.get(at)?.parse::<u64>().ok();
    let ticks = number(11)? + number(12)?;
    let cpu_s = ticks as f64 / rustix::param::clock_ticks_per_second() as f64;
    Some(Child { pid, started: number(19)?, kind, cpu_s })
}

/// Parses `postgres: checkpointer` or `postgres: rumba rumba [local] idle`. `None` for a process without a title yet.
fn kind_of(title: &str) -> Option<Kind> {
    let rest = title.trim_end_matches('\0').strip_prefix("postgres: ")?;
    // The cluster's name comes first, if it has one.
    let rest = rest.split_once(": ").map_or(rest, |(_, rest)| rest);
    let known = TITLES.iter().find(|(begin, _)| rest.starts_with(begin));
    Some(known.map_or(Kind::Backend, |(_, kind)| *kind))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processes_are_known_by_their_titles() {
        assert_eq!(kind_of("postgres: checkpointer \0"), Some(Kind::Checkpointer));
        assert_eq!(kind_of("postgres: lab: walwriter \0"), Some(Kind::WalWriter));
        assert_eq!(kind_of("postgres: autovacuum worker rumba"), Some(Kind::Autovacuum));
        assert_eq!(kind_of("postgres: rumba rumba [local] idle"), Some(Kind::Backend));
        assert_eq!(kind_of("/usr/lib/postgresql/15/bin/postgres"), None);
    }
}
