//! Whether the search for a rate finds what queueing arithmetic says of a server whose times are known.

use rumba_testkit::queueing::{READS_OF_NODES, highest_rate};

use super::measure::{Bench, number};
use super::servers::{Cores, Server};
use super::{Failure, Line};

/// Clients with a connection each: so many servers, as queueing has it.
const CLIENTS: usize = 64;
/// Answers of reads by rumba's own LinkBench.
const SPEAK: [&str; 8] =
    ["--protocol", "mongodb", "--columns", "type:int,version:int,time:int,data", "--delay", "20ms", "--threads", "1"];
/// What the response time is to stay below: the delay, and as much of waiting.
const LIMIT_MS: f64 = 40.0;

/// Searches the highest rate over the null server.
pub fn rate_search(bench: &Bench) -> Result<Vec<Line>, Failure> {
    let server = Server::null(bench, &Cores::FREE, &SPEAK)?;
    let at = format!("server=mongodb:///null?socket={}", server.socket.display());
    let (clients, rate) = (format!("clients={CLIENTS}"), format!("rate=max(p99 < {LIMIT_MS}ms)"));
    let told = ["maxid1=1000", "load_clients=1", "verify=false", "warmup=1s", "loops=1", "loop=10s", &clients, &rate];
    let all = READS_OF_NODES.iter().copied().chain(told).chain([at.as_str()]);
    let set = all.flat_map(|set| ["--set", set]);
    let args: Vec<&str> = ["linkbench", "--engine", "mongodb"].into_iter().chain(set).collect();
    let report = bench.report("rate-search", &args)?;
    let held_ms = server.held_ms()?;
    let found = &report["summary"]["searches"][0];
    let (kept, missed) = (number(&found["highest"])?, number(&found["lowest_missed"])?);
    let probes = found["probes"].as_array().map_or(0, Vec::len);
    let expected = highest_rate(CLIENTS, held_ms / 1e3, 0.99, LIMIT_MS / 1e3);
    let off = (kept / expected - 1.0) * 100.0;
    Ok(vec![Line {
        what: format!("the highest rate with p99 < {LIMIT_MS} ms of {CLIENTS} clients that wait 20 ms each, searched"),
        goal: "within 3% of queueing arithmetic".into(),
        measured: format!(
            "{kept:.0}/s and not {missed:.0}/s, by arithmetic {expected:.0}/s with answers held for {held_ms:.2} ms: \
             {off:+.1}%; {probes} probes"
        ),
        met: Some(off.abs() <= 3.0 && found["confirmed"] == true),
        command: format!(
            "rumba null-server {}; rumba run linkbench --engine mongodb --set server=… --set getnode=100 (all other \
             operations 0) --set {}",
            SPEAK.join(" "),
            told.join(" --set ")
        ),
    }])
}
