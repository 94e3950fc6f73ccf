//! Sequential runs of the same experiment: each figure against the run before it, and the changes of its level.

mod levels;
mod standing;

use std::borrow::Cow;
use std::cmp::Ordering;
use std::collections::BTreeSet;

use rumba_results::comparison::{Comparison, Figure, Part, Row, Summary, Unfinished};
use rumba_results::distinct;
use rumba_results::headline::CpuHeadline;
use rumba_results::history::{Axis, History, Line, Point, Step};
use rumba_results::metric::Metric;
use rumba_results::ratio::{Change, LEVEL, Ratio, SAME_MARGIN};
use rumba_results::record::Status;
use rumba_results::results::Results;

use crate::against::compare_summed;
use crate::alike::{called_as, engines};
use crate::conditions::condition_changes;
use crate::ratios::ratio;
use crate::relative::{self, Headline};
use crate::summary::summarise;
use crate::validity::withhold;

/// One run, with the directory that its results are in.
#[derive(Clone)]
pub struct Run {
    /// The directory, as given by the user.
    pub directory: String,
    pub results: Results,
}

/// A run with its summary.
struct Known<'a> {
    run: &'a Run,
    summary: Summary,
    point: Point,
}

/// The history of these runs. Each engine's runs have a separate order: by its versions if they differ, else by rumba's
/// commits, else by their starts. `by` overrides it for all.
pub fn history(runs: &[Run], by: Option<Axis>) -> History {
    let runs = alike(runs);
    let known = known(&runs);
    let mut lines = Vec::new();
    for (engine, clients) in rows(&known) {
        let order = Order::of(&known, &engine, by);
        for part in [Part::Load, Part::Run] {
            lines.extend(order.lines(&engine, clients, part));
        }
    }
    History {
        points: known.iter().map(|known| known.point.clone()).collect(),
        lines,
        differ: differ(&known),
        level: LEVEL,
        margin: SAME_MARGIN,
    }
}

/// For each engine, compares its last run with the earlier ones in its order, as one comparison. Each figure is
/// compared with the last earlier one that is complete and valid, as in [`history`]. `None` for a single run.
pub fn last_step(runs: &[Run], by: Option<Axis>) -> Option<Comparison> {
    let runs = alike(runs);
    let known = known(&runs);
    let engines: BTreeSet<String> = rows(&known).into_iter().map(|(engine, _)| engine).collect();
    let steps = engines.iter().filter_map(|engine| Order::of(&known, engine, by).last_step(engine));
    steps.reduce(|mut all, mut step| {
        all.rows.append(&mut step.rows);
        all.unmatched.append(&mut step.unmatched);
        all.interleaved &= step.interleaved;
        all
    })
}

/// The runs with their engines renamed to the latest run's names.
fn alike(runs: &[Run]) -> Vec<Cow<'_, Run>> {
    let mut latest_first: Vec<&Run> = runs.iter().collect();
    latest_first.sort_by(|one, other| other.results.started.cmp(&one.results.started));
    let mut names = BTreeSet::new();
    let mut all = Vec::new();
    for run in latest_first {
        let called = match called_as(&run.results, &names) {
            Cow::Borrowed(_) => Cow::Borrowed(run),
            Cow::Owned(results) => Cow::Owned(Run { directory: run.directory.clone(), results }),
        };
        names.extend(engines(&called.results));
        all.push(called);
    }
    all
}

fn known<'a>(runs: &'a [Cow<'_, Run>]) -> Vec<Known<'a>> {
    let mut runs: Vec<&Run> = runs.iter().map(AsRef::as_ref).collect();
    runs.sort_by(|one, other| one.results.started.cmp(&other.results.started));
    runs.into_iter().map(known_of).collect()
}

fn known_of(run: &Run) -> Known<'_> {
    let Run { directory, results } = run;
    let build = results.build.as_ref();
    let point = Point {
        directory: directory.clone(),
        name: results.name.clone(),
        started: results.started.clone(),
        commit: build.and_then(|build| build.short()),
        committed: build.and_then(|build| build.committed.clone()),
    };
    Known { run, summary: summarise(results), point }
}

