//! The coordinator's listener and token, and the job that starts the agents: for a whole run, over all its trials.

use std::net::{SocketAddr, TcpListener};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};
use std::{fs, io};

use rumba_fleet::{Coordinator, FleetError, TOKEN_VARIABLE, Terms, Token};
use rumba_results::fleet::{FleetPlan, Launcher};
use rustix::io::FdFlags;
use rustix::process::{Pid, Signal, kill_process};
use serde::{Deserialize, Serialize};

/// The environment variable with the coordinator's address.
pub const COORDINATOR_VARIABLE: &str = "RUMBA_COORDINATOR";
/// The standard output and error of the job.
const LOG: &str = "agents.log";
/// How long the job may take to end after the run, and after each signal.
const ENDING: Duration = Duration::from_secs(5);

/// Why no agent can come.
#[derive(Debug, thiserror::Error)]
pub enum GateError {
    #[error(transparent)]
    Token(#[from] FleetError),
    /// The coordinator cannot listen at the address.
    #[error(
        "the coordinator cannot listen on {address}: {cause}; set fleet.address to an address of this host, and fleet.port to a free port"
    )]
    Listen {
        address: String,
        /// The system's error.
        cause: io::Error,
    },
    /// The job cannot be started.
    #[error("the agents cannot be started with `{line}`: {cause}")]
    Job {
        /// The command.
        line: String,
        /// The system's error.
        cause: io::Error,
    },
}

/// The listener of a run, and the job of its agents. Dropping it ends both.
pub struct Gate {
    /// Open until the run ends.
    listener: Option<TcpListener>,
    address: SocketAddr,
    plan: FleetPlan,
    token: Token,
    job: Option<Child>,
}

/// The words of the command that starts the agents.
fn job_words(fleet: &FleetPlan, program: &str) -> Vec<String> {
    let hosts = fleet.hosts;
    let words = [
        "srun".to_owned(),
        format!("-N{hosts}"),
        format!("-n{hosts}"),
        // One host's end is no reason to end the others: the coordinator decides.
        "--exclusive".to_owned(),
        "--no-kill".to_owned(),
        "-K0".to_owned(),
        "--wait=0".to_owned(),
        // With nodes down, srun would queue for ever.
        format!("--time={}", fleet.job_minutes),
        program.to_owned(),
        "agent".to_owned(),
    ];
    words.into()
}

/// The command that starts the agents, for a person; `None` if the user starts them.
pub fn job_line(fleet: &FleetPlan) -> Option<String> {
    (fleet.launcher == Launcher::Slurm).then(|| job_words(fleet, &own_program()).join(" "))
}

fn own_program() -> String {
    std::env::current_exe().map_or_else(|_| "rumba".to_owned(), |path| path.display().to_string())
}

impl Gate {
    /// Listens. A run calls it before it creates anything.
    ///
    /// # Errors
    /// No token; an address that is not this host's or is in use.
    pub fn open(fleet: &FleetPlan) -> Result<Self, GateError> {
        let token = match Token::find(None) {
            Err(_) if fleet.launcher == Launcher::Slurm => Token::random()?,
            found => found?,
        };
        let address = format!("{}:{}", fleet.address, fleet.port);
        let listen = || GateError::listen(&address);
        let listener = TcpListener::bind((fleet.address.as_str(), fleet.port)).map_err(listen())?;
        let address = listener.local_addr().map_err(listen())?;
        Ok(Self { listener: Some(listener), address, plan: fleet.clone(), token, job: None })
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The number of client hosts.
    pub fn hosts(&self) -> u32 {
        self.plan.hosts
    }

    /// Starts the agents if the launcher is rumba's. Their output goes to a file in the directory of results.
    ///
    /// # Errors
    /// No `srun`; a file that cannot be written.
    pub fn start_agents(&mut self, results: &Path) -> Result<(), GateError> {
        if self.plan.launcher == Launcher::None {
            return Ok(());
        }
        let words = job_words(&self.plan, &own_program());
        let failed = |cause| GateError::Job { line: words.join(" "), cause };
        let log = fs::File::create(results.join(LOG)).map_err(failed)?;
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]).env(COORDINATOR_VARIABLE, format!("{}:{}", self.plan.address, self.address.port()));
        command.env(TOKEN_VARIABLE, self.token.reveal()).stdin(Stdio::null());
        command.stderr(log.try_clone().map_err(failed)?).stdout(log);
        self.job = Some(command.spawn().map_err(failed)?);
        Ok(())
    }

    pub fn door(&self) -> Option<Door> {
        Some(Door { fd: self.listener.as_ref()?.as_raw_fd() })
    }

    /// Lets a trial's process inherit the door and the token.
    pub fn pass(&self, Door { fd }: Door, command: &mut Command) {
        command.env(TOKEN_VARIABLE, self.token.reveal());
        let inherit = move || {
            // SAFETY: the listener is open in the parent, and this copy of its descriptor belongs to the new process.
            let fd = unsafe { rustix::fd::BorrowedFd::borrow_raw(fd) };
            rustix::io::fcntl_setfd(fd, FdFlags::empty()).map_err(io::Error::from)
        };
        // SAFETY: the closure makes one system call, which is safe between fork and exec.
        unsafe { command.pre_exec(inherit) };
    }
}

impl GateError {
    fn listen(address: &str) -> impl FnOnce(io::Error) -> Self + use<> {
        let address = address.to_owned();
        |cause| Self::Listen { address, cause }
    }
}

impl Drop for Gate {
    fn drop(&mut self) {
        // Without a listener, the agents end.
        self.listener = None;
        let Some(job) = &mut self.job else { return };
        for signal in [None, Some(Signal::TERM), Some(Signal::KILL)] {
            if let (Some(signal), Some(pid)) = (signal, Pid::from_raw(job.id() as i32)) {
                let _ = kill_process(pid, signal);
            }
            let until = Instant::now() + ENDING;
            while Instant::now() < until {
                if !matches!(job.try_wait(), Ok(None)) {
                    return;
                }
                std::thread::sleep(Duration::from_millis(20));
            }
        }
    }
}

/// The listener that a trial's process inherits.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Door {
    fd: RawFd,
}

impl Door {
    /// Gathers the client hosts of a trial. Called once in a process.
    ///
    /// # Errors
    /// Hosts that do not come; no token; an interrupt.
    pub fn gather(self, fleet: &FleetPlan, program: &str, stop: &AtomicBool) -> Result<Coordinator, FleetError> {
        // SAFETY: `rumba run` has passed this descriptor to this process, which nothing else uses.
        let fd = unsafe { OwnedFd::from_raw_fd(self.fd) };
        // The server and other children of this process must not inherit it.
        let closed = rustix::io::fcntl_setfd(&fd, FdFlags::CLOEXEC).map_err(io::Error::from);
        closed.map_err(FleetError::io("the inherited listener"))?;
        let terms = Terms { hosts: fleet.hosts, token: Token::find(None)?, program: program.to_owned() };
        Coordinator::gather(TcpListener::from(fd), &terms, Duration::from_secs_f64(fleet.wait_s), stop)
    }
}
