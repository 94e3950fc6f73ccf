//! rumba's own cache: installed servers, templates of data directories, and the servers' reported capabilities. All of
//! it can be deleted at any time and is created again when needed.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, UNIX_EPOCH};
use std::{env, fs, io};

use rumba_engine_api::error::{EngineError, Result};

/// The cache's directory: `RUMBA_CACHE`, or `rumba` in the user's cache directory.
///
/// # Errors
/// The environment names neither a cache nor a home directory.
pub fn root() -> Result<PathBuf> {
    let set = |name: &str| env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let home = || set("HOME").map(|home| home.join(".cache"));
    let root = set("RUMBA_CACHE").or_else(|| Some(set("XDG_CACHE_HOME").or_else(home)?.join("rumba")));
    let root = root.ok_or_else(|| EngineError::failed("cache", "neither RUMBA_CACHE nor HOME is set; set one of them"));
    std::path::absolute(root?).map_err(|error| EngineError::failed("cache", error.to_string()))
}

/// Root's directory for servers that unprivileged users run, because root's own cache is below a directory that only
/// root may enter.
const OF_ALL: &str = "/var/cache/rumba";

/// The directory for servers that run as another user. It is `RUMBA_CACHE` if set, else a public directory if root
/// installs, else [`root`].
pub fn root_for_others() -> Result<PathBuf> {
    let is_set = env::var_os("RUMBA_CACHE").is_some_and(|value| !value.is_empty());
    if is_set || !rustix::process::geteuid().is_root() {
        return root();
    }
    Ok(OF_ALL.into())
}

/// Creates a directory and its parents, readable for all users.
pub fn make_public(path: &Path) -> io::Result<()> {
    use std::os::unix::fs::DirBuilderExt;
    fs::DirBuilder::new().recursive(true).mode(0o755).create(path)
}

/// Makes a directory and its contents readable for all users, and executable where the owner may execute.
pub fn open_to_all(path: &Path) -> io::Result<()> {
    change_modes(path, &|mode| mode | if mode & 0o100 != 0 { 0o555 } else { 0o444 })
}

/// Removes setuid and setgid bits from all programs in a directory. Packages contain such programs, and system upgrades
/// do not reach these copies.
pub fn take_privileges(path: &Path) -> io::Result<()> {
    change_modes(path, &|mode| mode & 0o777)
}

fn change_modes(path: &Path, change: &dyn Fn(u32) -> u32) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    let meta = fs::symlink_metadata(path)?;
    if meta.is_symlink() {
        return Ok(());
    }
    if meta.is_dir() {
        for entry in fs::read_dir(path)? {
            change_modes(&entry?.path(), change)?;
        }
    }
    let mode = meta.permissions().mode() & 0o7777;
    let changed = change(mode);
    if changed == mode { Ok(()) } else { fs::set_permissions(path, fs::Permissions::from_mode(changed)) }
}

/// A directory that becomes `place` when it is complete, so that no process sees a partial one. Dropping an incomplete
/// draft deletes it.
pub struct Draft {
    path: PathBuf,
    place: PathBuf,
}

impl Draft {
    /// An empty directory next to `place`, accessible to its owner only.
    ///
    /// # Errors
    /// The directory cannot be created.
    pub fn new(place: &Path) -> io::Result<Self> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let parent = place.parent().unwrap_or(Path::new("/"));
        make_private(parent)?;
        remove_drafts_of_the_dead(parent);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let path = parent.join(format!("{PREFIX}{}-{}-{count}", where_numbers_count(), std::process::id()));
        // An earlier process with the same number may have left this directory.
        remove_if_there(&path)?;
        make_private(&path)?;
        Ok(Self { path, place: place.to_owned() })
    }

    /// The directory to fill; it gets its final name when it is complete.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Moves the draft to its place. If another process was faster, that process's directory is kept.
    ///
    /// # Errors
    /// The draft cannot be moved.
    pub fn settle(self) -> io::Result<()> {
        match fs::rename(&self.path, &self.place) {
            Err(_) if self.place.is_dir() => Ok(()),
            result => result,
        }
    }

    /// Moves the draft to its place and replaces an existing directory.
    ///
    /// # Errors
    /// The draft cannot be moved.
    pub fn replace(self) -> io::Result<()> {
        if !self.place.exists() {
            return fs::rename(&self.path, &self.place);
        }
        let old = self.path.with_extension("old");
        fs::rename(&self.place, &old)?;
        fs::rename(&self.path, &self.place)?;
        fs::remove_dir_all(&old)
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        // After a move the path no longer exists. If the removal fails, the next draft removes the directory.
        let _ = remove_if_there(&self.path);
    }
}

const PREFIX: &str = ".draft-";

/// A draft unchanged for this long is abandoned, wherever its process ran.
const LONG: Duration = Duration::from_secs(24 * 60 * 60);

