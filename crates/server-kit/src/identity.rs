//! Runs servers that refuse root as an unprivileged user.

use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;
use std::{fs, io};

use rumba_engine_api::setting::SettingError;
use rustix::fs::{AtFlags, Dir, Mode, OFlags, chownat, openat};
use rustix::io::Errno;
use rustix::process::{Gid, Uid, geteuid};
use rustix::thread::{
    CapabilitySet, CapabilitySets, capabilities, configure_capability_in_ambient_set, set_capabilities,
    set_keep_capabilities, set_thread_groups, set_thread_res_gid, set_thread_res_uid,
};

/// A user that runs a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// The user's name.
    pub name: String,
    user: u32,
    group: u32,
}

/// Flags to open a directory without following links.
const WHOLE: OFlags = OFlags::DIRECTORY.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// The user that runs a server if its package's user does not exist.
const NO_USER: &str = "nobody";

impl Identity {
    /// The user that runs a server when root runs rumba. `None` for other users, who run their servers themselves. The
    /// parameters are the experiment's choice, if any, and the user that the server's package creates.
    ///
    /// # Errors
    /// A user that does not exist on this host, or is root; any user if rumba is not run by root.
    pub fn choose(requested: Option<&str>, usual: &str) -> Result<Option<Self>, SettingError> {
        if !geteuid().is_root() {
            return match requested {
                Some(_) => Err(wrong("only root can run a server as another user", "leave it out")),
                None => Ok(None),
            };
        }
        let users = fs::read_to_string("/etc/passwd").unwrap_or_default();
        let found = match requested {
            Some(name) => find(&users, name).ok_or_else(|| {
                wrong(format!("this host has no user `{name}`"), "name a user of /etc/passwd, or leave it out")
            })?,
            None => find(&users, usual).or_else(|| find(&users, NO_USER)).ok_or_else(|| {
                let problem =
                    format!("this server refuses to be run by root, and this host has neither {usual} nor {NO_USER}");
                wrong(problem, "name a user of /etc/passwd")
            })?,
        };
        // Without it, root can start such a server but never end it.
        if !capabilities(None).is_ok_and(|sets| sets.effective.contains(CapabilitySet::KILL)) {
            let problem =
                format!("root runs this server as {}, and lacks the capability CAP_KILL to end it", found.name);
            return Err(wrong(problem, "give rumba CAP_KILL, or run it as an unprivileged user"));
        }
        if found.user == 0 {
            return Err(wrong("this server refuses to be run by root", "name another user, or leave it out"));
        }
        Ok(Some(found))
    }

    /// Refuses a program that this user cannot access.
    ///
    /// # Errors
    /// The directory that denies access.
    pub fn require_way_to(&self, program: &Path) -> Result<(), SettingError> {
        use std::os::unix::fs::{MetadataExt, PermissionsExt};
        let is_shut = |place: &&Path| {
            fs::metadata(place).is_ok_and(|found| {
                let mode = found.permissions().mode();
                found.uid() != self.user && found.gid() != self.group && mode & 0o001 == 0
            })
        };
        let Some(shut) = program.ancestors().find(is_shut) else { return Ok(()) };
        let problem = format!(
            "root runs it as {}, who cannot come to {}: {} is not for everybody",
            self.name,
            program.display(),
            shut.display()
        );
        Err(SettingError::new("server", problem, "have it elsewhere, or run rumba as a user who is not root"))
    }

    /// Gives a directory and its contents to this user. The user may own it already and concurrently create links in
    /// it, so no link is followed.
    ///
    /// # Errors
    /// The system's error; the path is not a directory.
    pub fn own(&self, path: &Path) -> io::Result<()> {
        let directory = rustix::fs::open(path, WHOLE, Mode::empty())?;
        self.own_below(&directory)?;
        Ok(rustix::fs::fchown(&directory, Some(Uid::from_raw(self.user)), Some(Gid::from_raw(self.group)))?)
    }

    fn own_below(&self, directory: &OwnedFd) -> io::Result<()> {
        for entry in Dir::read_from(directory)? {
            let entry = entry?;
            let name = entry.file_name();
            if matches!(name.to_bytes(), b"." | b"..") {
                continue;
            }
            match openat(directory, name, WHOLE, Mode::empty()) {
                Ok(below) => self.own_below(&below)?,
                Err(Errno::NOTDIR | Errno::LOOP) => {}
                Err(error) => return Err(error.into()),
            }
            let (user, group) = (Uid::from_raw(self.user), Gid::from_raw(self.group));
            chownat(directory, name, Some(user), Some(group), AtFlags::SYMLINK_NOFOLLOW)?;
        }
        Ok(())
    }

