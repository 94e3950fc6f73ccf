//! Attacks by other users of the host. Root neither believes nor follows nor waits for files that they make. The
//! refusal names the owner and the remedy.
//!
//! The attacks are made by processes of another user, on real directories.
#![allow(clippy::unwrap_used)]

#[macro_use(test)]
extern crate rumba_testkit;
rumba_testkit::main!();

use std::fs::{self, File, Permissions};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::mpsc::channel;
use std::time::Duration;

use rumba_lab::leftovers;
use rumba_lab::limits::{LoopDevice, THROTTLES, Throttled, VolumeDir};
use rumba_lab::provision::{DataDir, MARK_VARIABLE, Owner, ProvisionError, ResourceRegistry};
use serde_json::json;

/// A user that no system has.
const OUTSIDER: u32 = 12_345;
/// The contents of a file of root.
const SECRET: &str = "root's alone";

/// A directory of root that another user can reach, with its own ledger.
struct Yard {
    dir: tempfile::TempDir,
    ledger: ResourceRegistry,
}

impl Yard {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        fs::set_permissions(dir.path(), Permissions::from_mode(0o755)).unwrap();
        let ledger = ResourceRegistry::at(&dir.path().join("state")).unwrap();
        fs::write(dir.path().join("secret"), SECRET).unwrap();
        fs::set_permissions(dir.path().join("secret"), Permissions::from_mode(0o600)).unwrap();
        Self { dir, ledger }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().canonicalize().unwrap().join(name)
    }

    /// A directory of root with this mode.
    fn directory(&self, name: &str, mode: u32) -> PathBuf {
        let path = self.path(name);
        fs::create_dir(&path).unwrap();
        fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
        path
    }

    /// Runs a script as the other user in a directory.
    fn outsider(&self, place: &Path, script: &str) {
        let mut command = Command::new("sh");
        command.args(["-euc", script]).current_dir(place).env("SECRET", self.path("secret"));
        assert!(command.uid(OUTSIDER).gid(OUTSIDER).status().unwrap().success(), "{script}");
    }

    /// Writes a file, and the directories above it, as the other user.
    fn outsider_writes(&self, file: &Path, text: &str) {
        let mut command = Command::new("sh");
        command.args(["-euc", "mkdir -p \"${FILE%/*}\"; printf %s \"$TEXT\" > \"$FILE\""]);
        command.env("FILE", file).env("TEXT", text).current_dir("/");
        assert!(command.uid(OUTSIDER).gid(OUTSIDER).status().unwrap().success(), "{}", file.display());
    }

    /// Imitates a volume of an ended trial, with groups that lead to a file of root.
    fn outsider_leaves_volume(&self, volume: &Path) {
        let shared = volume.parent().unwrap();
        self.outsider_writes(&volume.join(".rumba"), &marker(volume, &[volume]));
        let group = shared.join("group");
        let device = json!({ "node": "/etc/hostname", "number": "a line of another user\n7:0" });
        self.outsider_writes(&volume.join("device.json"), &json!({ "device": device, "groups": [group] }).to_string());
        for throttle in THROTTLES {
            self.outsider(shared, &format!("mkdir -p group; ln -s \"$SECRET\" group/{throttle}"));
        }
    }

    fn assert_unharmed(&self) {
        assert_eq!(fs::read_to_string(self.path("secret")).unwrap(), SECRET);
        assert_eq!(fs::read_dir(self.path("state/managed")).unwrap().count(), 0, "nothing was begun");
    }
}

fn owner() -> Owner {
    Owner::this_process("hostile", 1).unwrap()
}

/// An owner that ran before the host's last boot.
fn ended_owner() -> Owner {
    let mut owner = owner();
    owner.process.boot_id = "an earlier one".to_owned();
    owner
}

/// The marker of an ended trial's directory.
fn marker(path: &Path, made: &[&Path]) -> String {
    let mut marker = serde_json::to_value(ended_owner()).unwrap();
    (marker["format"], marker["path"]) = (json!(1), json!(path));
    (marker["kept"], marker["made"]) = (json!(false), json!(made));
    marker.to_string()
}

