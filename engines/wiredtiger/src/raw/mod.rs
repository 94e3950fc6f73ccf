//! Safe handles for the library. All `unsafe` of this crate is in this folder; callers see bytes, strings and
//! [`rumba_engine_api::error::EngineError`]s.

mod connection;
mod cursor;
mod events;
mod ffi;
mod library;
mod session;

use std::ffi::CString;

pub use connection::Connection;
pub use library::{INSTALL, Library};
pub use session::{CursorId, Session, Statistic};

/// A C string of `text` up to its first NUL; rumba's configurations, names and paths contain none.
fn c_string(text: &str) -> CString {
    let bytes = text.split('\0').next().unwrap_or_default();
    CString::new(bytes).unwrap_or_default()
}
