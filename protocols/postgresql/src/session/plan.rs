//! How each statement of a session is executed.

use std::time::Instant;

use rumba_engine_api::sql::{Dialect, ParamType};

use super::SessionOptions;
use super::load::Rows;
use super::statement::{Binary, Control, Described};
use super::template::Text;
use crate::PgError;
use crate::codec::frame;
use crate::connection::Connection;

/// How a statement of the session is executed.
#[derive(Debug)]
pub(super) enum Plan {
    /// Prepared on the server.
    Binary(Binary),
    Text(Text),
    Rows(Rows),
}

impl Plan {
    /// Prepares a statement with the number `number` in its session.
    pub(super) fn prepare(
        connection: &mut Connection,
        number: usize,
        sql: &[u8],
        types: &[ParamType],
        options: &SessionOptions,
    ) -> Result<Self, PgError> {
        if options.text {
            // Described without a name, because the server replaces the unnamed statement with the next one.
            let described = Described::fetch(connection, "", sql, types, None)?;
            let template = options.templates.of(sql, Dialect::PostgreSql);
            return Ok(Plan::Text(Text::new(template, described.params)));
        }
        Ok(Plan::Binary(Binary::prepare(connection, number, sql, types, None)?))
    }

    /// Prepares it again on a new connection, before `deadline`.
    pub(super) fn prepare_again(
        &mut self,
        connection: &mut Connection,
        deadline: Option<Instant>,
    ) -> Result<(), PgError> {
        if let Plan::Binary(binary) = self {
            *binary = Binary::prepare(connection, binary.number, &binary.sql, &binary.declared, deadline)?;
        }
        Ok(())
    }

    /// The statement's text.
    pub(super) fn sql(&self) -> &[u8] {
        match self {
            Plan::Binary(binary) => &binary.sql,
            Plan::Text(text) => text.sql(),
            Plan::Rows(rows) => rows.sql().as_bytes(),
        }
    }

    /// Appends the message that deallocates it on the server, whose answer comes with the next statement's.
    pub(super) fn write_close(&self, out: &mut Vec<u8>) {
        if let Plan::Binary(binary) = self {
            let close = frame::start(out, b'C');
            out.push(b'S');
            frame::put_text(out, binary.name.as_bytes());
            frame::finish(out, close);
        }
    }

    /// The effect on its transaction.
    pub(super) fn control(&self) -> Control {
        match self {
            Plan::Binary(binary) => binary.control,
            Plan::Text(text) => text.control,
            Plan::Rows(_) => Control::Nothing,
        }
    }
}