    /// Makes the command run as this user. The directories above its data may stay accessible to root only, because the
    /// command keeps the capability to traverse and read them.
    pub fn take_on(&self, command: &mut Command) {
        let (user, group) = (Uid::from_raw(self.user), Gid::from_raw(self.group));
        // SAFETY: between fork and exec only system calls are made, on the only thread, and no memory is allocated.
        unsafe {
            command.pre_exec(move || {
                // A container's root may lack the weaker capability.
                let has = capabilities(None)?.permitted;
                let lesser = has.contains(CapabilitySet::DAC_READ_SEARCH);
                let passing = if lesser { CapabilitySet::DAC_READ_SEARCH } else { CapabilitySet::DAC_OVERRIDE } & has;
                set_keep_capabilities(true)?;
                set_thread_groups(&[])?;
                set_thread_res_gid(group, group, group)?;
                set_thread_res_uid(user, user, user)?;
                set_capabilities(
                    None,
                    CapabilitySets { effective: passing, permitted: passing, inheritable: passing },
                )?;
                if !passing.is_empty() {
                    configure_capability_in_ambient_set(passing, true)?;
                }
                Ok(())
            });
        }
    }
}

fn wrong(problem: impl Into<String>, remedy: impl Into<String>) -> SettingError {
    SettingError::new("os_user", problem, remedy)
}

/// Finds a user in a table with the format of `/etc/passwd`.
fn find(users: &str, name: &str) -> Option<Identity> {
    let fields = users.lines().map(|line| line.split(':').collect::<Vec<_>>()).find(|fields| fields[0] == name)?;
    Some(Identity { name: name.to_owned(), user: fields.get(2)?.parse().ok()?, group: fields.get(3)?.parse().ok()? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_are_found_by_name() {
        let users = "root:x:0:0:root:/root:/bin/bash\npostgres:x:105:110::/var/lib:/bin/bash\nbroken:x\n";
        let found = find(users, "postgres").unwrap();
        assert_eq!((found.user, found.group), (105, 110));
        assert_eq!((find(users, "post"), find(users, "broken")), (None, None));
    }

    #[test]
    fn program_in_a_closed_directory_is_refused_naming_it() {
        use std::os::unix::fs::PermissionsExt;
        let dir = tempfile::tempdir().unwrap();
        let program = dir.path().join("bin/server");
        fs::create_dir(dir.path().join("bin")).unwrap();
        fs::write(&program, "").unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o700)).unwrap();
        let outsider = Identity { name: "outsider".into(), user: 4_294_967, group: 4_294_967 };
        let refused = outsider.require_way_to(&program).unwrap_err();
        assert!(refused.problem.contains(&format!("{} is not for everybody", dir.path().display())), "{refused:?}");
        fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o755)).unwrap();
        assert_eq!(outsider.require_way_to(&program), Ok(()));
    }

    #[test]
    fn chown_covers_the_directory_and_not_link_targets() {
        use std::os::unix::fs::{MetadataExt, symlink};
        // Without root, a process can only give files to its own user.
        let own = (geteuid().as_raw(), rustix::process::getegid().as_raw());
        let new = if geteuid().is_root() { (4_294_967, 4_294_968) } else { own };
        let dir = tempfile::tempdir().unwrap();
        let (data, theirs) = (dir.path().join("data"), dir.path().join("theirs"));
        fs::create_dir_all(data.join("base/1")).unwrap();
        fs::create_dir(&theirs).unwrap();
        fs::write(theirs.join("file"), "").unwrap();
        fs::write(data.join("base/1/table"), "").unwrap();
        symlink(&theirs, data.join("base/2")).unwrap();
        symlink(theirs.join("file"), data.join("link")).unwrap();
        let user = Identity { name: "somebody".into(), user: new.0, group: new.1 };
        user.own(&data).unwrap();
        let owner = |path: &Path| fs::symlink_metadata(path).map(|meta| (meta.uid(), meta.gid())).unwrap();
        for given in ["", "base", "base/1", "base/1/table", "base/2", "link"] {
            assert_eq!(owner(&data.join(given)), new, "{given}");
        }
        assert_eq!((owner(&theirs), owner(&theirs.join("file"))), (own, own));
        assert!(user.own(&data.join("link")).is_err(), "a link in the place of the directory");
    }

    #[test]
    fn only_root_runs_servers_as_another_user_and_never_as_root() {
        let requested = Identity::choose(Some("root"), "nobody");
        assert!(requested.unwrap_err().to_string().contains("root"));
    }
}
