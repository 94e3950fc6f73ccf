//! `xtask simulate`: the error rates of verdicts, and their power.
//!
//! It simulates runs of two engines whose trials alternate, A B B A …. The logarithm of a trial's figure is the
//! engine's value plus a disturbance of the host. The disturbance is a stationary AR(1) process over the trials in the
//! order of running. The verdicts are those of `rumba compare` on these figures.

mod cell;

use std::fmt::Write as _;
use std::path::Path;

use rumba_results::starts::Starts;

use crate::bench::Failure;
use cell::{Cell, LEVEL, Order, Shape, Shares};

/// The number of simulated comparisons in a cell with this many repeats. For few repeats it is enough to distinguish
/// 5.0% from 5.3%. Each additional repeat makes the permutation test four times as slow, so fewer comparisons keep the
/// total at some minutes.
fn draws(repeats: usize) -> u32 {
    if repeats <= 6 { 50_000 } else { 10_000 }
}

const REPEATS: [usize; 6] = [2, 3, 4, 5, 6, 8];
/// Sides of unequal size: a trial failed, or two runs are compared.
const UNEVEN: [[usize; 2]; 5] = [[4, 3], [5, 4], [6, 4], [8, 4], [6, 3]];
/// Runs that end once they are decided: the most repeats, and how many such runs. Above nine repeats a test draws its deals.
const UNTIL_DECIDED: [(usize, u32); 4] = [(6, 20_000), (10, 5_000), (20, 2_000), (50, 1_000)];
const BEGIN: &str = "<!-- simulated: cargo run --release -p xtask -- simulate --write -->";
const END: &str = "<!-- end of simulated -->";

/// A column of the tables for equal engines.
struct Column {
    head: &'static str,
    cell: fn(usize) -> Cell,
    /// Whether the level is promised there.
    promised: bool,
}

const COLUMNS: [Column; 10] = [
    Column { head: "noise 5%, c 0", cell: |n| Cell::alike(n, 0.05, 0.0), promised: true },
    Column { head: "c 0.5", cell: |n| Cell::alike(n, 0.05, 0.5), promised: true },
    Column { head: "c 0.9", cell: |n| Cell::alike(n, 0.05, 0.9), promised: true },
    Column { head: "2% and 10%", cell: |n| uneven(n, [0.02, 0.10]), promised: true },
    Column { head: "10% and 2%", cell: |n| uneven(n, [0.10, 0.02]), promised: true },
    Column { head: "skewed", cell: skewed, promised: true },
    Column { head: "left behind", cell: |n| Cell { left_behind: 1.0, ..Cell::alike(n, 0.05, 0.0) }, promised: false },
    Column {
        head: "2% and 10%, c 0.5",
        cell: |n| Cell { correlation: 0.5, ..uneven(n, [0.02, 0.10]) },
        promised: false,
    },
    Column { head: "10% and 2%, skewed", cell: |n| Cell { noise: [0.10, 0.02], ..skewed(n) }, promised: false },
    Column {
        head: "one run after the other, c 0.5",
        cell: |n| Cell { order: Order::OneAfterTheOther, ..Cell::alike(n, 0.05, 0.5) },
        promised: false,
    },
];

fn uneven(repeats: usize, noise: [f64; 2]) -> Cell {
    Cell { noise, ..Cell::alike(repeats, 0.0, 0.0) }
}

fn skewed(repeats: usize) -> Cell {
    Cell { shape: Shape::Skewed, ..Cell::alike(repeats, 0.05, 0.0) }
}

/// The results of the simulation.
pub struct Simulated {
    /// The largest share of false verdicts in any cell for which the level is guaranteed.
    pub worst: f64,
    /// The cells that err more often than they may, by more than three standard errors of the simulation.
    pub beyond: Vec<String>,
    /// How often a change of 5% is found with 5 repeats of 1% noise.
    pub found: f64,
    tables: String,
}

/// Simulates every cell.
pub fn simulate() -> Simulated {
    let mut simulated = Simulated { worst: 0.0, beyond: Vec::new(), found: 0.0, tables: format!("{BEGIN}\n") };
    simulated.alike();
    simulated.of_uneven_numbers();
    simulated.until_decided();
    simulated.power();
    let _ = write!(simulated.tables, "\n{END}");
    simulated
}

impl Simulated {
    /// Whether no cell errs more often than it may, within three standard errors of the simulation.
    pub fn keeps_level(&self) -> bool {
        self.beyond.is_empty()
    }

