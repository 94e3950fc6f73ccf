//! Servers' answers to commands.

use rumba_engine_api::bson::{Document, Malformed, Value};

/// The labels of an error.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Labels {
    /// The transaction had no effect, and may succeed if it is retried.
    pub transient: bool,
    /// It is unknown whether the transaction was committed.
    pub unknown_commit: bool,
    /// The write may succeed if it is sent again, to the server that accepts writes then.
    pub retryable: bool,
}

impl Labels {
    fn of(list: Document<'_>) -> Result<Self, Malformed> {
        let mut labels = Self::default();
        for element in list.iter() {
            match element?.1 {
                Value::Text(b"TransientTransactionError") => labels.transient = true,
                Value::Text(b"UnknownTransactionCommitResult") => labels.unknown_commit = true,
                Value::Text(b"RetryableWriteError") => labels.retryable = true,
                _ => {}
            }
        }
        Ok(labels)
    }
}

/// An error as the server reports it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Refusal<'a> {
    /// The server's error code: 11000.
    pub code: i32,
    /// The code's name: `DuplicateKey`; empty if the server does not report it.
    pub name: &'a [u8],
    /// The message.
    pub message: &'a [u8],
    /// Whether it concerns the write concern instead of the write.
    pub of_concern: bool,
}

impl<'a> Refusal<'a> {
    fn of(document: Document<'a>) -> Result<Self, Malformed> {
        let mut refusal = Self::default();
        for element in document.iter() {
            let (name, value) = element?;
            refusal.take(name, value);
        }
        Ok(refusal)
    }

    fn take(&mut self, name: &[u8], value: Value<'a>) {
        match name {
            b"code" => self.code = value.int().unwrap_or_default() as i32,
            b"codeName" => self.name = value.bytes().unwrap_or_default(),
            b"errmsg" => self.message = value.bytes().unwrap_or_default(),
            _ => {}
        }
    }
}

/// Documents of an answer, and the cursor to request more.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cursor<'a> {
    /// The cursor's number; 0 if there are no more documents.
    pub id: i64,
    /// The list of documents.
    pub batch: Document<'a>,
}

impl<'a> Cursor<'a> {
    fn of(document: Document<'a>) -> Result<Self, Malformed> {
        let (mut id, mut batch) = (None, None);
        for element in document.iter() {
            match element? {
                (b"firstBatch" | b"nextBatch", Value::Array(documents)) => batch = Some(documents),
                (b"id", value) => id = value.int(),
                _ => {}
            }
        }
        match (id, batch) {
            (Some(id), Some(batch)) => Ok(Self { id, batch }),
            _ => Err(Malformed("a cursor without its number or documents")),
        }
    }

    /// The cursor of an answer in the usual order: the cursor first with its documents first, and then the success.
    /// `None` for any other answer, which [`Reply::of`] parses.
    #[inline]
    pub fn of_usual(answer: Document<'a>) -> Option<Self> {
        // Skip the document's length.
        let within = |document: Document<'a>| document.bytes().get(4..);
        let (cursor, rest) = Document::first(within(answer)?.strip_prefix(b"\x03cursor\0")?).ok()?;
        let ok = rest.strip_prefix(b"\x01ok\0")?.first_chunk()?;
        let batch = within(cursor)?.strip_prefix(b"\x04firstBatch\0")?;
        let (batch, rest) = Document::first(batch).ok()?;
        let id = rest.strip_prefix(b"\x12id\0")?.first_chunk()?;
        (*ok == 1.0_f64.to_le_bytes()).then(|| Self { id: i64::from_le_bytes(*id), batch })
    }

    /// The documents in order.
    #[inline]
    pub fn documents(self) -> impl Iterator<Item = Result<Document<'a>, Malformed>> {
        self.batch.iter().map(|element| match element?.1 {
            Value::Document(document) => Ok(document),
            _ => Err(Malformed("a batch with a value that is not a document")),
        })
    }
}

/// An answer, parsed in one pass; its contents stay in the receive buffer.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Reply<'a> {
    /// Why the command, or a document of it, was refused.
    pub refusal: Option<Refusal<'a>>,
    /// The labels of the error.
    pub labels: Labels,
    /// Documents.
    pub cursor: Option<Cursor<'a>>,
    /// The document returned by findAndModify; `None` if there was none.
    pub value: Option<Document<'a>>,
    /// The number of documents inserted, matched or deleted.
    pub matched: u64,
    /// The number of documents modified.
    pub modified: u64,
    /// The number of documents inserted by an upsert.
    pub upserted: u64,
}

