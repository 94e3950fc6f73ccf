//! The server: its start, its threads, and its end.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread::JoinHandle;

use rustix::process::{Resource, getrlimit, setrlimit};

use crate::config::{Column, Config, Listen, Protocol};
use crate::dialogue::{Answers, refusal};
use crate::error::ServerError;
use crate::event_loop::EventLoop;
use crate::held::Held;
use crate::listener::{Acceptor, listen};
use crate::mailbox::Mailbox;
use crate::mongodb;
use crate::mysql::LONGEST;

/// The most memory that answers may take.
const MOST_ANSWERS: u64 = 256 << 20;

/// A running server, which ends when it is dropped.
pub struct NullServer {
    place: String,
    socket: Option<PathBuf>,
    mailboxes: Vec<Arc<Mailbox>>,
    threads: Vec<JoinHandle<io::Result<Option<Held>>>>,
    /// How long the ended threads held their answers.
    held: Option<Held>,
}

impl NullServer {
    /// Starts the server.
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
        // From here on, dropping the server stops its threads and removes its socket.
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

    /// The address it listens on: a path, or an address with its port.
    pub fn place(&self) -> &str {
        &self.place
    }

    /// Stops the server: closes connections and removes its socket. Returns how long it held its answers, if it has a
    /// delay.
    ///
    /// # Errors
    /// The system error that ended a thread earlier.
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
        // `drop` cannot return an error.
        let _ = self.end();
    }
}

/// Raises this process's limit of descriptors, and so of connections, to the hard limit.
pub fn allow_many_connections() {
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    // If this fails there are fewer connections, and the message to a refused client explains it.
    let _ = setrlimit(Resource::Nofile, limit);
}

/// Refuses answers that exceed a packet or the available memory.
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
    // A generous estimate that includes the packet's header and the value's length.
    24 + match column.kind {
        crate::config::ColumnKind::Int => 20,
        crate::config::ColumnKind::Text => u64::from(row_bytes),
    }
}

/// Makes the kernel wake this thread at the end of a delay, instead of up to 50 µs later.
fn wake_on_time() {
    // SAFETY: it sets a number of the calling thread. If it fails, answers are later, and never too early.
    unsafe {
        libc::prctl(libc::PR_SET_TIMERSLACK, 1);
    }
}
