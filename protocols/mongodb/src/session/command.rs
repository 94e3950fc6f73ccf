//! Encodes commands.

use std::ops::Range;

use rumba_engine_api::bson::{Document, Writer};
use rumba_engine_api::document::{Command, DocumentSession, Find, Update};
use rumba_engine_api::error::Result;
use rumba_transport::call_failed;
use rustix::rand::{GetRandomFlags, getrandom};

use super::{MongoSession, Pending, Transaction};
use crate::codec::frame;
use crate::connection::ADMIN;

/// How many kinds of single-document finds a session caches.
const KINDS: usize = 4;

/// A cached message for a repeated find of one document by a filter of a fixed length. It is copied, and the new filter
/// overwrites the old one.
#[derive(Debug)]
pub(super) struct FindOne {
    collection: String,
    message: Vec<u8>,
    /// The position of the filter in the message.
    filter: Range<usize>,
}

/// The subtype of binary data for a UUID.
const UUID: u8 = 4;

/// A random UUID, which identifies the session.
pub(super) fn session_id() -> rustix::io::Result<[u8; 16]> {
    let mut id = [0; 16];
    let mut filled = 0;
    while filled < id.len() {
        filled += getrandom(&mut id[filled..], GetRandomFlags::empty())?;
    }
    id[6] = id[6] & 0x0f | 0x40;
    id[8] = id[8] & 0x3f | 0x80;
    Ok(id)
}

impl MongoSession {
    /// Encodes a command, or records that it needs no server.
    #[inline]
    pub(super) fn write(&mut self, command: Command<'_>) -> Result<()> {
        let before = self.transaction;
        match self.written(command) {
            Ok(pending) => self.pending = Some(pending),
            Err(error) => {
                // The command was not sent, so a transaction that the server does not know yet must still begin.
                self.transaction = before;
                return Err(error);
            }
        }
        Ok(())
    }

    #[inline]
    fn written(&mut self, command: Command<'_>) -> Result<Pending> {
        Ok(match command {
            Command::Find { of, find } => self.write_find(of, find),
            Command::Insert { into, documents } => {
                let message = self.start(into, true, |of| of.text("insert", into));
                frame::sequence(&mut self.connection.channel.send, "documents", documents.bytes());
                self.finish(message, documents.len())?
            }
            Command::Update { of: collection, update } => {
                let message = self.start(collection, true, |of| {
                    of.text("update", collection);
                    of.array("updates", |of| {
                        of.document(|of| {
                            of.embed("q", update.filter);
                            of.embed("u", update.update);
                            upsert(of, update);
                        });
                    });
                });
                self.finish(message, 1)?
            }
            Command::Delete { from, filter, all } => {
                let message = self.start(from, true, |of| {
                    of.text("delete", from);
                    of.array("deletes", |of| {
                        of.document(|of| {
                            of.embed("q", filter);
                            of.small("limit", i32::from(!all));
                        });
                    });
                });
                self.finish(message, 1)?
            }
            Command::FindAndModify { of: collection, update, projection, new } => {
                let message = self.start(collection, true, |of| {
                    of.text("findAndModify", collection);
                    of.embed("query", update.filter);
                    of.embed("update", update.update);
                    upsert(of, update);
                    if !projection.is_empty() {
                        of.embed("fields", projection);
                    }
                    if new {
                        of.bool("new", true);
                    }
                });
                self.finish(message, 1)?;
                Pending::FindAndModify
            }
            Command::Count { of, filter } => self.write_count(of, filter),
            Command::Begin => self.begin()?,
            Command::Commit => self.write_commit(false),
            Command::Abort => self.write_abort(),
        })
    }

