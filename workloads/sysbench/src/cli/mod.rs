//! sysbench's command line, options and reports, as text and values: its input and its output.
//!
//! A benchmark run takes these steps:
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
//! Names, defaults, line formats and error messages are sysbench's, because scripts and parsers rely on them. They are
//! those of version 1.1 (its main branch), except for the closing report, which has the layout of the release 1.0.20
//! unless [`layout`] finds another. Comments mark other differences of 1.0.20, and intentional differences of rumba. The
//! explanations are rumba's own.

pub mod command_line;
pub mod failure;
pub mod help;
pub mod histogram;
pub mod layout;
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
