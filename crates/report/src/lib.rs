//! Report: terminal tables, JSON and one HTML page from records. It depends on [`rumba_results::results`] and the values
//! of [`rumba_results::comparison`], never on an engine.
#![deny(missing_docs)]

mod compact;
mod csv;
mod detection;
mod flame;
mod format;
mod gauges;
mod history;
mod history_page;
mod html;
mod json;
mod labels;
mod marks;
mod opening;
mod packed;
mod server;
mod tables;
mod timeline;
mod verdict;
mod written;

pub use csv::{comparison_csv, report_csv};
pub use detection::{DetectionDocument, detection_json, detection_schema, detection_table};
pub use flame::Profile;
pub use history::{HistoryDocument, history_csv, history_json, history_markdown, history_schema, history_table};
pub use history_page::{HistoryNotes, history_html};
pub use html::{LivePage, html, html_with, live_html, page_data};
pub use json::{ComparisonDocument, Document, comparison_json, comparison_schema, json, schema};
pub use opening::{Opening, opening};
pub use tables::markdown::{comparison_markdown, markdown};
pub use tables::{TableOptions, UnknownBaseline, comparison_table, tables};
pub use verdict::{Verdict, verdict_line, verdicts};
