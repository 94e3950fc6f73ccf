//! Guards against a comparison without the reason. Two runs whose bytes written per operation differed by half once
//! showed only the figures. The reader had to find the one changed counter among twenty.

#[macro_use(test)]
extern crate rumba_testkit;
rumba_testkit::main!();

mod common;

use common::{TestDir, ended, set, text};
use rumba_testkit::mounts::LoopDevice;
use serde_json::Value;

/// InnoDB with more data than its cache, and every page written twice or once.
fn run(place: &TestDir, disk: &LoopDevice, doublewrite: bool) -> String {
    let out = disk.path().join(if doublewrite { "twice" } else { "once" }).display().to_string();
    let setting = format!("innodb.innodb_doublewrite={doublewrite}");
    let mut command = place.rumba(&["run", "linkbench", "--engine", "innodb", "--quiet", "--out", &out]);
    let reported = ["maxid1=20000", "cache=8MiB", "clients=4", "warmup=0s", "loops=1", "loop=3s", "verify=false"];
    set(&mut command, reported.iter().copied().chain([setting.as_str()]));
    ended(0, &mut command);
    out
}

#[test]
#[needs(MariaDb, LoopDevice)]
fn compare_shows_writes_saved_without_doublewrite() {
    let place = TestDir::new();
    let disk = LoopDevice::at(&place.path("disk"), 900);
    let (twice, once) = (run(&place, &disk, true), run(&place, &disk, false));
    let output = place.rumba(&["compare", &twice, &once, "--json"]).output().unwrap();
    let comparison: Value = serde_json::from_slice(&output.stdout).unwrap();
    let rows = comparison["rows"].as_array().unwrap();
    let change = &rows.iter().find(|row| row["part"] == "run").unwrap()["written"];
    let first = &change["kinds"][0];
    assert_eq!((&first["kind"], &first["other"]), (&"doublewrite".into(), &0.0.into()), "{change:#}");
    assert!(first["base"].as_f64().unwrap() > 0.0 && first["share"].as_f64().unwrap() > 0.5, "{change:#}");
    let shown = text(&place.rumba(&["compare", &twice, &once]).output().unwrap());
    let line =
        shown.lines().find(|line| line.starts_with("  KB written per operation, with deferred writes, ")).unwrap();
    assert!(line.contains(": doublewrite (") && line.contains(" to 0) accounts for "), "{line}");
}