impl<'a> Reply<'a> {
    /// Parses an answer.
    ///
    /// # Errors
    /// It does not say whether the command succeeded, or is malformed.
    #[inline]
    pub fn of(document: Document<'a>) -> Result<Self, Malformed> {
        let mut reply = Self::default();
        let (mut ok, mut whole) = (None, Refusal::default());
        for element in document.iter() {
            match element? {
                (b"ok", value) => ok = value.int(),
                (b"cursor", Value::Document(cursor)) => reply.cursor = Some(Cursor::of(cursor)?),
                (b"n", value) => reply.matched = count(value)?,
                (b"nModified", value) => reply.modified = count(value)?,
                (name, value) => reply.take_other(name, value, &mut whole)?,
            }
        }
        match ok {
            Some(1) => {}
            Some(_) => reply.refusal = Some(whole),
            None => return Err(Malformed("an answer that does not say whether it is one")),
        }
        Ok(reply)
    }

    /// Takes a field that most answers do not have.
    fn take_other(&mut self, name: &[u8], value: Value<'a>, whole: &mut Refusal<'a>) -> Result<(), Malformed> {
        match (name, value) {
            (b"upserted", Value::Array(list)) => self.upserted = list.iter().count() as u64,
            (b"value", Value::Document(document)) => self.value = Some(document),
            (b"lastErrorObject", Value::Document(reported)) => {
                self.matched = reported.get("n")?.map_or(Ok(0), count)?;
                self.upserted = u64::from(reported.get("upserted")?.is_some());
                let existing = reported.get("updatedExisting")?.and_then(|value| value.int());
                self.modified = u64::from(existing == Some(1));
            }
            (b"writeErrors", Value::Array(list)) => {
                if let Some(element) = list.iter().next()
                    && let Value::Document(first) = element?.1
                {
                    self.refusal = Some(Refusal::of(first)?);
                }
            }
            (b"writeConcernError", Value::Document(document)) => {
                let concern = Refusal { of_concern: true, ..Refusal::of(document)? };
                // A write error is more specific than a write-concern error.
                self.refusal.get_or_insert(concern);
            }
            (b"errorLabels", Value::Array(list)) => self.labels = Labels::of(list)?,
            (name, value) => whole.take(name, value),
        }
        Ok(())
    }
}

fn count(value: Value<'_>) -> Result<u64, Malformed> {
    value.int().and_then(|count| u64::try_from(count).ok()).ok_or(Malformed("a count that is not a number"))
}

#[cfg(test)]
mod tests {
    use rumba_engine_api::bson::DocumentBuf;

    use super::*;

    #[test]
    fn errors_of_one_document_and_of_the_write_concern_are_known() {
        let of_one = DocumentBuf::of(|of| {
            of.small("n", 0);
            of.document("writeConcernError", |of| of.small("code", 64));
            of.array("writeErrors", |of| {
                of.document(|of| {
                    of.small("index", 0);
                    of.small("code", 11000);
                    of.text("errmsg", "E11000 duplicate key");
                });
            });
            of.double("ok", 1.0);
        });
        // The write-concern error comes first, but the write error must be reported.
        assert_eq!(Reply::of(of_one.get()).unwrap().refusal.unwrap().code, 11000);
        let unsure = DocumentBuf::of(|of| {
            of.document("writeConcernError", |of| of.small("code", 64));
            of.double("ok", 1.0);
        });
        let refusal = Reply::of(unsure.get()).unwrap().refusal.unwrap();
        assert_eq!((refusal.code, refusal.of_concern), (64, true));
    }

    #[test]
    fn malformed_reply_is_an_error() {
        assert!(Reply::of(Document::EMPTY).is_err());
        let without = DocumentBuf::of(|of| {
            of.document("cursor", |of| of.int("id", 0));
            of.double("ok", 1.0);
        });
        assert!(Reply::of(without.get()).is_err() && Cursor::of_usual(without.get()).is_none());
        let counted = DocumentBuf::of(|of| {
            of.text("n", "many");
            of.double("ok", 1.0);
        });
        assert!(Reply::of(counted.get()).is_err());
        let strange = DocumentBuf::of(|of| {
            of.document("cursor", |of| {
                of.array("firstBatch", |of| of.int(7));
                of.int("id", 0);
            });
            of.double("ok", 1.0);
        });
        let cursor = Reply::of(strange.get()).unwrap().cursor.unwrap();
        assert!(cursor.documents().any(|document| document.is_err()));
    }
}
