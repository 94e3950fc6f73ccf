//! A misspelt key, or one without its prefix or in the wrong table, gets the one likely correction.

use super::{Overrides, read, read_text, registry, with};

const TWO: &str = "name = \"a\"\n[workload.linkbench]\n[[engine]]\nname = \"inno\"\nuse = \"innodb\"\n[[engine]]\nuse = \"rocksdb\"\n";

/// One engine that the workload can run on.
const ONE: &str = "name = \"a\"\n[workload.linkbench]\n[[engine]]\nuse = \"rocksdb\"\n";

fn remedy(set: &str) -> String {
    with(TWO, &[set]).unwrap_err().remedy
}

#[test]
fn bare_engine_setting_suggests_engine_name_of_the_experiment() {
    assert_eq!(remedy("page_size=4k"), "did you mean `inno.page_size`?");
    assert_eq!(remedy("pagesize=4k"), "did you mean `inno.page_size`?");
    assert_eq!(remedy("inn.page_size=4k"), "did you mean `inno.page_size`?");
    assert_eq!(remedy("rocksbd.page_size=4k"), "did you mean `rocksdb.page_size`?");
    assert_eq!(remedy("clinets=4"), "did you mean `clients`?");
    assert!(remedy("zzzz=4").contains("the nearest of the "), "{}", remedy("zzzz=4"));
}

#[test]
fn misplaced_engine_setting_suggests_its_right_place() {
    let adjacent = read(&format!("{ONE}page_size = \"4k\"\n")).unwrap_err();
    assert_eq!(
        (adjacent.problem.as_str(), adjacent.remedy.as_str()),
        ("an [[engine]] has no key `page_size`", "did you mean `settings.page_size`?")
    );
    let misspelt = read(&format!("{ONE}compresion = \"zstd\"\n")).unwrap_err();
    assert_eq!(misspelt.remedy, "did you mean `compression`?");
    let common = read(&format!("{ONE}[common]\npage_size = \"4k\"\n")).unwrap_err();
    assert_eq!(common.remedy, "write settings.page_size in its [[engine]]");
}

#[test]
fn unknown_engine_option_names_the_engines_of_the_experiment() {
    let refused = |name: &str| {
        let overrides = Overrides { engines: vec![name.to_owned()], ..Overrides::default() };
        let error = read_text("e.toml", TWO, &overrides, &registry()).unwrap_err();
        (error.problem, error.remedy)
    };
    let others = "the experiment has inno, rocksdb; `rumba engines` lists others";
    assert_eq!(refused("5.6.rr"), ("unknown engine `5.6.rr`".into(), others.into()));
    assert_eq!(refused("ino").1, "did you mean `inno`? (`rumba engines` lists them)");
}

#[test]
fn text_setting_of_a_workload_keeps_its_commas() {
    let bare = with(ONE, &["tests=a,b"]).unwrap();
    assert_eq!(bare.workload_settings.text("tests"), Some("a,b"));
    assert_eq!(with(ONE, &["tests=\"a,b\""]).unwrap().workload_settings, bare.workload_settings);
    assert_eq!(with(ONE, &["maxid1=1,2"]).unwrap_err().problem, "maxid1 takes one value, not a list");
}
