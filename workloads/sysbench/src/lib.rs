//! sysbench: its command line and reports ([`cli`]), its built-in tests ([`built_in_tests`]), and its scripts: LuaJIT
//! interpreters with sysbench's functions over rumba's sessions.
//!
//! Each client has its own interpreter, in which the user's script runs unchanged. The script's calls go to
//! [`interface`], through FFI. While it waits for a statement's answer, its [`fiber`] pauses, and the driver's thread
//! continues with other clients.
#![deny(missing_docs)]

pub mod built_in_tests;
mod bulk;
pub mod bundled;
pub mod cli;
mod client;
mod connection;
mod context;
pub mod counters;
pub mod declared;
mod depth;
pub mod executable;
pub mod failure;
mod fiber;
pub mod gaps;
mod handles;
mod histograms;
pub mod host;
mod interface;
mod interpreter;
mod key_values;
mod marks;
pub mod memory;
pub mod options;
mod outcome;
pub mod output;
mod places;
pub mod random;
pub mod remedy;
mod row_load;
mod rows;
mod script_error;
pub mod setup;
mod stable_c_string;
mod statement;
pub mod stopwatch;
mod values;
mod workload;

pub use client::ScriptClient;
pub use failure::ScriptError;
pub use interpreter::Interpreter;
pub use workload::{Lua, Sysbench};
