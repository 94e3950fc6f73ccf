//! The texts for users: help, lists, and mistakes with their position and remedy.
//! `TRYCMD=overwrite cargo test -p rumba --test cli` rewrites the expectations.

#[test]
fn what_a_user_reads() {
    // A separate ledger: with a shared one, rumba would remove the leftovers of another test's killed run here, and
    // report it.
    let state = tempfile::tempdir().unwrap();
    let cases = trycmd::TestCases::new();
    cases.env("NO_COLOR", "1").env("COLUMNS", "100").env("XDG_STATE_HOME", state.path().to_str().unwrap());
    cases.case("tests/cli/*.trycmd").run();
}
