//! Directories that were reached without trusting other users, and are held open. Every operation goes through the
//! descriptor, so replacing the path by a link or another directory has no effect.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::path::{Component, Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use rustix::fs::{AtFlags, FileType, FlockOperation, Mode, OFlags};
use rustix::io::Errno;

use super::error::{Doing, ProvisionError};
use super::trust::{Objection, Trust};
use crate::host::plain::STEP;

/// Flags for opening a directory to read or lock it.
const WHOLE: OFlags = OFlags::DIRECTORY.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);
/// The most links that a path may follow, as in the kernel (path_resolution(7)).
const MOST_LINKS: usize = 40;
/// Other users may only pass through, as a server under another user must. The umask does not matter. A user who can
/// open a directory for reading could hold its lock for ever.
pub const PASSABLE: Mode = Mode::from_raw_mode(0o711);
/// No access for other users.
pub const PRIVATE: Mode = Mode::from_raw_mode(0o700);
/// The rights of other users, from inode(7).
const OTHERS: u32 = 0o077;
/// How long to wait for a directory's lock: its holder may have gigabytes to remove.
const PATIENCE: Duration = Duration::from_secs(60);

/// An open, trusted directory.
#[derive(Debug)]
pub struct CheckedDir {
    dir: OwnedFd,
    path: PathBuf,
}

impl CheckedDir {
    /// The directory at a path, through links of trusted users; `None` if there is none.
    ///
    /// # Errors
    /// [`ProvisionError::Untrusted`] if another user could replace it; [`ProvisionError::NotADirectory`] if it, or one
    /// above it, is something else.
    pub fn find(path: &Path) -> Result<Option<Self>, ProvisionError> {
        let mut walk = Walk::to(path)?;
        Ok(walk.go(None)?.then_some(walk.here))
    }

    /// The directory at exactly this path, without links; `None` if there is none.
    ///
    /// # Errors
    /// As [`CheckedDir::find`], except that something else at the path is `None`.
    pub fn at(path: &Path) -> Result<Option<Self>, ProvisionError> {
        match Self::find(path) {
            Err(ProvisionError::NotADirectory { .. }) => Ok(None),
            found => Ok(found?.filter(|dir| dir.path == path)),
        }
    }

    /// The same, making missing directories; also returns those that were made, innermost first.
    ///
    /// # Errors
    /// As [`CheckedDir::find`], and a directory that cannot be made; directories that were made are removed.
    pub fn make(path: &Path, mode: Mode) -> Result<(Self, Vec<PathBuf>), ProvisionError> {
        let mut walk = Walk::to(path)?;
        let gone = walk.go(Some(mode));
        walk.made.reverse();
        // A path such as `new/../data` passes through directories that are not above it.
        walk.made.retain(|made| walk.here.path.starts_with(made));
        match gone {
            Ok(_) => Ok((walk.here, walk.made)),
            Err(error) => {
                remove_empty(&walk.made);
                Err(error)
            }
        }
    }

    /// The directory at exactly this path, which must belong to this user; `None` if there is none. Other rumba
    /// processes are locked out until the file is dropped.
    ///
    /// # Errors
    /// As [`CheckedDir::find`] and [`CheckedDir::require_own`]; [`ProvisionError::Held`].
    pub fn lock(path: &Path) -> Result<Option<(Self, File)>, ProvisionError> {
        loop {
            let Some(dir) = Self::at(path)? else { return Ok(None) };
            // Any user could hold the lock of another user's directory for ever.
            dir.require_own()?;
            let lock = File::from(dir.open(".".as_ref(), WHOLE).doing("open", path)?);
            lock_within(&lock, path)?;
            // The last holder may have removed the directory and made a new one.
            let current = Self::at(path)?;
            if current.map(|current| current.id()).transpose()? == Some(dir.id()?) {
                return Ok(Some((dir, lock)));
            }
        }
    }

    /// Its path: absolute and without links.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Device and inode, which distinguish it from any other directory at its path.
    pub fn id(&self) -> Result<(u64, u64), ProvisionError> {
        let stat = rustix::fs::fstat(&self.dir).map_err(Into::into).doing("look at", &self.path)?;
        Ok((stat.st_dev, stat.st_ino))
    }

