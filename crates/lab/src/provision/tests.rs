//! Guards against losing data that is not rumba's, data of a running trial, or the disk space of a killed one.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use super::marker::OwnerTag;
use super::*;

/// A directory with its own ledger.
pub(crate) struct Host {
    root: tempfile::TempDir,
    pub(crate) ledger: ResourceRegistry,
}

impl Host {
    pub(crate) fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        let ledger = ResourceRegistry::at(&root.path().join("state")).unwrap();
        Self { root, ledger }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.root.path().canonicalize().unwrap().join(name)
    }

    fn create(&self, name: &str) -> Result<DataDir, ProvisionError> {
        DataDir::create(&self.path(name), &owner(), &self.ledger)
    }

    /// Makes a data directory with some data and leaves it, as after a kill -9.
    fn leave(&self, name: &str) -> PathBuf {
        let dir = DataDir::create(&self.path(name), &ended_owner(), &self.ledger).unwrap();
        fs::write(dir.engine_dir().join("table"), "rows").unwrap();
        let path = dir.path().to_owned();
        std::mem::forget(dir);
        path
    }

    fn leftovers(&self) -> Vec<Leftover> {
        self.ledger.leftovers(&[DATA_DIRECTORY]).unwrap()
    }

    fn entries(&self) -> usize {
        fs::read_dir(self.path("state/managed")).unwrap().count()
    }
}

fn owner() -> Owner {
    Owner::this_process("quickstart", 1).unwrap()
}

pub(crate) fn ended_owner() -> Owner {
    let mut child = Command::new("cat").stdin(Stdio::piped()).spawn().unwrap();
    let process = ProcessId::of(child.id()).unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    Owner { process, ..owner() }
}

#[test]
fn dropped_data_directory_removes_all_that_was_made_for_it() {
    let host = Host::new();
    let dir = host.create("deep/er/data").unwrap();
    assert_eq!(fs::read_dir(dir.engine_dir()).unwrap().count(), 0, "engines see an empty directory");
    fs::write(dir.engine_dir().join("table"), "rows").unwrap();
    assert_eq!(host.entries(), 1);
    drop(dir);
    assert!(!host.path("deep").exists());
    assert_eq!(host.entries(), 0);
}

#[test]
fn existing_directory_survives_the_run() {
    let host = Host::new();
    fs::create_dir_all(host.path("disk/lost+found")).unwrap();
    host.create("disk").unwrap().remove().unwrap();
    let names: Vec<_> = fs::read_dir(host.path("disk")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names, ["lost+found"]);
}

#[test]
fn foreign_and_running_data_is_refused_before_anything_is_made() {
    let host = Host::new();
    fs::create_dir(host.path("mine")).unwrap();
    fs::write(host.path("mine/ibdata1"), "precious").unwrap();
    let running = host.create("running").unwrap();
    fs::write(running.engine_dir().join("table"), "rows").unwrap();
    host.leave("left");
    for (name, part) in [
        ("mine", "was not made by rumba (it holds ibdata1)"),
        ("mine/ibdata1", "is not a directory"),
        ("mine/ibdata1/x", "is not a directory"),
        ("running", &format!("is in use by process {} (trial 1 of quickstart, ", std::process::id())),
    ] {
        for error in [DataDir::check(&host.path(name)).unwrap_err(), host.create(name).unwrap_err()] {
            assert!(error.to_string().contains(part), "{name}: {error}");
        }
    }
    DataDir::check(&host.path("left")).unwrap();
    DataDir::check(&host.path("not/yet/there")).unwrap();
    assert!(host.path("left/data/table").exists(), "a check touches nothing");
    assert!(!host.path("not").exists());
    assert_eq!(fs::read_to_string(host.path("mine/ibdata1")).unwrap(), "precious");
    assert_eq!(fs::read_dir(host.path("mine")).unwrap().count(), 1);
    assert!(running.engine_dir().join("table").exists());
    assert_eq!((host.entries(), host.leftovers().len()), (2, 1));
}