/// Checks that a refusal names this path, the problem, and the remedy.
fn assert_refused(error: &ProvisionError, path: &Path, wrong: &str) {
    let words = error.to_string();
    assert!(matches!(error, ProvisionError::Untrusted { .. }), "{words}");
    assert!(words.starts_with(&format!("{}: ", path.display())) && words.contains(wrong), "{words}");
    assert!(
        ["choose a", "name a"].iter().any(|remedy| words.contains(remedy)) || words.contains("chmod go-w"),
        "{words}"
    );
}

#[test]
#[needs(Root)]
fn root_writes_nothing_into_a_volume_prepared_by_another_user() {
    // Guards against root writing two lines of another user's choice into a file of his choice.
    for (mode, is_sticky) in [(0o777, false), (0o1777, true)] {
        let yard = Yard::new();
        let shared = yard.directory("shared", mode);
        let volume = shared.join("001-rocksdb-c1-r1.storage");
        yard.outsider_leaves_volume(&volume);
        let refusals = [
            DataDir::check(&volume).unwrap_err(),
            VolumeDir::create(&volume, &owner(), &yard.ledger).unwrap_err(),
            DataDir::create(&volume, &owner(), &yard.ledger).unwrap_err(),
        ];
        for error in refusals {
            match is_sticky {
                true => assert_refused(&error, &volume, "12345"),
                false => assert_refused(&error, &shared, "everybody may write to it (mode 0777)"),
            }
        }
        assert!(volume.join("device.json").exists(), "it belongs to the other user");
        yard.assert_unharmed();
    }
}

#[test]
#[needs(Root)]
fn foreign_marker_in_roots_own_directory_is_refused() {
    let yard = Yard::new();
    let base = yard.directory("base", 0o755);
    let volume = yard.directory("base/001-x-c1-r1.storage", 0o777);
    yard.outsider_writes(&volume.join(".rumba"), &marker(&volume, &[&volume]));
    assert_refused(&DataDir::check(&volume).unwrap_err(), &volume, "mode 0777");
    fs::set_permissions(&volume, Permissions::from_mode(0o755)).unwrap();
    assert_refused(&DataDir::check(&volume).unwrap_err(), &volume.join(".rumba"), "12345");
    assert!(base.is_dir());
    yard.assert_unharmed();
}

#[test]
#[needs(Root)]
fn foreign_list_of_made_directories_removes_none() {
    let yard = Yard::new();
    let (empty, outer) = (yard.directory("empty", 0o755), yard.directory("outer", 0o755));
    let shared = yard.directory("outer/shared", 0o1777);
    let forged = shared.join("001-x-c1-r1");
    yard.outsider_writes(&forged.join(".rumba"), &marker(&forged, &[&forged, &empty]));
    assert_refused(&DataDir::create(&forged, &owner(), &yard.ledger).unwrap_err(), &forged, "12345");
    assert!(empty.is_dir(), "an empty directory of root's is gone");
    // A new directory next to it must not trust its list of made directories.
    yard.outsider_writes(&forged.join(".rumba"), &marker(&forged, &[&forged, &shared, &outer]));
    let adjacent = DataDir::create(&shared.join("002-x-c1-r1"), &owner(), &yard.ledger).unwrap();
    yard.outsider(&shared, "rm -r 001-x-c1-r1");
    adjacent.remove().unwrap();
    assert!(shared.is_dir(), "directories of root's are gone");
    yard.assert_unharmed();
}

#[test]
#[needs(Root)]
fn foreign_marker_is_neither_followed_nor_waited_for() {
    for plant in ["mkfifo .rumba", "ln -s /etc/hostname .rumba", "truncate -s 1T .rumba", "mkdir .rumba"] {
        let yard = Yard::new();
        let shared = yard.directory("shared", 0o1777);
        let path = shared.join("001-x-c1-r1");
        yard.outsider(&shared, &format!("mkdir {0}; cd {0}; {plant}", "001-x-c1-r1"));
        let (done, checked) = channel();
        let looked_at = path.clone();
        std::thread::spawn(move || done.send(DataDir::check(&looked_at)));
        let error = checked.recv_timeout(Duration::from_secs(30)).expect(plant).unwrap_err();
        assert_refused(&error, &path, "12345");
        yard.assert_unharmed();
    }
}

