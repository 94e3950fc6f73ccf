//! Login, message by message, without I/O.

use postgres_protocol::authentication::md5_hash;
use postgres_protocol::authentication::sasl::{ChannelBinding, SCRAM_SHA_256, ScramSha256};
use rumba_transport::server_text;

use crate::PgError;
use crate::codec::message::refusal;
use crate::codec::{Malformed, Reader, frame};

/// The protocol's version 3.0.
const VERSION: u32 = 3 << 16;
/// The code for an encryption request, in place of a version.
const ENCRYPT: u32 = 80_877_103;
/// The name by which the server's views show this client, unless a parameter sets another.
const APPLICATION_NAME: (&str, &str) = ("application_name", "rumba");
/// The most rounds of SCRAM's hash. A hostile server could otherwise keep the client busy for hours. PostgreSQL's
/// default is 4096.
const MOST_ROUNDS: u32 = 1_000_000;

/// The encryption request; the server answers with one byte: `S` or `N`.
pub fn request_for_encryption() -> [u8; 8] {
    let mut message = [0, 0, 0, 8, 0, 0, 0, 0];
    message[4..].copy_from_slice(&ENCRYPT.to_be_bytes());
    message
}

/// The first message: the user, the database, and the session's parameters. It has no parameter that libpq never sends,
/// because poolers end a connection whose parameters they do not track.
pub fn first(user: &str, database: Option<&str>, parameters: &[(&'static str, String)]) -> Vec<u8> {
    let mut message = vec![0; 4];
    message.extend_from_slice(&VERSION.to_be_bytes());
    let mut put = |name: &str, value: &str| {
        frame::put_text(&mut message, name.as_bytes());
        frame::put_text(&mut message, value.as_bytes());
    };
    put("user", user);
    if let Some(database) = database {
        put("database", database);
    }
    let (name, value) = APPLICATION_NAME;
    if !parameters.iter().any(|(given, _)| *given == name) {
        put(name, value);
    }
    for (name, value) in parameters {
        put(name, value);
    }
    message.push(0);
    let length = message.len() as u32;
    message[..4].copy_from_slice(&length.to_be_bytes());
    message
}

/// The next step of the login.
#[derive(Debug, PartialEq, Eq)]
pub enum Step {
    /// Send this.
    Send(Vec<u8>),
    /// Wait for the next message.
    Wait,
    /// The login is complete and the session is ready.
    In,
}

/// A login in progress.
pub struct Login<'a> {
    user: &'a str,
    password: &'a str,
    scram: Option<ScramSha256>,
    /// The server's version.
    version: String,
    /// Whether the server has proven that it knows the password, or required no authentication.
    stage: Stage,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// No authentication method is agreed yet.
    Requested,
    /// An authentication is in progress, and the server's own proof is pending.
    Proving,
    /// The authentication is complete.
    Proven,
}

impl<'a> Login<'a> {
    /// A login after the first message was sent.
    pub fn new(user: &'a str, password: &'a str) -> Self {
        Self { user, password, scram: None, version: String::new(), stage: Stage::Requested }
    }

    /// The server's version, after the login.
    pub fn version(self) -> String {
        self.version
    }

    /// Handles the server's next message.
    ///
    /// # Errors
    /// The server refuses, or requires an authentication method that this client does not support.
    pub fn step(&mut self, kind: u8, body: &[u8]) -> Result<Step, PgError> {
        match kind {
            b'R' => self.authenticate(body),
            b'E' => Err(PgError::refused(&refusal(body)?)),
            b'S' => {
                let mut reader = Reader::new(body);
                if reader.text("ParameterStatus")? == b"server_version" {
                    self.version = server_text(reader.text("ParameterStatus")?);
                }
                Ok(Step::Wait)
            }
            b'Z' if self.stage == Stage::Proven => Ok(Step::In),
            // The key for cancel requests, which this client never sends; notices; an unsupported minor version.
            b'K' | b'N' | b'v' => Ok(Step::Wait),
            other => Err(PgError::Protocol(format!("{:?} while logging in", char::from(other)))),
        }
    }

    fn authenticate(&mut self, body: &[u8]) -> Result<Step, PgError> {
        const WHAT: &str = "authentication request";
        let mut reader = Reader::new(body);
        match (reader.u32(WHAT)?, self.stage) {
            // An impostor could skip the server's proof.
            (0, Stage::Proving) if self.scram.is_some() => {
                Err(PgError::Protocol("the server lets one in without having proven that it knows the password".into()))
            }
            (0, _) => {
                self.stage = Stage::Proven;
                Ok(Step::Wait)
            }
            (5, Stage::Requested) => {
                let proof = md5_hash(self.user.as_bytes(), self.password()?.as_bytes(), reader.array(WHAT)?);
                self.stage = Stage::Proving;
                Ok(Step::Send(password_message(&[proof.as_bytes(), &[0]])))
            }
            (3, Stage::Requested) => Err(PgError::Protocol(
                "the server wants the password in clear text, which is not sent: ask for scram-sha-256 in pg_hba.conf"
                    .into(),
            )),
            (10, Stage::Requested) => self.begin_scram(&mut reader),
            (11, Stage::Proving) => {
                let answer = {
                    let scram = self.scram.as_mut().ok_or(Malformed(WHAT))?;
                    let challenge = reader.rest();
                    refuse_endless_rounds(challenge)?;
                    scram.update(challenge).map_err(unproven)?;
                    scram.message().to_vec()
                };
                Ok(Step::Send(password_message(&[&answer])))
            }
            (12, Stage::Proving) => {
                self.scram.take().ok_or(Malformed(WHAT))?.finish(reader.rest()).map_err(unproven)?;
                Ok(Step::Wait)
            }
            (way, _) => Err(PgError::Protocol(format!(
                "the server wants a proof of kind {way}, which this client cannot give: \
                 ask for scram-sha-256, md5 or trust in pg_hba.conf"
            ))),
        }
    }

    fn begin_scram(&mut self, reader: &mut Reader<'_>) -> Result<Step, PgError> {
        const WHAT: &str = "SASL mechanisms";
        loop {
            match reader.text(WHAT)? {
                b"" => return Err(PgError::Protocol("the server has no SCRAM-SHA-256".into())),
                name if name == SCRAM_SHA_256.as_bytes() => break,
                _ => {}
            }
        }
        let scram = ScramSha256::new(self.password()?.as_bytes(), ChannelBinding::unsupported());
        let first = scram.message();
        let length = (first.len() as u32).to_be_bytes();
        let message = password_message(&[SCRAM_SHA_256.as_bytes(), &[0], &length, first]);
        self.scram = Some(scram);
        self.stage = Stage::Proving;
        Ok(Step::Send(message))
    }

    fn password(&self) -> Result<&'a str, PgError> {
        if self.password.is_empty() {
            return Err(PgError::Protocol(format!("the server wants a password of {}, and none is given", self.user)));
        }
        Ok(self.password)
    }
}

