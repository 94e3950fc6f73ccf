//! Guards a user whose files are named as the device in a volume's note.

use std::fs;
use std::os::unix::fs::symlink;

use super::{KIND, LoopDevice, THROTTLES, Throttled};
use crate::provision::tests::ended_owner;
use crate::provision::{OwnerTag, ResourceRegistry};

#[test]
fn note_of_a_non_loop_device_is_refused_and_nothing_is_written() {
    let root = tempfile::tempdir().unwrap();
    let place = root.path().canonicalize().unwrap();
    let ledger = ResourceRegistry::at(&place.join("state")).unwrap();
    let (path, group) = (place.join("volume"), place.join("group"));
    fs::create_dir(&path).unwrap();
    fs::create_dir(&group).unwrap();
    fs::write(place.join("precious"), "mine").unwrap();
    THROTTLES.iter().for_each(|throttle| symlink(place.join("precious"), group.join(throttle)).unwrap());
    let owner = ended_owner();
    let _registration = ledger.register(&KIND, &path, &owner).unwrap();
    OwnerTag::new(path.clone(), owner, vec![path.clone()]).write().unwrap();
    let device = LoopDevice { node: place.join("precious"), number: "7:0".to_owned(), name: String::new() };
    let note = serde_json::to_vec(&Throttled { device, groups: vec![group] }).unwrap();
    fs::write(path.join("device.json"), note).unwrap();
    let leftovers = ledger.leftovers(&[KIND]).unwrap();
    let error = ledger.clean(&leftovers[0]).unwrap_err().to_string();
    assert!(error.contains("device.json") && error.contains("is not a loop device"), "{error}");
    assert_eq!(fs::read_to_string(place.join("precious")).unwrap(), "mine");
}