    /// The tables for equal engines, two-sided and one-sided.
    fn alike(&mut self) {
        type Share = fn(&Shares) -> f64;
        let (many, few) = (draws(2), draws(8));
        let of_repeats = |repeats: usize| -> Vec<Shares> {
            COLUMNS.iter().map(|column| (column.cell)(repeats).shares(draws(repeats))).collect()
        };
        let rows = REPEATS.map(|repeats| (repeats, of_repeats(repeats)));
        let kinds: [(&str, Share); 2] = [
            ("how often the verdict of one metric is better or worse", |shares| shares.two_sided),
            ("how often a claim holds that the second engine's figure is larger", |shares| shares.one_sided),
        ];
        for (what, share) in kinds {
            let _ = write!(
                self.tables,
                "\nTwo engines with the same mean: {what}, in percent.\nEach cell is of {many} comparisons, with eight \
                 repeats of {few} (standard error {:.1} and {:.1}).\n\n",
                100.0 * standard_error(many),
                100.0 * standard_error(few)
            );
            self.heads("repeats", COLUMNS.iter().map(|column| column.head));
            for (repeats, of_row) in &rows {
                let _ = write!(self.tables, "| {repeats} |");
                for (column, shares) in COLUMNS.iter().zip(of_row) {
                    let share = share(shares);
                    if column.promised {
                        self.promise(share, draws(*repeats), || format!("{repeats} repeats, {}, {what}", column.head));
                    }
                    let _ = write!(self.tables, " {:.1} |", share * 100.0);
                }
                self.tables.push('\n');
            }
        }
    }

    fn of_uneven_numbers(&mut self) {
        self.tables += "\nThe same with unequal numbers of repeats, in percent: two-sided, and one-sided.\n\n";
        let noises = [("noise 5%", [0.05; 2]), ("2% and 10%", [0.02, 0.10]), ("10% and 2%", [0.10, 0.02])];
        self.heads("repeats", noises.iter().map(|(head, _)| *head));
        for repeats in UNEVEN {
            let _ = write!(self.tables, "| {} and {} |", repeats[0], repeats[1]);
            for (_, noise) in noises {
                let shares = Cell { repeats, ..uneven(0, noise) }.shares(draws(repeats[0]));
                let _ = write!(self.tables, " {:.1}, {:.1} |", 100.0 * shares.two_sided, 100.0 * shares.one_sided);
            }
            self.tables.push('\n');
        }
    }

    /// Runs that test their verdicts after each repeat.
    fn until_decided(&mut self) {
        self.tables += "\nTwo engines with the same mean, in a run with `until_decided`: how often a verdict of one metric \
                        is better or worse after any repeat, in percent. In the first column, p-values are not \
                        corrected.\n\n";
        let columns: Vec<&Column> = COLUMNS.iter().filter(|column| column.promised).collect();
        self.heads("at most", std::iter::once("uncorrected").chain(columns.iter().map(|column| column.head)));
        for (most, draws) in UNTIL_DECIDED {
            let plain = (columns[0].cell)(most).ever_decided(draws, 1.0);
            let _ = write!(self.tables, "| {most} | {:.1} |", plain * 100.0);
            let looks = Starts::looks_factor(&[Starts { at_most: Some(most as u32), ..Starts::default() }]);
            for column in &columns {
                let share = (column.cell)(most).ever_decided(draws, looks);
                self.promise(share, draws, || format!("until decided, at most {most} repeats, {}", column.head));
                let _ = write!(self.tables, " {:.1} |", share * 100.0);
            }
            self.tables.push('\n');
        }
    }

    fn power(&mut self) {
        let noises = [0.01, 0.02, 0.05, 0.10];
        self.tables += "\nOne engine 5% faster: how often that is found, in percent.\n\n";
        let heads: Vec<String> = noises.iter().map(|noise| format!("noise {:.0}%", noise * 100.0)).collect();
        self.heads("repeats", heads.iter().map(String::as_str));
        for repeats in REPEATS {
            let _ = write!(self.tables, "| {repeats} |");
            for noise in noises {
                let share = Cell { ratio: 1.05, ..Cell::alike(repeats, noise, 0.0) }.decided(draws(repeats));
                if repeats == 5 && noise == 0.01 {
                    self.found = share;
                }
                let _ = write!(self.tables, " {:.1} |", share * 100.0);
            }
            self.tables.push('\n');
        }
    }

