//! The outcome of a script's call.

/// The outcome of a call, as `api.lua` knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
pub(crate) enum Outcome {
    /// Done, without rows.
    Done = 0,
    /// Done, with a set of rows, which may be empty.
    Rows = 1,
    /// Failed; the connection holds the error.
    Failed = -1,
}
