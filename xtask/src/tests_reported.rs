//! Summarises the results of all test runners in one line, and reports tests that were skipped although this machine
//! must run them.

use std::fmt;

/// The facts about the machine that decide which tests must run.
#[derive(Clone, Debug, Default)]
pub struct Machine {
    /// Whether a skipped test is a failure: `CI` or `RUMBA_TESTS_MUST_RUN` is set.
    pub is_strict: bool,
    /// Whether `scripts/setup` prepares it for every test: Debian 12, as root.
    pub is_complete: bool,
    /// Needs that it lacks by declaration, from `RUMBA_TESTS_MAY_LACK`.
    pub may_lack: Vec<String>,
}

impl Machine {
    /// This one.
    pub fn here() -> Self {
        let is_set = |name| std::env::var(name).is_ok_and(|value| !matches!(value.as_str(), "" | "0" | "false"));
        let release = std::fs::read_to_string("/etc/os-release").unwrap_or_default();
        let says = |line: &str| release.lines().any(|other| other.replace('"', "") == line);
        let uid = std::process::Command::new("id").arg("-u").output().map(|output| output.stdout);
        let may_lack = std::env::var("RUMBA_TESTS_MAY_LACK").unwrap_or_default();
        Self {
            is_strict: is_set("CI") || is_set("RUMBA_TESTS_MUST_RUN"),
            is_complete: says("ID=debian") && says("VERSION_ID=12") && uid.is_ok_and(|uid| uid == b"0\n"),
            may_lack: may_lack.split_whitespace().map(str::to_owned).collect(),
        }
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sum {
    passed: u64,
    failed: u64,
    ignored: u64,
    /// The failed tests, each with the place and the message of its failure.
    failures: Vec<String>,
    /// The skipped tests, with the need that each lacks.
    skipped: Vec<String>,
    /// Those among them that had to run here.
    wrongly: Vec<String>,
    ended_well: bool,
}

impl Sum {
    /// Sums the log of `cargo test`, followed by the page tests' results in TAP. `ended_well` is the runners' exit
    /// status, because a runner that dies prints no result.
    pub fn of(log: &str, ended_well: bool, machine: &Machine) -> Self {
        let mut sum = Self { ended_well, failures: failures(log), ..Self::default() };
        for line in log.lines() {
            if let Some(result) = line.strip_prefix("test result: ") {
                sum.passed += before(result, "passed;");
                sum.failed += before(result, "failed;");
                sum.ignored += before(result, "ignored;");
            } else if let Some(reported) = line.strip_prefix("skipped: ") {
                sum.skip(reported.to_owned(), machine);
            } else if let Some((test, why)) = line.split_once(" # SKIP ") {
                let test = test.split_once(" - ").map_or(test, |(_, name)| name);
                sum.skip(format!("page: {test} needs Browser: {why}"), machine);
            }
            let reported = |word: &str| line.strip_prefix(word).and_then(|count| count.trim().parse::<u64>().ok());
            sum.passed += reported("# pass ").unwrap_or(0);
            sum.failed += reported("# fail ").unwrap_or(0) + reported("# cancelled ").unwrap_or(0);
        }
        sum
    }

    fn skip(&mut self, reported: String, machine: &Machine) {
        if machine.is_strict && machine.is_complete && !is_excused(&reported, &machine.may_lack) {
            self.wrongly.push(reported.clone());
        }
        self.skipped.push(reported);
    }

    /// Whether all is well.
    pub fn is_ok(&self) -> bool {
        self.ended_well && self.failed == 0 && self.wrongly.is_empty()
    }
}

/// The number before a word.
fn before(line: &str, word: &str) -> u64 {
    let mut words = line.split_whitespace().peekable();
    while let Some(number) = words.next() {
        if words.peek() == Some(&word) {
            return number.parse().unwrap_or(0);
        }
    }
    0
}

/// The failed tests of the standard runner, of `libtest-mimic` and of TAP. A failure is one line, so that it can stand
/// at the end of a long log.
fn failures(log: &str) -> Vec<String> {
    let mut failures = Vec::new();
    let mut lines = log.lines().peekable();
    while let Some(line) = lines.next() {
        let title = line.strip_prefix("---- ").and_then(|line| line.strip_suffix(" ----"));
        if let Some(title) = title {
            let name = title.strip_suffix(" stdout").unwrap_or(title);
            let panicked = format!("thread '{title}' (");
            // `libtest-mimic`, which adds no " stdout", does not repeat where a test panicked.
            let place = log.lines().find(|line| line.starts_with(&panicked) && line.contains(" panicked at "));
            let is_end = |line: &&str| line.starts_with("---- ") || *line == "failures:" || *line == "stack backtrace:";
            let said = std::iter::from_fn(|| lines.next_if(|line| !is_end(line)));
            failures.push(one_line(name, place.into_iter().chain(said)));
        } else if let Some((_, name)) = line.strip_prefix("not ok ").and_then(|line| line.split_once(" - ")) {
            let details = std::iter::from_fn(|| lines.next_if(|line| line.starts_with("  ")));
            failures.push(one_line(name, details.filter(|line| !line.contains("duration_ms")).skip(1)));
        } else if let Some(killed) = line.strip_prefix("timeout: sending signal ") {
            failures.push(format!("a test program ran for too long: {killed}"));
        }
    }
    failures
}

/// The longest text of a failure, in characters.
const FAILURE_LENGTH: usize = 600;

fn one_line<'a>(name: &str, said: impl Iterator<Item = &'a str>) -> String {
    let said = said.map(str::trim).filter(|line| !line.is_empty()).collect::<Vec<_>>();
    let mut said = said.join(" / ");
    if let Some((end, _)) = said.char_indices().nth(FAILURE_LENGTH) {
        said.truncate(end);
        said.push('…');
    }
    format!("{name}: {said}")
}

/// The prefix of a need that is `rumba_testkit::Need::ExternalLibrary`: a user may provide it, but no machine must have it.
const BROUGHT: &str = "ExternalLibrary(";

/// Other needs that no machine must have. One is a server that is not released yet, whose archive disappears with the
/// next candidate. One takes minutes to compile. Two come from an index that may be unreachable. A kernel may have no
/// network namespaces or no bridges.
const EXCUSED: [&str; 5] =
    ["Server(\"postgresql@19\")", "Server(\"mariadb-tokudb@10.5\")", "SecantusDb", "ThreeHosts", "NetworkNamespaces"];

fn is_excused(reported: &str, may_lack: &[String]) -> bool {
    let need = reported.split_once(" needs ").map_or("", |(_, need)| need);
    let mut names = EXCUSED.into_iter().chain(may_lack.iter().map(String::as_str));
    need.starts_with(BROUGHT) || names.any(|name| need.starts_with(&format!("{name}:")))
}

impl fmt::Display for Sum {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for reported in &self.skipped {
            let verdict = if self.wrongly.contains(reported) { "wrongly skipped" } else { "skipped" };
            writeln!(f, "test: {verdict}: {reported}")?;
        }
        if !self.wrongly.is_empty() {
            writeln!(
                f,
                "test: Debian 12 as root has all that a test needs, so that nothing may be skipped here; what this \
                 machine lacks for good goes into RUMBA_TESTS_MAY_LACK=\"LoopDevice MemoryGroup\""
            )?;
        }
        let of_page = self.skipped.iter().filter(|reported| reported.starts_with("page: ")).count();
        let helpers = self.ignored.saturating_sub((self.skipped.len() - of_page) as u64);
        if helpers > 0 {
            writeln!(f, "test: {helpers} more are ignored because other tests run them, or who asks for them")?;
        }
        for failure in &self.failures {
            writeln!(f, "test: failed: {failure}")?;
        }
        let word = if self.is_ok() { "ok" } else { "FAILED" };
        write!(f, "{word}: {} passed, {} failed, {} skipped", self.passed, self.failed, self.skipped.len())
    }
}

