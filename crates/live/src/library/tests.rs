//! Tests the library with results as a run leaves them.

use std::fs;

use super::*;

/// Results without records, as left by a run that was killed at once.
fn begun(base: &Path, name: &str, started: &str) {
    let directory = base.join(name);
    fs::create_dir_all(directory.join("trials")).unwrap();
    fs::write(directory.join("experiment.toml"), "").unwrap();
    let json = serde_json::json!({
        "format": 1, "name": name.split('-').next(), "source": null, "started": started, "rumba": "0.1.0",
        "conditions": {}, "warnings": [], "trials": ["001-null-c1-r1"],
    });
    fs::write(directory.join("experiment.json"), json.to_string()).unwrap();
}

fn names(library: &Library) -> Vec<String> {
    library.list().unwrap().into_iter().map(|entry| entry.name).collect()
}

#[test]
fn newest_results_come_first_and_other_files_are_skipped() {
    let dir = tempfile::tempdir().unwrap();
    begun(dir.path(), "a-1", "2026-01-01T00:00:00Z");
    begun(dir.path(), "b-2", "2026-02-01T00:00:00Z");
    fs::create_dir(dir.path().join("notes of mine")).unwrap();
    fs::write(dir.path().join("file"), "").unwrap();
    assert_eq!(names(&Library::new(dir.path())), ["b-2", "a-1"]);
}

#[test]
fn a_name_leads_to_results_of_this_directory_or_nowhere() {
    let dir = tempfile::tempdir().unwrap();
    begun(&dir.path().join("in"), "a-1", "2026-01-01T00:00:00Z");
    begun(dir.path(), "outside", "2026-01-01T00:00:00Z");
    let library = Library::new(&dir.path().join("in"));
    assert!(library.directory("a-1").is_some());
    for name in ["../outside", "..", ".", "", "a-1/trials", "a-1\0", "gone"] {
        assert_eq!(library.directory(name), None, "{name:?}");
    }
}

#[test]
fn library_caches_results_and_rereads_changed_ones() {
    let dir = tempfile::tempdir().unwrap();
    begun(dir.path(), "a-1", "2026-01-01T00:00:00Z");
    let library = Library::new(dir.path());
    assert_eq!(library.list().unwrap()[0].ending(), "not read yet");
    while library.read_next() {}
    assert_eq!(library.list().unwrap()[0].ending(), "1 not run");
    let again = Library::new(dir.path());
    assert_eq!(again.list().unwrap(), library.list().unwrap(), "it was kept with the results");
    begun(dir.path(), "a-1", "2026-03-01T00:00:00Z");
    let entry = &again.list().unwrap()[0];
    assert_eq!((entry.kept.started.as_str(), entry.ending().as_str()), ("2026-03-01T00:00:00Z", "not read yet"));
    fs::remove_dir_all(dir.path().join("a-1")).unwrap();
    assert_eq!(names(&again), [""; 0]);
}

#[test]
fn notes_are_stored_next_to_the_results_and_found() {
    let dir = tempfile::tempdir().unwrap();
    begun(dir.path(), "a-1", "2026-01-01T00:00:00Z");
    begun(dir.path(), "b-2", "2026-02-01T00:00:00Z");
    let before = fs::read_dir(dir.path().join("a-1")).unwrap().count();
    let library = Library::new(dir.path());
    library.set_note("a-1", "WAL, #nvme wal", " before the upgrade ").unwrap();
    assert_eq!(fs::read_dir(dir.path().join("a-1")).unwrap().count(), before, "nothing is written into results");
    let entries = Library::new(dir.path()).list().unwrap();
    let note = &entries[1].note;
    assert_eq!((note.tags.join(" ").as_str(), note.note.as_str()), ("wal nvme", "before the upgrade"));
    let found =
        |search| Library::matching(&entries, search).iter().map(|entry| entry.name.as_str()).collect::<Vec<_>>();
    assert_eq!(found("#wal"), ["a-1"]);
    assert_eq!(found("#wa"), [""; 0], "a tag is a whole word");
    assert_eq!(found("UPGRADE nvme"), ["a-1"]);
    assert_eq!(found(""), ["b-2", "a-1"]);
    library.set_note("a-1", "", "").unwrap();
    assert_eq!(library.list().unwrap()[1].note, Note::default());
}

#[test]
fn unreadable_notes_file_is_named_and_not_overwritten() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("library.json"), "{ mine").unwrap();
    let error = Library::new(dir.path()).set_note("a", "b", "c").unwrap_err().to_string();
    assert!(error.contains("library.json"), "{error}");
    assert_eq!(fs::read_to_string(dir.path().join("library.json")).unwrap(), "{ mine");
}
