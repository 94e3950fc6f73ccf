//! The mounts of this process: `/proc/self/mountinfo`.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mount {
    /// The part of the filesystem that is mounted: `/`, or a directory of it.
    pub root: PathBuf,
    pub point: PathBuf,
    /// Its type: `ext4`.
    pub filesystem: String,
    /// The mounted device, `/dev/sda2`, or a name without meaning.
    pub source: PathBuf,
    /// The options of the mount and of the filesystem.
    pub options: Vec<String>,
}

impl Mount {
    /// Whether an option is set: `discard`.
    pub fn has_option(&self, name: &str) -> bool {
        self.options.iter().any(|option| option == name)
    }

    /// Whether the filesystem lives in memory.
    pub fn is_memory(&self) -> bool {
        matches!(self.filesystem.as_str(), "tmpfs" | "ramfs" | "rootfs")
    }

    /// Whether the filesystem stacks others and copies files up on first write.
    pub fn is_layered(&self) -> bool {
        matches!(self.filesystem.as_str(), "overlay" | "aufs" | "fuse.fuse-overlayfs")
    }

    /// Whether the filesystem reaches its storage over a network or a host's sharing.
    pub fn is_network(&self) -> bool {
        const NETWORK: [&str; 12] = [
            "nfs",
            "nfs4",
            "cifs",
            "smb3",
            "ceph",
            "9p",
            "virtiofs",
            "lustre",
            "glusterfs",
            "fuse.glusterfs",
            "fuse.sshfs",
            "afs",
        ];
        NETWORK.contains(&self.filesystem.as_str())
    }
}

/// The mounts of this process, in the order they were made.
///
/// # Errors
/// Why `/proc/self/mountinfo` could not be read.
pub fn mounts() -> Result<Vec<Mount>, String> {
    let path = "/proc/self/mountinfo";
    std::fs::read(path).map(|text| parse(&text)).map_err(|error| format!("{path}: {error}"))
}

/// The mount that holds a path, which must be absolute and free of links.
pub fn mount_of<'a>(path: &Path, mounts: &'a [Mount]) -> Option<&'a Mount> {
    // The last of several mounts on one point hides the others, and
    // `max_by_key` takes the last of equals.
    mounts.iter().filter(|mount| path.starts_with(&mount.point)).max_by_key(|mount| mount.point.components().count())
}

/// Parses mountinfo as proc(5) describes it: six fields, optional fields up to
/// a dash, then type, source and the filesystem's own options.
pub(crate) fn parse(text: &[u8]) -> Vec<Mount> {
    text.split(|&byte| byte == b'\n').filter_map(parse_line).collect()
}

fn parse_line(line: &[u8]) -> Option<Mount> {
    let mut fields = line.split(|&byte| byte == b' ');
    let (root, point) = (fields.nth(3)?, fields.next()?);
    let mount_options = fields.next()?;
    let mut fields = fields.skip_while(|&field| field != b"-").skip(1);
    let filesystem = fields.next()?;
    let source = fields.next()?;
    let super_options = fields.next().unwrap_or_default();
    let mut options = words(mount_options);
    for option in words(super_options) {
        if !options.contains(&option) {
            options.push(option);
        }
    }
    Some(Mount {
        root: unescape(root).into(),
        point: unescape(point).into(),
        filesystem: String::from_utf8_lossy(filesystem).into_owned(),
        source: unescape(source).into(),
        options,
    })
}

fn words(options: &[u8]) -> Vec<String> {
    String::from_utf8_lossy(options).split(',').filter(|word| !word.is_empty()).map(str::to_owned).collect()
}

/// The kernel writes space, tab, newline and backslash as three octal digits.
fn unescape(field: &[u8]) -> OsString {
    let mut bytes = Vec::with_capacity(field.len());
    let mut rest = field;
    while let Some((&first, after)) = rest.split_first() {
        let octal = after
            .get(..3)
            .filter(|_| first == b'\\')
            .and_then(|digits| std::str::from_utf8(digits).ok())
            .and_then(|digits| u8::from_str_radix(digits, 8).ok());
        match octal {
            Some(byte) => {
                bytes.push(byte);
                rest = &after[3..];
            }
            None => {
                bytes.push(first);
                rest = after;
            }
        }
    }
    OsString::from_vec(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOUNTINFO: &[u8] = b"\
22 27 0:21 / /proc rw,relatime - proc proc rw
27 1 254:0 / / rw,relatime - ext4 /dev/vda rw,discard
30 27 0:40 / /mnt/my\\040data rw,noatime shared:7 master:1 - btrfs /dev/sdb1 rw,compress=zstd:3
31 27 0:41 / /mnt/fast rw - tmpfs none rw,size=4k
32 27 8:2 / /mnt/fast rw,noatime - xfs /dev/sda2 rw
";

    fn of(path: &str) -> Mount {
        mount_of(Path::new(path), &parse(MOUNTINFO)).unwrap().clone()
    }

    #[test]
    fn the_data_directory_is_charged_to_the_innermost_mount() {
        assert_eq!(of("/var/lib").source, Path::new("/dev/vda"));
        assert_eq!(of("/mnt/my data/x").filesystem, "btrfs");
        assert_eq!(of("/mnt/faster").source, Path::new("/dev/vda"), "a longer name is not a deeper path");
    }

    #[test]
    fn a_mount_over_another_hides_it() {
        assert_eq!(of("/mnt/fast/x").filesystem, "xfs");
    }

    #[test]
    fn the_discard_option_is_seen_among_the_filesystems_own_options() {
        assert!(of("/").has_option("discard"));
        assert!(of("/").has_option("relatime"));
        assert!(!of("/mnt/fast").has_option("discard"));
    }

    #[test]
    fn a_backslash_that_is_no_escape_stays() {
        assert_eq!(unescape(br"a\b\0401\\"), OsString::from(r"a\b 1\\"));
        assert_eq!(unescape(br"\777"), OsString::from(r"\777"), "no byte has this value");
    }
}
