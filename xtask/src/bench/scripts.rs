//! The client cost of a sysbench script: `rumba sysbench` next to sysbench with the same arguments, in turns.

use std::time::Duration;

use super::clients::arguments;
use super::floor::loop_window;
use super::measure::{Bench, Spread, callgrind};
use super::servers::{Cores, SYSBENCH, Server, Sysbench, Window, point_selects};
use super::{Failure, Line};

/// The warmup that both need with 256 threads before a comparison.
const WARMUP: Duration = Duration::from_secs(10);
const REPEATS: usize = 3;
const WINDOW_S: u32 = 2;
/// The most instructions of an event.
const MOST_INSTRUCTIONS: f64 = 1500.0;

/// Instructions of a point select through the bundled script, including the rest of a run.
pub fn instructions(bench: &Bench) -> Result<Vec<Line>, Failure> {
    const EVENTS: u64 = 50_000;
    let server = Server::null(bench, &Cores::FREE, &["--threads", "1"])?;
    // It is random when LuaJIT retries a loop that it could not compile, and how well it compiles it then.
    let count = || {
        callgrind(EVENTS, &|command, events| {
            command.arg(bench.example("script_cost")).arg(&server.socket).arg(events.to_string());
        })
    };
    let counts = Spread::of((0..REPEATS).map(|_| count()).collect::<Result<_, _>>()?);
    Ok(vec![Line {
        what: "user instructions per event of oltp_point_select: its Lua, sent, answered, recorded".into(),
        goal: format!("≤ {MOST_INSTRUCTIONS:.0} (sysbench 1.0.20: 4,303)"),
        measured: format!("{} instructions", counts.reported(0)),
        met: Some(counts.median <= MOST_INSTRUCTIONS),
        command: format!("valgrind --tool=callgrind script_cost SOCKET {}, less the same with {EVENTS}", 2 * EVENTS),
    }])
}

/// With a server that has almost no cost, only the client is measured.
pub fn null_server(bench: &Bench) -> Result<Vec<Line>, Failure> {
    let cores = Cores::halves()?;
    let server = Server::null(bench, &cores, &[])?;
    let mut lines = Vec::new();
    for (clients, most) in [(8, 0.55), (64, 0.35), (256, 0.30)] {
        lines.extend(compare(bench, &server, &cores, clients, most)?);
    }
    Ok(lines)
}

/// The results of one turn: rumba, sysbench, and the least possible cost of a client (`super::floor`).
struct Turn {
    own: Window,
    peer: Window,
    floor: Window,
}

/// Alternates between them; each ratio is of neighbours in time. Both stay warm, stopped between their windows.
fn compare(bench: &Bench, server: &Server, cores: &Cores, clients: u32, most: f64) -> Result<Vec<Line>, Failure> {
    let (rumba, words) = (bench.rumba(), point_selects(server));
    let own = Sysbench::start(&[rumba.as_os_str(), SYSBENCH.as_ref()], &words, cores, clients, WARMUP)?;
    // The first window stops it, so that the other warms up alone.
    own.window(1)?;
    let peer = Sysbench::start(&[SYSBENCH.as_ref()], &words, cores, clients, WARMUP)?;
    peer.window(1)?;
    let mut turns = Vec::new();
    for _ in 0..REPEATS {
        let (own, peer) = (own.window(WINDOW_S)?, peer.window(WINDOW_S)?);
        turns.push(Turn { own, peer, floor: loop_window(bench, &server.socket, cores, &arguments(clients))? });
    }
    let over = |of: &dyn Fn(&Turn) -> f64| Spread::of(turns.iter().map(of).collect());
    let cpu_ratio = over(&|turn| turn.own.cpu_us_per_query / turn.peer.cpu_us_per_query);
    let floor_ratio = over(&|turn| turn.floor.cpu_us_per_query / turn.peer.cpu_us_per_query);
    let [own_us, peer_us] = [over(&|turn| turn.own.cpu_us_per_query), over(&|turn| turn.peer.cpu_us_per_query)];
    let rates = [over(&|turn| turn.own.queries_per_s), over(&|turn| turn.peer.queries_per_s)];
    let rate_ratio = over(&|turn| turn.own.queries_per_s / turn.peer.queries_per_s);
    let command = format!(
        "rumba sysbench oltp_point_select --threads={clients}; in turns with sysbench and the same words, and minimal_loop ({})",
        cores.reported()
    );
    let mut lines = vec![
        Line {
            what: format!("client CPU per query of the script, null server, {clients} clients, ratio to sysbench"),
            goal: format!("≤ {most:.2}"),
            measured: format!(
                "{}; {:.2} µs over {:.2} µs; a minimal loop {}",
                cpu_ratio.reported(2),
                own_us.median,
                peer_us.median,
                floor_ratio.reported(2)
            ),
            met: Some(cpu_ratio.median <= most),
            command: command.clone(),
        },
        Line {
            what: format!("queries per second of the script, null server, {clients} clients, ratio to sysbench"),
            goal: "reported".into(),
            measured: format!("{}; {:.0} over {:.0}", rate_ratio.reported(2), rates[0].median, rates[1].median),
            met: None,
            command: command.clone(),
        },
    ];
    if clients == 256 {
        let (own_mb, peer_mb) = (own.peak_rss_mb()?, peer.peak_rss_mb()?);
        lines.push(Line {
            what: "resident memory at its peak, 256 clients with an interpreter each".into(),
            goal: "≤ 60 MB".into(),
            measured: format!("{own_mb:.1} MB (sysbench {peer_mb:.1})"),
            met: Some(own_mb <= 60.0),
            command,
        });
    }
    Ok(lines)
}
