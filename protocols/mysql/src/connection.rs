//! An authenticated connection with blocking calls, for connecting, preparing and administration. The load path does
//! not use the blocking calls.

use std::io;
use std::ops::Range;
use std::time::Instant;

use mysql_common::constants::{CapabilityFlags, MariadbCapabilities};
use rumba_transport::{Ready, Stream, TransportError, tls_client};

use crate::codec::answer::Wording;
use crate::codec::frame;
use crate::handshake::{self, Agreed, Caller, Login, Step};
use crate::receive::Receive;
use crate::{Address, Target, WireError};

/// An authenticated connection.
pub(crate) struct Connection {
    pub(crate) stream: Stream,
    pub(crate) receive: Receive,
    /// The send buffer; its first [`Connection::sent`] bytes are sent.
    pub(crate) send: Vec<u8>,
    pub(crate) sent: usize,
    /// The format of the server's answers.
    pub(crate) wording: Wording,
    /// Whether the server supports COM_STMT_BULK_EXECUTE.
    pub(crate) bulk: bool,
    /// The version in the server's greeting.
    pub(crate) version: String,
    /// The session's last status flags.
    pub(crate) status: u16,
}

impl Connection {
    /// Connects and logs in, before `deadline`.
    pub(crate) fn open(target: &Target, collation: u8, deadline: Instant) -> Result<Self, WireError> {
        let mut connection = Self {
            stream: Stream::connect(&target.address, deadline)?,
            receive: Receive::new(),
            send: Vec::new(),
            sent: 0,
            wording: Wording::default(),
            bulk: false,
            version: String::new(),
            status: 0,
        };
        connection.enter(target, collation, Some(deadline))?;
        Ok(connection)
    }

    fn enter(&mut self, target: &Target, collation: u8, deadline: Option<Instant>) -> Result<(), WireError> {
        let packet = self.read(deadline)?;
        let greeting = handshake::greeting(self.receive.at(packet))?;
        let tls = tls_client(&target.tls, &target.address)?;
        let agreed = Agreed::with(&greeting, tls.is_some(), target.database.is_some());
        let is_offered = agreed.capabilities.contains(CapabilityFlags::CLIENT_SSL);
        if let Some(tls) = tls.filter(|_| is_offered || target.tls.is_required()) {
            if !is_offered {
                return Err(WireError::Tls(format!(
                    "server {} does not offer TLS; give it a certificate (ssl_cert, ssl_key), or turn TLS off",
                    greeting.version,
                )));
            }
            self.put(&agreed.opening(collation));
            self.write(deadline)?;
            self.stream.encrypt(tls);
        }
        let caller = Caller {
            user: &target.user,
            password: target.password.reveal(),
            database: target.database.as_deref(),
            collation,
            tls: self.stream.is_encrypted(),
            local: matches!(target.address, Address::Socket(_)),
        };
        let (mut login, first) = Login::start(caller, &greeting, agreed)?;
        self.put(&first);
        loop {
            self.write(deadline)?;
            let packet = self.read(deadline)?;
            match login.step(self.receive.at(packet))? {
                Step::Send(bytes) => self.put(&bytes),
                Step::Wait => {}
                Step::In { status } => {
                    self.status = status;
                    break;
                }
            }
        }
        self.wording = agreed.wording();
        self.bulk = agreed.mariadb.contains(MariadbCapabilities::MARIADB_CLIENT_STMT_BULK_OPERATIONS);
        self.version = greeting.version;
        Ok(())
    }

    /// Queues a packet that answers the last received one.
    pub(crate) fn put(&mut self, payload: &[u8]) {
        let at = frame::start(&mut self.send);
        self.send.extend_from_slice(payload);
        self.receive.sequence = frame::finish(&mut self.send, at, self.receive.sequence);
    }

    /// Queues a command with its argument.
    pub(crate) fn put_command(&mut self, command: u8, argument: &[u8]) {
        let at = frame::start(&mut self.send);
        self.send.push(command);
        self.send.extend_from_slice(argument);
        frame::finish(&mut self.send, at, 0);
    }

    /// Sends everything queued, and blocks until it is sent.
    pub(crate) fn write(&mut self, deadline: Option<Instant>) -> Result<(), WireError> {
        let lost = |cause| WireError::io("sending to the server", cause);
        while self.sent < self.send.len() || self.stream.holds_back() {
            match self.stream.write(&self.send[self.sent..]) {
                Ok(sent) => self.sent += sent,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.stream.block(Ready::ToWrite, deadline).map_err(lost)?;
                }
                // The server's last message may still be readable; if not, the read reports the error.
                Err(error) if error.kind() == io::ErrorKind::BrokenPipe => break,
                Err(error) => return Err(lost(error)),
            }
        }
        self.send.clear();
        self.sent = 0;
        Ok(())
    }

    /// The next packet; blocks until it is complete.
    pub(crate) fn read(&mut self, deadline: Option<Instant>) -> Result<Range<usize>, WireError> {
        loop {
            if let Some(packet) = self.receive.packet() {
                return Ok(packet);
            }
            match self.receive.fill(&mut self.stream) {
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.stream
                        .block(Ready::ToRead, deadline)
                        .map_err(|cause| WireError::io("waiting for the server", cause))?
                }
                Err(error) => return Err(TransportError::receiving(error).into()),
            }
        }
    }
}

impl Drop for Connection {
    /// Sends COM_QUIT, so that the server does not count an aborted connection.
    fn drop(&mut self) {
        const QUIT: [u8; 5] = [1, 0, 0, 0, 1];
        if self.send.is_empty() && !self.version.is_empty() {
            let _ = self.stream.write(&QUIT);
        }
    }
}
