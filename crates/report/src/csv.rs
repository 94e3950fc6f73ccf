//! Results and comparisons as long tables of flat columns (CSV, RFC 4180), which a data frame loads directly. A value,
//! the reason for its absence, and its unit have separate columns.

use rumba_results::comparison::{Comparison, Part, Row, Summary, metric_info};
use rumba_results::metric::{METRICS, Metric};
use rumba_results::record::{OpStats, Percentiles, PhaseKind, PhaseRecord, Record};
use rumba_results::results::{Results, Trial};
use serde::Serialize;

use crate::json::{charged, charged_metrics, status_word};

/// The columns of [`report_csv`].
const REPORT: &str = "experiment,started,rumba,commit,engine,uses,version,workload,test,clients,rate,repeat,trial,\
    part,status,phase,left_out,operation,time,metric,unit,value,absent,trial_started";

/// The columns of [`comparison_csv`].
const COMPARISON: &str = "base_run,other_run,engine,clients,part,metric,unit,headline,base,base_absent,other,\
    other_absent,ratio,ratio_absent,low,high,interval_absent,change,scope,p,more_repeats,undecided_because,in_turns";

/// Every figure of every trial: a row for each phase and metric, and for each type of operation and its times.
pub fn report_csv(results: &Results, summary: &Summary) -> String {
    let mut table = Lines::new(REPORT);
    for trial in &results.trials {
        for phase in &trial.record.phases {
            let of_phase = OfPhase { results, summary, trial, phase };
            of_phase.metrics(&mut table);
            of_phase.operations(&mut table);
        }
    }
    table.text()
}

/// Every metric of every engine of a comparison.
pub fn comparison_csv(comparison: &Comparison) -> String {
    let mut table = Lines::new(COMPARISON);
    let runs = || vec![comparison.base.name.clone(), comparison.other.name.clone()];
    for row in &comparison.rows {
        for compared in &row.metrics {
            let ratio = &compared.ratio;
            let mut cells = runs();
            cells.extend([row.engine.clone(), row.clients.to_string(), word(row.part)]);
            cells.extend([ratio.metric.clone(), ratio.unit.clone(), ratio.headline.to_string()]);
            cells.extend(both(&compared.base.median));
            cells.extend(both(&compared.other.median));
            cells.extend(both(&ratio.ratio));
            let [low, why] = both(&ratio.low);
            cells.extend([low, number(ratio.high.value()), why, word(ratio.change), word(ratio.scope)]);
            cells.push(number(ratio.p));
            cells.push(ratio.more_repeats.map_or_else(String::new, |more| more.to_string()));
            cells.push(row.unsound.clone().unwrap_or_default());
            cells.push(row.in_turns.to_string());
            table.push(cells);
        }
    }
    for one in &comparison.unmatched {
        let mut cells = runs();
        cells.extend([one.engine.clone(), one.clients.to_string(), word(one.part)]);
        cells.resize(table.width - 2, String::new());
        cells.extend([one.reason.clone(), String::new()]);
        table.push(cells);
    }
    table.text()
}

/// Rows of text with a fixed number of columns.
pub struct Lines {
    writer: csv::Writer<Vec<u8>>,
    width: usize,
}

impl Lines {
    /// A table with these headings, separated by commas.
    pub fn new(heads: &str) -> Self {
        let heads: Vec<String> = heads.split(',').map(str::to_owned).collect();
        let mut table = Self { writer: csv::Writer::from_writer(Vec::new()), width: heads.len() };
        table.push(heads);
        table
    }

    /// Adds a row.
    pub fn push(&mut self, cells: Vec<String>) {
        debug_assert_eq!(cells.len(), self.width);
        self.writer.write_record(&cells).expect("memory takes every row, and each has as many cells as the head");
    }

    /// The table.
    pub fn text(self) -> String {
        let bytes = self.writer.into_inner().expect("memory takes what is buffered");
        String::from_utf8(bytes).expect("every cell is text")
    }
}

struct OfPhase<'a> {
    results: &'a Results,
    summary: &'a Summary,
    trial: &'a Trial,
    phase: &'a PhaseRecord,
}

