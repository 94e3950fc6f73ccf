//! The pages of docs/reference are what the program generates.

use std::path::Path;
use std::process::Command;

#[test]
fn reference_pages_are_what_the_program_generates() {
    let written = tempfile::tempdir().unwrap();
    let status = Command::new(env!("CARGO_BIN_EXE_rumba")).arg("reference").arg(written.path()).status().unwrap();
    assert!(status.success());
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/reference");
    for page in ["command-line.md", "metrics.md", "warnings.md", "settings.md"] {
        let read = |directory: &Path| std::fs::read_to_string(directory.join(page)).unwrap_or_default();
        let is_same = read(written.path()) == read(&docs);
        assert!(is_same, "docs/reference/{page} is outdated: cargo run -p rumba -- reference docs/reference");
    }
}
