//! What a user reads: help, lists, and mistakes with their place and remedy.
//! `TRYCMD=overwrite cargo test -p rumba --test cli` rewrites the expectations.

#[test]
fn what_a_user_reads() {
    trycmd::TestCases::new().env("NO_COLOR", "1").env("COLUMNS", "100").case("tests/cli/*.trycmd");
}
