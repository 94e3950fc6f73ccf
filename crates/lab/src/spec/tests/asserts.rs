//! Comparisons and claims that could give no result are refused.

use super::{GOOD, read, with};

/// GOOD with one page size, and another engine with these settings.
fn and_another(more: &str) -> String {
    let one = GOOD.replace("[\"4k\", \"16k\"]", "\"4k\"");
    format!(
        "{one}[[engine]]\nname = \"other\"\nuse = \"rocksdb\"\ncompression = \"zstd\"\nsettings.page_size = \"4k\"\nsettings.log.file_max = \"10MB\"\n{more}"
    )
}

#[test]
fn engines_that_differ_in_their_names_alone_are_warned_of() {
    let warned = |more: &str, set: &[&str]| with(&and_another(more), set).unwrap().same_engines;
    let [alike] = &warned("", &[])[..] else { panic!("no warning") };
    assert_eq!(alike.code, "same-engine");
    assert!(alike.message.starts_with("rocks and other are the same engine"), "{}", alike.message);
    let [at_default] = &warned("settings.mapped = false\n", &[])[..] else { panic!("no warning") };
    let reported = "mapped = false is what rocks has without it; a comparison of the two is void";
    assert!(at_default.message.ends_with(reported), "{}", at_default.message);
    assert!(at_default.remedy.contains("aa = true"), "{}", at_default.remedy);
    assert_eq!(warned("settings.mapped = true\n", &[]), []);
    assert_eq!(warned("cache = \"32MiB\"\n", &[]), []);
    assert_eq!(warned("", &["aa=true"]), [], "it is requested");
}

#[test]
fn irrefutable_claim_is_refused_at_its_line() {
    let claim = |holds: &str| format!("{GOOD}[[claim]]\ntext = \"it runs\"\nholds = '{holds}'\n");
    let error = read(&claim("ops_per_s(\"rocks.4k\", 8) > 0")).unwrap_err();
    assert_eq!(error.place().as_deref(), Some("e.toml:19:10"), "{error}");
    assert!(error.problem.contains("true for any data"), "{}", error.problem);
    assert!(read(&claim("retries_per_op(\"rocks.4k\", 8) > 0")).is_ok(), "there may be none");
}

#[test]
fn claim_that_few_repeats_cannot_decide_is_found_at_its_line() {
    let claim = |holds: &str| format!("{GOOD}[[claim]]\ntext = \"it is fast\"\nholds = '{holds}'\n");
    let literal = claim("ops_per_s(\"rocks.4k\", 8) > 1000");
    let found = |text: &str, repeats: &str| with(text, &[repeats]).unwrap().never_decided;
    let mistake = found(&literal, "repeats=4").unwrap();
    assert_eq!(mistake.place().as_deref(), Some("e.toml:19:10"), "{mistake}");
    assert!(mistake.problem.starts_with("4 repeats cannot decide it"), "{}", mistake.problem);
    assert!(mistake.remedy.starts_with("set repeats = 5"), "{}", mistake.remedy);
    assert_eq!(found(&literal, "repeats=5"), None);
    let between_engines = claim("ops_per_s(\"rocks.4k\", 8) / ops_per_s(\"rocks.16k\", 8) >= 2");
    assert_eq!(found(&between_engines, "repeats=4"), None);
}