    #[inline]
    fn write_find(&mut self, collection: &str, find: Find<'_>) -> Pending {
        let is_of_one = find.limit == 1 && find.skip == 0 && find.index.is_empty();
        let is_plain = find.sort.is_empty() && find.projection.is_empty() && self.transaction == Transaction::None;
        if !is_of_one || !is_plain {
            return self.write_any_find(collection, find);
        }
        let filter = find.filter.bytes();
        let mut known = self.finds.iter();
        match known.find(|known| known.filter.len() == filter.len() && known.collection == collection) {
            Some(known) => {
                let at = self.connection.channel.send.len();
                let connection = &mut self.connection;
                connection.requested = connection.requested.wrapping_add(1);
                connection.channel.send.extend_from_slice(&known.message);
                let message = &mut connection.channel.send[at..];
                message[4..8].copy_from_slice(&connection.requested.to_le_bytes());
                message[known.filter.clone()].copy_from_slice(filter);
                self.note(collection);
            }
            None => self.write_new_find(collection, find),
        }
        Pending::Find
    }

    /// Encodes a find of one document, and caches it while there is space.
    #[cold]
    fn write_new_find(&mut self, collection: &str, find: Find<'_>) {
        let at = self.connection.channel.send.len();
        self.write_any_find(collection, find);
        const NAME: &[u8] = b"\x03filter\0";
        let (message, length) = (&self.connection.channel.send[at..], find.filter.bytes().len());
        let named = message.windows(NAME.len()).position(|bytes| bytes == NAME);
        if let Some(place) = named.filter(|_| self.finds.len() < KINDS).map(|named| named + NAME.len()) {
            let (collection, message) = (collection.to_owned(), message.to_vec());
            self.finds.push(FindOne { collection, message, filter: place..place + length });
        }
    }

    #[inline(never)]
    fn write_any_find(&mut self, collection: &str, find: Find<'_>) -> Pending {
        let message = self.start(collection, false, |of| {
            of.text("find", collection);
            of.embed("filter", find.filter);
            for (name, document) in [("sort", find.sort), ("projection", find.projection)] {
                if !document.is_empty() {
                    of.embed(name, document);
                }
            }
            for (name, number) in [("skip", find.skip), ("limit", find.limit)] {
                if number > 0 {
                    of.int(name, i64::from(number));
                }
            }
            if !find.index.is_empty() {
                of.text("hint", find.index);
            }
            // The server closes a single document's cursor automatically.
            if find.limit == 1 {
                of.bool("singleBatch", true);
            }
        });
        frame::finish(&mut self.connection.channel.send, message);
        Pending::Find
    }

    /// Counts with a pipeline, because `count` is not allowed in transactions and without a filter returns a cached
    /// count.
    fn write_count(&mut self, collection: &str, filter: Document<'_>) -> Pending {
        let message = self.start(collection, false, |of| {
            of.text("aggregate", collection);
            of.array("pipeline", |of| {
                of.document(|of| of.embed("$match", filter));
                of.document(|of| {
                    of.document("$group", |of| {
                        of.null("_id");
                        of.document("n", |of| of.small("$sum", 1));
                    });
                });
            });
            of.embed("cursor", Document::EMPTY);
        });
        frame::finish(&mut self.connection.channel.send, message);
        Pending::Count
    }

    pub(super) fn write_more(&mut self, cursor: i64) {
        let collection = std::mem::take(&mut self.collection);
        let message = self.start("", false, |of| {
            of.int("getMore", cursor);
            of.text("collection", &collection);
        });
        frame::finish(&mut self.connection.channel.send, message);
        self.collection = collection;
    }

