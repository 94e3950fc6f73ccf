//! What a user reads: help, lists, and mistakes with their place and remedy.
//! `TRYCMD=overwrite cargo test -p rumba --test cli` rewrites the expectations.

#[test]
fn what_a_user_reads() {
    // A ledger of its own: what a killed run of another test has left would be removed here, and told of.
    let state = tempfile::tempdir().unwrap();
    let cases = trycmd::TestCases::new();
    cases.env("NO_COLOR", "1").env("COLUMNS", "100").env("XDG_STATE_HOME", state.path().to_str().unwrap());
    cases.case("tests/cli/*.trycmd").run();
}