    /// Refuses a directory that belongs to another user, or that others may write to.
    ///
    /// # Errors
    /// [`ProvisionError::Untrusted`].
    pub fn require_own(&self) -> Result<(), ProvisionError> {
        let stat = rustix::fs::fstat(&self.dir).map_err(Into::into).doing("look at", &self.path)?;
        let objection = Trust::of_this_process().against_managed(self.dir.as_fd(), &stat);
        objection.map_or(Ok(()), |objection| Err(ProvisionError::managed(&self.path, objection)))
    }

    /// Refuses, for every user, a directory in which others could replace the contents.
    ///
    /// # Errors
    /// [`ProvisionError::Untrusted`].
    pub fn require_safe(&self) -> Result<(), ProvisionError> {
        let stat = rustix::fs::fstat(&self.dir).map_err(Into::into).doing("look at", &self.path)?;
        let objection = Trust::of_this_process().against_above(self.dir.as_fd(), &stat);
        objection.map_or(Ok(()), |objection| Err(ProvisionError::above(&self.path, objection)))
    }

    /// A directory directly in it; `None` if there is none, or something else.
    pub fn below(&self, name: &OsStr) -> Result<Option<Self>, ProvisionError> {
        let path = self.path.join(name);
        match self.open(name, STEP) {
            Ok(dir) => Ok(Some(Self { dir, path })),
            Err(error) if is_no_directory(&error) => Ok(None),
            Err(error) => Err(error).doing("reach", &path),
        }
    }

    pub fn names(&self) -> Result<Vec<OsString>, ProvisionError> {
        let entries = fs::read_dir(self.by_descriptor(".".as_ref()));
        let name = |entry: io::Result<fs::DirEntry>| entry.map(|entry| entry.file_name());
        entries.and_then(|entries| entries.map(name).collect::<io::Result<_>>()).doing("read", &self.path)
    }