#[cfg(test)]
mod tests {
    use rumba_engine_api::engine::ExternalLibrary;
    use rumba_testkit::Need;

    use super::{Machine, Sum};

    const LOG: &str = "running 3 tests\n\
        test a ... ok\n\
        test b ... ignored, run by the test above\n\
        test result: ok. 1 passed; 0 failed; 1 ignored; 0 measured; 2 filtered out; finished in 0.00s\n\
        test c ... ignored (needs LoopDevice: run the tests as root)\n\
        test result: ok. 4 passed; 0 failed; 2 ignored; 0 measured; 0 filtered out; finished in 0.00s\n\
        skipped: rumba-lab meter_truth::c needs LoopDevice: run the tests as root\n\
        skipped: rumba mysql::d needs Server(\"mysql@9.7\"): rumba engines install mysql@9.7\n";

    fn ci() -> Machine {
        Machine { is_strict: true, is_complete: true, may_lack: Vec::new() }
    }

    #[test]
    fn a_skipped_test_is_neither_passed_nor_a_helper_of_others() {
        let sum = Sum::of(LOG, true, &Machine::default());
        assert!(sum.is_ok());
        let reported = sum.to_string();
        assert!(reported.ends_with("\nok: 5 passed, 0 failed, 2 skipped"), "{reported}");
        assert!(reported.contains("test: skipped: rumba-lab meter_truth::c needs LoopDevice: run the tests as root\n"));
        assert!(reported.contains("test: 1 more are ignored"), "{reported}");
    }

