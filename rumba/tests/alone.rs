//! The program is a single file that needs no part of its source tree: `cargo install --path rumba`, then the tree is
//! removed. In this test the tree exists, but is hidden.
#![allow(clippy::unwrap_used)]

#[macro_use(test)]
extern crate rumba_testkit;
rumba_testkit::main!();

mod common;

use std::path::Path;
use std::process::{Command, Output};

use common::text;

/// The first command of a user who has only the program.
const QUICKSTART: &str = "run quickstart --allow-unlimited --quiet --out results --set maxid1=30000 \
                          --set limits.memory=64MiB --set warmup=0s --set loop=500ms --set repeats=1 --set clients=1";
const SYSBENCH: &str = "sysbench oltp_read_write --db-driver=sqlite --tables=2 --table-size=500 --threads=1";

/// A program in its own directory, in a mount namespace that hides the source tree behind an empty directory.
struct Alone {
    dir: tempfile::TempDir,
}

impl Alone {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        assert!(!dir.path().starts_with(tree()), "it would be hidden with the tree: set TMPDIR elsewhere");
        let program = std::fs::read(env!("CARGO_BIN_EXE_rumba")).unwrap();
        rumba_testkit::process::executable(&program, &dir.path().join("rumba"));
        Self { dir }
    }

    fn run(&self, words: &str) -> Output {
        let mut command = Command::new("unshare");
        let hidden = "mount -t tmpfs none \"$0\" && test -z \"$(ls -A \"$0\")\" && exec ./rumba \"$@\"";
        command.args(["--mount", "sh", "-ec", hidden]).arg(tree()).args(words.split(' '));
        command.current_dir(self.dir.path()).env("XDG_STATE_HOME", self.dir.path().join("state"));
        command.output().unwrap()
    }

    fn says(&self, words: &str) -> String {
        let output = self.run(words);
        assert!(output.status.success(), "rumba {words}: {}", text(&output));
        text(&output)
    }
}

fn tree() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap()
}

#[test]
#[needs(Tmpfs)]
fn binary_works_without_its_source_tree() {
    let alone = Alone::new();
    assert!(alone.says("--help").contains("rumba run"));
    assert!(alone.says("reproduce").contains("linkbench-fast-server"), "it carries the published experiments");
    alone.says("reproduce linkbench-fast-server --dry-run --allow-unlimited");
    alone.says(QUICKSTART);
    alone.says("report results --html page.html");
    // The page with its scripts, and the data.
    let page = std::fs::read_to_string(alone.dir.path().join("page.html")).unwrap();
    assert!(page.len() > 50_000 && page.contains("quickstart") && page.trim_end().ends_with("</html>"));
    // Lua scripts: the test's own, and the code that tests share.
    alone.says(&format!("{SYSBENCH} prepare"));
    assert!(alone.says(&format!("{SYSBENCH} --time=1 run")).contains("transactions:"));
}