    /// The contents of a plain file in it that belongs to this user; `None` if there is none.
    ///
    /// # Errors
    /// [`ProvisionError::Untrusted`] when it is anything else, or longer than `longest` bytes.
    pub fn read(&self, name: &str, longest: u64) -> Result<Option<Vec<u8>>, ProvisionError> {
        let path = self.path.join(name);
        // Follow no link, and do not wait for a pipe.
        let file = match self.open(name.as_ref(), OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC) {
            Ok(file) => File::from(file),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) if error.raw_os_error() == Some(libc::ELOOP) => {
                return Err(ProvisionError::managed(&path, Objection::new("it is a link")));
            }
            Err(error) => return Err(error).doing("read", &path),
        };
        let stat = rustix::fs::fstat(&file).map_err(Into::into).doing("look at", &path)?;
        let objection = if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
            Some(Objection::new("it is not a regular file"))
        } else if u64::try_from(stat.st_size).is_ok_and(|bytes| bytes > longest) {
            Some(Objection::new(format!("it is {} bytes long, and rumba writes at most {longest}", stat.st_size)))
        } else {
            Trust::of_this_process().against_managed(file.as_fd(), &stat)
        };
        if let Some(objection) = objection {
            return Err(ProvisionError::managed(&path, objection));
        }
        let mut bytes = Vec::new();
        file.take(longest).read_to_end(&mut bytes).doing("read", &path)?;
        Ok(Some(bytes))
    }

    /// Time since the last write to a file in it, by this host's clock; `None` if there is none.
    pub fn age_of(&self, name: &str) -> Result<Option<Duration>, ProvisionError> {
        let stat = match rustix::fs::statat(&self.dir, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => stat,
            Err(Errno::NOENT) => return Ok(None),
            Err(error) => return Err(io::Error::from(error)).doing("look at", &self.path.join(name)),
        };
        let written = UNIX_EPOCH + Duration::from_secs(u64::try_from(stat.st_mtime).unwrap_or(0));
        Ok(Some(SystemTime::now().duration_since(written).unwrap_or_default()))
    }

    /// Writes a file in it, completely and on the device, or not at all. Until then it has the name `unfinished`.
    pub fn write(&self, name: &str, unfinished: &str, bytes: &[u8]) -> Result<(), ProvisionError> {
        let write = || -> io::Result<()> {
            self.unlink(unfinished.as_ref(), AtFlags::empty())?;
            let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let mut file = File::from(rustix::fs::openat(&self.dir, unfinished, flags, Mode::from_raw_mode(0o644))?);
            file.write_all(bytes)?;
            file.sync_all()?;
            rustix::fs::renameat(&self.dir, unfinished, &self.dir, name)?;
            // Sync its name too. Some filesystems cannot sync a directory, so an error is ignored.
            let _ = File::from(self.open(".".as_ref(), WHOLE)?).sync_all();
            Ok(())
        };
        write().doing("write", &self.path.join(name))
    }

    /// Makes a directory in it.
    ///
    /// # Errors
    /// The system's error; also when the name exists.
    pub fn make_dir(&self, name: &str, mode: Mode) -> Result<(), ProvisionError> {
        rustix::fs::mkdirat(&self.dir, name, mode).map_err(Into::into).doing("create", &self.path.join(name))
    }

    /// A directory in it that only this user can have made and can read. It is made if missing.
    ///
    /// # Errors
    /// [`ProvisionError::Untrusted`] when there is something else of that name.
    pub fn private(&self, name: &str) -> Result<Self, ProvisionError> {
        let path = self.path.join(name);
        match rustix::fs::mkdirat(&self.dir, name, PRIVATE) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(error) => return Err(io::Error::from(error)).doing("create", &path),
        }
        let Some(dir) = self.below(name.as_ref())? else {
            return Err(ProvisionError::above(&path, self.against(name)));
        };
        let stat = rustix::fs::fstat(&dir).map_err(Into::into).doing("look at", &path)?;
        let objection = match Trust::of_this_process().against_managed(dir.as_fd(), &stat) {
            None if stat.st_mode & OTHERS != 0 => Some(Objection::new("others may look into it")),
            objection => objection,
        };
        objection.map_or(Ok(dir), |objection| Err(ProvisionError::above(&path, objection)))
    }

    /// The objection to an entry that is not a directory.
    fn against(&self, name: &str) -> Objection {
        let stat = rustix::fs::statat(&self.dir, name, AtFlags::SYMLINK_NOFOLLOW);
        let owner = stat.ok().and_then(|stat| Trust::of_this_process().against_link(&stat));
        let owner = owner.map(|objection| format!(", and {}", objection.words)).unwrap_or_default();
        Objection::new(format!("it is a link or a file{owner}"))
    }

    /// Removes a file in it, if there is one.
    pub fn remove_file(&self, name: &str) -> Result<(), ProvisionError> {
        self.unlink(name.as_ref(), AtFlags::empty()).doing("remove", &self.path.join(name))
    }

    /// Removes an empty directory in it, if there is one.
    pub fn remove_dir(&self, name: &OsStr) -> Result<(), ProvisionError> {
        self.unlink(name, AtFlags::REMOVEDIR).doing("remove", &self.path.join(name))
    }

    /// Removes a directory in it with all contents, if there is one. A link in its place, or in it, is removed and not
    /// followed: `remove_dir_all` ensures that.
    pub fn remove_all(&self, name: &str) -> Result<(), ProvisionError> {
        let removed = fs::remove_dir_all(self.by_descriptor(name.as_ref()));
        unless_gone(removed).doing("remove", &self.path.join(name))
    }

    /// Whether this process may write in it. Modes are not enough, because a filesystem may be read-only.
    pub fn is_writable(&self) -> bool {
        rustix::fs::accessat(&self.dir, ".", rustix::fs::Access::WRITE_OK, AtFlags::empty()).is_ok()
    }

    fn unlink(&self, name: &OsStr, flags: AtFlags) -> io::Result<()> {
        unless_gone(rustix::fs::unlinkat(&self.dir, name, flags).map_err(Into::into))
    }

    fn open(&self, name: &OsStr, flags: OFlags) -> io::Result<OwnedFd> {
        Ok(rustix::fs::openat(&self.dir, name, flags, Mode::empty())?)
    }

    /// A path through the descriptor, for calls that take only a path.
    fn by_descriptor(&self, name: &OsStr) -> PathBuf {
        PathBuf::from(format!("/proc/self/fd/{}", self.dir.as_raw_fd())).join(name)
    }
}

impl AsFd for CheckedDir {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.dir.as_fd()
    }
}

/// A walk to a directory, step by step.
struct Walk {
    trust: Trust,
    here: CheckedDir,
    /// The remaining steps, the next one last.
    left: Vec<OsString>,
    links: usize,
    /// The directories that were made, outermost first.
    made: Vec<PathBuf>,
}

impl Walk {
    fn to(path: &Path) -> Result<Self, ProvisionError> {
        let absolute = std::path::absolute(path).doing("find", path)?;
        Ok(Self { trust: Trust::of_this_process(), here: root()?, left: steps(&absolute), links: 0, made: Vec::new() })
    }

