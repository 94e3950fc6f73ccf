//! An authenticated connection with blocking calls, for connecting, preparing and administration. The load path does
//! not use the blocking calls.

use std::io;
use std::ops::Range;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Instant;

use rumba_transport::{Incoming, Ready, Stream, TransportError, timed, tls_client};

use crate::codec::frame::{self, Framed, HEADER};
use crate::codec::message::Transaction;
use crate::startup::{self, Login, Step};
use crate::{Address, PgError, Target};

/// The number of connections that this process has opened.
static OPENED: AtomicU64 = AtomicU64::new(0);

/// An authenticated connection.
pub(crate) struct Connection {
    pub(crate) stream: Stream,
    pub(crate) incoming: Incoming,
    /// The send buffer; its first [`Connection::sent`] bytes are sent.
    pub(crate) send: Vec<u8>,
    pub(crate) sent: usize,
    /// The version that the server reports.
    pub(crate) version: String,
    /// The transaction state that the server last reported.
    pub(crate) transaction: Transaction,
    /// The begin of its prepared statements' names. It is unique, because a pooler may execute a statement on a server
    /// connection that has another client's statements. The server then reports an unknown name and does not execute
    /// the wrong statement.
    pub(crate) names: String,
}

/// The bytes that a server may still send, so that a hostile or broken server cannot fill the memory.
pub(crate) struct Allowance {
    most: usize,
    left: usize,
}

impl Allowance {
    fn of(most: usize) -> Self {
        Self { most, left: most }
    }

    /// Until the login is complete, where a server sends about one KiB.
    fn login() -> Self {
        Self::of(64 << 10)
    }

    /// For an answer that is kept in memory, or the description of a statement.
    pub(crate) fn answer() -> Self {
        Self::of(8 << 20)
    }

    /// For an answer of which nothing is kept. Each message still has the protocol's limit.
    pub(crate) fn unlimited() -> Self {
        Self::of(usize::MAX)
    }

    /// Refuses a message that exceeds the rest.
    fn admit(&self, bytes: usize) -> Result<(), PgError> {
        if bytes <= self.left {
            return Ok(());
        }
        Err(PgError::Protocol(format!(
            "the server sent more than {} KiB, the limit at this point; check that it is a PostgreSQL server",
            self.most >> 10
        )))
    }
}

/// A received message: its type, and the position of its body.
pub(crate) struct Message {
    pub(crate) kind: u8,
    pub(crate) body: Range<usize>,
}