/// Removes the drafts of dead processes. For other containers or hosts that share the cache it is unknown whether a
/// process is dead, so the draft's age decides.
fn remove_drafts_of_the_dead(parent: &Path) {
    let here = where_numbers_count();
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let Some(rest) = name.to_str().and_then(|name| name.strip_prefix(PREFIX)) else { continue };
        let mut parts = rest.split(['-', '.']);
        let is_of_here = parts.next() == Some(here.as_str());
        let owner = parts.next().and_then(|pid| pid.parse::<u32>().ok());
        let is_over = || owner.is_some_and(|pid| !Path::new("/proc").join(pid.to_string()).exists());
        let is_old = || {
            let changed = entry.metadata().and_then(|meta| meta.modified());
            changed.is_ok_and(|changed| changed.elapsed().is_ok_and(|age| age > LONG))
        };
        let is_nobodys = if is_of_here { is_over() } else { is_old() };
        if is_nobodys {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

/// A short name for the boot and the container in which process numbers are unique.
fn where_numbers_count() -> String {
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    let namespace = fs::read_link("/proc/self/ns/pid").unwrap_or_default();
    format!("{:016x}", number_of(&format!("{boot}{}", namespace.display())))
}

fn remove_if_there(path: &Path) -> io::Result<()> {
    match fs::remove_dir_all(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        result => result,
    }
}

/// Creates a directory and its parents, accessible to its owner only.
pub fn make_private(path: &Path) -> io::Result<()> {
    use std::os::unix::fs::DirBuilderExt;
    fs::DirBuilder::new().recursive(true).mode(0o700).create(path)
}

/// Copies a directory with its contents, and shares blocks if the file system can.
pub fn copy_tree(from: &Path, to: &Path) -> io::Result<()> {
    make_private(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        let kind = entry.file_type()?;
        if kind.is_dir() {
            copy_tree(&entry.path(), &target)?;
        } else if kind.is_file() {
            fs::copy(entry.path(), &target)?;
        }
    }
    Ok(())
}

/// A text that differs between any two builds of a program: its path, size and modification time.
pub fn stamp(program: &Path) -> String {
    let meta = fs::metadata(program).ok();
    let time = meta.as_ref().and_then(|meta| meta.modified().ok()?.duration_since(UNIX_EPOCH).ok());
    format!("{} {:?} {time:?}", program.display(), meta.map(|meta| meta.len()))
}

/// A hash of a text, the same in every process: 64-bit FNV-1a.
pub fn number_of(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dropped_draft_leaves_nothing_and_late_draft_yields() {
        let dir = tempfile::tempdir().unwrap();
        let place = dir.path().join("servers/one");
        drop(Draft::new(&place).unwrap());
        assert_eq!(fs::read_dir(dir.path().join("servers")).unwrap().count(), 0);
        let (first, second) = (Draft::new(&place).unwrap(), Draft::new(&place).unwrap());
        fs::write(first.path().join("whose"), "first").unwrap();
        fs::write(second.path().join("whose"), "second").unwrap();
        first.settle().unwrap();
        second.settle().unwrap();
        assert_eq!(fs::read_to_string(place.join("whose")).unwrap(), "first");
        assert_eq!(fs::read_dir(dir.path().join("servers")).unwrap().count(), 1);
    }

    #[test]
    fn drafts_of_a_killed_process_are_removed_by_the_next() {
        let dir = tempfile::tempdir().unwrap();
        let dead = dir.path().join(format!(".draft-{}-4294967-0", where_numbers_count()));
        let elsewhere = dir.path().join(".draft-0123456789abcdef-4294967-0");
        let old = dir.path().join(".draft-4294967-0");
        for draft in [&dead, &elsewhere, &old] {
            fs::create_dir(draft).unwrap();
        }
        let long_ago = std::time::SystemTime::now() - 2 * LONG;
        fs::File::open(&old).unwrap().set_modified(long_ago).unwrap();
        drop(Draft::new(&dir.path().join("one")).unwrap());
        assert!(!dead.exists() && !old.exists());
        assert!(elsewhere.exists(), "its process may run in another container");
    }

    #[test]
    fn cached_programs_have_no_setuid_or_setgid_bit() {
        use std::os::unix::fs::PermissionsExt;
        let dir = tempfile::tempdir().unwrap();
        let bin = dir.path().join("usr/bin");
        fs::create_dir_all(&bin).unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o7777;
        for (name, before) in [("passwd", 0o4750), ("chage", 0o2751), ("psql", 0o700), ("list", 0o640)] {
            fs::write(bin.join(name), "").unwrap();
            fs::set_permissions(bin.join(name), fs::Permissions::from_mode(before)).unwrap();
        }
        take_privileges(dir.path()).unwrap();
        open_to_all(dir.path()).unwrap();
        let modes = ["passwd", "chage", "psql", "list"].map(|name| mode(&bin.join(name)));
        assert_eq!(modes, [0o755, 0o755, 0o755, 0o644]);
    }
}
