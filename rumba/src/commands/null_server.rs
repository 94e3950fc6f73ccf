//! `rumba null-server`.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use clap::Args;
use rumba_engine_api::units::{parse_duration, show_duration};
use rumba_lab::trial::child::stop_signals;
use rumba_null_server::{Column, Config, Listen, NullServer, Protocol, ServerError, allow_many_connections};
use signal_hook::flag;
use signal_hook::iterator::Signals;

use crate::problem::Problem;

/// Arguments of `null-server`.
#[derive(Args)]
#[command(after_help = "\
This server has no data. It measures clients, because its canned answers cost almost nothing.
It parses each statement only as far as the answer needs, as text or prepared. A SELECT returns
fixed rows, and a find returns them as documents. INSERT, UPDATE and DELETE report one changed
row. LOAD DATA LOCAL and COPY read rows and drop them. Any user can connect with any password.
The server prints where it listens, and ends at SIGINT or SIGTERM.

Examples:
  rumba null-server --socket /tmp/null.sock &
  mariadb --socket /tmp/null.sock -e 'select c from anything'
  rumba null-server --protocol postgresql --socket /tmp/.s.PGSQL.5499 &
  psql -h /tmp -p 5499 -c 'select c from anything'

  How much CPU a client needs, with the server on one core and the client on another:
  taskset -c 0 rumba null-server --socket /tmp/null.sock --threads 1 &
  taskset -c 1 sysbench oltp_point_select --mysql-socket=/tmp/null.sock --threads=64 run

  How accurate a client's times are. It must report 20 ms with any number of connections. At
  the end, the server reports how long it held its answers, including the host's delay in
  waking it:
  rumba null-server --port 3399 --delay 20ms")]
pub struct NullServerArgs {
    /// The protocol to serve: mysql, postgresql or mongodb
    #[arg(long, value_name = "NAME", default_value = "mysql")]
    pub protocol: Protocol,
    /// Listen on a Unix socket at this path (PostgreSQL's clients look for .s.PGSQL.PORT)
    #[arg(long, value_name = "PATH", required_unless_present = "port", conflicts_with = "port")]
    pub socket: Option<PathBuf>,
    /// Listen on this port of 127.0.0.1; 0 chooses a free one
    #[arg(long, value_name = "N")]
    pub port: Option<u16>,
    /// Answer every command exactly this long after its arrival [default: at once]
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    pub delay: Option<Duration>,
    /// Rows that a SELECT returns
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub rows: u32,
    /// Characters in each text column
    #[arg(long, value_name = "N", default_value_t = 119)]
    pub row_bytes: u32,
    /// Columns that a SELECT returns, each NAME, NAME:text or NAME:int
    #[arg(long, value_name = "A,B", value_delimiter = ',', default_value = "c")]
    pub columns: Vec<Column>,
    /// Threads that serve the connections [default: half of the cores]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub threads: Option<u16>,
}

/// Runs the server until a signal comes.
pub fn run(args: &NullServerArgs) -> super::Result {
    let listen = match (&args.socket, args.port) {
        (Some(path), _) => Listen::Socket(path.clone()),
        (None, port) => Listen::Port(port.unwrap_or_default()),
    };
    let mut config = Config::new(listen);
    config.protocol = args.protocol;
    config.delay = args.delay.filter(|delay| !delay.is_zero());
    (config.rows, config.row_bytes, config.columns) = (args.rows, args.row_bytes, args.columns.clone());
    config.threads = args.threads.map_or(config.threads, usize::from);
    // Installed before the socket exists, so that no signal leaves the socket behind.
    let mut signals = catch_signals()
        .map_err(|error| Problem::failure(format!("signals cannot be caught: {error}"), "report this"))?;
    allow_many_connections();
    let server = NullServer::start(&config).map_err(problem)?;
    say!("listening on {} ({})", server.place(), reported(&config));
    let _ = signals.forever().next();
    let held = server
        .stop()
        .map_err(|error| Problem::failure(format!("the server's end: {error}"), "remove its socket by hand"))?;
    if let Some(held) = held {
        say!("{held}");
    }
    Ok(super::Output::default())
}

/// The first signal stops the server cleanly; a second one ends the process at once.
fn catch_signals() -> std::io::Result<Signals> {
    let requested = Arc::new(AtomicBool::new(false));
    let ending = stop_signals();
    for signal in ending.iter().copied() {
        // The order matters: the first signal must not see its own flag.
        flag::register_conditional_default(signal, requested.clone())?;
        flag::register(signal, requested.clone())?;
    }
    Signals::new(ending)
}

/// Describes the server, for the line that reports it is ready.
fn reported(config: &Config) -> String {
    let delay = config.delay.map_or_else(|| "at once".to_owned(), |delay| format!("after {}", show_duration(delay)));
    let threads = config.threads;
    let version = config.protocol.version();
    format!("{version}; answers {delay}; {threads} thread{}", if threads == 1 { "" } else { "s" })
}

fn problem(error: ServerError) -> Problem {
    let remedy = match &error {
        ServerError::Occupied(_) => "stop that server, or choose another path",
        ServerError::NotASocket(_) => "choose another path",
        ServerError::Listen { .. } => "choose a path in a directory of your own, shorter than 108 bytes, or --port 0",
        ServerError::Answer(_) => "lower --rows, --row-bytes or --columns",
        ServerError::Host { .. } => "ask for fewer --threads",
    };
    Problem::mistake(error.to_string(), remedy)
}
