//! The result of handling a client's input.

/// The size of pending answers at which they are sent before more are made.
pub const ENOUGH: usize = 4 << 20;

/// The result of handling input.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Taken {
    /// The number of handled bytes.
    pub bytes: usize,
    /// Whether a command was answered, and not only a login.
    pub commands: bool,
    /// Whether handling stopped because the pending answers must be sent first.
    pub full: bool,
    /// Whether the connection must end.
    pub ended: bool,
}