    /// Begins a command in the session's database, and in its transaction if there is one.
    #[inline]
    fn start(&mut self, collection: &str, writes: bool, command: impl FnOnce(&mut Writer<'_>)) -> usize {
        if !collection.is_empty() {
            self.note(collection);
        }
        let Self { connection, options, transaction, id, number, .. } = self;
        let message = connection.start(|of| {
            command(of);
            if *transaction != Transaction::None {
                of.document("lsid", |of| of.binary_of("id", UUID, id));
                of.int("txnNumber", *number);
                of.bool("autocommit", false);
                if *transaction == Transaction::Begun {
                    of.bool("startTransaction", true);
                    if let Some(level) = &options.read_concern {
                        of.document("readConcern", |of| of.text("level", level));
                    }
                }
            } else if writes && let Some(concern) = &options.write_concern {
                of.embed("writeConcern", concern.get());
            }
            of.text("$db", &options.database);
        });
        if *transaction == Transaction::Begun {
            *transaction = Transaction::Open;
        }
        message
    }

    /// Records the command's collection, which a request for more documents needs.
    #[inline]
    fn note(&mut self, collection: &str) {
        if self.collection != collection {
            self.collection.clear();
            self.collection.push_str(collection);
        }
    }

    /// Ends the message of a write with this many documents, unless it exceeds the server's limits.
    #[inline]
    fn finish(&mut self, message: usize, documents: usize) -> Result<Pending> {
        let send = &mut self.connection.channel.send;
        let length = send.len() - message;
        if length > self.connection.hello.longest_message || documents == 0 {
            send.truncate(message);
            return Err(if documents == 0 {
                call_failed("submit", "an insert of no documents")
            } else {
                call_failed(
                    "submit",
                    &format!("{documents} documents of {length} bytes are more than the server takes"),
                )
            });
        }
        frame::finish(send, message);
        Ok(Pending::Write)
    }

    fn begin(&mut self) -> Result<Pending> {
        if !self.has_transactions() {
            return Err(call_failed(
                "begin",
                "this server has no transactions; they need MongoDB 4.0 or newer as a replica set, also of one member \
                 (mongod --replSet NAME, then rs.initiate()), or behind a router, and a storage engine that supports \
                 them",
            ));
        }
        if self.transaction != Transaction::None {
            return Err(call_failed("begin", "there is a transaction; end it first"));
        }
        self.transaction = Transaction::Begun;
        self.number += 1;
        Ok(Pending::Nothing)
    }

    /// Ends the transaction. A failed one is aborted, and one that the server does not know needs no message.
    pub(super) fn write_commit(&mut self, again: bool) -> Pending {
        match self.transaction {
            Transaction::Open => {
                self.write_ending("commitTransaction");
                Pending::Commit { again }
            }
            Transaction::Failed => {
                self.write_ending("abortTransaction");
                Pending::Commit { again }
            }
            Transaction::None | Transaction::Begun => {
                self.transaction = Transaction::None;
                Pending::Nothing
            }
        }
    }

    fn write_abort(&mut self) -> Pending {
        match self.transaction {
            Transaction::Open | Transaction::Failed => {
                self.write_ending("abortTransaction");
                Pending::Abort
            }
            Transaction::None | Transaction::Begun => {
                self.transaction = Transaction::None;
                Pending::Nothing
            }
        }
    }

    pub(super) fn write_ending(&mut self, command: &str) {
        let Self { connection, options, id, number, .. } = self;
        let message = connection.start(|of| {
            of.small(command, 1);
            of.document("lsid", |of| of.binary_of("id", UUID, id));
            of.int("txnNumber", *number);
            of.bool("autocommit", false);
            if let Some(concern) = &options.write_concern {
                of.embed("writeConcern", concern.get());
            }
            of.text("$db", ADMIN);
        });
        frame::finish(&mut connection.channel.send, message);
    }

    /// Ends the session. A transaction is aborted first. Otherwise the server would drop it and release its locks only
    /// at its next session cleanup.
    #[cold]
    pub(super) fn write_end(&mut self) {
        if matches!(self.transaction, Transaction::Open | Transaction::Failed) {
            self.write_ending("abortTransaction");
        }
        let Self { connection, id, .. } = self;
        let message = connection.start(|of| {
            of.array("endSessions", |of| of.document(|of| of.binary_of("id", UUID, id)));
            of.text("$db", ADMIN);
        });
        frame::finish(&mut connection.channel.send, message);
        frame::unanswered(&mut connection.channel.send, message);
        let _write_errors_are_ignored_when_closing = connection.channel.stream.write(&connection.channel.send);
    }
}

#[inline]
fn upsert(of: &mut Writer<'_>, update: Update<'_>) {
    if update.upsert {
        of.bool("upsert", true);
    }
}
