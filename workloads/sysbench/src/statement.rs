//! A script's prepared statements and their parameters.

use std::borrow::Cow;
use std::ffi::c_int;
use std::slice::from_raw_parts;

use rumba_engine_api::error::{EngineError, Result};
use rumba_engine_api::sql::{Dialect, Param, ParamType, SqlSession, Statement};

use crate::marks::{has_any, numbered};

/// A prepared statement; its head is `sql_statement` of api.lua. Its place exists as long as its connection's, because
/// a script may use a closed one, or hold its address outside of a handle.
#[repr(C)]
pub(crate) struct BoundStatement<Owner> {
    pub(crate) connection: *mut Owner,
    // The fields below are hidden from scripts.
    /// Whether the script still holds it.
    pub(crate) is_held: bool,
    pub(crate) statement: Option<Statement>,
    /// Whether its rows can be stored in their original form.
    pub(crate) rereads: bool,
    /// Its parameters, which api.lua keeps for as long as they are bound.
    pub(crate) params: Vec<*const ParamHead>,
    /// The text, to be prepared again on another connection; empty once the statement is closed.
    pub(crate) sql: Vec<u8>,
    /// Whether the server does not have it yet, because it needs the types of the bound parameters first.
    pub(crate) awaits_types: bool,
    declared: Vec<ParamType>,
}

impl<Owner> BoundStatement<Owner> {
    /// A statement that is not opened yet.
    pub(crate) fn new(connection: *mut Owner) -> Self {
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

    /// Becomes this statement, with a handle for the script. It takes over no binding of the closed statement before
    /// it.
    pub(crate) fn open(&mut self, opened: Opened, sql: &[u8]) {
        self.params.clear();
        self.declared.clear();
        (self.is_held, self.sql) = (true, sql.to_vec());
        (self.statement, self.rereads, self.awaits_types) = match opened {
            Opened::Prepared { statement, rereads } => (Some(statement), rereads, false),
            Opened::AwaitsTypes => (None, false, true),
        };
    }

    /// Whether the server should have it: it is not closed, and its types are known.
    pub(crate) fn is_ready(&self) -> bool {
        !self.sql.is_empty() && !self.awaits_types
    }

    /// Prepares the statement, for the first time or again, with the types known so far.
    pub(crate) fn prepare(&mut self, session: &mut dyn SqlSession) -> Result<()> {
        let text = worded(session.dialect(), &self.sql);
        let prepared = session.prepare_declared(&text, &self.declared)?;
        (self.statement, self.rereads, self.awaits_types) = (Some(prepared), session.rereads(prepared), false);
        Ok(())
    }

    /// Binds these parameters. Returns whether the statement must be prepared now that their types are known. Until it
    /// is prepared it still awaits them, because a restarted event binds again.
    ///
    /// # Safety
    /// The parameters exist.
    pub(crate) unsafe fn bind(&mut self, params: &[*const ParamHead]) -> bool {
        self.params.clear();
        self.params.extend_from_slice(params);
        if self.awaits_types {
            // SAFETY: as above.
            self.declared = params.iter().map(|&param| unsafe { &*param }.declared()).collect();
        }
        self.awaits_types
    }

    /// Frees its resources, except for the session's statement.
    pub(crate) fn forget(&mut self) -> Option<Statement> {
        (self.sql, self.params, self.awaits_types) = (Vec::new(), Vec::new(), false);
        self.statement.take()
    }

    /// The script has released its handle; returns whether the place can be reused.
    pub(crate) fn let_go(&mut self) -> bool {
        std::mem::take(&mut self.is_held) && self.sql.is_empty()
    }
}

/// The state of a statement when the script gets its handle.
pub(crate) enum Opened {
    Prepared {
        statement: Statement,
        rereads: bool,
    },
    /// It goes to the server when it is bound.
    AwaitsTypes,
}

/// Prepares a script's text. As in sysbench, PostgreSQL receives a statement with parameters only once their types are
/// bound. For example, `abs(?)` needs a type, and a number may exceed the range of the column that it is compared with.
pub(crate) fn prepare(session: &mut dyn SqlSession, sql: &[u8]) -> Result<Opened> {
    let dialect = session.dialect();
    if dialect == Dialect::PostgreSql && has_any(sql) {
        return Ok(Opened::AwaitsTypes);
    }
    let statement = session.prepare_bytes(&worded(dialect, sql))?;
    Ok(Opened::Prepared { statement, rereads: session.rereads(statement) })
}

/// The error of a statement that runs before its types are known.
#[cold]
pub(crate) fn unbound() -> EngineError {
    EngineError::failed("execute", "its parameters were never bound")
}

/// A statement with the dialect's parameter marks.
fn worded(dialect: Dialect, sql: &[u8]) -> Cow<'_, [u8]> {
    if dialect == Dialect::PostgreSql { numbered(sql).into() } else { sql.into() }
}

/// The head of a parameter: `sql_int`, `sql_real` and `sql_text` of api.lua, which creates it. The interpreter frees it
/// once neither the script nor a statement holds it, and knows how much memory that frees.
#[repr(C)]
pub(crate) struct ParamHead {
    kind: c_int,
    is_null: c_int,
    data_len: u32,
    max_len: u32,
    // The head is followed by a number of 8 bytes, or by room for a text of `max_len` bytes.
}

const BIGINT: c_int = 4;
const DOUBLE: c_int = 6;

impl ParamHead {
    fn declared(&self) -> ParamType {
        match self.kind {
            BIGINT => ParamType::Int,
            DOUBLE => ParamType::Double,
            _ => ParamType::Text,
        }
    }

    /// The present value.
    ///
    /// # Safety
    /// The parameter and the data after it exist, and do not change for as long as the answer is used.
    #[inline]
    pub(crate) unsafe fn value<'a>(param: *const Self) -> Param<'a> {
        // SAFETY: as above; a number lies as its type demands, after a head whose length is a multiple of that.
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
