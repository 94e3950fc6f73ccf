//! A script's prepared statements and their parameters.

use std::borrow::Cow;
use std::ffi::c_int;
use std::slice::from_raw_parts;

use rumba_core::error::EngineError;
use rumba_core::sql::{Dialect, Param, SqlSession, Statement};

use crate::connection::{Connection, Outcome};
use crate::marks::numbered;

/// A prepared statement; its head is `sql_statement` of api.lua. It is there until the script has let go of it, closed
/// or not, so that one that was closed is known for that.
#[repr(C)]
pub(crate) struct BoundStatement {
    connection: *mut Connection,
    // What follows is hidden from scripts.
    pub(crate) statement: Option<Statement>,
    /// Whether its rows can be kept as they come.
    pub(crate) rereads: bool,
    /// Its parameters, which api.lua keeps for as long as they are bound.
    pub(crate) params: Vec<*const ParamHead>,
    /// What it says, to be prepared anew on another connection; nothing once it is closed.
    pub(crate) sql: Vec<u8>,
    /// Where it is among its connection's.
    pub(crate) place: usize,
}

impl BoundStatement {
    /// A statement that is not prepared yet.
    pub(crate) fn new(connection: *mut Connection, place: usize, sql: &[u8]) -> Box<Self> {
        Box::new(Self { connection, statement: None, rereads: false, params: Vec::new(), sql: sql.to_vec(), place })
    }

    pub(crate) fn connection(&self) -> *mut Connection {
        self.connection
    }

    /// Prepares it, or prepares it anew.
    pub(crate) fn prepare(&mut self, session: &mut dyn SqlSession) -> Result<(), EngineError> {
        let text = worded(session.dialect(), &self.sql);
        let prepared = session.prepare_bytes(&text)?;
        (self.statement, self.rereads) = (Some(prepared), session.rereads(prepared));
        Ok(())
    }

    pub(crate) fn bind(&mut self, params: &[*const ParamHead]) {
        self.params.clear();
        self.params.extend_from_slice(params);
    }

    /// Closes it, and gives back what it has.
    pub(crate) fn close(&mut self) -> Outcome {
        (self.sql, self.params) = (Vec::new(), Vec::new());
        let Some(statement) = self.statement.take() else { return Outcome::Done };
        // SAFETY: places of connections live as long as their client, and so longer than statements.
        unsafe { &mut *self.connection }.close(statement)
    }
}

/// A statement's marks as the dialect has them.
fn worded(dialect: Dialect, sql: &[u8]) -> Cow<'_, [u8]> {
    if dialect == Dialect::PostgreSql { numbered(sql).into() } else { sql.into() }
}

/// A parameter: `sql_param` of api.lua, made there. The interpreter frees it when neither the script nor a statement
/// has it any more, and knows how much that frees.
#[repr(C)]
pub(crate) struct ParamHead {
    kind: c_int,
    is_null: c_int,
    data_len: u32,
    max_len: u32,
    number: i64,
    real: f64,
    // Behind it there is room for a text of `max_len` bytes.
}

const BIGINT: c_int = 4;
const DOUBLE: c_int = 6;

impl ParamHead {
    /// What it holds now.
    ///
    /// # Safety
    /// The parameter and the room behind it are there, and do not change for as long as the answer is used.
    #[inline]
    pub(crate) unsafe fn value<'a>(param: *const Self) -> Param<'a> {
        // SAFETY: as above.
        let head = unsafe { &*param };
        match head.kind {
            _ if head.is_null != 0 => Param::Null,
            BIGINT => Param::Int(head.number),
            DOUBLE => Param::Double(head.real),
            _ => {
                let length = head.data_len.min(head.max_len) as usize;
                // SAFETY: the room begins where the head ends.
                Param::Text(unsafe { from_raw_parts(param.add(1).cast(), length) })
            }
        }
    }
}
