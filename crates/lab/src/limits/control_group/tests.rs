//! Guards a user with files that look like a control group: the processes named there must survive.

use std::fs;
use std::process::{Command, Stdio};

use super::KIND;
use crate::provision::ResourceRegistry;
use crate::provision::tests::ended_owner;

#[test]
fn plain_directory_is_not_accepted_as_a_control_group() {
    // Guards against killing the processes whose pids are in a plain file.
    let root = tempfile::tempdir().unwrap();
    let place = root.path().canonicalize().unwrap();
    let ledger = ResourceRegistry::at(&place.join("state")).unwrap();
    let mut bystander = Command::new("cat").stdin(Stdio::piped()).spawn().unwrap();
    let owner = ended_owner();
    let path = place.join(format!("rumba-{}-{}-0", owner.process.pid, owner.process.start_ticks));
    fs::create_dir(&path).unwrap();
    fs::write(path.join("cgroup.procs"), format!("{}\n", bystander.id())).unwrap();
    let _registration = ledger.register(&KIND, &path, &owner).unwrap();
    for leftover in ledger.leftovers(&[KIND]).unwrap() {
        let _ = ledger.clean(&leftover);
    }
    let lives = bystander.try_wait().unwrap().is_none();
    bystander.kill().unwrap();
    bystander.wait().unwrap();
    assert!(lives, "it was killed");
    assert!(path.join("cgroup.procs").exists());
    assert_eq!(fs::read_dir(place.join("state/managed")).unwrap().count(), 0, "there is no such group");
}
