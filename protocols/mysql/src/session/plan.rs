//! How each statement of a session is executed.

use std::sync::Arc;
use std::time::Instant;

use rumba_engine_api::sql::Dialect;
use rumba_transport::Template;

use super::SessionOptions;
use super::load::Rows;
use super::statement::{Binary, NOT_PREPARABLE};
use crate::WireError;
use crate::codec::frame;
use crate::connection::{Connection, STATEMENT_CLOSE};

/// How a statement of the session is executed.
#[derive(Debug)]
pub(super) enum Plan {
    /// Prepared on the server.
    Binary(Box<Binary>),
    Text(Arc<Template>),
    Rows(Box<Rows>),
}

impl Plan {
    /// Prepares a statement; one that the server cannot prepare is sent as text.
    pub(super) fn prepare(
        connection: &mut Connection,
        sql: &[u8],
        options: &SessionOptions,
    ) -> Result<Self, WireError> {
        if options.text {
            return Ok(Plan::Text(options.templates.of(sql, Dialect::MySql)));
        }
        match Binary::prepare(connection, sql, None) {
            Ok(binary) => Ok(Plan::Binary(Box::new(binary))),
            Err(WireError::Server { code: NOT_PREPARABLE, .. }) => {
                Ok(Plan::Text(options.templates.of(sql, Dialect::MySql)))
            }
            Err(error) => Err(error),
        }
    }

    /// Prepares it again on a new connection, before `deadline`.
    pub(super) fn prepare_again(
        &mut self,
        connection: &mut Connection,
        deadline: Option<Instant>,
    ) -> Result<(), WireError> {
        match self {
            Plan::Binary(binary) => **binary = Binary::prepare(connection, &binary.sql, deadline)?,
            Plan::Rows(rows) => rows.prepare_again(connection, deadline)?,
            Plan::Text(_) => {}
        }
        Ok(())
    }

    /// The statement's text.
    pub(super) fn sql(&self) -> &[u8] {
        match self {
            Plan::Binary(binary) => &binary.sql,
            Plan::Text(template) => &template.sql,
            Plan::Rows(rows) => rows.sql(),
        }
    }

    /// Appends the command that deallocates it on the server, which sends no answer.
    pub(super) fn write_close(&self, out: &mut Vec<u8>) {
        let id = match self {
            Plan::Binary(binary) => binary.id,
            Plan::Rows(rows) => match rows.id() {
                Some(id) => id,
                None => return,
            },
            Plan::Text(_) => return,
        };
        let at = frame::start(out);
        out.push(STATEMENT_CLOSE);
        out.extend_from_slice(&id.to_le_bytes());
        frame::finish(out, at, 0);
    }
}