impl Connection {
    /// Connects and logs in with these startup parameters, before `deadline`.
    pub(crate) fn open(
        target: &Target,
        parameters: &[(&'static str, String)],
        deadline: Instant,
    ) -> Result<Self, PgError> {
        let (began, address) = (Instant::now(), &target.address);
        let stream = Stream::connect(address, deadline);
        let mut connection = Self {
            stream: stream.map_err(|error| match error {
                TransportError::Io { what, cause } => TransportError::io(what, timed(cause, began.elapsed())),
                other => other,
            })?,
            incoming: Incoming::new(HEADER),
            send: Vec::new(),
            sent: 0,
            version: String::new(),
            transaction: Transaction::None,
            names: format!("r{:x}_{:x}_", std::process::id(), OPENED.fetch_add(1, Relaxed)),
        };
        let encrypted = connection.encrypt(target, deadline);
        encrypted.map_err(|error| error.awaiting("the answer to the TLS request", address, began.elapsed()))?;
        let entered = connection.enter(target, parameters, Some(deadline));
        entered.map_err(|error| error.awaiting("the answer to the login", address, began.elapsed()))?;
        Ok(connection)
    }

    fn encrypt(&mut self, target: &Target, deadline: Instant) -> Result<(), PgError> {
        if let (Address::Socket(path), true) = (&target.address, target.tls.is_required()) {
            let words = format!("PostgreSQL encrypts nothing over a socket ({}); turn TLS off there", path.display());
            return Err(TransportError::Tls(words).into());
        }
        let Some(tls) = tls_client(&target.tls, &target.address)? else { return Ok(()) };
        self.send.extend_from_slice(&startup::request_for_encryption());
        self.write(Some(deadline))?;
        while !self.incoming.has_some() {
            self.receive(Some(deadline))?;
        }
        match self.incoming.rest() {
            b"S" => {
                self.incoming.take(1);
                self.stream.encrypt(tls);
                Ok(())
            }
            // Unencrypted bytes after this answer cannot be trusted, because an attacker may have inserted them.
            [b'S', ..] => Err(PgError::Protocol("bytes that are not encrypted follow the answer about TLS".into())),
            b"N" if !target.tls.is_required() => {
                self.incoming.take(1);
                Ok(())
            }
            [b'N', ..] => Err(TransportError::Tls(
                "the server does not offer TLS; give it a certificate (ssl = on), or turn TLS off".into(),
            )
            .into()),
            _ => Err(PgError::Protocol("no answer about TLS; is this a PostgreSQL server?".into())),
        }
    }

    fn enter(
        &mut self,
        target: &Target,
        parameters: &[(&'static str, String)],
        deadline: Option<Instant>,
    ) -> Result<(), PgError> {
        self.send.extend_from_slice(&startup::first(&target.user, target.database.as_deref(), parameters));
        let mut login = Login::new(&target.user, target.password.reveal());
        self.write(deadline)?;
        let mut allowance = Allowance::login();
        loop {
            let Message { kind, body } = self.read(&mut allowance, deadline)?;
            match login.step(kind, self.incoming.at(body))? {
                Step::Send(message) => {
                    self.send.extend_from_slice(&message);
                    self.write(deadline)?;
                }
                Step::Wait => {}
                Step::In => break,
            }
        }
        self.version = login.version();
        Ok(())
    }

    /// Sends everything queued, and blocks until it is sent.
    pub(crate) fn write(&mut self, deadline: Option<Instant>) -> Result<(), PgError> {
        let lost = |cause| TransportError::io("sending to the server", cause);
        while self.sent < self.send.len() || self.stream.holds_back() {
            match self.stream.write(&self.send[self.sent..]) {
                Ok(sent) => self.sent += sent,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.stream.block(Ready::ToWrite, deadline).map_err(lost)?;
                }
                // The server's last message may still be readable; if not, the read reports the error.
                Err(error) if error.kind() == io::ErrorKind::BrokenPipe => break,
                Err(error) => return Err(lost(error).into()),
            }
        }
        self.send.clear();
        self.sent = 0;
        Ok(())
    }

    /// The next message within the allowance; blocks until it is complete.
    fn read(&mut self, allowance: &mut Allowance, deadline: Option<Instant>) -> Result<Message, PgError> {
        loop {
            // The length is announced before the message, so a message that is too long is never received.
            let bytes = match frame::framed(self.incoming.rest())? {
                Framed::Whole { length, .. } => HEADER + length,
                Framed::Short(needed) => needed,
            };
            allowance.admit(bytes)?;
            if let Some(message) = self.message()? {
                allowance.left -= bytes;
                return Ok(message);
            }
            self.receive(deadline)?;
        }
    }

    /// The next message of an answer that has failed with `failure`, if it has. The server's error before it closed the
    /// connection is more specific than the loss of the connection.
    pub(crate) fn read_after(
        &mut self,
        failure: &mut Option<PgError>,
        allowance: &mut Allowance,
        deadline: Option<Instant>,
    ) -> Result<Message, PgError> {
        self.read(allowance, deadline).map_err(|error| failure.take().unwrap_or(error))
    }

    /// The next message, if it is complete.
    #[inline]
    pub(crate) fn message(&mut self) -> Result<Option<Message>, PgError> {
        Ok(match frame::framed(self.incoming.rest())? {
            Framed::Whole { kind, length } => {
                let message = self.incoming.take(HEADER + length);
                Some(Message { kind, body: message.start + HEADER..message.end })
            }
            Framed::Short(needed) => {
                self.incoming.need(needed);
                None
            }
        })
    }

    /// Receives data; blocks until some arrives.
    fn receive(&mut self, deadline: Option<Instant>) -> Result<(), PgError> {
        loop {
            match self.incoming.fill(&mut self.stream) {
                Ok(_) => return Ok(()),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.stream
                        .block(Ready::ToRead, deadline)
                        .map_err(|cause| TransportError::io("waiting for the server", cause))?
                }
                Err(error) => return Err(TransportError::receiving(error).into()),
            }
        }
    }
}

impl Drop for Connection {
    /// Sends Terminate, so that the server does not log an aborted connection.
    fn drop(&mut self) {
        const TERMINATE: [u8; 5] = [b'X', 0, 0, 0, 4];
        if self.send.is_empty() && !self.version.is_empty() {
            let _ = self.stream.write(&TERMINATE);
        }
    }
}
