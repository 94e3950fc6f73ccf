//! Events of a sysbench script over one session, timed and recorded as in a run: what `scripts/instructions sysbench`
//! uses to count the instructions of an event.
//!
//! ```text
//! script_cost SOCKET EVENTS [SCRIPT]
//! ```
//!
//! The user is root without a password; without a script it is the bundled point select.

use std::process::ExitCode;
use std::sync::Arc;
use std::task::{Context, Poll};

use rumba_engine_api::error::{EngineError, Result};
use rumba_engine_api::sql::SqlSession;
use rumba_engine_api::worker::{Client, Op, OpKind, Pace, StatementCounts, block_on};
use rumba_lab::run::cells::Cells;
use rumba_lab::run::pace::ClientPace;
use rumba_protocol_mysql::{Address, Secret, SessionOptions, Target, Tls, WireSession};
use rumba_workload_sysbench::cli::options::{Kind, OptionInfo};
use rumba_workload_sysbench::counters::Counters;
use rumba_workload_sysbench::host::{Host, Rank, Remedy};
use rumba_workload_sysbench::random::{Shapes, Unique};
use rumba_workload_sysbench::setup::{Events, Measures, OptionValue, Script, Setup};
use rumba_workload_sysbench::{Interpreter, ScriptClient};

struct Socket {
    path: String,
    /// The statements at the beginning of a connection.
    begins: Vec<String>,
}

impl Host for Socket {
    fn default_driver(&self) -> Option<usize> {
        Some(0)
    }

    fn connect(&self, _driver: usize, _client: u32, _turn: u32) -> Result<Box<dyn SqlSession>> {
        let target = Target {
            address: Address::Socket(self.path.clone().into()),
            user: "root".into(),
            password: Secret::default(),
            database: None,
            tls: Tls::Off,
        };
        let options = SessionOptions { setup: self.begins.clone(), ..SessionOptions::default() };
        Ok(Box::new(WireSession::connect(&target, &options)?))
    }

    fn remedy(&self, _driver: usize, _error: &EngineError) -> Remedy {
        Remedy::Fatal
    }

    fn log(&self, _rank: Rank, words: &str) {
        eprintln!("{words}");
    }
}

/// A pace that ends after this many events.
struct Counted {
    pace: ClientPace,
    left: u64,
}

impl Pace for Counted {
    fn poll_turn(&mut self, context: &mut Context<'_>) -> Poll<bool> {
        if self.left == 0 {
            return Poll::Ready(false);
        }
        self.left -= 1;
        self.pace.poll_turn(context)
    }

    fn start(&mut self, kind: OpKind) {
        self.pace.start(kind);
    }

    fn set_kind(&mut self, kind: OpKind) {
        self.pace.set_kind(kind);
    }

    fn statements(&mut self, kind: OpKind, statements: StatementCounts) {
        self.pace.statements(kind, statements);
    }

    fn done(&mut self, kind: OpKind, op: Op) -> u64 {
        self.pace.done(kind, op)
    }
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (socket, events, script) = match &arguments[..] {
        [socket, events] => (socket, events, "oltp_point_select"),
        [socket, events, script] => (socket, events, script.as_str()),
        _ => return mistake("usage: script_cost SOCKET EVENTS [SCRIPT]"),
    };
    let Ok(left) = events.parse() else { return mistake("EVENTS is a number") };
    match run(socket, left, script) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => mistake(&error),
    }
}

fn mistake(what: &str) -> ExitCode {
    eprintln!("script_cost: {what}");
    ExitCode::FAILURE
}

fn value(option: &OptionInfo) -> OptionValue {
    let default = option.default.as_deref().unwrap_or_default();
    match option.kind {
        Kind::Flag => OptionValue::Flag(default == "on"),
        Kind::Int | Kind::Size | Kind::Double => OptionValue::Number(default.parse().unwrap_or_default()),
        _ => OptionValue::Text(default.to_owned()),
    }
}

#[derive(Clone, Copy, Debug)]
pub struct ScriptInvocation<'a> {
    /// The path of the server's socket.
    pub socket: &'a str,
    /// The statements at the beginning of every connection.
    pub begins: &'a [&'a str],
    /// Its name.
    pub script: &'a str,
    /// `run`, `prepare`.
    pub command: &'a str,
    /// Options with values other than the defaults.
    pub options: &'a [(&'a str, f64)],
}

impl ScriptInvocation<'_> {
    pub fn run<'a>(socket: &'a str, script: &'a str) -> ScriptInvocation<'a> {
        ScriptInvocation { socket, begins: &[], script, command: "run", options: &[] }
    }

    /// It, with the script's own options.
    pub fn setup(&self) -> Result<Arc<Setup>, String> {
        let setup = |options, measures| {
            let begins = self.begins.iter().map(|&sql| sql.to_owned()).collect();
            Arc::new(Setup {
                script: Script::Named(self.script.to_owned()),
                options,
                argv: vec!["sysbench".to_owned()],
                command: Some(self.command.to_owned()),
                version: "1.1.0".to_owned(),
                luajit_command: None,
                is_quiet: true,
                measures,
                host: Arc::new(Socket { path: self.socket.to_owned(), begins }),
                seed: 1,
                shapes: Shapes::default(),
                unique: Unique::new(1),
                events: Events::at_most(0),
            })
        };
        // Its own options with their defaults.
        let loaded = Interpreter::new(&setup(Vec::new(), Measures::default()), 0, Arc::default());
        let loaded = loaded.map_err(|error| error.to_string())?;
        let declared = loaded.declared().map_err(|error| error.to_string())?;
        let measures = loaded.measures().map_err(|error| error.to_string())?;
        let own = declared.into_iter().map(|option| (option.key(), value(&option)));
        let requested = [("threads", 1.0)].into_iter().chain(self.options.iter().copied());
        let requested = requested.map(|(name, number)| (name.to_owned(), OptionValue::Number(number)));
        Ok(setup(own.chain(requested).collect(), measures))
    }

    /// A client of it, its `thread_init` done.
    pub fn client(&self) -> Result<ScriptClient, String> {
        ScriptClient::new(&self.setup()?, 0, Arc::default()).map_err(|error| error.to_string())
    }
}

/// Runs this many events.
pub fn run(socket: &str, left: u64, script: &str) -> Result<(), String> {
    let setup = ScriptInvocation::run(socket, script).setup()?;
    let measures = &setup.measures;
    let (kinds, counters) = (1 + measures.operations.len(), Counters::with_own(measures.counters.len()));
    let mut client = ScriptClient::new(&setup, 0, Arc::new(counters)).map_err(|error| error.to_string())?;
    let mut pace = Counted { pace: ClientPace::alone(Arc::new(Cells::new(kinds))), left };
    block_on(client.run(&mut pace)).map_err(|error| error.to_string())
}