    fn heads<'a>(&mut self, first: &'a str, heads: impl Iterator<Item = &'a str>) {
        let heads: Vec<&str> = std::iter::once(first).chain(heads).collect();
        let _ = writeln!(self.tables, "| {} |\n|{}", heads.join(" | "), "---|".repeat(heads.len()));
    }

    /// Records a share that must not exceed the level.
    fn promise(&mut self, share: f64, draws: u32, what: impl Fn() -> String) {
        self.worst = self.worst.max(share);
        if share > allowed(draws) {
            self.beyond.push(format!("{}: {share}", what()));
        }
    }
}

/// The standard error of a share of 5%.
fn standard_error(draws: u32) -> f64 {
    (LEVEL * (1.0 - LEVEL) / f64::from(draws)).sqrt()
}

/// The largest share that this many draws of an error rate of 5% can be expected to reach.
fn allowed(draws: u32) -> f64 {
    LEVEL + 3.0 * standard_error(draws)
}

/// Prints the tables, or puts them into docs/error-rates.md; returns whether the goals are met.
///
/// # Errors
/// docs/error-rates.md has no place for them.
pub fn run(root: &Path, write: bool) -> Result<bool, Failure> {
    let simulated = simulate();
    if write {
        let path = root.join("docs/error-rates.md");
        let page = std::fs::read_to_string(&path)?;
        let (Some(begin), Some(end)) = (page.find(BEGIN), page.find(END)) else {
            return Err(format!("docs/error-rates.md lacks the lines `{BEGIN}` and `{END}`").into());
        };
        std::fs::write(&path, format!("{}{}{}", &page[..begin], simulated.tables, &page[end + END.len()..]))?;
        println!("written: {}", path.display());
    } else {
        println!("{}", simulated.tables);
    }
    println!("most false verdicts in a cell: {:.2}%; found: {:.1}%", 100.0 * simulated.worst, 100.0 * simulated.found);
    simulated.beyond.iter().for_each(|cell| println!("errs too often: {cell}"));
    Ok(simulated.keeps_level() && simulated.found >= 0.9)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fewer draws than in the committed table, for the cells where inexact tests err most.
    #[test]
    fn few_repeats_of_similar_engines_differ_insignificantly() {
        for (repeats, most) in [(2, 0.0), (3, 0.0), (4, 2.0 / 70.0), (5, 12.0 / 252.0)] {
            let share = Cell::alike(repeats, 0.05, 0.0).decided(2000);
            assert!(share <= most + 0.015, "{repeats} repeats: {share}");
        }
        assert!(Cell::alike(5, 0.05, 0.9).decided(500) < 0.02, "taking turns cancels what the host does slowly");
    }

    #[test]
    fn unequal_and_skewed_noise_keep_the_significance_level() {
        for column in COLUMNS.iter().filter(|column| column.promised) {
            for repeats in [3, 4, 5] {
                let Shares { two_sided, one_sided } = (column.cell)(repeats).shares(20_000);
                let most = allowed(20_000);
                assert!(two_sided <= most && one_sided <= most, "{}: {two_sided}, {one_sided}", column.head);
            }
        }
    }

    #[test]
    fn sides_of_unequal_size_err_little_more_often() {
        for repeats in UNEVEN {
            let shares = Cell { repeats, ..uneven(0, [0.02, 0.10]) }.shares(5000);
            assert!(shares.two_sided < 0.07 && shares.one_sided < 0.07, "{repeats:?}: {shares:?}");
        }
    }

    #[test]
    fn tables_distinguish_a_5_percent_error_from_6_percent() {
        for repeats in REPEATS {
            assert!(allowed(draws(repeats)) < 0.057, "{repeats} repeats: {}", allowed(draws(repeats)));
        }
        assert!(allowed(draws(6)) < 0.0535, "{}", allowed(draws(6)));
    }

    #[test]
    fn five_repeats_detect_a_5_percent_change() {
        assert!(Cell { ratio: 1.05, ..Cell::alike(5, 0.01, 0.0) }.decided(500) > 0.9);
    }

    #[test]
    fn sequential_runs_err_where_alternating_runs_do_not() {
        let after = Cell { order: Order::OneAfterTheOther, ..Cell::alike(6, 0.05, 0.9) };
        assert!(after.decided(500) > 0.15);
    }
}
