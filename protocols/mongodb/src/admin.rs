//! A connection for administration, which may block and allocate memory.

use std::time::{Duration, Instant};

use rumba_engine_api::bson::{Document, DocumentBuf};
use rumba_transport::{CONNECT, insist, server_text};

use crate::codec::hello::Hello;
use crate::codec::reply::Reply;
use crate::connection::{ADMIN, Connection};
use crate::{MongoError, Target};

/// A connection for administration.
pub struct Admin {
    connection: Connection,
    target: Target,
    timeout: Option<Duration>,
}

impl Admin {
    /// Connects; `timeout` limits connecting and each answer.
    pub fn connect(target: &Target, timeout: Duration) -> Result<Self, MongoError> {
        let connection = Connection::open(target, Instant::now() + timeout)?;
        Ok(Self { connection, target: target.clone(), timeout: Some(timeout) })
    }

    /// Reconnects after the connection was lost, with the same retries as a session that may reconnect.
    pub fn reconnect(&mut self) -> Result<(), MongoError> {
        let connect = || self.connection.again(&self.target, Instant::now() + CONNECT);
        self.connection = insist(connect, MongoError::is_lost)?;
        Ok(())
    }

    /// Runs a command in a database, and returns its answer.
    ///
    /// # Errors
    /// See [`MongoError`]; also if a document of the command was refused. After any error except [`MongoError::Server`]
    /// and [`MongoError::Unable`] the connection is unusable.
    pub fn run(&mut self, database: &str, command: Document<'_>) -> Result<DocumentBuf, MongoError> {
        let deadline = self.timeout.map(|timeout| Instant::now() + timeout);
        let place = self.connection.fetch(database, |of| of.values_of(command), deadline)?;
        Ok(self.connection.answer(place)?.into())
    }

    /// Runs a command that answers with a cursor (`find`, `aggregate`, `listCollections`, `listIndexes`), and returns
    /// all of its documents.
    ///
    /// # Errors
    /// See [`Admin::run`]; also if the answer has no cursor.
    pub fn all(&mut self, database: &str, command: Document<'_>) -> Result<Vec<DocumentBuf>, MongoError> {
        let mut documents = Vec::new();
        let mut answer = self.run(database, command)?;
        loop {
            let cursor = Reply::of(answer.get())?.cursor;
            let cursor = cursor.ok_or_else(|| MongoError::Protocol("an answer without a cursor".into()))?;
            for document in cursor.documents() {
                documents.push(document?.into());
            }
            if cursor.id == 0 {
                return Ok(documents);
            }
            let (id, collection) = (cursor.id, namespace(answer.get(), database)?);
            let more = DocumentBuf::of(|of| {
                of.int("getMore", id);
                of.text("collection", &collection);
            });
            answer = self.run(database, more.get())?;
        }
    }

    /// Changes the timeout of an answer; `None` waits forever.
    pub fn set_timeout(&mut self, timeout: Option<Duration>) {
        self.timeout = timeout;
    }

    /// The server's greeting on this connection.
    pub fn hello(&self) -> &Hello {
        &self.connection.hello
    }

    /// The version that the server reports: `7.0.5`.
    pub fn server_version(&mut self) -> Result<String, MongoError> {
        let answer = self.run(ADMIN, DocumentBuf::of(|of| of.small("buildInfo", 1)).get())?;
        Ok(server_text(answer.get().blob("version")?))
    }
}

/// The collection that a cursor reads, without the database's prefix: `db.collection`.
fn namespace(answer: Document<'_>, database: &str) -> Result<String, MongoError> {
    let reported = match answer.get("cursor")? {
        Some(rumba_engine_api::bson::Value::Document(cursor)) => cursor.blob("ns")?,
        _ => b"",
    };
    let reported = String::from_utf8_lossy(reported);
    let collection = reported.strip_prefix(database).and_then(|rest| rest.strip_prefix('.'));
    collection.map(str::to_owned).ok_or_else(|| MongoError::Protocol(format!("a cursor over {reported:?}")))
}
