//! The client cost of a sysbench script: `rumba sysbench` next to sysbench with the same arguments, in turns.

use std::time::Duration;

use super::clients::{arguments, minimal_loop};
use super::measure::{Bench, Spread};
use super::servers::{Cores, SYSBENCH, Server, Sysbench, Window, point_selects};
use super::{Failure, Line};

/// The warmup that both need with 256 threads before a comparison.
const WARMUP: Duration = Duration::from_secs(10);
const REPEATS: usize = 3;
const WINDOW_S: u32 = 2;
/// Clients of a comparison; each has an interpreter.
const CLIENTS: u32 = 256;

/// The results of one turn: rumba, sysbench, and the least possible cost of a client.
struct Turn {
    own: Window,
    peer: Window,
    floor: Window,
}

/// With a server that has almost no cost, only the client is measured. The programs take turns, and each ratio is of
/// neighbours in time. Both stay warm, stopped between their windows.
pub fn null_server(bench: &Bench) -> Result<Vec<Line>, Failure> {
    let cores = Cores::halves()?;
    let server = Server::null(bench, &cores, &[])?;
    let (rumba, words) = (bench.rumba(), point_selects(&server));
    let own = Sysbench::start(&[rumba.as_os_str(), SYSBENCH.as_ref()], &words, &cores, CLIENTS, WARMUP)?;
    // The first window stops it, so that the other warms up alone.
    own.window(1)?;
    let peer = Sysbench::start(&[SYSBENCH.as_ref()], &words, &cores, CLIENTS, WARMUP)?;
    peer.window(1)?;
    let mut turns = Vec::new();
    for _ in 0..REPEATS {
        let (own, peer) = (own.window(WINDOW_S)?, peer.window(WINDOW_S)?);
        turns.push(Turn { own, peer, floor: minimal_loop(bench, &server, &cores, &arguments(CLIENTS))? });
    }
    let over = |of: &dyn Fn(&Turn) -> f64| Spread::of(turns.iter().map(of).collect());
    let floor = over(&|turn| turn.own.cpu_us_per_query / turn.floor.cpu_us_per_query);
    let cpu = over(&|turn| turn.own.cpu_us_per_query / turn.peer.cpu_us_per_query);
    let rate = over(&|turn| turn.own.queries_per_s / turn.peer.queries_per_s);
    let own_us = over(&|turn| turn.own.cpu_us_per_query).median;
    let (own_mb, peer_mb) = (own.peak_rss_mb()?, peer.peak_rss_mb()?);
    let command = format!(
        "rumba sysbench oltp_point_select --threads={CLIENTS}; in turns with sysbench and the same words, and minimal_loop ({})",
        cores.reported()
    );
    Ok(vec![
        Line {
            what: format!("client CPU per query, script, null server, {CLIENTS} clients, ratio to a minimal loop"),
            goal: "≤ 1.50".into(),
            measured: format!(
                "{}; {own_us:.2} µs; CPU {} and queries per second {} times those of sysbench",
                floor.reported(2),
                cpu.reported(2),
                rate.reported(2)
            ),
            met: Some(floor.median <= 1.5),
            command: command.clone(),
        },
        Line {
            what: format!("resident memory at its peak, {CLIENTS} clients with an interpreter each"),
            goal: "≤ 60 MB".into(),
            measured: format!("{own_mb:.1} MB (sysbench {peer_mb:.1})"),
            met: Some(own_mb <= 60.0),
            command,
        },
    ])
}
