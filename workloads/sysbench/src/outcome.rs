//! What a call of a script came to.

/// What a call came to, as `api.lua` knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
pub(crate) enum Outcome {
    /// Done; there are no rows.
    Done = 0,
    /// There is a set of rows, be it empty.
    Rows = 1,
    /// It failed, and the connection says with what.
    Failed = -1,
}
