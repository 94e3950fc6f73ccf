//! The texts for users: help, lists, and mistakes with their position and remedy.
//! `TRYCMD=overwrite cargo test -p rumba --test cli` rewrites the expectations.

#[test]
fn printed_texts_match_their_snapshots() {
    // A separate ledger: with a shared one, rumba would remove the leftovers of another test's killed run here, and
    // report it.
    let state = tempfile::tempdir().unwrap();
    let cases = trycmd::TestCases::new();
    cases.env("NO_COLOR", "1").env("COLUMNS", "100").env("XDG_STATE_HOME", state.path().to_str().unwrap());
    cases.case("tests/cli/*.trycmd").run();
}

/// Guards against a panic, as `std::env::args` has it.
#[test]
fn argument_that_is_not_utf8_is_a_mistake() {
    use std::os::unix::ffi::OsStrExt;

    for first in ["run", "sysbench", "report"] {
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_rumba"));
        let output = command.arg(first).arg(std::ffi::OsStr::from_bytes(b"caf\xe9")).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains("is not UTF-8") && !said.contains("panicked"), "{said}");
    }
}
