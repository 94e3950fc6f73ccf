//! kept: what a load has left is kept, and every trial that starts from it
//! gets a copy of its own.
//!
//! A copy is plain: bytes that are read and written again, in blocks of their
//! own. Blocks shared by a filesystem would turn the engine's later writes into
//! copies on write, and change what is measured. It goes past the page cache, so
//! that no trial finds there what another has left, and holes stay holes, so that
//! a size is the same.

mod copy;
mod error;
mod kept_data;
mod kept_loads;
mod moved;
mod shared;
#[cfg(test)]
mod tests;

pub use copy::Contents;
pub use error::CopyError;
pub use kept_data::{KeptData, Origin};
pub use kept_loads::{Found, KeptLoads};
pub use moved::name_anew;
pub use shared::is_shared;
