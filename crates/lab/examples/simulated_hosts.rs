//! The cost of a coordinator with many client hosts: its CPU time and its memory, with a frame a second from each host.
//!
//! ```sh
//! cargo run --release -p rumba-lab --example simulated_hosts -- 200 10
//! ```
//!
//! The agents run in another process, so that only the coordinator counts. Each frame has the counts of 2,000 operations
//! of five types.
#![allow(clippy::unwrap_used)] // An example for developers.

use std::net::TcpListener;
use std::process::{Command, Stdio};
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use rumba_fleet::{Agent, Coordinator, HostFacts, Incoming, Received, Terms, Token, dial};
use rumba_lab::fleet::counts;
use rumba_lab::run::cells::Counts;
use serde_json::json;

const TOKEN: &str = "token-of-the-example";
const KINDS: usize = 5;
const OPERATIONS: u64 = 2_000;
const PATIENCE: Duration = Duration::from_secs(60);
const SECOND: Duration = Duration::from_secs(1);

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |at: usize, default: u32| arguments.get(at).map_or(default, |text| text.parse().unwrap());
    match arguments.get(2) {
        Some(coordinator) => simulate(number(0, 200), coordinator),
        None => coordinate(number(0, 200), number(1, 10)),
    }
}

/// The counts of a second of one host.
fn frame() -> Vec<u8> {
    let mut of_second = Counts::new(KINDS);
    for number in 0..OPERATIONS {
        let ns = 100_000 + (number.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 42);
        let kind = &mut of_second.kinds[number as usize % KINDS];
        kind.count += 1;
        kind.service.add(ns);
        kind.response.add(ns);
    }
    counts::encode(&of_second)
}

/// Answers each request with a frame, as all hosts.
fn simulate(size: u32, coordinator: &str) {
    let (frame, token) = (frame(), Token::new(TOKEN).unwrap());
    std::thread::scope(|scope| {
        for rank in 0..size {
            let host = HostFacts { name: format!("n{rank}"), cpus: 1, about: String::new() };
            let (coordinator, token, program) = (coordinator.to_owned(), token.clone(), String::new());
            let (agent, frame) = (Agent { coordinator, token, program, rank, size, host }, &frame);
            scope.spawn(move || {
                let dialled = dial(&agent, PATIENCE).unwrap();
                while let Some(Incoming::Request(number, _)) = dialled.receive(PATIENCE) {
                    let head = json!({ "client_cpu_ns": number, "host_cpu_s": 1.5, "state": {}, "counted": {} });
                    dialled.answer(number, Ok(head), frame).unwrap();
                }
            });
        }
    });
}

fn coordinate(hosts: u32, seconds: u32) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let mut agents = Command::new(std::env::current_exe().unwrap());
    agents.args([&hosts.to_string(), "0", &address]).stdin(Stdio::null());
    let mut agents = agents.spawn().unwrap();
    let terms = Terms { hosts, token: Token::new(TOKEN).unwrap(), program: String::new() };
    let mut coordinator = Coordinator::gather(listener, &terms, PATIENCE, &AtomicBool::new(false)).unwrap();
    let (start, cpu) = (Instant::now(), cpu_s());
    let mut all = Counts::new(KINDS);
    for second in 1..=seconds {
        for rank in 0..hosts {
            coordinator.request(rank, json!({ "order": "collect" }));
        }
        let mut answers = 0;
        while answers < hosts {
            let arrival = coordinator.receive(Instant::now() + PATIENCE).unwrap();
            if let Received::Answer(_, _, tail) = arrival.what {
                all.merge(&counts::decode(&tail, KINDS).unwrap());
                answers += 1;
            }
        }
        std::thread::sleep((start + second * SECOND).saturating_duration_since(Instant::now()));
    }
    let (elapsed_s, cpu_s) = (start.elapsed().as_secs_f64(), cpu_s() - cpu);
    drop(coordinator);
    agents.wait().unwrap();
    assert_eq!(all.ops(), u64::from(hosts) * u64::from(seconds) * OPERATIONS);
    let percent = 100.0 * cpu_s / elapsed_s;
    println!("{hosts} hosts, {elapsed_s:.1} s: {percent:.1}% of a core, at most {} resident", peak());
}

/// CPU time of this process.
fn cpu_s() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap();
    let fields: Vec<&str> = stat.rsplit_once(')').unwrap().1.split_whitespace().collect();
    let ticks: f64 = fields[11..13].iter().map(|field| field.parse::<f64>().unwrap()).sum();
    ticks / rustix::param::clock_ticks_per_second() as f64
}

/// The most memory of this process, as the kernel words it.
fn peak() -> String {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap().trim().to_owned()
}
