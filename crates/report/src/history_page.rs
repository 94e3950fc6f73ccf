//! The history of a benchmark as a page: the built template of `web/` with the history inside.

use std::collections::BTreeSet;

use rumba_results::comparison::metric_info;
use rumba_results::gate::Gated;
use rumba_results::history::History;
use serde::Serialize;

use crate::compact::compact;
use crate::format::counted;
use crate::history::{last, moved};
use crate::html::{MetricData, filled, metric_data};

/// The parts of the page in addition to the history.
#[derive(Default)]
pub struct HistoryNotes<'a> {
    /// The results of the conditions of `--fail-if`.
    pub gated: &'a [Gated],
    /// Runs that are not in the history, with the reasons.
    pub left_out: &'a [String],
    /// The address of the library, relative to the page's own. The runs' directories are then names in the library.
    pub library: Option<&'a str>,
}

/// The data of the page. `web/src/history-data.ts` mirrors it, and recognises the page by the name of this field.
#[derive(Serialize)]
struct PageData<'a> {
    history: HistoryPage<'a>,
}

#[derive(Serialize)]
struct HistoryPage<'a> {
    name: &'a str,
    #[serde(flatten)]
    history: &'a History,
    /// The results of the conditions, the changes of level and the verdicts on the last runs, in sentences.
    gates: Vec<String>,
    moved: Vec<String>,
    last: Vec<String>,
    left_out: &'a [String],
    metrics: Vec<MetricData<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    library: Option<&'a str>,
}

/// A history as one self-contained page: no network, no other file.
pub fn history_html(history: &History, notes: &HistoryNotes<'_>) -> String {
    let names: BTreeSet<&str> = history.points.iter().map(|point| point.name.as_str()).collect();
    let name = names.into_iter().collect::<Vec<_>>().join(", ");
    let metrics: BTreeSet<&str> = history.lines.iter().map(|line| line.metric.as_str()).collect();
    let page = HistoryPage {
        name: &name,
        history,
        gates: notes.gated.iter().map(Gated::line).collect(),
        moved: moved(history),
        last: last(history),
        left_out: notes.left_out,
        metrics: metrics.into_iter().filter_map(|name| Some(metric_data(name, metric_info(name)?))).collect(),
        library: notes.library,
    };
    let data = compact(&PageData { history: page }).expect("plain values with text keys always serialise");
    filled(&format!("{name}: history of {}", counted(history.points.len(), "run")), &data)
}
