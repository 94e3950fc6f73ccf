//! Shared code of the server engines: installing, configuring, starting, watching, reading back and stopping a server.
#![deny(missing_docs)]

pub mod cache;
pub mod command;
pub mod dsn;
pub mod failure;
pub mod files;
pub mod host;
pub mod identity;
pub mod install;
pub mod left_behind;
pub mod loader;
mod overruled;
pub mod own_settings;
pub mod process;
pub mod profile;
pub mod readback;
pub mod reading;
pub mod selected;
pub mod template;
pub mod version;
pub mod wait;
pub mod watch;
