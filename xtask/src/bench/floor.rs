//! The cost of driving a server next to the least possible cost: an event loop of `epoll_wait`, `recv` and `send`.
//!
//! The server has separate cores. With such a server, the kernel spends nearly all of a client's CPU time, and no
//! client can spend less than this loop. The loop is therefore the goal, for the native clients and for a script's.

use std::path::Path;

use super::Failure;
use super::clients::REPEATS;
use super::measure::{Bench, Spread, json, number};
use super::servers::{Cores, Window, pinned};

/// The loop, for a window.
pub fn loop_window(bench: &Bench, socket: &Path, cores: &Cores, args: &[String]) -> Result<Window, Failure> {
    let printed = json(pinned(cores.clients.as_ref(), &bench.example("minimal_loop")).arg(socket).args(args))?;
    let figure = |name: &str| number(&printed[name]);
    Ok(Window { queries_per_s: figure("queries_per_s")?, cpu_us_per_query: figure("client_cpu_us_per_query")? })
}

/// The loop's CPU per query, measured next to the other clients and reported with them.
pub fn loop_us(bench: &Bench, socket: &Path, cores: &Cores, args: &[String]) -> Result<f64, Failure> {
    let windows = (0..REPEATS).map(|_| Ok(loop_window(bench, socket, cores, args)?.cpu_us_per_query));
    Ok(Spread::of(windows.collect::<Result<_, Failure>>()?).median)
}
