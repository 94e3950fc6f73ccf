//! A script's prepared statements and their parameters.

use std::borrow::Cow;
use std::ffi::c_int;
use std::slice::from_raw_parts;

use rumba_core::error::EngineError;
use rumba_core::sql::{Dialect, Param, ParamType, SqlSession, Statement};

use crate::connection::{Connection, Outcome};
use crate::marks::{has_any, numbered};

/// A prepared statement; its head is `sql_statement` of api.lua. Its place is there as long as its connection's: a script
/// may use one that it has closed, or have its address elsewhere than in a handle.
#[repr(C)]
pub(crate) struct BoundStatement {
    connection: *mut Connection,
    // What follows is hidden from scripts.
    /// The script still has a handle of it.
    pub(crate) is_held: bool,
    pub(crate) statement: Option<Statement>,
    /// Whether its rows can be kept as they come.
    pub(crate) rereads: bool,
    /// Its parameters, which api.lua keeps for as long as they are bound.
    pub(crate) params: Vec<*const ParamHead>,
    /// What it says, to be prepared anew on another connection; nothing once it is closed.
    pub(crate) sql: Vec<u8>,
    /// Whether the server is still to be told of it: with the types of what it is bound to first.
    pub(crate) awaits_types: bool,
    /// Those types.
    declared: Vec<ParamType>,
}

impl BoundStatement {
    /// One that is none yet.
    pub(crate) fn new(connection: *mut Connection) -> Self {
        Self {
            connection,
            is_held: false,
            statement: None,
            rereads: false,
            params: Vec::new(),
            sql: Vec::new(),
            awaits_types: false,
            declared: Vec::new(),
        }
    }

    pub(crate) fn connection(&self) -> *mut Connection {
        self.connection
    }

    /// Is this statement now, of which the script gets a handle. What the one before was bound to when it was closed
    /// already is nothing of this one's.
    pub(crate) fn open(&mut self, opened: Opened, sql: &[u8]) {
        self.params.clear();
        self.declared.clear();
        (self.is_held, self.sql) = (true, sql.to_vec());
        (self.statement, self.rereads, self.awaits_types) = match opened {
            Opened::Prepared { statement, rereads } => (Some(statement), rereads, false),
            Opened::AwaitsTypes => (None, false, true),
        };
    }

    /// Whether the server is to have it: it is not closed, and its types are known.
    pub(crate) fn is_ready(&self) -> bool {
        !self.sql.is_empty() && !self.awaits_types
    }

    /// Prepares it, or prepares it anew, with the types that are known by now.
    pub(crate) fn prepare(&mut self, session: &mut dyn SqlSession) -> Result<(), EngineError> {
        let text = worded(session.dialect(), &self.sql);
        let prepared = session.prepare_declared(&text, &self.declared)?;
        (self.statement, self.rereads, self.awaits_types) = (Some(prepared), session.rereads(prepared), false);
        Ok(())
    }

    /// Is bound to these from now on; whether it is to be prepared now that their types are known. Until that is done it
    /// awaits them still: an event that is begun again binds anew.
    ///
    /// # Safety
    /// The parameters are there.
    pub(crate) unsafe fn bind(&mut self, params: &[*const ParamHead]) -> bool {
        self.params.clear();
        self.params.extend_from_slice(params);
        if self.awaits_types {
            // SAFETY: as above.
            self.declared = params.iter().map(|&param| unsafe { &*param }.declared()).collect();
        }
        self.awaits_types
    }

    /// Closes it, and gives back what it has.
    pub(crate) fn close(&mut self) -> Outcome {
        let Some(statement) = self.forget() else { return Outcome::Done };
        // SAFETY: places of connections live as long as their client, and so longer than statements.
        unsafe { &mut *self.connection }.close(statement)
    }

    /// Gives back what it has, but the session's statement.
    pub(crate) fn forget(&mut self) -> Option<Statement> {
        (self.sql, self.params, self.awaits_types) = (Vec::new(), Vec::new(), false);
        self.statement.take()
    }

    /// The script has no handle of it any more; whether its place can be another's.
    pub(crate) fn let_go(&mut self) -> bool {
        std::mem::take(&mut self.is_held) && self.sql.is_empty()
    }
}

/// What has become of a statement when the script has its handle.
pub(crate) enum Opened {
    /// The session has it.
    Prepared { statement: Statement, rereads: bool },
    /// It goes to the server when it is bound.
    AwaitsTypes,
}

/// Prepares a text of a script's. To PostgreSQL, as sysbench does, one with parameters is told with the types of what it is
/// bound to: `abs(?)` needs one, and a number may be beyond what a column holds that it is compared with.
pub(crate) fn prepare(session: &mut dyn SqlSession, sql: &[u8]) -> Result<Opened, EngineError> {
    let dialect = session.dialect();
    if dialect == Dialect::PostgreSql && has_any(sql) {
        return Ok(Opened::AwaitsTypes);
    }
    let statement = session.prepare_bytes(&worded(dialect, sql))?;
    Ok(Opened::Prepared { statement, rereads: session.rereads(statement) })
}

/// What becomes of one that is run before its types are known.
#[cold]
pub(crate) fn unbound() -> EngineError {
    EngineError::failed("execute", "its parameters were never bound")
}

/// A statement's marks as the dialect has them.
fn worded(dialect: Dialect, sql: &[u8]) -> Cow<'_, [u8]> {
    if dialect == Dialect::PostgreSql { numbered(sql).into() } else { sql.into() }
}

/// What a parameter begins with: `sql_int`, `sql_real` and `sql_text` of api.lua, made there. The interpreter frees it when
/// neither the script nor a statement has it any more, and knows how much that frees.
#[repr(C)]
pub(crate) struct ParamHead {
    kind: c_int,
    is_null: c_int,
    data_len: u32,
    max_len: u32,
    // Behind it there is a number of 8 bytes, or room for a text of `max_len` bytes.
}

const BIGINT: c_int = 4;
const DOUBLE: c_int = 6;

impl ParamHead {
    /// What it takes.
    fn declared(&self) -> ParamType {
        match self.kind {
            BIGINT => ParamType::Int,
            DOUBLE => ParamType::Double,
            _ => ParamType::Text,
        }
    }

    /// What it holds now.
    ///
    /// # Safety
    /// The parameter and what is behind it are there, and do not change for as long as the answer is used.
    #[inline]
    pub(crate) unsafe fn value<'a>(param: *const Self) -> Param<'a> {
        // SAFETY: as above; a number lies as its type demands, behind a head whose length is a multiple of that.
        let (head, behind) = unsafe { (&*param, param.add(1)) };
        match head.kind {
            _ if head.is_null != 0 => Param::Null,
            BIGINT => Param::Int(unsafe { *behind.cast() }),
            DOUBLE => Param::Double(unsafe { *behind.cast() }),
            _ => {
                let length = head.data_len.min(head.max_len) as usize;
                Param::Text(unsafe { from_raw_parts(behind.cast(), length) })
            }
        }
    }
}
