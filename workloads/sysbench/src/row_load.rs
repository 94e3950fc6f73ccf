//! Rows that a script makes value by value, loaded in batches by the engine's fastest way.

use std::task::Poll;

use rumba_engine_api::error::{EngineError, Result};
use rumba_engine_api::sql::{Answer, Dialect, Param, SqlSession, Statement};

use crate::context::ClientContext;

/// The approximate bytes of a batch: below the packet size that every server accepts, and few enough to undo and repeat
/// a load.
const BATCH_BYTES: usize = 512 << 10;

/// The bytes of an integer in a batch.
const INT_BYTES: usize = size_of::<i64>();

#[derive(Clone, Copy, Debug)]
enum Value {
    Int(i64),
    /// A text that ends here, and begins at the end of the previous one.
    Text {
        end: usize,
    },
}

/// A load in progress. It owns the connection's session, which is not available otherwise.
pub(crate) struct RowLoad {
    session: Box<dyn SqlSession>,
    rows: Statement,
    columns: usize,
    values: Vec<Value>,
    text: Vec<u8>,
    /// The answer to the previous batch is still to come.
    is_owed: bool,
}

impl RowLoad {
    /// A load into columns of a table.
    ///
    /// # Errors
    /// The session, and the engine's error.
    pub(crate) fn begin(
        mut session: Box<dyn SqlSession>,
        table: &str,
        columns: &[&str],
    ) -> Result<Self, (Box<dyn SqlSession>, EngineError)> {
        match session.prepare_rows(table, columns) {
            Ok(rows) => Ok(Self {
                session,
                rows,
                columns: columns.len(),
                values: Vec::new(),
                text: Vec::with_capacity(BATCH_BYTES + (4 << 10)),
                is_owed: false,
            }),
            Err(error) => Err((session, error)),
        }
    }

    /// The next value of a row, a whole number.
    #[inline]
    pub(crate) fn int(&mut self, value: i64) {
        self.values.push(Value::Int(value));
    }

    /// The next value of a row, a text of this many bytes that `fill` writes.
    #[inline]
    pub(crate) fn text(&mut self, bytes: usize, fill: impl FnOnce(&mut [u8])) {
        let start = self.text.len();
        self.text.resize(start + bytes, 0);
        fill(&mut self.text[start..]);
        self.values.push(Value::Text { end: self.text.len() });
    }

    /// Whether there are only complete rows, and enough to send.
    #[inline]
    pub(crate) fn is_full(&self) -> bool {
        self.text.len() + INT_BYTES * self.values.len() >= BATCH_BYTES && self.values.len().is_multiple_of(self.columns)
    }

    /// Sends the collected rows. The engine works on them while the next rows are made; the answer is to the earlier
    /// rows.
    ///
    /// # Errors
    /// The engine's error, about these rows or the earlier ones.
    pub(crate) fn send(&mut self, client: &ClientContext) -> Result<Option<Answer>> {
        let before = self.settle(client)?;
        if self.values.is_empty() {
            return Ok(before);
        }
        // This call may wait, and a waiting client may be dropped, so no memory that needs freeing is allocated before
        // it.
        client.statement_begins()?;
        let mut start = 0;
        let params: Vec<Param<'_>> = self
            .values
            .iter()
            .map(|value| match *value {
                Value::Int(number) => Param::Int(number),
                Value::Text { end } => Param::Text(&self.text[std::mem::replace(&mut start, end)..end]),
            })
            .collect();
        // Elsewhere a batch is one statement, and so one transaction.
        let is_by_row = self.session.dialect() == Dialect::Sqlite;
        if is_by_row {
            self.session.run("BEGIN IMMEDIATE")?;
        }
        self.session.submit_rows(self.rows, &params)?;
        if is_by_row {
            self.session.run("COMMIT")?;
        }
        client.loaded(self.bytes());
        self.values.clear();
        self.text.clear();
        self.is_owed = true;
        // Sends as much as the socket takes now.
        let session = &mut self.session;
        let at_once = client.wait(|context| match session.poll_answer(context, &mut |_| {}) {
            Poll::Ready(answer) => Poll::Ready(Some(answer)),
            Poll::Pending => Poll::Ready(None),
        });
        match at_once {
            None => Ok(before),
            Some(answer) => {
                self.is_owed = false;
                took(client, answer)
            }
        }
    }

    /// Waits for the answer that is still to come.
    fn settle(&mut self, client: &ClientContext) -> Result<Option<Answer>> {
        if !std::mem::take(&mut self.is_owed) {
            return Ok(None);
        }
        let session = &mut self.session;
        took(client, client.wait(|context| session.poll_answer(context, &mut |_| {})))
    }

    /// The bytes of the values, with an INTEGER if that is large enough.
    fn bytes(&self) -> u64 {
        let bytes = |value: &Value| match *value {
            Value::Int(number) if i32::try_from(number).is_ok() => size_of::<i32>(),
            Value::Int(_) => size_of::<i64>(),
            Value::Text { .. } => 0,
        };
        (self.text.len() + self.values.iter().map(bytes).sum::<usize>()) as u64
    }

    /// Leaves it unfinished after an error.
    pub(crate) fn give_up(&mut self, client: &ClientContext) {
        // A failure here follows from the error that is being reported.
        let _ = self.settle(client);
        if self.session.dialect() == Dialect::Sqlite {
            let _ = self.session.run("ROLLBACK");
        }
        let _ = self.session.close(self.rows);
    }

    pub(crate) fn into_session(self) -> Box<dyn SqlSession> {
        self.session
    }

    /// Sends the rest and waits for its answer. Meanwhile the load stays in its place, as in [`RowLoad::give_up`]:
    /// dropping a waiting client closes it.
    ///
    /// # Errors
    /// The engine's error, or that the last row is incomplete; the load is given up then.
    pub(crate) fn finish(&mut self, client: &ClientContext) -> Result<Option<Answer>> {
        let sent = match self.values.len().is_multiple_of(self.columns) {
            true => self.send(client),
            false => Err(EngineError::failed("load_rows_done", "the last row is not whole")),
        };
        let ended = match sent {
            Ok(before) => self.settle(client).map(|last| last.or(before)),
            Err(error) => {
                self.give_up(client);
                return Err(error);
            }
        };
        let closed = self.session.close(self.rows);
        ended.and_then(|answer| closed.map(|()| answer))
    }
}

fn took(client: &ClientContext, answer: Result<Answer>) -> Result<Option<Answer>> {
    let answer = answer?;
    client.statement_done(answer.affected, true);
    Ok(Some(answer))
}
