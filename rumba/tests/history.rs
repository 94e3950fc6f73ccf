//! Regression work through the binary: a run in every form, its history, and the example workflow as a runner executes it.
#![allow(clippy::unwrap_used)]

mod common;

use std::path::Path;
use std::process::{Command, Output};

use common::{TestDir, text};
use serde_json::Value;

/// An experiment over the null engine with seven repeats, some seconds in all.
fn write_experiment(place: &TestDir, rate: &str) {
    let toml = format!(
        "name = \"bench\"\n[workload.linkbench]\nmaxid1 = 1000\n[run]\nclients = 1\nload_clients = 1\nwarmup = \"100ms\"\n\
         loops = 1\nloop = \"300ms\"\nrepeats = 7\n{rate}[[engine]]\nname = \"null\"\n"
    );
    std::fs::write(place.path("bench.toml"), toml).unwrap();
}

/// The script of the example workflow's step with this name.
fn script(step: &str) -> String {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/examples/benchmark.yml");
    let workflow = std::fs::read_to_string(file).unwrap();
    let from = workflow.find(&format!("- name: {step}\n")).unwrap_or_else(|| panic!("no step {step}"));
    let run = from + workflow[from..].find("run: |\n").unwrap() + "run: |\n".len();
    let lines = workflow[run..].lines().take_while(|line| line.starts_with("          "));
    lines.map(|line| format!("{}\n", line.trim_start())).collect()
}

/// A step, as a runner executes it.
fn step(place: &TestDir, name: &str) -> Output {
    let binary = Path::new(env!("CARGO_BIN_EXE_rumba")).parent().unwrap().display().to_string();
    let mut command = Command::new("bash");
    command.args(["-eo", "pipefail", "-c", &script(name)]).current_dir(place.path("."));
    command.env("PATH", format!("{binary}:{}", std::env::var("PATH").unwrap()));
    command.env("XDG_STATE_HOME", place.path("state")).env("GITHUB_STEP_SUMMARY", place.path("summary.md"));
    command.output().unwrap()
}

fn assert_done(output: &Output) {
    assert!(output.status.success(), "{}", text(output));
}

#[test]
fn example_workflow_keeps_baseline_and_fails_on_regression() {
    let place = TestDir::new();
    write_experiment(&place, "");
    assert_done(&step(&place, "Run"));
    place.undisturbed("new");
    assert_done(&step(&place, "Compare"));
    assert_done(&step(&place, "Keep the main branch's run"));
    assert_eq!(std::fs::read_dir(place.path("baseline")).unwrap().count(), 1);
    // The same engine, with its rate set to a hundredth.
    write_experiment(&place, "rate = 1000\n");
    assert_done(&step(&place, "Run"));
    place.undisturbed("new");
    let compared = step(&place, "Compare");
    assert_eq!(compared.status.code(), Some(3), "{}", text(&compared));
    let summary = std::fs::read_to_string(place.path("summary.md")).unwrap();
    assert!(summary.starts_with("### 1 run: 0 worse and 0 better"), "{summary}");
    let second = &summary[summary.find("### 2 runs").unwrap()..];
    assert!(second.contains("**Fails**") && second.contains("fail-if worse: null, 1 clients: IS SO"), "{second}");
    assert!(second.contains("| started | "), "{second}");
}

#[test]
fn run_prints_in_every_format_and_two_runs_form_a_history() {
    let place = TestDir::new();
    for out in ["a", "b"] {
        let run = place.short_run("null", &["--set", "loops=1", "--quiet"]).output().unwrap();
        assert_done(&run);
        std::fs::create_dir_all(place.path("kept")).unwrap();
        std::fs::rename(place.path("out"), place.path("kept").join(out)).unwrap();
    }
    let printed = |arguments: &[&str]| {
        let output = place.rumba(arguments).output().unwrap();
        assert_done(&output);
        String::from_utf8(output.stdout).unwrap()
    };
    let csv = printed(&["report", "kept/a", "--format", "csv"]);
    assert!(csv.starts_with("experiment,started,rumba,commit,engine,"), "{csv}");
    assert!(csv.lines().any(|line| line.contains(",loops,") && line.contains(",ops_per_s,1/s,")), "{csv}");
    assert!(printed(&["report", "kept/a", "--format", "markdown"]).starts_with("### linkbench\n"));
    assert_eq!(printed(&["report", "kept/a", "--format", "json"]), printed(&["report", "kept/a", "--json"]));
    std::fs::write(place.path("prices.toml"), "[prices]\nvcpu_hour = 3600.0\n").unwrap();
    let priced = printed(&["report", "kept/a", "--json", "--prices", "prices.toml"]);
    let charged = &serde_json::from_str::<Value>(&priced).unwrap()["trials"][0]["charged"];
    // A CPU second costs 1.
    let cpu = charged["host_cpu_us_per_op_with_drain"].as_f64().or(charged["cpu_us_per_op_with_drain"].as_f64());
    assert!((charged["cost_per_million_ops"].as_f64().unwrap() / cpu.unwrap() - 1.0).abs() < 1e-6, "{charged}");
    assert!(printed(&["compare", "kept/a", "kept/b", "--format", "markdown"]).starts_with("### linkbench against"));
    assert!(printed(&["compare", "kept/a", "kept/b", "--format", "csv"]).starts_with("base_run,other_run,engine,"));
    let history: Value = serde_json::from_str(&printed(&["history", "kept", "--json"])).unwrap();
    assert_eq!(history["points"].as_array().unwrap().len(), 2, "all runs below the directory");
    let rate = history["lines"].as_array().unwrap().iter().find(|line| line["metric"] == "ops_per_s").unwrap();
    assert_eq!(rate["steps"].as_array().unwrap().len(), 2);
    assert_eq!(printed(&["history", "kept", "--html", "history.html"]), "", "only the page");
    let page = std::fs::read_to_string(place.path("history.html")).unwrap();
    assert!(page.contains("<title>linkbench: history of 2 runs") && page.contains("kept/a"));
    let none = place.rumba(&["history", "kept", "--svg", "pictures"]).env("PATH", "/nowhere").output().unwrap();
    assert_eq!(none.status.code(), Some(2));
    assert!(text(&none).contains("apt-get install chromium-headless-shell"), "{}", text(&none));
    assert!(!place.path("pictures").exists());
    let table = printed(&["history", "kept/b", "kept/a"]);
    assert!(table.starts_with("2 runs\n") && table.contains("null, 2 clients, loops: ops_per_s"), "{table}");
}