impl OfPhase<'_> {
    fn push(&self, table: &mut Lines, operation: [&str; 2], metric: &str, unit: &str, value: &Metric) {
        let record = &self.trial.record;
        let plan = &record.plan;
        let commit = record.build.as_ref().or(self.results.build.as_ref()).and_then(|build| build.short());
        let [value, absent] = both(value);
        let [operation, time] = operation.map(str::to_owned);
        table.push(vec![
            self.results.name.clone(),
            self.results.started.clone(),
            self.results.rumba.clone(),
            commit.unwrap_or_default(),
            plan.engine.name.clone(),
            plan.engine.engine.clone(),
            record.version.clone().unwrap_or_default(),
            plan.workload.clone(),
            plan.test.clone().unwrap_or_default(),
            plan.clients.to_string(),
            number(plan.run.rate),
            plan.repeat.to_string(),
            plan.number.to_string(),
            word(plan.part),
            word(status_word(&record.status).0),
            self.phase.phase.to_string(),
            self.left_out(),
            operation,
            time,
            metric.to_owned(),
            unit.to_owned(),
            value,
            absent,
            record.started.clone(),
        ]);
    }

    /// The reason why the phase's figures are in no median; empty if they are.
    fn left_out(&self) -> String {
        let plan = &self.trial.record.plan;
        let row = self.summary.row(&plan.engine.name, plan.clients);
        if let Some(unsound) = row.and_then(|row| row.unsound.iter().find(|one| one.trial == plan.number)) {
            return unsound.words();
        }
        let of = if self.phase.phase == PhaseKind::Load { Part::Load } else { Part::Run };
        let is_it = |row: &Row| {
            let found = row.suspended.iter().find(|one| one.trial == plan.number && one.part == of);
            found.map(|one| one.reason.clone())
        };
        if let Some(reason) = row.and_then(is_it) {
            return reason;
        }
        if let Some(reason) = row.and_then(|row| row.why_left_out(plan.number, of)) {
            return reason.to_owned();
        }
        let trials = row.and_then(|row| row.run.as_ref()).map(|run| run.trials.as_slice()).unwrap_or_default();
        if plan.probe.is_some() && !trials.contains(&plan.number) {
            return "a probe of a search, not the last that kept the highest rate".to_owned();
        }
        if self.phase.complete { String::new() } else { "it was cut off".to_owned() }
    }

    /// The phase's metrics, without those that no phase of its kind has.
    fn metrics(&self, table: &mut Lines) {
        let nothing = Metric::default();
        self.push(table, ["", ""], "seconds", "s", &Metric::Value(self.phase.seconds));
        self.push(table, ["", ""], "ops", "1", &Metric::Value(self.phase.ops as f64));
        for info in METRICS {
            if let Some(value) = self.phase.metrics.get(info.name).filter(|value| **value != nothing) {
                self.push(table, ["", ""], info.name, info.unit, value);
            }
        }
        for name in self.charged_here(&self.trial.record) {
            let unit = metric_info(&name).map_or("", |info| info.unit);
            self.push(table, ["", ""], &name, unit, &charged(&self.trial.record, self.summary, &name));
        }
    }

    /// Metrics over several phases, reported with the phase whose operations divide them.
    fn charged_here(&self, record: &Record) -> Vec<String> {
        let is_here = |name: &String| match self.phase.phase {
            PhaseKind::Load => name.ends_with("_with_settle"),
            PhaseKind::Loops => !name.ends_with("_with_settle"),
            _ => false,
        };
        charged_metrics(record).filter(is_here).collect()
    }

    fn operations(&self, table: &mut Lines) {
        for (operation, stats) in &self.phase.op_types {
            let OpStats { count, errors, retries, ended_late, open, .. } = *stats;
            let counts = [
                ("count", count),
                ("errors", errors),
                ("retries", retries),
                ("ended_late", ended_late),
                ("open", open),
            ];
            for (name, count) in counts {
                self.push(table, [operation, ""], name, "1", &Metric::Value(count as f64));
            }
            for (time, of) in [("service", &stats.service), ("response", &stats.response)] {
                for (name, get) in Percentiles::NAMED {
                    self.push(table, [operation, time], name, "ms", get(of));
                }
            }
        }
    }
}

/// A value and the reason for its absence, one of which is empty.
pub fn both(metric: &Metric) -> [String; 2] {
    [number(metric.value()), metric.reason().unwrap_or_default().to_owned()]
}

/// A number with all its digits; empty if there is none.
pub fn number(value: Option<f64>) -> String {
    value.map_or_else(String::new, |value| value.to_string())
}

/// A part, a verdict, a scope or a status by its name in JSON.
pub fn word(of: impl Serialize) -> String {
    let json = serde_json::to_value(of).unwrap_or_default();
    json.as_str().unwrap_or_default().to_owned()
}