    /// Walks to the end; makes missing directories with a mode, if one is given. Returns whether the end was reached.
    fn go(&mut self, make: Option<Mode>) -> Result<bool, ProvisionError> {
        while let Some(name) = self.left.pop() {
            let path = if name == ".." { above(&self.here.path) } else { self.here.path.join(&name) };
            match self.here.open(&name, STEP) {
                Ok(dir) => self.enter(CheckedDir { dir, path })?,
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    let Some(mode) = make else { return Ok(false) };
                    self.make(name, path, mode)?;
                }
                Err(error) if is_no_directory(&error) => self.follow(&name, path)?,
                Err(error) => return Err(error).doing("reach", &path),
            }
        }
        Ok(true)
    }

    fn enter(&mut self, dir: CheckedDir) -> Result<(), ProvisionError> {
        self.here = dir;
        if self.trust.minds_what_is_above() { self.here.require_safe() } else { Ok(()) }
    }

    fn make(&mut self, name: OsString, path: PathBuf, mode: Mode) -> Result<(), ProvisionError> {
        match rustix::fs::mkdirat(&self.here.dir, &name, mode) {
            Ok(()) => self.made.push(path),
            // Another process was faster.
            Err(Errno::EXIST) => {}
            Err(error) => return Err(io::Error::from(error)).doing("create", &path),
        }
        // Enter and check the new directory like any other.
        self.left.push(name);
        Ok(())
    }

    fn follow(&mut self, name: &OsStr, path: PathBuf) -> Result<(), ProvisionError> {
        let link = self.here.open(name, OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC).doing("reach", &path)?;
        let stat = rustix::fs::fstat(&link).map_err(Into::into).doing("look at", &path)?;
        if FileType::from_raw_mode(stat.st_mode) != FileType::Symlink {
            return Err(ProvisionError::NotADirectory { path });
        }
        if self.trust.minds_what_is_above()
            && let Some(Objection { words, .. }) = self.trust.against_link(&stat)
        {
            return Err(ProvisionError::above(&path, Objection::new(format!("it is a link, and {words}"))));
        }
        self.links += 1;
        if self.links > MOST_LINKS {
            return Err(io::Error::from_raw_os_error(libc::ELOOP)).doing("reach", &path);
        }
        let target = rustix::fs::readlinkat(&link, "", Vec::new()).map_err(Into::into).doing("follow", &path)?;
        let target = PathBuf::from(OsString::from_vec(target.into_bytes()));
        if target.is_absolute() {
            self.here = root()?;
        }
        self.left.extend(steps(&target));
        Ok(())
    }
}

fn root() -> Result<CheckedDir, ProvisionError> {
    let path = PathBuf::from("/");
    let dir = rustix::fs::open(&path, STEP, Mode::empty()).map_err(Into::into).doing("open", &path)?;
    Ok(CheckedDir { dir, path })
}

/// The steps of a path, the first one last.
fn steps(path: &Path) -> Vec<OsString> {
    let step = |component: Component<'_>| match component {
        Component::Normal(name) => Some(name.to_owned()),
        Component::ParentDir => Some("..".into()),
        Component::Prefix(_) | Component::RootDir | Component::CurDir => None,
    };
    path.components().rev().filter_map(step).collect()
}

fn above(path: &Path) -> PathBuf {
    path.parent().unwrap_or(path).to_owned()
}

/// Whether the name is no directory: it does not exist, or is a link or something else.
fn is_no_directory(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::ENOENT | libc::ENOTDIR | libc::ELOOP))
}

fn lock_within(file: &File, path: &Path) -> Result<(), ProvisionError> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        match rustix::fs::flock(file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => return Ok(()),
            Err(Errno::WOULDBLOCK) if Instant::now() < deadline => sleep(Duration::from_millis(20)),
            Err(Errno::WOULDBLOCK) => return Err(ProvisionError::Held { path: path.to_owned() }),
            Err(error) => return Err(io::Error::from(error)).doing("lock", path),
        }
    }
}

/// Removes directories that are empty, in this order. One that is not empty is in use by another process.
pub fn remove_empty(made: &[PathBuf]) {
    for path in made {
        let (Some(above), Some(name)) = (path.parent(), path.file_name()) else { break };
        let Ok(Some(above)) = CheckedDir::at(above) else { break };
        if rustix::fs::unlinkat(&above, name, AtFlags::REMOVEDIR).is_err() {
            break;
        }
    }
}

/// Treats an object that is already gone as success.
pub fn unless_gone(result: io::Result<()>) -> io::Result<()> {
    match result {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        result => result,
    }
}
