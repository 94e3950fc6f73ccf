//! The keeper: it makes the server's resources on the host, starts its holder, and undoes everything. It does so on
//! request, or when the server ends on its own.

use std::fs;
use std::io::{self, BufRead, BufReader, Write};
use std::process::{Child, Stdio};
use std::sync::atomic::AtomicUsize;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use signal_hook::consts::{SIGCHLD, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use super::hold::{Opened, Task};
use super::{Answer, NO_TRIAL, Order, Server, volume};
use crate::kept::Contents;
use crate::limits::Enforcement;
use crate::provision::{DataDir, MARK_VARIABLE, Owner, ResourceRegistry};
use crate::registry::Process;

/// How long a server may take to end before it is killed: it writes its dirty pages first.
const PATIENCE: Duration = Duration::from_secs(330);
/// The interval between two checks of a holder that is to end.
const LOOK: Duration = Duration::from_millis(20);

/// Reads an order on standard input, and keeps a server until a signal requests its end. `process` makes the commands of
/// its other processes; that of `hold` runs [`super::hold`].
///
/// # Errors
/// An order that cannot be read; a resource that cannot be undone, which stays in the ledger.
pub fn keep(ledger: &ResourceRegistry, process: Process) -> io::Result<()> {
    // A signal that arrives while the server starts is handled once the server is up.
    let mut signals = Signals::new([SIGTERM, SIGINT, SIGCHLD])?;
    let order: Order = serde_json::from_reader(io::stdin().lock())?;
    match Made::begin(&order, ledger, process) {
        Ok((made, server)) => match answer(&Answer::Up(Box::new(server))) {
            Ok(()) => made.until_requested(&mut signals),
            // The process that ordered the server was interrupted meanwhile, so the server is not needed.
            Err(_) => made.end(),
        },
        Err(why) => answer(&Answer::Failed(why)),
    }
}

/// The resources made on the host for a server.
struct Made {
    holder: Child,
    data: DataDir,
    limited: Enforcement,
}

impl Made {
    fn begin(order: &Order, ledger: &ResourceRegistry, process: Process) -> Result<(Self, Server), String> {
        let reported = |error: &dyn std::fmt::Display| error.to_string();
        let Order { name, engine, place, from } = order;
        let owner = Owner::this_process(name, NO_TRIAL).map_err(|error| reported(&error))?;
        let mut limited = Enforcement::prepare(&engine.limits, &volume(place, name), &owner, ledger, Some(process))
            .map_err(|error| reported(&error))?;
        let base = limited.storage_dir().unwrap_or(place);
        let data = DataDir::create(&base.join(name), &owner, ledger).map_err(|error| reported(&error))?;
        if let Some(from) = from {
            let stops = AtomicUsize::new(0);
            let copied = Contents::of(from, &stops).and_then(|left| left.copy(from, &data.engine_dir(), &stops));
            copied.map_err(|error| reported(&error))?;
        }
        limited.throttle().map_err(|error| reported(&error))?;
        let command = process("hold").map_err(|error| reported(&error))?;
        let mut command = limited.command(command).map_err(|error| reported(&error))?;
        // The server inherits the mark, so a server that outlives its holder is found by it.
        command.env(MARK_VARIABLE, data.mark()).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let holder = command.spawn().map_err(|error| reported(&error))?;
        let mut made = Self { holder, data, limited };
        let (version, access, pid) = match made.open(order) {
            Ok(Opened::Up { version, access, pid }) => (version, access, pid),
            Ok(Opened::Failed(why)) => return made.undone(why),
            Err(error) => return made.undone(format!("the server's holder: {error}")),
        };
        let server = Server {
            name: name.clone(),
            engine: engine.name.clone(),
            version,
            access,
            pid,
            directory: made.data.engine_dir(),
            from: from.clone(),
            limits: made.limited.enforced().to_vec(),
        };
        let noted = serde_json::to_vec_pretty(&server).map_err(io::Error::from);
        match noted.and_then(|noted| fs::write(made.data.note(), noted)) {
            Ok(()) => Ok((made, server)),
            Err(error) => made.undone(format!("{}: {error}", order.place.display())),
        }
    }

    /// Sends the holder its task, and reads the answer.
    fn open(&mut self, order: &Order) -> io::Result<Opened> {
        let (engine, directory) = (order.engine.clone(), self.data.engine_dir());
        let task = Task { engine, directory, is_left: order.from.is_some(), parent: std::process::id() };
        if let Some(mut stdin) = self.holder.stdin.take() {
            // A holder that died before reading sends no answer.
            let _ = stdin.write_all(&serde_json::to_vec(&task)?);
        }
        let mut line = String::new();
        if let Some(stdout) = self.holder.stdout.take() {
            BufReader::new(stdout).read_line(&mut line)?;
        }
        if line.is_empty() {
            let words = self.limited.verdict("cache").unwrap_or_else(|| "it ended before the server was up".to_owned());
            return Err(io::Error::other(words));
        }
        Ok(serde_json::from_str(&line)?)
    }

    /// Undoes everything after a failure; the error names what could not be undone.
    fn undone<T>(self, why: String) -> Result<T, String> {
        match self.end() {
            Ok(()) => Err(why),
            Err(error) => Err(format!("{why}; and it could not be undone: {error}")),
        }
    }

    /// Waits until a signal requests the end, or the server has ended on its own.
    fn until_requested(mut self, signals: &mut Signals) -> io::Result<()> {
        for signal in signals.forever() {
            if signal != SIGCHLD || self.has_ended() {
                break;
            }
        }
        self.end()
    }

    fn has_ended(&mut self) -> bool {
        !matches!(self.holder.try_wait(), Ok(None))
    }

    /// Closes the instance, and undoes everything.
    fn end(mut self) -> io::Result<()> {
        if !self.has_ended() {
            let pid = Pid::from_child(&self.holder);
            // The holder may have ended meanwhile; it is not reaped yet, so the pid is still its own.
            let _ = kill_process(pid, Signal::TERM);
            let requested = Instant::now();
            while !self.has_ended() && requested.elapsed() < PATIENCE {
                std::thread::sleep(LOOK);
            }
            // The result does not matter, because a holder that has ended needs no kill.
            let _ = self.holder.kill().and_then(|()| self.holder.wait().map(drop));
        }
        self.data.vacate().map_err(io::Error::other)?;
        self.data.remove().map_err(io::Error::other)?;
        self.limited.end().map_err(io::Error::other)
    }
}

/// Sends the answer and closes standard output, so that the reader does not wait for more.
fn answer(answer: &Answer) -> io::Result<()> {
    let line = format!("{}\n", serde_json::to_string(answer)?);
    io::stdout().lock().write_all(line.as_bytes())?;
    let nowhere = fs::OpenOptions::new().write(true).open("/dev/null")?;
    Ok(rustix::stdio::dup2_stdout(nowhere)?)
}
