//! The live page of a run and the library of past results, served on loopback.
//!
//! The server has its own thread in the process of the runner. A trial is another process, so the server is not on the
//! path of the load. It reads what it shows from the results' files, as every report does. It receives events like
//! every other observer of the run ([`rumba_lab::conduct::Watch`]). While no client is connected, it does nothing.
#![deny(missing_docs)]

mod event_log;
mod guard;
mod library;
mod live;
mod metrics;
mod pages;
mod past;
mod routes;
mod server;
mod token;
mod view;

pub use library::Library;
pub use live::Live;
pub use server::{Content, Server, StartError, Stop, listen};
