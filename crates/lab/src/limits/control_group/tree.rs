//! Finds this host's control groups: version 1 has a tree for each controller, version 2 one for all.

use std::fs;
use std::path::{Path, PathBuf};

use crate::host::mounts::{Mount, mounts};

/// A tree of control groups, and this process's place in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tree {
    /// Whether its groups have the files of version 2.
    pub version: Version,
    /// Its mount point, which is the outermost visible group.
    pub root: PathBuf,
    /// The group of this process.
    pub own: PathBuf,
}

/// The versions of control groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    /// A tree for each controller.
    One,
    /// One tree for all controllers.
    Two,
}

/// The tree that has a controller: version 1's own tree for it, else version 2's.
pub fn tree_of(controller: &str) -> Option<Tree> {
    let groups = fs::read_to_string("/proc/self/cgroup").ok()?;
    let tree = find(&groups, &mounts().ok()?, controller)?;
    let has_it = match tree.version {
        Version::One => true,
        Version::Two => words(&tree.root.join("cgroup.controllers")).iter().any(|word| word == controller),
    };
    // A container may see its groups under other names than /proc says.
    let own = if tree.own.is_dir() { tree.own } else { tree.root.clone() };
    has_it.then_some(Tree { own, ..tree })
}

/// The words of one of version 2's lists: `cpu io memory`.
pub fn words(file: &Path) -> Vec<String> {
    fs::read_to_string(file).unwrap_or_default().split_ascii_whitespace().map(str::to_owned).collect()
}

/// The group in which version 2 permits a new group with these controllers. It cannot be this process's own group,
/// because that one holds processes itself.
pub fn parent_with(tree: &Tree, controllers: &[&str]) -> Option<PathBuf> {
    let hands_down = |group: &Path, list: &str| {
        let handed = words(&group.join(list));
        controllers.iter().all(|controller| handed.iter().any(|word| word == controller))
    };
    // The outermost group of the host has no type, and may hold processes as well as groups.
    let may_hand_down = |group: &Path| {
        !group.join("cgroup.type").exists()
            || fs::read_to_string(group.join("cgroup.procs")).is_ok_and(|processes| processes.trim().is_empty())
    };
    tree.own
        .ancestors()
        .take_while(|group| group.starts_with(&tree.root))
        .find(|group| {
            may_hand_down(group)
                && (hands_down(group, "cgroup.subtree_control") || hands_down(group, "cgroup.controllers"))
        })
        .map(Path::to_owned)
}

/// Finds a controller's tree in the text of `/proc/self/cgroup` and among the mounts.
fn find(groups: &str, mounts: &[Mount], controller: &str) -> Option<Tree> {
    let group_of = |wanted: &str| {
        groups.lines().find_map(|line| {
            let mut fields = line.splitn(3, ':').skip(1);
            let controllers = fields.next()?;
            let found = if wanted.is_empty() {
                controllers.is_empty()
            } else {
                controllers.split(',').any(|controller| controller == wanted)
            };
            found.then(|| fields.next()).flatten()
        })
    };
    let tree = |version, mounted: &Mount, wanted: &str| {
        let group = Path::new(group_of(wanted)?);
        let below = group.strip_prefix(&mounted.root).unwrap_or(Path::new(""));
        let own = mounted.point.components().chain(below.components()).collect();
        Some(Tree { version, root: mounted.point.to_owned(), own })
    };
    let named = |mounted: &&Mount| mounted.has_option(controller);
    let first = mounts.iter().find(|mounted| mounted.filesystem == "cgroup" && named(mounted));
    let second = || mounts.iter().find(|mounted| mounted.filesystem == "cgroup2");
    match first {
        Some(mounted) => tree(Version::One, mounted, controller),
        None => tree(Version::Two, second()?, ""),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::mounts::parse;

    const ONE: &str = "\
35 31 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory
38 31 0:35 / /sys/fs/cgroup/blkio rw,relatime shared:9 - cgroup cgroup rw,blkio
41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw
";

    #[test]
    fn version_one_has_a_tree_for_each_controller() {
        let groups = "7:blkio:/\n4:cpuset,memory:/user/me\n0::/unified\n";
        let memory = find(groups, &parse(ONE.as_bytes()), "memory").unwrap();
        assert_eq!(memory.version, Version::One);
        assert_eq!(memory.own, Path::new("/sys/fs/cgroup/memory/user/me"));
        let blkio = find(groups, &parse(ONE.as_bytes()), "blkio").unwrap();
        assert_eq!(blkio.own, blkio.root);
    }

    #[test]
    fn version_two_has_one_for_all() {
        let mounts = b"30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n";
        let tree = find("0::/user.slice/user-0.slice/session-1.scope\n", &parse(mounts), "memory").unwrap();
        assert_eq!(tree.version, Version::Two);
        assert_eq!(tree.own, Path::new("/sys/fs/cgroup/user.slice/user-0.slice/session-1.scope"));
    }

    #[test]
    fn a_container_sees_its_own_part_of_the_tree() {
        let mounts = b"30 23 0:26 /docker/abc /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n";
        let tree = find("4:memory:/docker/abc/inner\n", &parse(mounts), "memory").unwrap();
        assert_eq!(tree.own, Path::new("/sys/fs/cgroup/memory/inner"));
        let tree = find("4:memory:/docker/abc\n", &parse(mounts), "memory").unwrap();
        assert_eq!(tree.own, tree.root);
    }

    /// A tree of version 2 made of plain files: host root, a slice, this process's scope.
    fn two(slice_hands_down: &str) -> (tempfile::TempDir, Tree) {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().to_owned();
        let own = root.join("user.slice/session-1.scope");
        fs::create_dir_all(&own).unwrap();
        for (group, procs, handed) in [
            (root.clone(), "1\n", "memory"),
            (root.join("user.slice"), "", slice_hands_down),
            (own.clone(), "42\n", ""),
        ] {
            fs::write(group.join("cgroup.procs"), procs).unwrap();
            fs::write(group.join("cgroup.subtree_control"), handed).unwrap();
            fs::write(group.join("cgroup.controllers"), "cpu io memory").unwrap();
            if group != root {
                fs::write(group.join("cgroup.type"), "domain").unwrap();
            }
        }
        (dir, Tree { version: Version::Two, root, own })
    }

    #[test]
    fn cgroup_is_created_as_a_sibling_of_this_process() {
        let (_dir, tree) = two("io memory");
        assert_eq!(parent_with(&tree, &["memory", "io"]), Some(tree.root.join("user.slice")));
    }

    #[test]
    fn root_group_is_used_if_the_slice_holds_processes() {
        let (_dir, tree) = two("");
        fs::write(tree.root.join("user.slice/cgroup.procs"), "77\n").unwrap();
        assert_eq!(parent_with(&tree, &["memory"]), Some(tree.root.clone()));
        fs::write(tree.root.join("cgroup.type"), "domain").unwrap();
        assert_eq!(parent_with(&tree, &["memory"]), None, "a container whose outermost group holds its processes");
    }
}
