//! An authenticated connection with blocking calls, for connecting, preparing and administration. The load path does
//! not use the blocking calls.

use std::ops::Range;
use std::time::Instant;

use mysql_common::constants::{CapabilityFlags, MariadbCapabilities};
use rumba_transport::{Channel, Incoming, tls_client};

use crate::codec::answer::Capabilities;
use crate::codec::frame::{self, Framed, HEADER};
use crate::handshake::{self, Agreed, Caller, Greeting, Login, Step};
use crate::{Address, Target, WireError};

/// utf8mb4_general_ci, which every server since MySQL 5.5.3 knows. Texts, names and passwords are UTF-8 in this program
/// and in scripts. A session whose tables have another character set names it in its setup.
const COLLATION: u8 = 45;
/// The command that deallocates a prepared statement, and has no answer.
pub(crate) const STATEMENT_CLOSE: u8 = 0x19;
/// The command that ends a session, in its frame.
const QUIT: [u8; 5] = [1, 0, 0, 0, 1];

/// An authenticated connection.
pub struct Connection {
    pub(crate) channel: Channel,
    /// The sequence number for the answer to the packet last taken.
    sequence: u8,
    /// The format of the server's answers.
    pub(crate) wording: Capabilities,
    /// Whether the server supports COM_STMT_BULK_EXECUTE.
    pub(crate) bulk: bool,
    /// The version in the server's greeting.
    pub(crate) version: String,
    /// The session's last status flags.
    pub(crate) status: u16,
}

impl Connection {
    /// Connects and logs in, before `deadline`.
    pub(crate) fn enter(target: &Target, deadline: Instant) -> Result<Self, WireError> {
        target.enter(|error| matches!(error, WireError::Tls(_)), |target| Self::enter_once(target, deadline))
    }

    fn enter_once(target: &Target, deadline: Instant) -> Result<Self, WireError> {
        let began = Instant::now();
        let address = &target.address;
        let channel = Channel::connect(address, HEADER, deadline);
        let channel = channel.map_err(|error| WireError::unreachable(address, error, began.elapsed()))?;
        let mut connection = Self {
            channel,
            sequence: 0,
            wording: Capabilities::default(),
            bulk: false,
            version: String::new(),
            status: 0,
        };
        let greeting = connection.greeting(deadline);
        let greeting = greeting.map_err(|error| error.awaiting("the greeting", address, began.elapsed()))?;
        let entered = connection.log_in(target, greeting, Some(deadline));
        entered.map_err(|error| error.awaiting("the answer to the login", address, began.elapsed()))?;
        Ok(connection)
    }

    fn greeting(&mut self, deadline: Instant) -> Result<Greeting, WireError> {
        let packet = self.read(Some(deadline))?;
        handshake::greeting(self.at(packet))
    }