#[test]
fn another_containers_directory_is_refused_and_listed() {
    let host = Host::new();
    let mut elsewhere = owner();
    elsewhere.process.pid_namespace = "pid:[1]".to_owned();
    let dir = DataDir::create(&host.path("data"), &elsewhere, &host.ledger).unwrap();
    assert!(matches!(host.create("data").unwrap_err(), ProvisionError::OutOfSight { .. }));
    let listed = host.leftovers();
    assert!(listed.len() == 1 && listed[0].may_be_in_use(), "{listed:?}");
    assert!(listed[0].doubt.as_ref().unwrap().contains("--out-of-sight"), "{listed:?}");
    drop(dir);
}

#[test]
fn leftovers_of_a_kill_are_found_and_cleaned() {
    let host = Host::new();
    let path = host.leave("data");
    let leftovers = host.leftovers();
    assert_eq!(leftovers.len(), 1);
    assert!(leftovers[0].to_string().starts_with(&format!("data directory {}, ", path.display())), "{}", leftovers[0]);
    // A server outlives the trial that was killed.
    let mark = stray_processes::mark(&path, &leftovers[0].owner);
    let mut server = Command::new("sleep").arg("1000").env(MARK_VARIABLE, mark).spawn().unwrap();
    // It has its environment a moment after its start.
    while fs::read(format!("/proc/{}/environ", server.id())).unwrap().is_empty() {
        std::thread::yield_now();
    }
    host.ledger.clean(&leftovers[0]).unwrap();
    assert_eq!(server.wait().unwrap().signal(), Some(9));
    assert!(!path.exists());
    assert!(host.leftovers().is_empty());
    assert_eq!(host.entries(), 0);
}

#[test]
fn a_leftover_that_another_run_took_meanwhile_is_let_be() {
    let host = Host::new();
    host.leave("data");
    let leftovers = host.leftovers();
    let dir = host.create("data").unwrap();
    host.ledger.clean(&leftovers[0]).unwrap();
    assert!(dir.engine_dir().exists());
}

#[test]
fn user_files_next_to_the_data_are_kept() {
    let host = Host::new();
    let path = host.leave("data");
    fs::write(path.join("notes"), "mine").unwrap();
    for leftover in host.leftovers() {
        host.ledger.clean(&leftover).unwrap();
    }
    assert_eq!(fs::read_to_string(path.join("notes")).unwrap(), "mine");
    assert!(!path.join("data").exists());
}

#[test]
fn removal_does_not_follow_links() {
    let host = Host::new();
    fs::create_dir(host.path("precious")).unwrap();
    fs::write(host.path("precious/file"), "mine").unwrap();
    let path = host.leave("data");
    symlink(host.path("precious"), path.join("data/link")).unwrap();
    let other = host.leave("other");
    fs::remove_dir_all(other.join("data")).unwrap();
    symlink(host.path("precious"), other.join("data")).unwrap();
    for leftover in host.leftovers() {
        // A link in place of the data may be removed or refused, but not followed.
        let _ = host.ledger.clean(&leftover);
    }
    assert!(!path.exists());
    assert_eq!(fs::read_to_string(host.path("precious/file")).unwrap(), "mine");
}

#[test]
fn a_link_to_a_disk_is_followed_when_the_user_names_it() {
    let host = Host::new();
    fs::create_dir(host.path("disk")).unwrap();
    symlink(host.path("disk"), host.path("link")).unwrap();
    let dir = host.create("link").unwrap();
    assert_eq!(dir.path(), host.path("disk"));
    drop(dir);
    assert_eq!(fs::read_dir(host.path("disk")).unwrap().count(), 0);
    assert!(host.path("link").is_symlink());
}

#[test]
fn kept_data_is_neither_cleaned_nor_taken_by_a_later_run() {
    let host = Host::new();
    let mut dir = DataDir::create(&host.path("data"), &ended_owner(), &host.ledger).unwrap();
    fs::write(dir.engine_dir().join("table"), "rows").unwrap();
    dir.keep().unwrap();
    drop(dir);
    assert!(host.leftovers().is_empty());
    let error = host.create("data").unwrap_err();
    assert!(matches!(error, ProvisionError::Kept { .. }), "{error}");
    assert_eq!(fs::read_to_string(host.path("data/data/table")).unwrap(), "rows");
}

#[test]
fn a_copy_of_a_data_directory_is_not_rumbas() {
    let host = Host::new();
    let path = host.leave("data");
    fs::create_dir(host.path("copy")).unwrap();
    fs::copy(path.join(".rumba"), host.path("copy/.rumba")).unwrap();
    fs::write(host.path("copy/table"), "rows").unwrap();
    let error = host.create("copy").unwrap_err();
    assert!(error.to_string().contains("copied or moved"), "{error}");
    assert!(host.path("copy/table").exists());
}

