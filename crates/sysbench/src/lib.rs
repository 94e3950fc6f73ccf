//! sysbench's command line, options and reports, as text and values: what it is asked, and what it prints.
//!
//! Whoever runs a benchmark goes this way:
//!
//! ```text
//! argv ─► command_line::parse ─► CommandLine
//!            │ apply, to OptionSet::general() ─► Settings::read      what sysbench itself knows
//!            ▼
//!         Unresolved ─ the script declares its options ─ resolve ─► OptionSet, as scripts see it
//!            │
//!            ▼ Command::choose
//!         Command
//!                  Snapshots of a run ─► report ─► text, a JSON document
//! ```
//!
//! Names, defaults, formats of lines and the words of errors are sysbench's, since scripts and parsers rely on them.
//! They are facts of version 1.1 (its main branch); where the release 1.0.20 does otherwise, that is said at its place,
//! and so is what is wilfully different here. Explanations are our own.
#![deny(missing_docs)]

pub mod command_line;
pub mod failure;
pub mod help;
pub mod histogram;
pub mod log;
pub mod options;
pub mod refusal;
pub mod report;
pub mod settings;
pub mod version;

pub use command_line::CommandLine;
pub use histogram::Histogram;
pub use options::{OptionInfo, OptionSet};
pub use refusal::Refusal;
pub use report::Snapshot;
pub use settings::Settings;
