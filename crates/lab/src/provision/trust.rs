//! Checks which users could change a file or directory. Contents that a user other than this one and root could have
//! written are not believed, and nothing is cleaned because of them.

use std::fs;
use std::os::fd::{AsRawFd, BorrowedFd};

use rustix::fs::Stat;

/// The user that everybody trusts, because it can do everything anyway.
const ROOT: u32 = 0;

/// Bits of a mode, from inode(7).
const GROUP_WRITES: u32 = 0o0020;
const OTHERS_WRITE: u32 = 0o0002;
const STICKY: u32 = 0o1000;
const PERMISSIONS: u32 = 0o7777;

/// The attribute that holds a file's access list, from acl(5).
const ACCESS_LIST: &str = "system.posix_acl_access";

/// The users that this process trusts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Trust {
    user: u32,
    /// The user who became root by sudo, and therefore needs no trick to be root.
    sudoer: Option<u32>,
}

/// Why something is not trusted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Objection {
    /// The text for a person: `it belongs to no_user (65534)`.
    pub words: String,
    /// Whether removing a permission would fix it.
    pub is_mode: bool,
}

impl Objection {
    /// An objection that no change of mode would fix.
    pub fn new(words: impl Into<String>) -> Self {
        Self { words: words.into(), is_mode: false }
    }
}

impl Trust {
    pub fn of_this_process() -> Self {
        let user = rustix::process::geteuid().as_raw();
        let sudoer = || std::env::var("SUDO_UID").ok()?.parse().ok();
        Self { user, sudoer: if user == ROOT { sudoer() } else { None } }
    }

    /// Whether the directories above a managed one are checked too. A user who may write there can replace the managed
    /// directory, and root would then work in the replacement. A plain user has only his own rights, and works below
    /// directories of many owners.
    pub fn minds_what_is_above(self) -> bool {
        self.user == ROOT
    }

    /// The objection to a managed file or directory: it must belong to this user or root, and be writable by no other.
    pub fn against_managed(self, file: BorrowedFd<'_>, stat: &Stat) -> Option<Objection> {
        let is_own = [ROOT, self.user].contains(&stat.st_uid);
        if is_own { written_by_others(file, stat) } else { Some(foreign(stat)) }
    }

    /// The objection to a directory above. In a sticky one (`/tmp`) users can change only their own entries, so only
    /// its owner counts.
    pub fn against_above(self, dir: BorrowedFd<'_>, stat: &Stat) -> Option<Objection> {
        let objection = self.against_link(stat);
        if objection.is_none() && stat.st_mode & STICKY == 0 { written_by_others(dir, stat) } else { objection }
    }

    /// The objection to a symbolic link, which only its owner can have made.
    pub fn against_link(self, stat: &Stat) -> Option<Objection> {
        let is_trusted = [ROOT, self.user].contains(&stat.st_uid) || self.sudoer == Some(stat.st_uid);
        (!is_trusted).then(|| foreign(stat))
    }
}

fn foreign(stat: &Stat) -> Objection {
    Objection::new(format!("it belongs to {}", name("/etc/passwd", stat.st_uid)))
}

/// The objection if users other than the owner may write to a file. On many systems a group with the owner's number has
/// only that user as its member, and root's group is root's.
fn written_by_others(file: BorrowedFd<'_>, stat: &Stat) -> Option<Objection> {
    let mode = stat.st_mode & PERMISSIONS;
    let who = if mode & OTHERS_WRITE != 0 {
        "everybody".to_owned()
    } else if mode & GROUP_WRITES == 0 {
        return None;
    } else if stat.st_gid != stat.st_uid {
        format!("the group {}", name("/etc/group", stat.st_gid))
    } else if has_access_list(file) {
        // An access list grants no more than the group rights in the mode.
        "somebody in its access list (getfacl shows it)".to_owned()
    } else {
        return None;
    };
    Some(Objection { words: format!("{who} may write to it (mode {mode:04o})"), is_mode: true })
}