#[test]
fn one_of_many_concurrent_runs_gets_the_directory() {
    let host = Host::new();
    let path = host.leave("data");
    let start = std::sync::Barrier::new(8);
    let taken: Vec<_> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..8)
            .map(|_| {
                scope.spawn(|| {
                    start.wait();
                    host.create("data")
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert_eq!(taken.iter().filter(|dir| dir.is_ok()).count(), 1, "{taken:?}");
    for dir in taken.iter().flatten() {
        assert_eq!(fs::read_dir(dir.engine_dir()).unwrap().count(), 0, "the dead trial's data is gone");
    }
    assert!(host.leftovers().is_empty(), "it is this process's now");
    drop(taken);
    assert!(!path.exists(), "the directory that the dead trial made goes as well");
    assert_eq!(host.entries(), 0);
}

#[test]
fn a_kill_while_the_directory_is_made_blocks_no_later_run() {
    let host = Host::new();
    let path = host.path("data");
    fs::create_dir(&path).unwrap();
    // Killed after the registration, while the marker was being written.
    let owner = ended_owner();
    let _registration = host.ledger.register(&DATA_DIRECTORY, &path, &owner).unwrap();
    fs::write(path.join(".rumba.new"), "half a mark").unwrap();
    assert!(host.leftovers().is_empty(), "it was never marked");
    assert_eq!(host.entries(), 0);
    host.create("data").unwrap().remove().unwrap();
    // Killed after the marker, before the engine's directory was made.
    OwnerTag::new(path.clone(), owner, vec![path.clone()]).write().unwrap();
    host.create("data").unwrap().remove().unwrap();
    assert!(!path.exists());
}

#[test]
fn half_written_entry_is_removed_once_no_writer_can_exist() {
    let host = Host::new();
    let (old, new) = (host.path("state/managed/7-1-00000000.new"), host.path("state/managed/8-1-00000000.new"));
    for path in [&old, &new] {
        fs::write(path, "{\"thing\": {").unwrap();
    }
    let an_hour_ago = std::time::SystemTime::now() - std::time::Duration::from_secs(3600);
    fs::File::options().write(true).open(&old).unwrap().set_modified(an_hour_ago).unwrap();
    assert!(host.leftovers().is_empty());
    assert!(!old.exists());
    assert!(new.exists(), "another process may be writing it");
}

#[test]
fn free_space_is_known_before_the_directory_exists() {
    assert!(free_bytes(&Host::new().path("not/yet/there")).unwrap() > 0);
}

#[test]
fn shared_parent_directories_go_with_the_last_user() {
    let host = Host::new();
    let first = host.create("base/below/first").unwrap();
    let second = host.create("base/below/second").unwrap();
    first.remove().unwrap();
    let third = host.create("base/below/third").unwrap();
    second.remove().unwrap();
    assert!(host.path("base/below/third").is_dir());
    third.remove().unwrap();
    assert!(!host.path("base").exists());
}

#[test]
fn data_with_a_bad_marker_stays_listed_until_removed() {
    // Guards against losing track of data: the entry was removed although gigabytes were left.
    for text in ["", "{}", "{\"format\":1", "not json"] {
        let host = Host::new();
        let path = host.leave("data");
        fs::write(path.join(".rumba"), text).unwrap();
        assert!(matches!(host.create("data").unwrap_err(), ProvisionError::OwnerTag { .. }), "{text}");
        for _ in 0..2 {
            let leftovers = host.leftovers();
            assert_eq!((leftovers.len(), host.entries()), (1, 1), "{text}");
            let doubt = leftovers[0].doubt.clone().unwrap();
            assert!(doubt.contains("not a marker") && doubt.contains("remove the directory yourself"), "{doubt}");
            let error = host.ledger.clean(&leftovers[0]).unwrap_err();
            assert!(error.to_string().contains(path.join(".rumba").to_str().unwrap()), "{error}");
            assert!(path.join("data/table").exists(), "what is not understood is not touched");
        }
        fs::remove_dir_all(&path).unwrap();
        assert!(host.leftovers().is_empty());
        assert_eq!(host.entries(), 0);
    }
}

#[test]
fn unreadable_registry_entry_is_reported() {
    let host = Host::new();
    host.leave("data");
    assert!(host.ledger.unreadable(&[DATA_DIRECTORY]).unwrap().is_empty());
    let entry = fs::read_dir(host.path("state/managed")).unwrap().next().unwrap().unwrap().path();
    fs::write(&entry, "").unwrap();
    assert!(host.leftovers().is_empty(), "its owner is unknown");
    let unreadable = host.ledger.unreadable(&[DATA_DIRECTORY]).unwrap();
    assert_eq!(unreadable.len(), 1);
    assert!(unreadable[0].to_string().contains(entry.to_str().unwrap()), "{unreadable:?}");
}

#[test]
fn unknown_resource_kind_is_reported_and_left_in_place() {
    let host = Host::new();
    let path = host.leave("data");
    assert_eq!(host.ledger.leftovers(&[]).unwrap().len(), 0);
    let unreadable = host.ledger.unreadable(&[]).unwrap();
    assert!(unreadable[0].to_string().contains("lists an unknown kind `data-directory`"), "{unreadable:?}");
    assert!(path.join("data/table").exists());
    assert_eq!((host.entries(), host.leftovers().len()), (1, 1), "it stays listed for those who know it");
}

#[test]
fn only_directories_above_are_removed_despite_the_marker() {
    let host = Host::new();
    fs::create_dir(host.path("empty")).unwrap();
    let path = host.leave("data");
    let mut marker: serde_json::Value = serde_json::from_slice(&fs::read(path.join(".rumba")).unwrap()).unwrap();
    marker["made"] = serde_json::json!([path, host.path("empty")]);
    fs::write(path.join(".rumba"), marker.to_string()).unwrap();
    let leftovers = host.leftovers();
    assert!(leftovers[0].doubt.as_ref().unwrap().contains("not above it"), "{leftovers:?}");
    host.ledger.clean(&leftovers[0]).unwrap_err();
    assert!(host.path("empty").is_dir());
}

#[test]
fn another_directory_in_its_place_is_let_be() {
    let host = Host::new();
    let dir = host.create("data").unwrap();
    fs::rename(host.path("data"), host.path("moved")).unwrap();
    fs::create_dir_all(host.path("data/data")).unwrap();
    fs::write(host.path("data/data/precious"), "mine").unwrap();
    let error = dir.remove().unwrap_err().to_string();
    assert!(error.contains("not the directory that was made there"), "{error}");
    assert!(host.path("data/data/precious").exists());
}

#[test]
fn world_writable_directory_is_refused_with_remedy() {
    let host = Host::new();
    fs::create_dir(host.path("open")).unwrap();
    fs::set_permissions(host.path("open"), fs::Permissions::from_mode(0o777)).unwrap();
    let error = host.create("open").unwrap_err();
    assert!(matches!(error, ProvisionError::Untrusted { .. }), "{error}");
    let words = error.to_string();
    let remedy = format!("chmod go-w {}", host.path("open").display());
    assert!(words.contains("everybody may write to it (mode 0777)") && words.contains(&remedy), "{words}");
    assert_eq!(fs::read_dir(host.path("open")).unwrap().count(), 0);
    assert_eq!(host.entries(), 0);
}

#[test]
fn live_resources_are_distinguished_from_leftovers_and_kept() {
    let host = Host::new();
    host.leave("left");
    let mut dir = host.create("mine").unwrap();
    let path = dir.path().to_owned();
    fs::write(dir.note(), "a note").unwrap();
    let living = host.ledger.living(&DATA_DIRECTORY).unwrap();
    assert_eq!(
        living.iter().map(|(path, owner)| (path, &owner.process)).collect::<Vec<_>>(),
        [(&path, &ProcessId::this().unwrap())]
    );
    assert_eq!(DataDir::noted(&path).unwrap().unwrap(), b"a note");
    assert_eq!(DataDir::kept(&path).unwrap(), None);
    let data = dir.engine_dir();
    dir.keep().unwrap();
    drop(dir);
    assert_eq!(host.ledger.living(&DATA_DIRECTORY).unwrap(), []);
    assert_eq!((DataDir::kept(&path).unwrap(), DataDir::kept(&host.path("none")).unwrap()), (Some(data), None));
}