    #[test]
    fn machine_with_all_needs_may_skip_no_test() {
        let sum = Sum::of(LOG, true, &ci());
        let reported = sum.to_string();
        assert!(!sum.is_ok() && reported.ends_with("\nFAILED: 5 passed, 0 failed, 2 skipped"), "{reported}");
        assert_eq!(reported.matches("test: wrongly skipped: ").count(), 2, "{reported}");
        for weaker in [Machine { is_strict: false, ..ci() }, Machine { is_complete: false, ..ci() }] {
            assert!(Sum::of(LOG, true, &weaker).is_ok());
        }
    }

    #[test]
    fn permanently_missing_needs_are_excused_by_name() {
        let lacks = |needs: &[&str]| Machine { may_lack: needs.iter().map(|&need| need.into()).collect(), ..ci() };
        assert_eq!(Sum::of(LOG, true, &lacks(&["LoopDevice"])).wrongly.len(), 1);
        assert_eq!(Sum::of(LOG, true, &lacks(&["Loop", "Root"])).wrongly.len(), 2);
        assert!(Sum::of(LOG, true, &lacks(&["Server(\"mysql@9.7\")", "LoopDevice"])).is_ok());
        let candidate = "skipped: rumba servers::a needs Server(\"postgresql@19\"): it is in no archive any more\n";
        assert!(Sum::of(candidate, true, &ci()).is_ok(), "candidates come and go");
    }

    /// The need excuses a skipped test, not the test's name.
    #[test]
    fn user_supplied_need_of_any_kind_can_be_excused() {
        for variable in ["RUMBA_TEST_NO_LIBRARY", "RUMBA_TEST_NO_SCRIPTS"] {
            let missing = Need::ExternalLibrary(ExternalLibrary { variable, page: "docs/page.md" }).missing();
            let log = format!("skipped: rumba sysbench_runs::e {}\n", missing.expect("it is not set"));
            let sum = Sum::of(&log, true, &ci());
            assert!(sum.is_ok() && sum.skipped.len() == 1, "it is optional: {sum}");
        }
        // Only the need itself excuses a test, not the text of its reason.
        let other = "skipped: rumba a::b needs Tmpfs: ExternalLibrary(\"RUMBA_TEST_NO_LIBRARY\") says so\n";
        assert!(!Sum::of(other, true, &ci()).is_ok());
    }

    #[test]
    fn tests_of_the_page_are_counted_as_those_of_crates_are() {
        let ran = "TAP version 13\nok 1 - it draws\nnot ok 2 - it prints\n1..2\n# tests 2\n# pass 1\n# fail 1\n# cancelled 0\n\
            # skipped 0\n";
        let sum = Sum::of(&format!("{LOG}{ran}"), true, &Machine::default());
        assert!(sum.to_string().ends_with("\nFAILED: 6 passed, 1 failed, 2 skipped"), "{sum}");
        // Without a browser, make reports the skipped tests. Without a page, each test reports itself as skipped.
        let named = "skipped: page: it draws needs Browser: run make web to see what is missing\n";
        let by_itself = "ok 1 - it draws # SKIP no page: RUMBA_PAGE=FILE\n# pass 0\n# fail 0\n# skipped 1\n";
        for skipped in [named, by_itself] {
            let log = format!("{LOG}{skipped}");
            let sum = Sum::of(&log, true, &Machine::default());
            let reported = sum.to_string();
            assert!(
                reported.ends_with("\nok: 5 passed, 0 failed, 3 skipped") && reported.contains("test: 1 more are"),
                "{reported}"
            );
            let alone = Machine { may_lack: vec!["LoopDevice".into(), "Server(\"mysql@9.7\")".into()], ..ci() };
            let sum = Sum::of(&log, true, &alone);
            assert!(!sum.is_ok() && sum.to_string().contains("test: wrongly skipped: page: it draws needs Browser"));
            let excused = Machine { may_lack: [alone.may_lack.clone(), vec!["Browser".into()]].concat(), ..ci() };
            assert!(Sum::of(&log, true, &excused).is_ok());
        }
    }

