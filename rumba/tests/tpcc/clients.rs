//! The number of clients that the data allows. More terminals than its warehouses have are refused, and so are fewer
//! clients than it has sets, before anything is made.

use super::{TestDir, set, text};

/// Guards against wasted hours: no load is made for more clients than its data allows.
#[test]
fn excess_terminals_are_refused_before_the_load() {
    let place = TestDir::new();
    let run = |clients: &str, more: &[&str]| {
        let mut command = place.rumba(&["run", "tpcc", "--engine", "sqlite", "--out", "out"]);
        set(&mut command, ["warehouses=2", "data_sets=2", "think=spec", clients]);
        command.args(more).output().unwrap()
    };
    let refused = run("clients=10,41", &[]);
    let words: String = text(&refused).split_whitespace().collect::<Vec<_>>().join(" ");
    assert_eq!(refused.status.code(), Some(2), "{words}");
    for reported in ["41 clients are more than the 40", "set a warehouse for every ten clients", "think = \"none\""] {
        assert!(words.contains(reported), "{reported}: {words}");
    }
    assert!(!place.path("out").exists());
    assert!(run("clients=40", &["--dry-run"]).status.success(), "ten of each warehouse");
}

/// Guards against idle data: six of ten sets were once idle, and the run was reported as one of ten.
#[test]
fn fewer_clients_than_data_sets_are_refused() {
    let place = TestDir::new();
    let run = |requested: &[&str], more: &[&str]| {
        let mut command = place.rumba(&["run", "tpcc", "--engine", "sqlite", "--out", "out"]);
        set(&mut command, ["customers=20", "items=200"].iter().chain(requested));
        command.args(more).output().unwrap()
    };
    let ten = ["warehouses=1", "data_sets=10"];
    for (requested, at_work) in [
        ([ten[0], ten[1], "clients=4"], 4),
        ([ten[0], ten[1], "clients=20,2..8 x2"], 2),
        (["warehouses=10", "splits=\"1,10\"", "clients=8"], 8),
        // Four in ten of twenty work.
        (["data_sets=10", "clients=20", "active=40%"], 8),
    ] {
        let refused = run(&requested, &[]);
        let said = text(&refused).split_whitespace().filter(|word| *word != "│").collect::<Vec<_>>().join(" ");
        assert_eq!(refused.status.code(), Some(2), "{requested:?}: {said}");
        let idle = format!("clients: {at_work} at work would use only a part of the data");
        for reported in [&*idle, "each of the 10 data sets", "(data_sets, splits), or use at least 10 at a time"] {
            assert!(said.contains(reported), "{requested:?}: {reported}: {said}");
        }
        assert!(!place.path("out").exists(), "{requested:?}");
    }
    let admitted = |requested: &[&str]| {
        let output = run(requested, &["--dry-run"]);
        assert!(output.status.success(), "{requested:?}: {}", text(&output));
    };
    admitted(&[ten[0], ten[1], "clients=10,20"]);
    admitted(&["warehouses=10", "splits=\"1,10\"", "clients=10"]);
    // Only the tests run.
    admitted(&[ten[0], ten[1], "splits=1", "clients=1"]);
}
