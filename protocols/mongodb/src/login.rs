//! Authentication, message by message, without I/O.

use md5::{Digest, Md5};
use rsasl::prelude::{Mechname, SASLClient, SASLConfig, Session, State};
use rumba_engine_api::bson::{Document, DocumentBuf, Value};

use crate::MongoError;

/// The permitted numbers of hash iterations: drivers require the minimum, and more than the maximum would only keep the
/// client busy.
const ITERATIONS: std::ops::RangeInclusive<u64> = 4096..=1_000_000;

/// The authentication mechanism.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mechanism {
    /// For servers since 4.0.
    Sha256,
    /// For older servers, and users created there.
    Sha1,
}

impl Mechanism {
    fn name(self) -> &'static str {
        match self {
            Mechanism::Sha256 => "SCRAM-SHA-256",
            Mechanism::Sha1 => "SCRAM-SHA-1",
        }
    }
}

/// The next step of the login.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// Send this command.
    Send(DocumentBuf),
    /// The login is complete.
    In,
}

/// A login in progress.
pub struct Login {
    mechanism: Mechanism,
    scram: Session,
    stage: Stage,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// The server's salt is pending.
    Requested,
    /// The server's own proof is pending.
    Proving,
    /// Both proofs are complete; the server may request one more exchange.
    Proven,
}

impl Login {
    /// A login of this user.
    ///
    /// # Errors
    /// The password is missing, or cannot be encoded.
    pub fn new(user: &str, password: &str, mechanism: Mechanism) -> Result<Self, MongoError> {
        if password.is_empty() {
            return Err(MongoError::Unable(format!("the user {user} has no password here; give it, or no user")));
        }
        let password = match mechanism {
            Mechanism::Sha256 => stringprep::saslprep(password)
                .map_err(|error| MongoError::Unable(format!("the password of {user}: {error}")))?
                .into_owned(),
            Mechanism::Sha1 => digest(user, password),
        };
        let unusable = |error: &dyn std::fmt::Display| MongoError::Unable(format!("the login of {user}: {error}"));
        let config = SASLConfig::with_credentials(None, user.to_owned(), password).map_err(|e| unusable(&e))?;
        let name = Mechname::parse(mechanism.name().as_bytes()).map_err(|error| unusable(&error))?;
        let scram = SASLClient::new(config).start_suggested_iter([name]).map_err(|error| unusable(&error))?;
        Ok(Self { mechanism, scram, stage: Stage::Requested })
    }

    /// The first command.
    ///
    /// # Errors
    /// The user's name cannot be encoded.
    pub fn first(&mut self) -> Result<DocumentBuf, MongoError> {
        let mut payload = Vec::new();
        self.scram.step(None, &mut payload).map_err(unproven)?;
        Ok(DocumentBuf::of(|of| {
            of.small("saslStart", 1);
            of.text("mechanism", self.mechanism.name());
            of.binary("payload", &payload);
            // This option saves an empty round trip on servers that know it.
            of.document("options", |of| of.bool("skipEmptyExchange", true));
        }))
    }

    /// Handles the server's next answer, which is not an error.
    ///
    /// # Errors
    /// The answer is invalid, or the server has not proven that it knows the password.
    pub fn step(&mut self, answer: Document<'_>) -> Result<Step, MongoError> {
        let (mut payload, mut conversation, mut done): (&[u8], _, _) = (&[], Value::Null, false);
        for element in answer.iter() {
            match element? {
                (b"payload", value) => payload = value.bytes().unwrap_or_default(),
                (b"conversationId", value) => conversation = value,
                (b"done", value) => done = value.int() == Some(1),
                _ => {}
            }
        }
        let mut proof = Vec::new();
        match self.stage {
            Stage::Requested => {
                check_attributes(payload)?;
                check_iterations(payload)?;
                self.scram.step(Some(payload), &mut proof).map_err(unproven)?;
                self.stage = Stage::Proving;
            }
            Stage::Proving => {
                check_attributes(payload)?;
                if self.scram.step(Some(payload), &mut proof).map_err(unproven)? == State::Running {
                    return Err(unproven("the server has not proven that it knows the password"));
                }
                self.stage = Stage::Proven;
            }
            Stage::Proven if done => return Ok(Step::In),
            Stage::Proven => return Err(unproven("the server does not end the login")),
        }
        match (self.stage, done) {
            (Stage::Proven, true) => Ok(Step::In),
            // An impostor could skip the server's proof.
            (_, true) => {
                Err(unproven("the server lets one in without having proven that it knows the password itself"))
            }
            _ => Ok(Step::Send(DocumentBuf::of(|of| {
                of.small("saslContinue", 1);
                of.value("conversationId", conversation);
                of.binary("payload", &proof);
            }))),
        }
    }
}

/// The password's form in SCRAM-SHA-1: MD5 of user, `mongo` and password, in hexadecimal digits.
fn digest(user: &str, password: &str) -> String {
    Md5::digest(format!("{user}:mongo:{password}")).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// RFC 5802, section 7: `attr-val = ALPHA "=" value`, between commas. The library assumes this, and reads beyond the
/// end of a shorter part.
fn check_attributes(payload: &[u8]) -> Result<(), MongoError> {
    let whole = |part: &[u8]| matches!(part, [letter, b'=', ..] if letter.is_ascii_alphabetic());
    match payload.split(|&byte| byte == b',').all(whole) {
        true => Ok(()),
        false => Err(unproven("invalid attribute in the server's SCRAM message")),
    }
}

fn check_iterations(payload: &[u8]) -> Result<(), MongoError> {
    let requested = payload.split(|&byte| byte == b',').find_map(|part| part.strip_prefix(b"i="));
    let requested = requested.and_then(|digits| std::str::from_utf8(digits).ok()?.parse().ok());
    match requested {
        Some(iterations) if ITERATIONS.contains(&iterations) => Ok(()),
        Some(iterations) => Err(unproven(format!("{iterations} iterations are not between 4096 and 1000000"))),
        None => Err(unproven("the server does not say how often the password is hashed")),
    }
}

fn unproven(why: impl std::fmt::Display) -> MongoError {
    MongoError::Protocol(format!("proof of the password by SCRAM: {why}"))
}

#[cfg(test)]
mod tests;