#[test]
#[needs(Root)]
fn untrusted_symlink_is_not_followed_but_roots_own_is() {
    let yard = Yard::new();
    let (shared, target) = (yard.directory("shared", 0o1777), yard.directory("target", 0o755));
    yard.outsider(&shared, "ln -s ../target link");
    let error = DataDir::create(&shared.join("link/001-x-c1-r1"), &owner(), &yard.ledger).unwrap_err();
    assert_refused(&error, &shared.join("link"), "it is a link, and it belongs to");
    assert_eq!(fs::read_dir(&target).unwrap().count(), 0);
    symlink(&target, yard.path("own")).unwrap();
    let dir = DataDir::create(&yard.path("own/001-x-c1-r1"), &owner(), &yard.ledger).unwrap();
    assert_eq!(dir.path(), target.join("001-x-c1-r1"));
    dir.remove().unwrap();
    yard.assert_unharmed();
}

#[test]
#[needs(Root)]
fn sticky_directory_holds_private_data_and_world_writable_none() {
    let yard = Yard::new();
    let sticky = yard.directory("sticky", 0o1777);
    let dir = DataDir::create(&sticky.join("results/data/001-x-c1-r1"), &owner(), &yard.ledger).unwrap();
    let mode = fs::metadata(dir.path()).unwrap().permissions().mode();
    assert_eq!(mode & 0o022, 0, "other users may not write to it: {mode:o}");
    dir.remove().unwrap();
    assert_eq!(fs::read_dir(&sticky).unwrap().count(), 0);
    let open = yard.directory("open", 0o777);
    let below = open.join("results/data/001-x-c1-r1");
    assert_refused(&DataDir::check(&below).unwrap_err(), &open, "chmod go-w");
    assert_refused(&DataDir::create(&below, &owner(), &yard.ledger).unwrap_err(), &open, "run.data_dir");
    let group = yard.directory("group", 0o775);
    std::os::unix::fs::chown(&group, None, Some(OUTSIDER)).unwrap();
    assert_refused(&DataDir::check(&group.join("001-x")).unwrap_err(), &group, "the group 12345 may write to it");
    let other_processes = yard.directory("others", 0o755);
    std::os::unix::fs::chown(&other_processes, Some(OUTSIDER), None).unwrap();
    assert_refused(
        &DataDir::check(&other_processes.join("001-x")).unwrap_err(),
        &other_processes,
        "it belongs to 12345",
    );
    assert_eq!(fs::read_dir(&open).unwrap().count(), 0);
    yard.assert_unharmed();
}

#[test]
#[needs(Root)]
fn leftover_replaced_by_another_user_stays_listed() {
    let yard = Yard::new();
    let (base, precious) = (yard.directory("base", 0o755), yard.directory("precious", 0o755));
    fs::create_dir(precious.join("data")).unwrap();
    fs::write(precious.join("data/file"), SECRET).unwrap();
    let path = base.join("001-x-c1-r1");
    std::mem::forget(DataDir::create(&path, &ended_owner(), &yard.ledger).unwrap());
    assert!(leftovers::find(&yard.ledger).unwrap()[0].doubt.is_none());
    fs::set_permissions(&base, Permissions::from_mode(0o777)).unwrap();
    yard.outsider(&base, "mv 001-x-c1-r1 moved; ln -s ../precious 001-x-c1-r1");
    for mode in [0o777, 0o755] {
        fs::set_permissions(&base, Permissions::from_mode(mode)).unwrap();
        let leftovers = leftovers::find(&yard.ledger).unwrap();
        let doubt = leftovers[0].doubt.clone().unwrap();
        assert!(doubt.contains(if mode == 0o777 { "mode 0777" } else { "it is a link" }), "{doubt}");
        yard.ledger.clean(&leftovers[0]).unwrap_err();
        assert_eq!(fs::read_to_string(precious.join("data/file")).unwrap(), SECRET);
    }
    fs::remove_file(&path).unwrap();
    fs::rename(base.join("moved"), &path).unwrap();
    yard.ledger.clean(&leftovers::find(&yard.ledger).unwrap()[0]).unwrap();
    assert!(!path.exists());
    yard.assert_unharmed();
}

