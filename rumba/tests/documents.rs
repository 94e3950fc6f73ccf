//! Runs every command of the README and of the book. The words after `sh` say which program runs a block:
//!
//! - none: this test;
//! - `long`: `make book-test`, and this test checks that it would run, within 11 GiB of disk;
//! - `package`: scripts/package-test;
//! - `make`: `make`;
//! - `norun`: no test, for the reason in a comment above it.
//!
//! A file that commands read is on the page: `toml,file=NAME`.
#![allow(clippy::unwrap_used)]

#[macro_use(test)]
extern crate rumba_testkit;
rumba_testkit::main!();

mod common;

use std::path::{Path, PathBuf};
use std::process::Command;

use common::{TestDir, text};

/// The runner of a page's commands.
#[derive(Clone, Copy, PartialEq)]
enum By {
    EveryTest,
    BookTest,
}

macro_rules! pages {
    ($($test:ident: $page:literal $(needs $($need:ident $(($server:literal))?),+)?;)*) => {
        const PAGES: &[&str] = &[$($page),*];
        mod commands_run_or_would_run {
            $(
                #[test]
                $(#[needs($($need $(($server))?),+)])?
                fn $test() {
                    super::walk($page, super::By::EveryTest);
                }
            )*
        }
        mod every_command_runs {
            $(
                #[test]
                #[ignore = "run by make book-test: it takes minutes"]
                fn $test() {
                    super::walk($page, super::By::BookTest);
                }
            )*
        }
    };
}

pages! {
    readme: "README.md" needs MariaDb, MyRocks;
    start: "docs/start.md";
    kept_servers: "docs/kept-servers.md" needs MariaDb;
    compare_engines: "docs/how-to/compare-engines.md" needs MariaDb, MyRocks, PostgreSql;
    compare_versions: "docs/how-to/compare-versions.md" needs MariaDb, Server("mariadb@11.8");
    measure_a_setting: "docs/how-to/measure-a-setting.md" needs MariaDb;
    benchmark_my_server: "docs/how-to/benchmark-my-server.md";
    permissions: "docs/how-to/permissions.md";
    gate_a_pull_request: "docs/how-to/gate-a-pull-request.md";
    run_my_lua_script: "docs/how-to/run-my-lua-script.md" needs MariaDb, PostgreSql;
    find_the_highest_rate: "docs/how-to/find-the-highest-rate.md";
    run_on_a_cloud_vm: "docs/how-to/run-on-a-cloud-vm.md";
    troubleshooting: "docs/how-to/troubleshooting.md";
    reliability: "docs/reliability.md";
    live: "docs/live.md";
    metrics: "docs/metrics.md";
    null_server: "docs/null-server.md" needs MariaDbClient;
    sysbench: "docs/sysbench.md" needs MariaDb, MyRocks, PostgreSql;
    linkbench: "docs/workloads/linkbench.md";
    tpcc: "docs/workloads/tpcc.md" needs MariaDb, PostgreSql;
    ycsb: "docs/workloads/ycsb.md" needs MariaDb, PostgreSql;
}

/// A piece of a page between fences.
struct Block {
    /// The line above it.
    above: String,
    language: String,
    marks: Vec<String>,
    text: String,
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

fn read(path: &str) -> String {
    std::fs::read_to_string(root().join(path)).unwrap()
}

fn blocks(page: &str) -> Vec<Block> {
    let (mut blocks, mut open, mut above): (Vec<Block>, bool, &str) = (Vec::new(), false, "");
    for line in page.lines() {
        match line.strip_prefix("```") {
            Some(_) if open => open = false,
            Some(info) => {
                let mut words = info.split(',').map(str::to_owned);
                let language = words.next().unwrap_or_default();
                blocks.push(Block { above: above.to_owned(), language, marks: words.collect(), text: String::new() });
                open = true;
            }
            None if open => blocks.last_mut().unwrap().text += &format!("{line}\n"),
            None => {}
        }
        above = line;
    }
    assert!(!open, "a block has no end");
    blocks
}

/// The commands of a block, each on one line and without its comments.
fn commands(block: &Block) -> Vec<String> {
    let joined = block.text.replace("\\\n", " ");
    let lines = joined.lines().map(|line| line.split(" #").next().unwrap_or_default().trim());
    lines.filter(|line| !line.is_empty() && !line.starts_with('#')).map(str::to_owned).collect()
}

/// A directory in which `rumba` is found by its name, and whose servers end with it.
struct Shell(TestDir);

impl Drop for Shell {
    fn drop(&mut self) {
        // An error has no remedy in a test that already fails.
        let _ = self.0.rumba(&["server", "stop", "--all"]).output();
    }
}

impl Shell {
    fn run(&self, script: &str) {
        let rumba = self.0.rumba(&[]);
        let program = Path::new(rumba.get_program());
        let mut shell = Command::new("bash");
        // Background processes end with the script, and so does every other holder of its output. Pauses are
        // lengthened, because commands that wait for a reader's input take longer on a busy host.
        let script = &format!(
            "trap 'kill $(jobs -p) 2>/dev/null || true' EXIT\nsleep() {{ command sleep $(($1 * 5)); }}\n{script}"
        );
        shell.args(["-euo", "pipefail", "-c", script]).current_dir(rumba.get_current_dir().unwrap());
        rumba.get_envs().filter_map(|(name, value)| Some((name, value?))).for_each(|(name, value)| {
            shell.env(name, value);
        });
        let path = std::env::var("PATH").unwrap_or_default();
        shell.env("PATH", format!("{}:{path}", program.parent().unwrap().display()));
        let output = shell.output().unwrap();
        assert!(output.status.success(), "{script}: {}", text(&output));
    }
}

fn walk(page: &str, by: By) {
    let shell = Shell(TestDir::new());
    for block in blocks(&read(page)) {
        let file = block.marks.iter().find_map(|mark| mark.strip_prefix("file="));
        if let Some(name) = file {
            std::fs::write(shell.0.path(name), &block.text).unwrap();
        }
        if block.language != "sh" {
            continue;
        }
        match (block.marks.first().map(String::as_str), by) {
            (None, _) | (Some("long"), By::BookTest) => shell.run(&block.text),
            (Some("long"), By::EveryTest) => would_run(&shell, &block),
            (Some("package"), _) => {
                let walked = read("scripts/package-test");
                commands(&block).iter().for_each(|line| assert!(walked.contains(line), "{page}: {line}"));
            }
            (Some("make"), _) => {
                let makefile = read("Makefile");
                for line in commands(&block) {
                    let target = line.strip_prefix("make ").and_then(|rest| rest.split(' ').next()).unwrap();
                    assert!(makefile.contains(&format!("\n{target}:")), "{page}: {line}");
                }
            }
            (Some("norun"), _) => assert!(reason(&block).is_some(), "{page}: say why, {NORUN}:\n{}", block.text),
            (Some(other), _) => panic!("{page}: unknown mark `sh,{other}`"),
        }
    }
}

/// A long command can itself report whether it would run; a command that only reads results has none to read.
fn would_run(shell: &Shell, block: &Block) {
    for line in commands(block) {
        let runs = ["rumba run ", "rumba ab ", "rumba reproduce "].iter().any(|begin| line.starts_with(begin));
        if runs {
            let unlimited = if line.contains("--allow-unlimited") { "" } else { " --allow-unlimited" };
            shell.run(&format!("{line}{unlimited} --dry-run"));
        }
    }
}

/// The form in which a block states why it is not run.
const NORUN: &str = "in a line above the block: <!-- norun: WHY -->";

/// Why a block is not run, from the line above it.
fn reason(block: &Block) -> Option<&str> {
    let why = block.above.trim().strip_prefix("<!-- norun:")?.strip_suffix("-->")?.trim();
    (!why.is_empty()).then_some(why)
}

/// The first words of commands.
const PROGRAMS: [&str; 12] =
    ["rumba", "sysbench", "make", "cargo", "mariadb", "psql", "taskset", "git", "ssh", "luajit", "apt", "sudo"];

/// Whether a line is a command, and not a synopsis with optional parts.
fn is_command(line: &str) -> bool {
    let (first, rest) = line.strip_prefix("$ ").unwrap_or(line).split_once(' ').unwrap_or((line, ""));
    PROGRAMS.contains(&first) && !rest.contains('[') && !rest.contains(" | ") && !rest.contains('…')
}

/// The README and all pages of the book.
fn all_pages() -> Vec<String> {
    fn within(directory: &str, pages: &mut Vec<String>) {
        for entry in std::fs::read_dir(root().join(directory)).unwrap() {
            let entry = entry.unwrap();
            let path = format!("{directory}/{}", entry.file_name().to_str().unwrap());
            match entry.file_type().unwrap().is_dir() {
                true => within(&path, pages),
                false if path.ends_with(".md") => pages.push(path),
                false => {}
            }
        }
    }
    let mut pages = vec!["README.md".to_owned()];
    within("docs", &mut pages);
    // These pages quote the program's help.
    pages.retain(|page| !page.starts_with("docs/reference/"));
    pages
}

#[test]
fn every_documented_command_is_run_or_has_a_reason_not_to() {
    for page in all_pages() {
        for block in blocks(&read(&page)) {
            if block.language != "sh" {
                let command = block.text.lines().find(|line| is_command(line));
                assert!(
                    command.is_none(),
                    "{page}: commands stand in ```sh, by whom they are run behind it: {command:?}"
                );
            } else if block.marks.iter().any(|mark| mark == "norun") {
                assert!(reason(&block).is_some(), "{page}: say why, {NORUN}:\n{}", block.text);
            } else {
                assert!(PAGES.contains(&page.as_str()), "{page} is not among the pages that are run: {}", block.text);
            }
        }
    }
}

#[test]
#[needs(MariaDb, Server("mariadb@11.8"), Server("mysql@5.6"), Server("mysql@8.0"))]
fn every_example_would_run() {
    let place = TestDir::new();
    let mut files: Vec<PathBuf> =
        std::fs::read_dir(root().join("examples")).unwrap().map(|file| file.unwrap().path()).collect();
    files.sort();
    assert!(files.len() >= 5, "{files:?}");
    for file in files {
        let output = place.rumba(&["run", file.to_str().unwrap(), "--dry-run", "--allow-unlimited"]).output().unwrap();
        assert!(output.status.success(), "{}: {}", file.display(), text(&output));
    }
}
