//! The number of clients that this host can hold, known before any is made. The kernel may create a thread and have no
//! mapping left for it. The whole process then ends during the thread's start, without an error to handle.

use std::fs;
use std::path::Path;

use rumba_engine_api::engine::{MostClients, ProcessLocation};
use rumba_engine_api::error::EngineError;
use rumba_results::record::DriverKind;
use rustix::process::{Resource, geteuid, getrlimit, getuid};

use super::buckets::BUCKETS;
use super::{Driving, descriptors};
use crate::host::{memory_limit, parse};
use crate::limits::tree_of;

/// Mappings of a client's thread: its stack and its signal stack, each with a guard page, and the allocator's.
const MAPS_PER_THREAD: u64 = 5;
/// Mappings reserved for everything else: libraries, an engine's files.
const MAPS_RESERVE: u64 = 2048;
/// Threads of the host reserved for everything else.
const THREADS_RESERVE: u64 = 256;
/// Bytes that a thread touches in addition to its counts: its stacks, a session's buffers.
const BYTES_PER_THREAD: u64 = 64 << 10;
/// The share of the memory that clients may take, in tenths.
const TENTHS_OF_MEMORY: u64 = 9;

/// Refuses clients that this host cannot have, by their key and number. They use a database in this place.
///
/// # Errors
/// The limit that applies, and the number that would work.
pub fn check(
    (key, number): (&str, u32),
    driver: DriverKind,
    place: &ProcessLocation,
    kinds: usize,
) -> Result<(), EngineError> {
    let threads = match Driving::choose(driver, place, number) {
        Driving::Threads { .. } => of_threads(kinds),
        Driving::Loops { .. } => None,
    };
    if let Some(refusal) = threads.and_then(|most| most.refusal(number)) {
        return Err(refused(key, &refusal));
    }
    if *place == ProcessLocation::Embedded { Ok(()) } else { descriptors::allow(number) }
}

/// The error of a refused number, with the limit and the remedy.
pub fn refused(key: &str, (problem, remedy): &(String, String)) -> EngineError {
    EngineError::failed("room for the clients", format!("{key}: {problem}; {remedy}"))
}

/// The most threads, one for each client, with this many operation types; `None` if nothing is known of the host.
pub fn of_threads(kinds: usize) -> Option<MostClients> {
    let bounds = [
        mappings(),
        of_host("threads-max"),
        of_host("pid_max"),
        of_user(),
        of_group(),
        memory(BYTES_PER_THREAD + (kinds * 2 * BUCKETS * size_of::<u32>()) as u64),
    ];
    bounds.into_iter().flatten().min_by_key(|most| most.clients)
}

/// The most connections, by the descriptors that this user may have open.
pub fn of_connections() -> Option<MostClients> {
    let hard = descriptors::most()?;
    Some(most(
        hard.saturating_sub(descriptors::OTHERS),
        format!("each takes a file descriptor, and the host allows {hard} (`ulimit -Hn`)"),
        "raise that limit",
    ))
}

fn most(clients: u64, why: String, remedy: impl Into<String>) -> MostClients {
    MostClients { clients: u32::try_from(clients).unwrap_or(u32::MAX), why, remedy: remedy.into() }
}

fn number(path: impl AsRef<Path>) -> Option<u64> {
    fs::read_to_string(path).ok()?.trim().parse().ok()
}

fn mappings() -> Option<MostClients> {
    let limit = number("/proc/sys/vm/max_map_count")?;
    let mapped = fs::read_to_string("/proc/self/maps").ok()?.lines().count() as u64;
    Some(most(
        limit.saturating_sub(mapped + MAPS_RESERVE) / MAPS_PER_THREAD,
        format!(
            "each has a thread, a thread takes {MAPS_PER_THREAD} mappings of memory, and vm.max_map_count is {limit}"
        ),
        "raise vm.max_map_count with sysctl",
    ))
}

