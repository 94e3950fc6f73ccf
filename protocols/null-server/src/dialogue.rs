//! The dialogue with one client, in whichever protocol the server speaks: bytes in, answers out, no I/O.

use crate::config::{Config, Protocol};
use crate::{mongodb, mysql, postgresql};

/// Answers are sent before more are made.
pub const ENOUGH: usize = 4 << 20;

/// What came of some input.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Taken {
    /// Bytes that are done with.
    pub bytes: usize,
    /// Whether a command was answered, and not only a login.
    pub commands: bool,
    /// Whether it stopped because the answers at hand are to be sent first.
    pub full: bool,
    /// Whether the connection is at its end.
    pub ended: bool,
}

/// What a server answers, made when it starts.
#[derive(Debug)]
pub enum Answers {
    /// In MySQL's protocol.
    MySql(Box<mysql::Answers>),
    /// In PostgreSQL's.
    PostgreSql(postgresql::Answers),
    /// In MongoDB's.
    MongoDb(Box<mongodb::Answers>),
}

impl Answers {
    /// The answers of a server that was told this.
    pub fn new(config: &Config) -> Self {
        match config.protocol {
            Protocol::MySql => Answers::MySql(Box::new(mysql::Answers::new(config))),
            Protocol::PostgreSql => Answers::PostgreSql(postgresql::Answers::new(config)),
            Protocol::MongoDb => Answers::MongoDb(Box::new(mongodb::Answers::new(config))),
        }
    }
}

/// The dialogue with one client.
#[derive(Debug)]
pub enum Dialogue {
    /// In MySQL's protocol.
    MySql(mysql::Dialogue),
    /// In PostgreSQL's.
    PostgreSql(postgresql::Dialogue),
    /// In MongoDB's.
    MongoDb(mongodb::Dialogue),
}

impl Dialogue {
    /// Starts, with the greeting if it is the server's to speak first.
    pub fn start(answers: &Answers, id: u32, out: &mut Vec<u8>) -> Self {
        match answers {
            Answers::MySql(_) => Dialogue::MySql(mysql::Dialogue::start(id, out)),
            Answers::PostgreSql(_) => Dialogue::PostgreSql(postgresql::Dialogue::new(id)),
            Answers::MongoDb(_) => Dialogue::MongoDb(mongodb::Dialogue),
        }
    }

    /// Takes what has arrived whole and appends the answers.
    #[inline]
    pub fn take(&mut self, input: &[u8], answers: &Answers, out: &mut Vec<u8>) -> Taken {
        match (self, answers) {
            (Dialogue::MySql(dialogue), Answers::MySql(answers)) => dialogue.take(input, answers, out),
            (Dialogue::PostgreSql(dialogue), Answers::PostgreSql(answers)) => dialogue.take(input, answers, out),
            (Dialogue::MongoDb(dialogue), Answers::MongoDb(answers)) => dialogue.take(input, answers, out),
            // A server speaks one protocol.
            _ => Taken { ended: true, ..Taken::default() },
        }
    }
}

/// What a client is told in the place of a greeting when there is no descriptor left for it.
pub fn refusal(protocol: Protocol) -> Vec<u8> {
    const WORDS: &str = "the null server has no descriptor left (ulimit -n)";
    match protocol {
        Protocol::MySql => mysql::refusal(WORDS),
        Protocol::PostgreSql => postgresql::refusal(WORDS),
        // Nothing is said there that was not asked for.
        Protocol::MongoDb => Vec::new(),
    }
}
