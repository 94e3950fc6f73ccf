//! Files that another user of the host plants in a world-writable directory, to trick rumba when it runs as root. The
//! other user is the unprivileged `no_user`; the victim is a directory of root's.

use std::fs;
use std::os::unix::fs::{PermissionsExt, lchown, symlink};
use std::path::{Path, PathBuf};

use serde_json::json;

use crate::place::CaseDirectory;
use crate::trouble::{Doing, Trouble};

/// The user and the group `no_user`.
const NO_USER: u32 = 65534;
/// The name of a throttling file of a version 1 group; here it is in the victim's directory.
const THROTTLE: &str = "blkio.throttle.read_iops_device";
const UNTOUCHED: &str = "untouched\n";

/// The planted object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Planted {
    /// Files in the place of a trial's data.
    Files,
    /// A data directory whose marker claims a directory of the victim's as its own.
    OwnerTag,
    /// A volume whose device file names a directory of the victim's as its throttling group.
    Volume,
    /// A link in the place of a trial's data that leads to a directory of the victim's.
    Link,
    /// A link in the place of the ledger of a user without a home.
    ResourceRegistry,
}

/// A planted object, and its position.
pub struct Plot {
    planted: Planted,
    /// The path that rumba will use.
    trap: PathBuf,
    victim: PathBuf,
    is_uprooted: bool,
}

impl Plot {
    /// Plants it for a trial of this name.
    pub fn plant(planted: Planted, place: &CaseDirectory, trial: &str) -> Result<Self, Trouble> {
        let victim = place.path("victim");
        let set = |what: std::io::Result<()>| what.doing("setting a trap");
        set(fs::create_dir_all(victim.join("empty")))?;
        set(fs::set_permissions(&victim, fs::Permissions::from_mode(0o700)))?;
        set(fs::write(victim.join(THROTTLE), UNTOUCHED))?;
        let shared = Self::shared(place, planted);
        set(fs::create_dir_all(&shared))?;
        set(fs::set_permissions(&shared, fs::Permissions::from_mode(0o1777)))?;
        let trap = shared.join(match planted {
            Planted::Files | Planted::OwnerTag | Planted::Link => trial.to_owned(),
            Planted::Volume => format!("{trial}.storage"),
            Planted::ResourceRegistry => format!("rumba-{}", rustix::process::getuid().as_raw()),
        });
        let plot = Self { planted, trap, victim, is_uprooted: false };
        set(plot.fill())?;
        set(own(&plot.trap))?;
        Ok(plot)
    }

    /// The directory that everybody may write.
    pub fn shared(place: &CaseDirectory, planted: Planted) -> PathBuf {
        if planted == Planted::ResourceRegistry { place.path("tmp") } else { place.path("shared") }
    }

    fn fill(&self) -> std::io::Result<()> {
        let trap = &self.trap;
        match self.planted {
            Planted::Link | Planted::ResourceRegistry => symlink(self.victim.join("empty"), trap),
            Planted::Files => {
                fs::create_dir(trap)?;
                fs::write(trap.join("thesis.txt"), UNTOUCHED)
            }
            Planted::OwnerTag => {
                fs::create_dir(trap)?;
                fs::create_dir(trap.join("data"))?;
                self.mark(&[trap, &self.victim.join("empty")])
            }
            Planted::Volume => {
                for dir in [trap.clone(), trap.join("backing"), trap.join("mounted")] {
                    fs::create_dir(dir)?;
                }
                let device = json!({ "node": "/dev/null", "number": "7:250" });
                let note = json!({ "device": device, "groups": [self.victim] });
                fs::write(trap.join("device.json"), note.to_string())?;
                self.mark(&[trap])
            }
        }
    }

    /// A marker like that of a process from an earlier boot.
    fn mark(&self, made: &[&Path]) -> std::io::Result<()> {
        let marker = json!({
            "format": 1, "path": self.trap, "pid": 4_000_000, "start_ticks": 1, "boot_id": "an earlier one",
            "pid_namespace": "pid:[4026531836]", "experiment": "linkbench", "trial": 1,
            "created": "2020-01-01T00:00:00Z", "kept": false, "made": made,
        });
        fs::write(self.trap.join(".rumba"), marker.to_string())
    }

    /// The damage to the victim, or to the planted object.
    pub fn harm(&self) -> Vec<String> {
        let mut harm = Vec::new();
        let mut must = |is_so: bool, what: &str| {
            if !is_so {
                harm.push(what.to_owned());
            }
        };
        let empty = self.victim.join("empty");
        must(empty.is_dir(), "the victim's empty directory was removed");
        must(is_empty(&empty) || !empty.is_dir(), "something was made in the victim's directory");
        let throttle = fs::read_to_string(self.victim.join(THROTTLE)).unwrap_or_default();
        must(throttle == UNTOUCHED, "the victim's file was written");
        if self.planted == Planted::Files && !self.is_uprooted {
            let thesis = fs::read_to_string(self.trap.join("thesis.txt")).unwrap_or_default();
            must(thesis == UNTOUCHED, "the other user's file was touched");
        }
        harm
    }

    /// Whether this is the planted object.
    pub fn is_trap(&self, path: &Path) -> bool {
        path == self.trap
    }

    /// Takes it away.
    pub fn uproot(&mut self) {
        self.is_uprooted = true;
        // A link is removed as a file, and not followed.
        let _ = fs::remove_file(&self.trap);
        let _ = fs::remove_dir_all(&self.trap);
    }
}

fn is_empty(dir: &Path) -> bool {
    fs::read_dir(dir).is_ok_and(|mut entries| entries.next().is_none())
}

/// Gives a path and all below it to the other user.
fn own(path: &Path) -> std::io::Result<()> {
    lchown(path, Some(NO_USER), Some(NO_USER))?;
    if path.symlink_metadata()?.is_dir() {
        for entry in fs::read_dir(path)? {
            own(&entry?.path())?;
        }
    }
    Ok(())
}
