//! The cost of driving a document server: rumba's clients next to the official Rust driver, in turns, in one run.

use super::clients::{Own, PointSelect, REPEATS, arguments};
use super::measure::{Bench, Spread, json, number};
use super::servers::{Cores, Server, Window, pinned};
use super::{Failure, Line};

/// The driver, which is a separate program: rumba does not link it.
const PEER: &str = "mongodb-driver";
const CLIENTS: u32 = 64;
/// The most client CPU of a find, ratio to the driver.
const MOST_CPU: f64 = 0.4;

/// The arguments of the null server.
const SPEAK: [&str; 2] = ["--protocol", "mongodb"];

/// Instructions of a find by _id.
pub fn instructions(bench: &Bench) -> Result<Vec<Line>, Failure> {
    PointSelect {
        call: "find by _id",
        speak: &SPEAK,
        session: "find_by_id",
        clients: &["protocol=mongodb"],
        of: ", MongoDB's protocol",
        most: 3000.0,
        adjacent: " (the official Rust driver, by hand: 84,300)",
    }
    .instructions(bench)
}

/// Documents found by id, with a server that has almost no cost.
pub fn null_server(bench: &Bench) -> Result<Vec<Line>, Failure> {
    let driver = bench.peer(PEER)?;
    let cores = Cores::halves()?;
    let server = Server::null(bench, &cores, &SPEAK)?;
    let own = [vec!["protocol=mongodb".to_owned()], arguments(CLIENTS)].concat();
    let mut pairs = Vec::new();
    for _ in 0..REPEATS {
        let reported = json(pinned(cores.clients.as_ref(), &driver).arg(&server.socket).args(arguments(CLIENTS)))?;
        let figure = |name: &str| number(&reported[name]);
        let peer =
            Window { queries_per_s: figure("queries_per_s")?, cpu_us_per_query: figure("client_cpu_us_per_query")? };
        pairs.push((Own::run(bench, &server, &cores, &own)?, peer));
    }
    let over = |of: &dyn Fn(&(Own, Window)) -> f64| Spread::of(pairs.iter().map(of).collect());
    let cpu = over(&|(own, peer)| own.window.cpu_us_per_query / peer.cpu_us_per_query);
    let rate = over(&|(own, peer)| own.window.queries_per_s / peer.queries_per_s);
    let own_us = over(&|(own, _)| own.window.cpu_us_per_query).median;
    let peer_us = over(&|(_, peer)| peer.cpu_us_per_query).median;
    Ok(vec![Line {
        what: format!(
            "client CPU per find against the null server, MongoDB's protocol, {CLIENTS} connections, ratio to the official Rust driver"
        ),
        goal: format!("≤ {MOST_CPU:.2}"),
        measured: format!(
            "{}; {own_us:.2} µs over {peer_us:.2} µs; finds per second {}; {}",
            cpu.reported(2),
            rate.reported(2),
            pairs[0].0.driver
        ),
        met: Some(cpu.median <= MOST_CPU),
        command: format!(
            "wire_clients SOCKET {}; in turns with {PEER} SOCKET {} ({})",
            own.join(" "),
            arguments(CLIENTS).join(" "),
            cores.reported()
        ),
    }])
}
