//! The server: its threads, and its end.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread::JoinHandle;

use rustix::process::{Resource, getrlimit, setrlimit};

use crate::config::{Column, Config, Listen, Protocol};
use crate::dialogue::{Answers, refusal};
use crate::event_loop::{EventLoop, Mailbox};
use crate::held::Held;
use crate::listener::{Acceptor, listen};
use crate::mongodb;
use crate::mysql::LONGEST;

/// The memory that answers may take.
const MOST_ANSWERS: u64 = 256 << 20;

/// What keeps the server from starting.
#[derive(Debug, thiserror::Error)]
pub enum ServerError {
    /// Another server answers there.
    #[error("{0}: a server answers on this socket")]
    Occupied(PathBuf),
    /// Something else is there.
    #[error("{0}: something that is no socket has this name")]
    NotASocket(PathBuf),
    /// The system refuses the place.
    #[error("cannot listen on {place}: {cause}")]
    Listen {
        /// Path, or address and port.
        place: String,
        /// The system's words.
        cause: io::Error,
    },
    /// The result set asked for cannot be.
    #[error("{0}")]
    Answer(String),
    /// The host gives no threads or descriptors.
    #[error("the host gives no {what}: {cause}")]
    Host {
        /// What it does not give.
        what: &'static str,
        /// The system's words.
        cause: io::Error,
    },
}

/// A server that is running; dropped, it ends.
pub struct NullServer {
    place: String,
    socket: Option<PathBuf>,
    mailboxes: Vec<Arc<Mailbox>>,
    threads: Vec<JoinHandle<io::Result<Option<Held>>>>,
    /// Of the threads that have ended.
    held: Option<Held>,
}

impl NullServer {
    /// Starts it.
    ///
    /// # Errors
    /// See [`ServerError`].
    pub fn start(config: &Config) -> Result<Self, ServerError> {
        check(config)?;
        let answers = Arc::new(Answers::new(config));
        let given = |what| move |cause| ServerError::Host { what, cause };
        let mailboxes: Vec<Arc<Mailbox>> = (0..config.threads.max(1))
            .map(|_| Mailbox::new().map(Arc::new))
            .collect::<io::Result<_>>()
            .map_err(given("descriptors"))?;
        let (listener, place) = listen(&config.listen)?;
        let socket = match &config.listen {
            Listen::Socket(path) => Some(path.clone()),
            Listen::Port(_) => None,
        };
        let mut acceptor = Some(Acceptor::new(listener, socket.is_none(), mailboxes.clone(), refusal(config.protocol)));
        // From here on its end is that of a server that runs: what was started is stopped and removed.
        let mut server = Self { place, socket, mailboxes: mailboxes.clone(), threads: Vec::new(), held: None };
        for (number, mail) in mailboxes.into_iter().enumerate() {
            let mut event_loop =
                EventLoop::new(mail, acceptor.take(), answers.clone(), config.delay).map_err(given("descriptors"))?;
            let body = move || {
                wake_on_time();
                event_loop.run().map(|()| event_loop.held())
            };
            let thread = std::thread::Builder::new().name(format!("null-{number}")).spawn(body);
            server.threads.push(thread.map_err(given("threads"))?);
        }
        Ok(server)
    }

    /// Where it listens: a path, or an address with its port.
    pub fn place(&self) -> &str {
        &self.place
    }

    /// Ends it: connections are closed, its socket is removed. Tells for how long it has held its answers, if it had to.
    ///
    /// # Errors
    /// The words of the system that made a thread end before.
    pub fn stop(mut self) -> io::Result<Option<Held>> {
        self.end()?;
        Ok(self.held.take())
    }

    fn end(&mut self) -> io::Result<()> {
        for mailbox in &self.mailboxes {
            mailbox.stop();
        }
        let mut result = Ok(());
        for thread in self.threads.drain(..) {
            match thread.join().unwrap_or_else(|_| Err(io::Error::other("a thread panicked"))) {
                Ok(Some(held)) => self.held.get_or_insert_with(Held::new).add(&held),
                Ok(None) => {}
                Err(error) => result = result.and(Err(error)),
            }
        }
        if let Some(path) = self.socket.take() {
            result = result.and(std::fs::remove_file(path));
        }
        result
    }
}

impl Drop for NullServer {
    fn drop(&mut self) {
        // Nobody is left to be told.
        let _ = self.end();
    }
}

/// Lets this process have as many descriptors, and so connections, as the host allows it to allow itself.
pub fn allow_many_connections() {
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    // Refused, there are fewer connections, and a client that is turned away says so.
    let _ = setrlimit(Resource::Nofile, limit);
}

/// Refuses answers that no packet and no memory can hold.
fn check(config: &Config) -> Result<(), ServerError> {
    if config.columns.is_empty() || config.columns.len() > 4096 {
        return Err(ServerError::Answer(format!("{} columns; a result set has 1 to 4096", config.columns.len())));
    }
    let row_bytes: u64 = config.columns.iter().map(|column: &Column| width(column, config.row_bytes)).sum();
    if row_bytes >= LONGEST as u64 {
        return Err(ServerError::Answer(format!("a row of {row_bytes} bytes; at most {LONGEST} fit into one packet")));
    }
    let all = row_bytes.saturating_mul(u64::from(config.rows));
    if config.protocol == Protocol::MongoDb && all > mongodb::LONGEST {
        return Err(ServerError::Answer(format!(
            "documents of {all} bytes; at most {} fit into one message: ask for fewer or shorter ones",
            mongodb::LONGEST
        )));
    }
    if all > MOST_ANSWERS {
        return Err(ServerError::Answer(format!(
            "a result set of {all} bytes; at most {MOST_ANSWERS} are kept ready: ask for fewer or shorter rows"
        )));
    }
    Ok(())
}

fn width(column: &Column, row_bytes: u32) -> u64 {
    // With the packet's header and the value's length, generously.
    24 + match column.kind {
        crate::config::ColumnKind::Int => 20,
        crate::config::ColumnKind::Text => u64::from(row_bytes),
    }
}

/// Has the kernel wake this thread when a delay is over, and not up to 50 µs later.
fn wake_on_time() {
    // SAFETY: it sets a number of the calling thread. Refused, answers are later, and never too early.
    unsafe {
        libc::prctl(libc::PR_SET_TIMERSLACK, 1);
    }
}