#[test]
#[needs(Root)]
fn foreign_process_with_roots_mark_is_neither_awaited_nor_ended() {
    // Guards against waiting three seconds for such a process and killing it; the mark is no secret.
    let yard = Yard::new();
    let data = DataDir::create(&yard.path("data"), &owner(), &yard.ledger).unwrap();
    let mut command = Command::new("sleep");
    let mut process = command.arg("1000").env(MARK_VARIABLE, data.mark()).uid(OUTSIDER).gid(OUTSIDER).spawn().unwrap();
    let vacated = data.vacate();
    let lives = process.try_wait().unwrap().is_none();
    process.kill().unwrap();
    process.wait().unwrap();
    vacated.unwrap();
    assert!(lives, "it was killed");
    data.remove().unwrap();
    yard.assert_unharmed();
}

#[test]
#[needs(Root)]
fn server_run_as_another_user_ends_before_its_data_is_removed() {
    // Guards against removing the data under a running server, because its real user was not root.
    let yard = Yard::new();
    let data = DataDir::create(&yard.path("data"), &owner(), &yard.ledger).unwrap();
    let given = data.engine_dir().join("data");
    fs::create_dir(&given).unwrap();
    std::os::unix::fs::chown(&given, Some(OUTSIDER), Some(OUTSIDER)).unwrap();
    let start = |place: &Path, mark: &str| {
        let mut command = Command::new("sleep");
        command.arg("1000").env(MARK_VARIABLE, mark).current_dir(place).uid(OUTSIDER).gid(OUTSIDER).spawn().unwrap()
    };
    let mut server = start(&given, &data.mark());
    // The user can reach this directory, but root did not give it to him.
    let mut outsider = start(&data.engine_dir(), &data.mark());
    let vacated = data.vacate();
    let lives = [&mut server, &mut outsider].map(|process| process.try_wait().unwrap().is_none());
    for process in [&mut server, &mut outsider] {
        let _ = process.kill();
        process.wait().unwrap();
    }
    vacated.unwrap();
    assert_eq!(lives, [false, true]);
    data.remove().unwrap();
    yard.assert_unharmed();
}

#[test]
#[needs(Root)]
fn other_users_cannot_lock_directories_created_by_root() {
    let yard = Yard::new();
    let data = DataDir::create(&yard.path("made/data"), &owner(), &yard.ledger).unwrap();
    let script = "if (exec 9< ../made/data) 2>/dev/null; then exit 1; fi; cd ../made/data/data";
    yard.outsider(&yard.directory("adjacent", 0o755), script);
    data.remove().unwrap();
    yard.assert_unharmed();
}

#[test]
#[needs(Root, LoopDevice)]
fn throttle_is_cleared_only_in_control_groups() {
    let yard = Yard::new();
    let volume = yard.directory("volume", 0o755);
    let group = yard.directory("group", 0o755);
    THROTTLES.iter().for_each(|throttle| symlink(yard.path("secret"), group.join(throttle)).unwrap());
    fs::create_dir(volume.join("backing")).unwrap();
    let image = File::options().read(true).write(true).create_new(true).open(volume.join("backing/image")).unwrap();
    image.set_len(1 << 20).unwrap();
    let device = LoopDevice::attach(&image).unwrap();
    drop(image);
    fs::write(volume.join(".rumba"), marker(&volume, &[&volume])).unwrap();
    let note = Throttled { device: device.clone(), groups: vec![group.clone()] };
    fs::write(volume.join("device.json"), serde_json::to_vec(&note).unwrap()).unwrap();
    // Creating a volume in place of an ended one undoes the old one.
    let taken = VolumeDir::create(&volume, &owner(), &yard.ledger);
    let is_attached = device.backing_file().is_some_and(|file| file.starts_with(&volume));
    device.detach(&volume.join("backing/image")).unwrap();
    taken.unwrap().remove().unwrap();
    assert!(!is_attached, "it was left attached");
    assert!(!volume.exists());
    yard.assert_unharmed();
}