fn has_access_list(file: BorrowedFd<'_>) -> bool {
    let path = format!("/proc/self/fd/{}", file.as_raw_fd());
    rustix::fs::getxattr_query(path, ACCESS_LIST).is_ok_and(|bytes| bytes > 0)
}

/// A user or group as in passwd(5) or group(5): `no_user (65534)`, or the number alone.
fn name(list: &str, number: u32) -> String {
    let text = fs::read_to_string(list).unwrap_or_default();
    let name = text.lines().find_map(|line| {
        let mut fields = line.split(':');
        let name = fields.next()?;
        (fields.nth(1)?.parse::<u32>().ok() == Some(number)).then_some(name)
    });
    name.map_or_else(|| number.to_string(), |name| format!("{name} ({number})"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsFd;
    use std::os::unix::fs::PermissionsExt;

    const ALICE: u32 = 1001;

    /// The state of a directory of this process, with this owner, group and mode.
    fn as_if(user: u32, group: u32, mode: u32) -> (fs::File, Stat, tempfile::TempDir) {
        let dir = tempfile::tempdir().unwrap();
        let file = fs::File::open(dir.path()).unwrap();
        file.set_permissions(fs::Permissions::from_mode(mode)).unwrap();
        let mut stat = rustix::fs::fstat(&file).unwrap();
        (stat.st_uid, stat.st_gid) = (user, group);
        (file, stat, dir)
    }

    fn above(trust: Trust, user: u32, group: u32, mode: u32) -> Option<String> {
        let (file, stat, _dir) = as_if(user, group, mode);
        trust.against_above(file.as_fd(), &stat).map(|objection| objection.words)
    }

    fn managed(trust: Trust, user: u32, group: u32, mode: u32) -> Option<String> {
        let (file, stat, _dir) = as_if(user, group, mode);
        trust.against_managed(file.as_fd(), &stat).map(|objection| objection.words)
    }

    #[test]
    fn directories_of_others_are_not_trusted() {
        let root = Trust { user: ROOT, sudoer: None };
        assert_eq!(above(root, ROOT, ROOT, 0o755), None);
        assert_eq!(above(root, ROOT, ROOT, 0o1777), None, "in a sticky directory everybody keeps what is his");
        assert_eq!(above(root, ROOT, ROOT, 0o777).unwrap(), "everybody may write to it (mode 0777)");
        assert!(above(root, ROOT, 1_234_567, 0o775).unwrap().contains("the group 1234567 may write to it (mode 0775)"));
        assert!(
            above(root, ALICE, ALICE, 0o1755).unwrap().contains("1001"),
            "a sticky directory's owner may do anything"
        );
        assert_eq!(managed(root, ROOT, ROOT, 0o775), None, "the group root is root");
        assert!(managed(root, ROOT, ROOT, 0o1777).is_some(), "nothing managed is anybody's to write to");
        assert!(managed(root, ALICE, ALICE, 0o700).is_some());
    }

    #[test]
    fn user_trusts_self_and_root_and_sudo_caller_only_above() {
        let alice = Trust { user: ALICE, sudoer: None };
        assert_eq!(managed(alice, ALICE, ALICE, 0o775), None, "her own group is she");
        assert_eq!(managed(alice, ROOT, ROOT, 0o755), None);
        assert!(managed(alice, ALICE + 1, ALICE, 0o755).is_some());
        let root = Trust { user: ROOT, sudoer: Some(ALICE) };
        assert_eq!(above(root, ALICE, ALICE, 0o775), None);
        assert!(above(root, ALICE + 1, ALICE, 0o755).is_some());
        assert!(managed(root, ALICE, ALICE, 0o755).is_some(), "what she has left is hers to clean");
    }

    #[test]
    fn a_number_has_its_name_where_there_is_one() {
        assert_eq!(name("/etc/passwd", ROOT), "root (0)");
        assert_eq!(name("/etc/passwd", 1_234_567), "1234567");
    }
}
