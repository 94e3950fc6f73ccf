//! kept: keeps the data of a load, so that every trial that starts from it gets its own copy.
//!
//! A copy is read and written byte by byte into its own blocks. If a filesystem shared the blocks, the engine's later
//! writes would become copies on write, which changes the measurement. The copy bypasses the page cache, so that no
//! trial finds another trial's pages there. Holes stay holes, so that the size is the same.

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
pub use kept_loads::{KeptLoad, KeptLoads};
pub use moved::name_again;
pub use shared::is_shared;
