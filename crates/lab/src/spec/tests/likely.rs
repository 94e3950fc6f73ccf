//! A misspelt key, or one without its prefix or in the wrong table, gets the one likely correction.

use super::{read, with};

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
