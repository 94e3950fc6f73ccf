//! The live page of a run and the library of past results, served on loopback.
//!
//! The server has a thread of its own in the process that conducts the run: a trial is another process, so that nothing
//! of it lies on the path of the load. What it shows is read from the results' files, as every report does; what
//! happens it hears as whoever watches the run does ([`rumba_lab::conduct::Watch`]). While nobody looks, it does nothing.
#![deny(missing_docs)]

mod event_log;
mod guard;
mod library;
mod live;
mod metrics;
mod pages;
mod routes;
mod server;
mod token;
mod view;

pub use library::{Details, Entry, EntryFigure, Library, Note};
pub use live::Live;
pub use server::{Content, Server, StartError, Stop, listen};
