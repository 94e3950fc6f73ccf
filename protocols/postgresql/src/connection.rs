//! An authenticated connection with blocking calls, for connecting, preparing and administration. The load path does
//! not use the blocking calls.

use std::ops::Range;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Instant;

use rumba_transport::{Channel, Incoming, TransportError, timed, tls_client};

use crate::codec::frame::{self, Framed, HEADER};
use crate::codec::message::Transaction;
use crate::startup::{self, Login, Step};
use crate::{Address, PgError, Target};

/// The number of connections that this process has opened.
static OPENED: AtomicU64 = AtomicU64::new(0);

/// An authenticated connection.
pub struct Connection {
    pub(crate) channel: Channel,
    /// The version that the server reports.
    pub(crate) version: String,
    /// The transaction state that the server last reported.
    pub(crate) transaction: Transaction,
    /// The begin of its prepared statements' names. It is unique, because a pooler may execute a statement on a server
    /// connection that has another client's statements. The server then reports an unknown name and does not execute
    /// the wrong statement.
    pub(crate) names: String,
}

/// A received message: its type, and the position of its body.
pub(crate) struct Message {
    pub(crate) kind: u8,
    pub(crate) body: Range<usize>,
}

impl Connection {
    /// Connects and logs in with these startup parameters, before `deadline`.
    pub(crate) fn enter(
        target: &Target,
        parameters: &[(&'static str, String)],
        deadline: Instant,
    ) -> Result<Self, PgError> {
        let is_tls = |error: &PgError| matches!(error, PgError::Transport(TransportError::Tls(_)));
        target.enter(is_tls, |target| Self::enter_once(target, parameters, deadline))
    }

    fn enter_once(target: &Target, parameters: &[(&'static str, String)], deadline: Instant) -> Result<Self, PgError> {
        let (began, address) = (Instant::now(), &target.address);
        let channel = Channel::connect(address, HEADER, deadline);
        let mut connection = Self {
            channel: channel.map_err(|error| match error {
                TransportError::Io { what, cause } => TransportError::io(what, timed(cause, began.elapsed())),
                other => other,
            })?,
            version: String::new(),
            transaction: Transaction::None,
            names: format!("r{:x}_{:x}_", std::process::id(), OPENED.fetch_add(1, Relaxed)),
        };
        let encrypted = connection.encrypt(target, deadline);
        encrypted.map_err(|error| error.awaiting("the answer to the TLS request", address, began.elapsed()))?;
        let entered = connection.log_in(target, parameters, Some(deadline));
        entered.map_err(|error| error.awaiting("the answer to the login", address, began.elapsed()))?;
        Ok(connection)
    }

    fn encrypt(&mut self, target: &Target, deadline: Instant) -> Result<(), PgError> {
        if let (Address::Socket(path), true) = (&target.address, target.tls.is_required()) {
            let words = format!("PostgreSQL does not encrypt a socket ({}); turn TLS off there", path.display());
            return Err(TransportError::Tls(words).into());
        }
        let Some(tls) = tls_client(&target.tls, &target.address)? else { return Ok(()) };
        self.channel.send.extend_from_slice(&startup::request_for_encryption());
        self.write(Some(deadline))?;
        while !self.channel.incoming.has_some() {
            self.channel.fill(Some(deadline))?;
        }
        let Channel { stream, incoming, .. } = &mut self.channel;
        match incoming.rest() {
            b"S" => {
                incoming.take(1);
                stream.encrypt(tls);
                Ok(())
            }
            // Unencrypted bytes after this answer cannot be trusted, because an attacker may have inserted them.
            [b'S', ..] => Err(PgError::Protocol("bytes that are not encrypted follow the answer about TLS".into())),
            b"N" if !target.tls.is_required() => {
                incoming.take(1);
                Ok(())
            }
            [b'N', ..] => Err(TransportError::Tls(
                "the server does not offer TLS; give it a certificate (ssl = on), or turn TLS off".into(),
            )
            .into()),
            _ => Err(PgError::Protocol("no answer about TLS; is this a PostgreSQL server?".into())),
        }
    }

    fn log_in(
        &mut self,
        target: &Target,
        parameters: &[(&'static str, String)],
        deadline: Option<Instant>,
    ) -> Result<(), PgError> {
        self.channel.send.extend_from_slice(&startup::first(&target.user, target.database.as_deref(), parameters));
        let mut login = Login::new(&target.user, target.password.reveal());
        self.write(deadline)?;
        loop {
            let Message { kind, body } = self.channel.read(deadline, take)?;
            match login.step(kind, self.channel.incoming.at(body))? {
                Step::Send(message) => {
                    self.channel.send.extend_from_slice(&message);
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
        Ok(self.channel.write(deadline)?)
    }

    /// The next message of an answer that has failed with `failure`, if it has. The server's error before it closed the
    /// connection is more specific than the loss of the connection.
    pub(crate) fn read_after(
        &mut self,
        failure: &mut Option<PgError>,
        deadline: Option<Instant>,
    ) -> Result<Message, PgError> {
        self.channel.read(deadline, take).map_err(|error| failure.take().unwrap_or(error))
    }

    /// The next message, if it is complete.
    #[inline]
    pub(crate) fn message(&mut self) -> Result<Option<Message>, PgError> {
        take(&mut self.channel.incoming)
    }
}

/// Takes the next message, if it is complete.
#[inline]
fn take(incoming: &mut Incoming) -> Result<Option<Message>, PgError> {
    Ok(match frame::framed(incoming.rest())? {
        Framed::Whole { kind, length } => {
            let message = incoming.take(HEADER + length);
            Some(Message { kind, body: message.start + HEADER..message.end })
        }
        Framed::Short(needed) => {
            incoming.need(needed);
            None
        }
    })
}

impl Drop for Connection {
    /// Sends Terminate, so that the server does not log an aborted connection.
    fn drop(&mut self) {
        const TERMINATE: [u8; 5] = [b'X', 0, 0, 0, 4];
        if self.channel.send.is_empty() && !self.version.is_empty() {
            let _ = self.channel.stream.write(&TERMINATE);
        }
    }
}
