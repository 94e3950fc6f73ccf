//! Warnings below the tables, the worst first, and the letters by which figures refer to them.

use std::fmt::Write as _;

use rumba_results::comparison::{About, Remark, Row};
use rumba_results::warning::{Rank, Warning};

use crate::format::counted;

/// The number of kinds of warnings shown by default; more only if all of them void figures.
const FEW: usize = 5;

/// The warnings of some results.
pub struct Warnings<'a> {
    groups: Vec<Group<'a>>,
    shown: usize,
    all: bool,
}

/// Warnings with the same code and remedy.
struct Group<'a> {
    warning: &'a Warning,
    lines: Vec<Line<'a>>,
}

/// A warning's message, and the other repeats of the same engine with a similar one.
struct Line<'a> {
    /// `None` when it is about all trials.
    about: Option<&'a About>,
    message: &'a str,
    likewise: Vec<String>,
}

impl<'a> Warnings<'a> {
    /// The warnings of all trials and those of single ones, the worst first; a few of them, or all.
    pub fn of(common: &'a [Warning], remarks: &'a [Remark], all: bool) -> Self {
        let mut groups: Vec<Group> = Vec::new();
        let named = remarks.iter().map(|remark| (&remark.warning, Some(&remark.about)));
        for (warning, about) in common.iter().map(|warning| (warning, None)).chain(named) {
            let same = |group: &Group| group.warning.code == warning.code && group.warning.remedy == warning.remedy;
            let index = groups.iter().position(same).unwrap_or_else(|| {
                groups.push(Group { warning, lines: Vec::new() });
                groups.len() - 1
            });
            groups[index].add(about, &warning.message);
        }
        groups.sort_by_key(|group| group.warning.order());
        let void = groups.iter().filter(|group| group.warning.rank() == Rank::Void).count();
        let worth = groups.iter().filter(|group| group.warning.rank() < Rank::Note).count();
        let shown = if all { groups.len() } else { worth.min(FEW.max(void)) };
        Self { groups, shown, all }
    }

    /// The letters of the shown warnings that undermine a metric in a row's loops or load.
    pub fn marks(&self, metric: &str, row: &Row, of_loops: bool) -> String {
        self.letters(metric, |line| {
            of_loops && line.about.is_some_and(|about| about.engine == row.engine && about.clients == row.clients)
        })
    }

    /// The letters of the warnings that undermine it in every row.
    pub fn common_marks(&self, metric: &str) -> String {
        self.letters(metric, |line| line.about.is_none())
    }

    fn letters(&self, metric: &str, is_about: impl Fn(&Line<'_>) -> bool) -> String {
        let shown = self.groups[..self.shown].iter().enumerate();
        let undermines = |group: &Group| group.marks_figures() && group.warning.undermines_metric(metric);
        let found = shown.filter(|(_, group)| undermines(group) && group.lines.iter().any(&is_about));
        found.filter_map(|(index, _)| letter(index)).collect()
    }

    /// The warnings below the tables; `report` is the command that shows all of them.
    pub fn render(&self, report: &str) -> String {
        let mut text = String::new();
        for (index, group) in self.groups[..self.shown].iter().enumerate() {
            let mark = letter(index).filter(|_| group.marks_figures()).unwrap_or(' ');
            text.push_str(&if self.all { group.in_full(mark) } else { group.in_short(mark) });
        }
        let rest = self.groups.len() - self.shown;
        if rest > 0 {
            let _ = writeln!(text, "  {rest} more: {report} --warnings");
        }
        if text.is_empty() {
            text
        } else {
            format!("\nWarnings, the worst first; their letters mark the affected figures\n{text}")
        }
    }
}

/// Kinds beyond the 26th have no letter.
fn letter(index: usize) -> Option<char> {
    ('a'..='z').nth(index)
}

impl<'a> Group<'a> {
    /// A warning about another repeat of the same engine is listed without its message. A warning about all repeats
    /// together is a separate finding.
    fn add(&mut self, about: Option<&'a About>, message: &'a str) {
        let repeat = about.and_then(|about| about.repeat);
        let is_of_another = |known: &About| {
            let is_same = about.is_some_and(|about| known.engine == about.engine && known.clients == about.clients);
            is_same && known.repeat.is_some() && known.repeat != repeat
        };
        let known = self.lines.iter_mut().find(|line| line.about.is_some_and(is_of_another));
        match (known, repeat) {
            (Some(line), Some(repeat)) => line.likewise.push(repeat.to_string()),
            _ => self.lines.push(Line { about, message, likewise: Vec::new() }),
        }
    }

    /// Whether its letter appears next to figures. Minor warnings have no letter, because they would mark every figure.
    fn marks_figures(&self) -> bool {
        self.warning.rank() <= Rank::Misleading && !self.warning.undermines().is_empty()
    }

    /// Two lines: the first occurrence with the number of others, and the remedy.
    fn in_short(&self, mark: char) -> String {
        let first = self.lines.first().map(Line::show).unwrap_or_default();
        let others = self.lines.len().saturating_sub(1);
        let more = match others {
            0 => String::new(),
            1 => " (and in 1 other)".to_owned(),
            _ => format!(" (and in {others} others)"),
        };
        format!("  {mark} {}: {first}{more}\n    remedy: {}\n", self.warning.code, self.warning.remedy)
    }

    fn in_full(&self, mark: char) -> String {
        let mut text = format!("  {mark} {}\n", self.warning.code);
        for line in &self.lines {
            let _ = writeln!(text, "      {}", line.show());
        }
        let undermines = self.warning.undermines();
        if !undermines.is_empty() {
            let _ = writeln!(text, "      affects: {}", undermines.join(", "));
        }
        let _ = writeln!(text, "      remedy: {}", self.warning.remedy);
        text
    }
}

impl Line<'_> {
    fn show(&self) -> String {
        let Some(about) = self.about else { return self.message.to_owned() };
        let mut text = format!("{}: {}", whom(about), self.message);
        if !self.likewise.is_empty() {
            let _ = write!(text, " (likewise in {})", self.likewise.join(", "));
        }
        text
    }
}

/// The subject of a remark in words: a repeat, or all repeats of an engine with its clients.
pub fn whom(about: &About) -> String {
    let of = format!("{}, {}", about.engine, counted(about.clients as usize, "client"));
    about.repeat.map_or_else(|| of.clone(), |repeat| format!("{of}, repeat {repeat}"))
}
