//! An authenticated connection with blocking calls, for connecting and administration. The load path does not use the
//! blocking calls.

use std::io;
use std::ops::Range;
use std::time::Instant;

use rumba_engine_api::bson::{Document, Writer};
use rumba_transport::{Channel, Incoming, TransportError, tls_client};

use crate::codec::frame::{self, Framed, HEADER};
use crate::codec::hello::{self, Hello};
use crate::codec::reply::Reply;
use crate::login::{Login, Mechanism, Step};
use crate::{Address, MongoError, Target, Tls};

/// The default authentication database.
pub(crate) const ADMIN: &str = "admin";

pub(crate) struct Connection {
    pub(crate) channel: Channel,
    /// The number of the last request.
    pub(crate) requested: u32,
    /// The server's greeting.
    pub(crate) hello: Hello,
}

impl Connection {
    /// Connects and logs in, before `deadline`.
    pub(crate) fn open(target: &Target, deadline: Instant) -> Result<Self, MongoError> {
        let mut connection = Self {
            channel: Channel::connect(&target.address, HEADER, deadline)?,
            requested: 0,
            hello: Hello::default(),
        };
        connection.encrypt(target)?;
        connection.enter(target, Some(deadline))?;
        // Each message has the protocol's limit.
        connection.channel.allow(usize::MAX);
        Ok(connection)
    }

    /// Reconnects to the same server. If the server accepted writes before, it must accept them again. A member of a
    /// replica set accepts connections when it has started, but is elected for writes later.
    pub(crate) fn again(&self, target: &Target, deadline: Instant) -> Result<Self, MongoError> {
        let connection = Self::open(target, deadline)?;
        if self.hello.is_writable && !connection.hello.is_writable {
            let cause = io::Error::other("the server takes no writes yet, which it did before");
            return Err(TransportError::io("reconnecting", cause).into());
        }
        Ok(connection)
    }

    /// Encryption is not negotiated: both sides encrypt from the first byte, or neither does.
    fn encrypt(&mut self, target: &Target) -> Result<(), MongoError> {
        let refused = |words: &str| MongoError::from(TransportError::Tls(words.to_owned()));
        let how = match &target.tls {
            Tls::Identified(own) => &own.how,
            other => other,
        };
        match (&target.address, how) {
            (_, Tls::Preferred) => {
                return Err(refused(
                    "a MongoDB server does not report whether it encrypts; require TLS, verify it, or turn it off",
                ));
            }
            (Address::Socket(_), _) if how.is_required() => {
                return Err(refused("MongoDB does not encrypt a socket; turn TLS off there"));
            }
            _ => {}
        }
        if let Some(tls) = tls_client(&target.tls, &target.address)? {
            self.channel.stream.encrypt(tls);
        }
        Ok(())
    }

    fn enter(&mut self, target: &Target, deadline: Option<Instant>) -> Result<(), MongoError> {
        let source = target.database.as_deref().unwrap_or(ADMIN);
        let user = Some(target.user.as_str()).filter(|user| !user.is_empty());
        let known_as = user.map(|user| format!("{source}.{user}"));
        let said = match self.hello("hello", known_as.as_deref(), deadline) {
            // Servers before 4.4 only know the command's old name.
            Err(error) if error.is_unknown_command() => self.hello("isMaster", known_as.as_deref(), deadline),
            said => said,
        };
        self.hello = said?;
        let Some(user) = user else { return Ok(()) };
        let mechanism = if self.hello.sha256 == Some(true) { Mechanism::Sha256 } else { Mechanism::Sha1 };
        let mut login = Login::new(user, target.password.reveal(), mechanism)?;
        let mut next = Step::Send(login.first()?);
        while let Step::Send(command) = next {
            let answer = self.fetch(source, |of| of.values_of(command.get()), deadline)?;
            next = login.step(frame::answer(self.channel.incoming.at(answer))?.1)?;
        }
        Ok(())
    }

    fn hello(&mut self, command: &str, user: Option<&str>, deadline: Option<Instant>) -> Result<Hello, MongoError> {
        let first = hello::first(command, user);
        let answer = self.fetch(ADMIN, |of| of.values_of(first.get()), deadline)?;
        Ok(Hello::of(frame::answer(self.channel.incoming.at(answer))?.1)?)
    }

    /// Sends a command to a database, blocking, and returns the position of the answer. An answer with an error is an
    /// error.
    pub(crate) fn fetch(
        &mut self,
        database: &str,
        command: impl FnOnce(&mut Writer<'_>),
        deadline: Option<Instant>,
    ) -> Result<Range<usize>, MongoError> {
        let at = self.start(|of| {
            command(of);
            of.text("$db", database);
        });
        frame::finish(&mut self.channel.send, at);
        self.write(deadline)?;
        let place = self.read(deadline)?;
        let document = self.answer(place.clone())?;
        match Reply::of(document)?.refusal {
            Some(refusal) => Err(MongoError::refused(&refusal)),
            None => Ok(place),
        }
    }

    /// Begins the next request.
    #[inline]
    pub(crate) fn start(&mut self, command: impl FnOnce(&mut Writer<'_>)) -> usize {
        self.requested = self.requested.wrapping_add(1);
        frame::start(&mut self.channel.send, self.requested, command)
    }

    /// The document of a message that answers the last request.
    #[inline]
    pub(crate) fn answer(&self, place: Range<usize>) -> Result<Document<'_>, MongoError> {
        let (answers, document) = frame::answer(self.channel.incoming.at(place))?;
        if answers != self.requested {
            return Err(MongoError::Protocol(format!("an answer to question {answers}, not to {}", self.requested)));
        }
        Ok(document)
    }

    /// Sends everything queued, and blocks until it is sent.
    pub(crate) fn write(&mut self, deadline: Option<Instant>) -> Result<(), MongoError> {
        Ok(self.channel.write(deadline)?)
    }

    /// The next message; blocks until it is complete.
    pub(crate) fn read(&mut self, deadline: Option<Instant>) -> Result<Range<usize>, MongoError> {
        self.channel.incoming.answered();
        self.channel.read(deadline, take)
    }

    /// The next message, if it is complete.
    #[inline]
    pub(crate) fn message(&mut self) -> Result<Option<Range<usize>>, MongoError> {
        take(&mut self.channel.incoming)
    }
}

/// Takes the next message, if it is complete.
#[inline]
fn take(incoming: &mut Incoming) -> Result<Option<Range<usize>>, MongoError> {
    Ok(match frame::framed(incoming.rest())? {
        Framed::Whole(length) => Some(incoming.take(length)),
        Framed::Short(needed) => {
            incoming.need(needed);
            None
        }
    })
}