/// The engines with their clients, in the order of their first appearance.
fn rows(known: &[Known<'_>]) -> Vec<(String, u32)> {
    let rows = known.iter().flat_map(|known| &known.summary.rows);
    distinct(rows.map(|row| (row.engine.clone(), row.clients)))
}

/// Names of conditions that differ between neighbouring runs, without conditions that always differ.
fn differ(known: &[Known<'_>]) -> Vec<String> {
    let again = ["load_average_at_start", "free_space", "resumed"];
    let pairs = known.windows(2).flat_map(|pair| condition_changes(&pair[0].run.results, &pair[1].run.results));
    let names: BTreeSet<String> = pairs.map(|change| change.name).collect();
    names.into_iter().filter(|name| !again.contains(&name.as_str())).collect()
}

/// The runs with an engine, in its order.
struct Order<'a> {
    by: Axis,
    runs: Vec<&'a Known<'a>>,
    all: &'a [Known<'a>],
}

impl<'a> Order<'a> {
    fn of(all: &'a [Known<'a>], engine: &str, by: Option<Axis>) -> Self {
        let has = |known: &&Known<'_>| {
            known.run.results.trials.iter().any(|trial| trial.record.plan.engine.name == engine)
                || known.summary.rows.iter().any(|row| row.engine == engine)
        };
        let mut runs: Vec<&Known<'_>> = all.iter().filter(has).collect();
        let several = |key: &dyn Fn(&Known<'_>) -> Option<String>| {
            runs.iter().filter_map(|known| key(known)).collect::<BTreeSet<String>>().len() > 1
        };
        let by = by.unwrap_or_else(|| match () {
            () if several(&|known| version(known, engine)) => Axis::Version,
            () if several(&|known| known.point.commit.clone()) => Axis::Commit,
            () => Axis::Started,
        });
        // The runs are ordered by their starts; a stable sort keeps this order for equal keys.
        match by {
            Axis::Version => runs.sort_by(|one, other| by_pieces(&version(one, engine), &version(other, engine))),
            Axis::Commit => runs.sort_by(|one, other| one.point.committed.cmp(&other.point.committed)),
            Axis::Started => {}
        }
        Self { by, runs, all }
    }

    /// The last run of an engine against the baseline from earlier ones; `None` if it is the only one.
    fn last_step(&self, engine: &str) -> Option<Comparison> {
        let (last, before) = self.runs.split_last()?;
        let nearest = before.last()?;
        let latest_first: Vec<&Summary> = before.iter().rev().map(|known| &known.summary).collect();
        let base = Summary {
            rows: standing::rows(&latest_first, &last.summary, engine),
            unfinished: nearest.summary.unfinished.clone(),
            ..Summary::default()
        };
        Some(compare_summed((&nearest.run.results, &base), (&last.run.results, &last.summary)))
    }

    /// The headline figures of a part.
    fn lines(&self, engine: &str, clients: u32, part: Part) -> Vec<Line> {
        let rows: Vec<Option<&Row>> = self.runs.iter().map(|known| known.summary.row(engine, clients)).collect();
        // A load shared by several numbers of clients is one load, reported with the first of them.
        let is_first = |(known, row): (&&Known<'_>, &Option<&Row>)| {
            row.is_some_and(|row| known.summary.clients_of_load(row).first() == Some(&clients))
        };
        if part == Part::Load && !self.runs.iter().zip(&rows).any(is_first) {
            return Vec::new();
        }
        // All runs use the same one of the two CPU metrics.
        let cpu = CpuHeadline::of_rows(rows.iter().flatten().copied());
        let figures: Vec<Vec<Headline<'_>>> = rows.iter().map(|row| headlines(*row, part, &cpu)).collect();
        let names = distinct(figures.iter().flatten().map(|headline| (headline.metric.clone(), headline.unit)));
        let line = |(metric, unit): (String, &str)| {
            let of_metric: Vec<Option<&Figure>> = figures
                .iter()
                .map(|of_run| of_run.iter().find(|headline| headline.metric == metric).map(|headline| headline.figure))
                .collect();
            let steps = self.steps(engine, part, (&metric, unit), &rows, &of_metric);
            let labels: Vec<&str> = steps.iter().map(|step| step.label.as_str()).collect();
            // Invalid data and biased selections of repeats have no level.
            let repeats = rows.iter().zip(&of_metric).map(|(row, figure)| {
                let is_sound = row.is_some_and(|row| row.why_not_judged(part).is_none());
                let sound = figure.filter(|figure| is_sound && figure.lacking().is_none());
                // Several starts of one load do not show the random difference between the loads of two runs.
                sound.and_then(|figure| Some(row.as_ref()?.part(part)?.numbers_of_loads(figure))).unwrap_or_default()
            });
            let changes = levels::changes(&labels, &repeats.collect::<Vec<_>>());
            let (engine, unit) = (engine.to_owned(), unit.to_owned());
            Line { engine, clients, part, metric, unit, by: self.by, steps, changes }
        };
        names.into_iter().map(line).collect()
    }

    /// One figure over the runs, each compared with the last earlier one that is complete and valid.
    fn steps(
        &self,
        engine: &str,
        part: Part,
        (metric, unit): (&str, &str),
        rows: &[Option<&Row>],
        figures: &[Option<&Figure>],
    ) -> Vec<Step> {
        let mut before: Option<(&Row, &Figure)> = None;
        let mut steps = Vec::new();
        for ((known, row), figure) in self.runs.iter().zip(rows).zip(figures) {
            let figure = figure.filter(|figure| !figure.numbers().is_empty());
            let unsound = row.and_then(|row| row.why_not_judged(part));
            let against = before.zip(figure).map(|(base, other)| {
                let starts = [Some(base.0), *row].map(|row| row.map(|row| row.starts(part)).unwrap_or_default());
                let mut tested = ratio(metric, unit, true, (base.1, other), starts);
                if let Some(row) = row {
                    withhold(&mut tested, base.0, row, part);
                }
                match unsound.is_some() {
                    true => Ratio { change: Change::Undecided, more_repeats: None, ..tested },
                    false => tested,
                }
            });
            // An undecided figure must not hide a step between its neighbours.
            if let Some(figure) = figure.filter(|figure| unsound.is_none() && figure.lacking().is_none()) {
                before = row.map(|row| (row, figure));
            }
            let values = figure.map(Figure::numbers).unwrap_or_default();
            steps.push(Step {
                point: self.all.iter().position(|other| std::ptr::eq(other, *known)).unwrap_or_default(),
                label: self.label(known, engine),
                version: version(known, engine),
                repeats: values.len() as u32,
                values,
                median: figure.map_or_else(
                    || Metric::absent(why_absent(known, *row, engine, part)),
                    |figure| figure.median.clone(),
                ),
                against,
                unsound,
            });
        }
        steps
    }

    /// The label of a run, with its start if others have the same name.
    fn label(&self, known: &Known<'_>, engine: &str) -> String {
        let name = |known: &Known<'_>| match self.by {
            Axis::Version => version(known, engine),
            Axis::Commit => known.point.commit.clone(),
            Axis::Started => Some(known.point.started.clone()),
        };
        let own = name(known);
        let alike = self.runs.iter().filter(|other| name(other) == own).count();
        match own {
            Some(own) if alike == 1 => own,
            Some(own) => format!("{own} ({})", known.point.started),
            None => known.point.started.clone(),
        }
    }
}

