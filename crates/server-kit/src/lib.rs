//! What engines that are servers share: how a server is had, configured, started, watched, read back and stopped.
#![deny(missing_docs)]

pub mod cache;
pub mod command;
pub mod dsn;
pub mod failure;
pub mod files;
pub mod identity;
pub mod install;
pub mod loader;
mod overruled;
pub mod process;
pub mod profile;
pub mod readback;
pub mod reading;
pub mod template;
pub mod version;
pub mod wait;
pub mod watch;