fn password_message(parts: &[&[u8]]) -> Vec<u8> {
    let mut message = Vec::new();
    let at = frame::start(&mut message, b'p');
    parts.iter().for_each(|part| message.extend_from_slice(part));
    frame::finish(&mut message, at);
    message
}

/// Refuses a SCRAM challenge, `r=…,s=…,i=4096`, with too many rounds.
fn refuse_endless_rounds(challenge: &[u8]) -> Result<(), PgError> {
    let rounds = challenge.split(|&byte| byte == b',').find_map(|field| field.strip_prefix(b"i="));
    let number = |digits: &[u8]| std::str::from_utf8(digits).ok()?.parse::<u32>().ok();
    if rounds.is_some_and(|digits| number(digits).is_none_or(|rounds| rounds > MOST_ROUNDS)) {
        return Err(PgError::Protocol(format!(
            "the server asks for more than {MOST_ROUNDS} rounds of SCRAM; lower its scram_iterations"
        )));
    }
    Ok(())
}

fn unproven(error: std::io::Error) -> PgError {
    PgError::Protocol(format!("proof of the password by SCRAM: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(way: u32, rest: &[u8]) -> Vec<u8> {
        [&way.to_be_bytes(), rest].concat()
    }

    #[test]
    fn endless_scram_rounds_are_refused() {
        assert!(refuse_endless_rounds(b"r=abc,s=QSXCR,i=4096").is_ok());
        for rounds in ["4294967295", "99999999999", "-1", ""] {
            let error = refuse_endless_rounds(format!("r=abc,s=QSXCR,i={rounds}").as_bytes()).unwrap_err();
            assert!(error.to_string().contains("rounds of SCRAM"), "{error}");
        }
    }

    #[test]
    fn a_server_that_skips_its_own_proof_is_not_believed() {
        let mut login = Login::new("me", "sesame");
        let Step::Send(first) = login.step(b'R', &request(10, b"SCRAM-SHA-256\0\0")).unwrap() else { panic!() };
        assert!(first[5..].starts_with(b"SCRAM-SHA-256\0"));
        let error = login.step(b'R', &request(0, b"")).unwrap_err();
        assert!(error.to_string().contains("without having proven"), "{error}");
        assert!(Login::new("me", "x").step(b'R', &request(10, b"SCRAM-SHA-1\0\0")).is_err());
        assert!(Login::new("me", "x").step(b'R', &request(7, b"")).is_err());
    }
}
