//! The dialogue with one client in the server's protocol, from bytes to answers, without I/O.

use crate::config::{Config, Protocol};
use crate::taken::Taken;
use crate::{mongodb, mysql, postgresql};

impl Protocol {
    /// The version that the server reports.
    pub fn version(self) -> &'static str {
        match self {
            Protocol::MySql => mysql::VERSION,
            Protocol::PostgreSql => postgresql::VERSION,
            Protocol::MongoDb => mongodb::VERSION,
        }
    }
}

/// A server's answers, made at its start.
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
    /// The answers of a server with this configuration.
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
    /// Starts a dialogue, with a greeting if the server speaks first.
    pub fn start(answers: &Answers, id: u32, out: &mut Vec<u8>) -> Self {
        match answers {
            Answers::MySql(_) => Dialogue::MySql(mysql::Dialogue::start(id, out)),
            Answers::PostgreSql(_) => Dialogue::PostgreSql(postgresql::Dialogue::new(id)),
            Answers::MongoDb(_) => Dialogue::MongoDb(mongodb::Dialogue),
        }
    }

    /// Handles complete messages and appends the answers.
    #[inline]
    pub fn take(&mut self, input: &[u8], answers: &Answers, out: &mut Vec<u8>) -> Taken {
        match (self, answers) {
            (Dialogue::MySql(dialogue), Answers::MySql(answers)) => dialogue.take(input, answers, out),
            (Dialogue::PostgreSql(dialogue), Answers::PostgreSql(answers)) => dialogue.take(input, answers, out),
            (Dialogue::MongoDb(dialogue), Answers::MongoDb(answers)) => dialogue.take(input, answers, out),
            // A server has only one protocol.
            _ => Taken { ended: true, ..Taken::default() },
        }
    }
}

/// The message to a client in place of a greeting if no descriptor is left for it.
pub fn refusal(protocol: Protocol) -> Vec<u8> {
    const WORDS: &str = "the null server has no descriptor left (ulimit -n)";
    match protocol {
        Protocol::MySql => mysql::refusal(WORDS),
        Protocol::PostgreSql => postgresql::refusal(WORDS),
        // This protocol permits no message without a request.
        Protocol::MongoDb => Vec::new(),
    }
}
