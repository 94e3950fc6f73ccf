//! The memory that a control group leaves to this process.

use std::path::{Path, PathBuf};

use super::parse::meminfo_bytes;
use super::text_of;

/// Bytes that processes of this one can use at most: the host's memory, or its control groups' limit below it.
pub fn usable_memory() -> Option<u64> {
    let host = meminfo_bytes(&text_of("/proc/meminfo")?, "MemTotal");
    host.into_iter().chain(memory_limit()).min()
}

/// The smallest memory limit in bytes of this process's control groups; `None`
/// when there is none or it cannot be read.
pub fn memory_limit() -> Option<u64> {
    let groups = text_of("/proc/self/cgroup")?;
    groups
        .lines()
        .filter_map(limit_file)
        .flat_map(|(root, group, file)| {
            group.ancestors().map(move |group| root.join(group).join(file)).collect::<Vec<_>>()
        })
        .filter_map(|path| text_of(path).and_then(|text| bytes(&text)))
        .min()
}

/// The place of the limit that a line of `/proc/self/cgroup` names: the hierarchy's root, the group below it, and the
/// file's name in version 2 or 1.
fn limit_file(line: &str) -> Option<(&'static Path, PathBuf, &'static str)> {
    let mut fields = line.splitn(3, ':').skip(1);
    let controllers = fields.next()?;
    let group = PathBuf::from(fields.next()?.trim_start_matches('/'));
    if controllers.is_empty() {
        return Some((Path::new("/sys/fs/cgroup"), group, "memory.max"));
    }
    controllers.split(',').any(|controller| controller == "memory").then_some((
        Path::new("/sys/fs/cgroup/memory"),
        group,
        "memory.limit_in_bytes",
    ))
}

/// A limit in bytes; `None` for `max`, and for version 1's "no limit" of nearly 2^63.
fn bytes(text: &str) -> Option<u64> {
    text.parse().ok().filter(|&bytes: &u64| bytes < 1 << 60)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_versions_of_control_groups_name_their_file() {
        let (root, group, file) = limit_file("0::/user.slice/run.scope").unwrap();
        assert_eq!(root.join(group).join(file), Path::new("/sys/fs/cgroup/user.slice/run.scope/memory.max"));
        let (root, group, file) = limit_file("4:cpuset,memory:/docker/1").unwrap();
        assert_eq!(root.join(group).join(file), Path::new("/sys/fs/cgroup/memory/docker/1/memory.limit_in_bytes"));
        assert_eq!(limit_file("3:cpu,cpuacct:/"), None);
    }

    #[test]
    fn unlimited_is_absent_and_not_a_huge_number() {
        assert_eq!(bytes("max"), None);
        assert_eq!(bytes("9223372036854771712"), None);
        assert_eq!(bytes("503316480"), Some(503_316_480));
    }
}
