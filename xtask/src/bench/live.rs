//! What the live page and the library cost.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::Value;

use super::measure::{Bench, Spread, json, number, over_trials, phase};
use super::{Failure, Line};

/// A year of results, listed.
pub fn library(bench: &Bench) -> Result<Vec<Line>, Failure> {
    const RESULTS: &str = "1000";
    let set = ["maxid1=2000", "clients=1,2", "warmup=0s", "loops=1", "loop=1s", "repeats=2"];
    let args: Vec<&str> = ["linkbench", "--engine", "null,lmdb"]
        .into_iter()
        .chain(set.into_iter().flat_map(|set| ["--set", set]))
        .collect();
    bench.report("library", &args)?;
    let cost = json(Command::new(bench.example("library_cost")).arg(bench.path("library")).arg(RESULTS))?;
    let first_ms = number(&cost["first_ms"])?;
    let repeats = cost["ms"].as_array().ok_or("no times")?.iter().map(number).collect::<Result<Vec<_>, _>>()?;
    let ms = Spread::of(repeats);
    Ok(vec![Line {
        what: format!("the list of {RESULTS} results, from the start of `rumba serve` to the page's last byte"),
        goal: "≤ 300 ms, also before any record of them was read".into(),
        measured: format!("{} ms; before any was read {first_ms:.0} ms", ms.told(0)),
        met: Some(ms.median <= 300.0 && first_ms <= 300.0),
        command: format!("rumba run {} --out DIR; library_cost DIR {RESULTS}", args.join(" ")),
    }])
}

/// Pairs of runs, one of each watched.
const PAIRS: usize = 5;

/// Client CPU per operation with somebody who looks on, over the same without.
pub fn live(bench: &Bench) -> Result<Vec<Line>, Failure> {
    let set = ["maxid1=1000000", "clients=1", "load_clients=1", "warmup=1s", "loops=1", "loop=8s"];
    let args: Vec<&str> =
        ["linkbench", "--engine", "null"].into_iter().chain(set.into_iter().flat_map(|set| ["--set", set])).collect();
    let cpu = |report: &Value| -> Result<f64, Failure> {
        Ok(over_trials(report, &|_| true, &|trial| number(&phase(trial, "loops")?["client_cpu_us_per_op"]))?.median)
    };
    let mut ratios = Vec::new();
    for pair in 0..PAIRS {
        // Who goes first would meet another host than who follows, were it always the same.
        let one = |is_watched: bool| -> Result<f64, Failure> {
            match is_watched {
                true => cpu(&watched(bench, &format!("live-{pair}"), &args)?),
                false => cpu(&bench.report(&format!("alone-{pair}"), &args)?),
            }
        };
        let (first, second) = (one(pair % 2 == 0)?, one(pair % 2 != 0)?);
        ratios.push(if pair % 2 == 0 { first / second } else { second / first });
    }
    let ratio = Spread::of(ratios);
    Ok(vec![Line {
        what: "client CPU per operation of LinkBench on null while the live page is looked at, over the same alone"
            .into(),
        goal: "≤ 1.01 ×".into(),
        measured: format!("{} × over {PAIRS} pairs of runs", ratio.told(3)),
        met: Some(ratio.median <= 1.01),
        command: format!("rumba run {} --live, its page asked as a browser asks", args.join(" ")),
    }])
}

/// A run whose page is asked, as often as it may be, by somebody on the same host.
fn watched(bench: &Bench, name: &str, args: &[&str]) -> Result<Value, Failure> {
    let mut command = Command::new(bench.rumba());
    command.arg("run").args(args).args(["--live", "--json", "--quiet", "--out"]).arg(bench.path(name));
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    let mut told = BufReader::new(child.stderr.take().ok_or("no standard error")?);
    let mut line = String::new();
    while !line.contains("http://") {
        line.clear();
        if told.read_line(&mut line)? == 0 {
            return Err("the run told no address of its page".into());
        }
    }
    let address = line.trim().rsplit("http://").next().unwrap_or_default().to_owned();
    let rest = std::thread::spawn(move || std::io::copy(&mut told, &mut std::io::sink()));
    let events = {
        let address = address.clone();
        std::thread::spawn(move || ask(&address, "/events"))
    };
    // It ends with the run.
    while let Ok(answer) = ask(&address, "/data") {
        let body = answer.split_once("\r\n\r\n").map(|(_, body)| body).unwrap_or_default();
        let data: Value = serde_json::from_str(body)?;
        if data["goes_on"] != true {
            break;
        }
        let newer_in = Duration::from_millis(data["newer_in_ms"].as_u64().unwrap_or(0));
        std::thread::sleep(newer_in.max(Duration::from_secs(1)));
    }
    let output = child.wait_with_output()?;
    let _ = (events.join(), rest.join());
    if !output.status.success() {
        return Err(format!("a run that was looked at ended with {}", output.status).into());
    }
    Ok(serde_json::from_slice(&output.stdout)?)
}

/// An answer, whole; of events, when they end.
fn ask(address: &str, below: &str) -> std::io::Result<String> {
    let (host, path) = address.split_once('/').unwrap_or((address, ""));
    let mut stream = TcpStream::connect(host)?;
    stream.write_all(format!("GET /{path}{below} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n").as_bytes())?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    Ok(answer)
}