    fn log_in(&mut self, target: &Target, greeting: Greeting, deadline: Option<Instant>) -> Result<(), WireError> {
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
            self.put(&agreed.opening(COLLATION));
            self.write(deadline)?;
            self.channel.stream.encrypt(tls);
        }
        let caller = Caller {
            user: &target.user,
            password: target.password.reveal(),
            database: target.database.as_deref(),
            collation: COLLATION,
            tls: self.channel.stream.is_encrypted(),
            local: matches!(target.address, Address::Socket(_)),
        };
        let (mut login, first) = Login::start(caller, &greeting, agreed)?;
        self.put(&first);
        loop {
            self.write(deadline)?;
            let packet = self.read(deadline)?;
            match login.step(self.at(packet))? {
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
        let out = &mut self.channel.send;
        let at = frame::start(out);
        out.extend_from_slice(payload);
        self.sequence = frame::finish(out, at, self.sequence);
    }

    /// Queues a command with its argument, and limits its answer.
    pub(crate) fn put_command(&mut self, command: u8, argument: &[u8]) {
        self.channel.allow(Channel::ANSWER);
        let out = &mut self.channel.send;
        let at = frame::start(out);
        out.push(command);
        out.extend_from_slice(argument);
        frame::finish(out, at, 0);
    }

    /// Sends everything queued, and blocks until it is sent.
    pub(crate) fn write(&mut self, deadline: Option<Instant>) -> Result<(), WireError> {
        Ok(self.channel.write(deadline)?)
    }

    /// The next packet; blocks until it is complete.
    pub(crate) fn read(&mut self, deadline: Option<Instant>) -> Result<Range<usize>, WireError> {
        let sequence = &mut self.sequence;
        self.channel.read(deadline, |incoming| Ok(take(incoming, sequence)))
    }

    /// The next packet, if it is complete; [`Connection::at`] shows it until the next receive.
    #[inline]
    pub(crate) fn packet(&mut self) -> Option<Range<usize>> {
        take(&mut self.channel.incoming, &mut self.sequence)
    }

    /// The bytes of a packet.
    #[inline]
    pub(crate) fn at(&self, packet: Range<usize>) -> &[u8] {
        self.channel.incoming.at(packet)
    }

    /// A packet with its frame; empty if it came in several frames.
    pub(crate) fn framed(&self, packet: Range<usize>) -> &[u8] {
        if packet.len() < frame::FULL { self.at(packet.start - HEADER..packet.end) } else { &[] }
    }
}

/// Takes the next packet, if it is complete, and notes the sequence number for the answer to it.
#[inline]
fn take(incoming: &mut Incoming, sequence: &mut u8) -> Option<Range<usize>> {
    match frame::framed(incoming.rest()) {
        Framed::Whole { length, sequence: next } => {
            let frame = incoming.take(HEADER + length);
            *sequence = next;
            Some(frame.start + HEADER..frame.end)
        }
        Framed::Split { span, sequence: next } => {
            let frames = incoming.take(span);
            *sequence = next;
            let at = frames.start + HEADER;
            let length = frame::join(incoming.at_mut(frames));
            Some(at..at + length)
        }
        Framed::Short(needed) => {
            incoming.need(needed);
            None
        }
    }
}

impl Drop for Connection {
    /// Takes leave, so that the server does not count an aborted connection.
    fn drop(&mut self) {
        // Without a version, the login is not complete.
        if self.version.is_empty() {
            return;
        }
        if let Some(bytes) = leave(&self.channel.send, self.channel.sent()) {
            // The socket is closed next, whether or not it has space for these few bytes.
            let _ = self.channel.stream.write(&bytes);
        }
    }
}

/// The last bytes of a connection whose send buffer is sent up to `sent`: the unsent deallocations, and COM_QUIT.
/// Unsent statements are left out, because their answers are not awaited. `None` if a command is sent in part, because
/// the server would take these bytes for its rest.
fn leave(send: &[u8], sent: usize) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(QUIT.len());
    let mut rest = send;
    loop {
        let start = send.len() - rest.len();
        let command = frame::next(&mut rest);
        let end = send.len() - rest.len();
        match command {
            Some(_) if end <= sent => {}
            Some(command) if start >= sent => {
                if command.first() == Some(&STATEMENT_CLOSE) {
                    out.extend_from_slice(&send[start..end]);
                }
            }
            // The end of the buffer, or a command of several frames, whose length is not needed.
            None if start >= sent => break,
            Some(_) | None => return None,
        }
    }
    out.extend_from_slice(&QUIT);
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Most scripts close their statements last. The deallocations waited in the send buffer, so neither they nor
    /// COM_QUIT were sent, and the server logged each client as an aborted connection.
    #[test]
    fn a_connection_takes_leave_unless_a_command_is_cut() {
        let framed = |payload: &[u8]| {
            let mut out = Vec::new();
            let at = frame::start(&mut out);
            out.extend_from_slice(payload);
            frame::finish(&mut out, at, 0);
            out
        };
        let close = framed(&[STATEMENT_CLOSE, 7, 0, 0, 0]);
        let commit = framed(b"\x03COMMIT");
        assert_eq!(leave(&[], 0), Some(QUIT.to_vec()));
        assert_eq!(leave(&close, 0), Some([&close[..], &QUIT].concat()));
        assert_eq!(leave(&close, close.len()), Some(QUIT.to_vec()), "it is sent");
        let both = [&close[..], &commit].concat();
        assert_eq!(leave(&both, 0), Some([&close[..], &QUIT].concat()), "a cancelled request is not sent");
        assert_eq!(leave(&both, close.len()), Some(QUIT.to_vec()));
        for cut in [1, close.len() - 1, close.len() + 1, both.len() - 1] {
            assert_eq!(leave(&both, cut), None, "{cut} bytes are sent");
        }
        let long = framed(&vec![3; frame::FULL]);
        assert_eq!(leave(&long, 0), Some(QUIT.to_vec()));
        assert_eq!(leave(&long, 5), None);
    }
}