fn headlines<'a>(row: Option<&'a Row>, part: Part, cpu: &CpuHeadline) -> Vec<Headline<'a>> {
    let figures = row.and_then(|row| row.part(part)).into_iter();
    let all = figures.flat_map(|figures| relative::headlines(figures, part, cpu));
    all.filter(|headline| !headline.figure.numbers().is_empty()).collect()
}

/// The reason why a run has no figure of an engine.
fn why_absent(known: &Known<'_>, row: Option<&Row>, engine: &str, part: Part) -> String {
    let suspended = row.and_then(|row| row.why_suspended(part));
    if let Some(why) = row.and_then(Row::why_unsound).or(suspended) {
        return why;
    }
    let cause = |unfinished: &Unfinished| match &unfinished.status {
        Status::Failed { phase, cause } if unfinished.name.engine == engine => {
            Some(format!("it failed in {phase}: {cause}"))
        }
        _ => None,
    };
    known.summary.unfinished.iter().find_map(cause).unwrap_or_else(|| "no repeat has it".to_owned())
}

/// The version of an engine in a run: that of its last trial with a known version.
fn version(known: &Known<'_>, engine: &str) -> Option<String> {
    let of_engine = known.run.results.trials.iter().filter(|trial| trial.record.plan.engine.name == engine);
    of_engine.filter_map(|trial| trial.record.version.clone()).next_back()
}

/// Orders versions by their numbers (9.2 before 10.1), then by their text.
fn by_pieces(one: &Option<String>, other: &Option<String>) -> Ordering {
    let pieces = |version: &Option<String>| -> Vec<u64> {
        let text = version.as_deref().unwrap_or_default();
        let numbers = text.split(|c: char| !c.is_ascii_digit()).filter(|piece| !piece.is_empty());
        // A hash may contain digits that are too long for a number.
        numbers.filter_map(|piece| piece.parse().ok()).collect()
    };
    pieces(one).cmp(&pieces(other)).then_with(|| one.cmp(other))
}

#[cfg(test)]
mod tests;