/// The most threads by a kernel limit for the whole host.
fn of_host(name: &str) -> Option<MostClients> {
    let limit = number(format!("/proc/sys/kernel/{name}"))?;
    let running = all_threads(&fs::read_to_string("/proc/loadavg").ok()?)?;
    Some(most(
        limit.saturating_sub(running + THREADS_RESERVE),
        format!("each has a thread, kernel.{name} is {limit}, and {running} threads run already"),
        format!("raise kernel.{name} with sysctl"),
    ))
}

/// The threads of the host: the fourth field of `/proc/loadavg`, `2/345`.
fn all_threads(loadavg: &str) -> Option<u64> {
    loadavg.split_ascii_whitespace().nth(3)?.split_once('/')?.1.parse().ok()
}

/// The most threads by this user's own limit, which root does not have.
fn of_user() -> Option<MostClients> {
    if geteuid().is_root() {
        return None;
    }
    let limit = getrlimit(Resource::Nproc).current?;
    let running = threads_of(getuid().as_raw());
    Some(most(
        limit.saturating_sub(running),
        format!(
            "each has a thread, and the host allows this user {limit} (`ulimit -u`), of which {running} run already"
        ),
        "raise that limit",
    ))
}

fn threads_of(user: u32) -> u64 {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let statuses = entries.filter_map(|entry| fs::read_to_string(entry.path().join("status")).ok());
    let threads = |status: String| {
        let owner: u32 = parse::field(&status, "Uid")?.split_ascii_whitespace().next()?.parse().ok()?;
        if owner == user { parse::field(&status, "Threads")?.parse::<u64>().ok() } else { None }
    };
    statuses.filter_map(threads).sum()
}

/// The most threads by the control groups of this process.
fn of_group() -> Option<MostClients> {
    let tree = tree_of("pids")?;
    let groups = tree.own.ancestors().take_while(|group| group.starts_with(&tree.root));
    groups.filter_map(of_one_group).min_by_key(|most| most.clients)
}

/// The file contains `max` if the group has no limit.
fn of_one_group(group: &Path) -> Option<MostClients> {
    let (limit, running) = (number(group.join("pids.max"))?, number(group.join("pids.current"))?);
    Some(most(
        limit.saturating_sub(running),
        format!(
            "each has a thread, and the control group {} may have {limit}, of which {running} run already",
            group.display()
        ),
        "raise the group's pids.max (TasksMax of systemd, --pids-limit of a container)",
    ))
}

fn memory(bytes_each: u64) -> Option<MostClients> {
    let host = parse::meminfo_bytes(&fs::read_to_string("/proc/meminfo").ok()?, "MemAvailable")?;
    let available = memory_limit().map_or(host, |limit| limit.min(host));
    Some(most(
        available / 10 * TENTHS_OF_MEMORY / bytes_each,
        format!(
            "each takes {} KiB for its thread and its counts, and {} MiB of memory are free",
            bytes_each >> 10,
            available >> 20
        ),
        "free memory",
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn group_with_few_threads_reports_how_many_are_left() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("pids.max"), "100\n").unwrap();
        fs::write(dir.path().join("pids.current"), "58\n").unwrap();
        let most = of_one_group(dir.path()).unwrap();
        assert_eq!(most.clients, 42);
        let (problem, remedy) = most.refusal(43).unwrap();
        assert!(problem.contains("43 clients are more than the 42") && problem.contains("may have 100"), "{problem}");
        assert!(remedy.contains("pids.max") && remedy.ends_with("or set 42 or fewer"), "{remedy}");
        assert_eq!(most.refusal(42), None);
        fs::write(dir.path().join("pids.max"), "max\n").unwrap();
        assert_eq!(of_one_group(dir.path()), None, "no limit");
    }

    #[test]
    fn the_threads_of_the_host_are_counted_by_the_kernel() {
        assert_eq!(all_threads("0.16 0.20 0.18 2/345 9771\n"), Some(345));
        assert!(of_host("threads-max").is_some_and(|most| most.clients > 0));
        assert!(threads_of(getuid().as_raw()) >= 1, "this one");
    }
}