    /// A log can be megabytes, and who reads only its end must see which tests failed and why.
    #[test]
    fn failed_tests_are_named_with_their_messages_at_the_end() {
        let log = "thread 'a::b' (12) panicked at tests/a.rs:3:5:\n\
            test a::b ... FAILED\n\n\
            failures:\n\n\
            ---- a::b ----\ntest panicked: 1 is not 2\n\n\n\
            failures:\n    a::b\n\n\
            test result: FAILED. 0 passed; 1 failed; 0 ignored;\n\
            failures:\n\n\
            ---- c stdout ----\n\nthread 'c' (13) panicked at src/c.rs:9:1:\nno\nstack backtrace:\n   0: d\n\n\n\
            failures:\n    c\n\n\
            test result: FAILED. 0 passed; 1 failed; 0 ignored;\n\
            timeout: sending signal TERM to command ‘target/debug/deps/f’\n\
            not ok 2 - it prints\n  ---\n  duration_ms: 3\n  error: 'no paper'\n  ...\n# fail 1\n";
        let sum = Sum::of(log, false, &Machine::default()).to_string();
        let expected = "test: failed: a::b: thread 'a::b' (12) panicked at tests/a.rs:3:5: / test panicked: 1 is not 2\n\
            test: failed: c: thread 'c' (13) panicked at src/c.rs:9:1: / no\n\
            test: failed: a test program ran for too long: TERM to command ‘target/debug/deps/f’\n\
            test: failed: it prints: error: 'no paper' / ...\n\
            FAILED: 0 passed, 3 failed, 0 skipped";
        assert_eq!(sum, expected);
        let long = format!("---- e ----\n{}\n", "x".repeat(9_000));
        assert!(Sum::of(&long, false, &Machine::default()).to_string().len() < 800);
    }

    #[test]
    fn dead_runner_is_a_failure_without_its_own_line() {
        let sum = Sum::of("test result: ok. 1 passed; 0 failed; 0 ignored;\n", false, &Machine::default());
        assert_eq!(sum.to_string(), "FAILED: 1 passed, 0 failed, 0 skipped");
    }

    /// A directory in which `scripts/steps` finds targets, some of which fail.
    fn steps(targets: &[&str]) -> (bool, String) {
        let place = tempfile::tempdir().expect("a directory");
        let script = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the root").join("scripts/steps");
        std::fs::create_dir(place.path().join("scripts")).expect("made");
        std::os::unix::fs::symlink(script, place.path().join("scripts/steps")).expect("linked");
        let rules = "bad deny compile:\n\t@echo $@ ran; false\n\
            good:\n\t@echo $@ ran\n\
            tests:\n\t@mkdir -p target; echo 'ok: 2 passed' > target/tests-reported\n";
        std::fs::write(place.path().join("Makefile"), rules).expect("written");
        let mut command = std::process::Command::new(place.path().join("scripts/steps"));
        for variable in ["CARGO_TARGET_DIR", "MAKEFLAGS", "MFLAGS", "MAKELEVEL"] {
            command.env_remove(variable);
        }
        let output = command.args(targets).output().expect("it runs");
        (output.status.success(), String::from_utf8(output.stdout).expect("text"))
    }

    #[test]
    fn a_failed_step_hides_no_other_and_is_named_at_the_end() {
        let (is_ok, reported) = steps(&["good", "tests"]);
        assert!(is_ok && reported.ends_with("\nok: 2 passed\n") && !reported.contains("FAILED"), "{reported}");
        let (is_ok, reported) = steps(&["bad", "good", "tests"]);
        assert!(
            !is_ok && reported.contains("good ran") && reported.ends_with("\nFAILED: bad\nok: 2 passed\n"),
            "{reported}"
        );
        let (is_ok, reported) = steps(&["compile", "rules-and-page", "good", "tests"]);
        assert!(!is_ok && reported.contains("deny ran") && reported.contains("good ran"), "{reported}");
        let end = "\nNOT RUN, because compile failed: tidy web tests\nFAILED: compile deny\n";
        assert!(reported.ends_with(end), "{reported}");
    }
}
