//! `xtask simulate`: how often verdicts err, and what they find.
//!
//! Made-up runs of two engines whose trials take turns, A B B A …: the logarithm
//! of a trial's figure is the engine's plus a disturbance of the host, a
//! stationary normal AR(1) process over the trials in the order of running. The
//! verdicts are those of `rumba compare` on these figures.

use std::fmt::Write as _;
use std::path::Path;

use rand::SeedableRng as _;
use rand_distr::{Distribution as _, StandardNormal};
use rand_xoshiro::Xoshiro256PlusPlus;
use rumba_core::metric::Better;
use rumba_core::ratio::Change;

use crate::bench::Failure;

/// Simulated comparisons in a cell with so many repeats: enough to tell 5.0 from 5.3%. With nine of each the exact test
/// looks at four times as many deals as with eight: fewer comparisons keep the whole at some minutes.
fn draws(repeats: usize) -> u32 {
    if repeats <= 8 { 50_000 } else { 10_000 }
}

/// What a verdict may err in.
const LEVEL: f64 = 0.05;
const SEED: u64 = 0x000a_11ce;
const REPEATS: std::ops::RangeInclusive<usize> = 2..=10;
const NOISE: [f64; 3] = [0.02, 0.05, 0.10];
const CORRELATIONS: [f64; 3] = [0.0, 0.5, 0.9];
const BEGIN: &str = "<!-- simulated: cargo run --release -p xtask -- simulate --write -->";
const END: &str = "<!-- end of simulated -->";

/// In which order the trials of the two engines run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// A B B A …, as rumba runs the repeats of one experiment.
    Interleaved,
    /// A A … B B …, as two runs one after the other.
    OneAfterTheOther,
}

/// What is simulated.
#[derive(Clone, Copy, Debug)]
pub struct Cell {
    /// Repeats of each engine.
    pub repeats: usize,
    /// Relative standard deviation of a repeat of each engine.
    pub noise: [f64; 2],
    /// Correlation of the disturbances of neighbouring trials.
    pub correlation: f64,
    /// The second engine's figure over the first's.
    pub ratio: f64,
    /// The order of running.
    pub order: Order,
    /// What a trial of the first engine leaves behind for the next one, of whichever engine, in standard deviations.
    pub left_behind: f64,
}

impl Cell {
    fn alike(repeats: usize, noise: f64, correlation: f64) -> Self {
        Self { repeats, noise: [noise; 2], correlation, ratio: 1.0, order: Order::Interleaved, left_behind: 0.0 }
    }

    /// The share of draws in which the verdict says better or worse.
    pub fn decided(self, draws: u32) -> f64 {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(SEED ^ self.repeats as u64);
        let decided = (0..draws).filter(|_| {
            let [base, other] = self.draw(&mut random);
            matches!(rumba_statistics::test(&base, &other, Better::More).change, Change::Better | Change::Worse)
        });
        decided.count() as f64 / f64::from(draws)
    }

    fn draw(self, random: &mut Xoshiro256PlusPlus) -> [Vec<f64>; 2] {
        let mut normal = || -> f64 { StandardNormal.sample(random) };
        let mut disturbance = normal();
        let mut sides = [Vec::new(), Vec::new()];
        let side_of = |trial: usize| match self.order {
            Order::Interleaved => (trial % 2) ^ (trial / 2 % 2),
            Order::OneAfterTheOther => trial / self.repeats,
        };
        for trial in 0..2 * self.repeats {
            let side = side_of(trial);
            let level = if side == 1 { self.ratio } else { 1.0 };
            let found = if trial > 0 && side_of(trial - 1) == 0 { self.left_behind } else { 0.0 };
            sides[side].push(level * (self.noise[side] * (disturbance + found)).exp());
            disturbance =
                self.correlation * disturbance + (1.0 - self.correlation * self.correlation).sqrt() * normal();
        }
        sides
    }
}

/// What the simulation found.
pub struct Simulated {
    /// The largest share of false verdicts in any cell of interleaved A/A data.
    pub worst: f64,
    /// The cells that err more often than they may, by more than three standard errors of the simulation.
    pub beyond: Vec<String>,
    /// How often a change of 5% is found with 5 repeats of 1% noise.
    pub found: f64,
    tables: String,
}

/// Simulates every cell.
pub fn simulate() -> Simulated {
    let mut worst: f64 = 0.0;
    let mut beyond = Vec::new();
    let (many, few) = (draws(*REPEATS.start()), draws(*REPEATS.end()));
    let mut tables = format!(
        "{BEGIN}\n\nTwo engines that are alike, {many} comparisons in each cell, {few} in those of nine and ten repeats: \
         how often\nthe verdict of one metric is better or worse, in percent (standard error {:.1} and {:.1}). *c* is the \
         correlation of\nneighbouring trials.\n\n",
        100.0 * standard_error(many),
        100.0 * standard_error(few)
    );
    let mut heads = String::from("| repeats |");
    for correlation in CORRELATIONS {
        for noise in NOISE {
            let _ = write!(heads, " noise {:.0}%, c {correlation} |", noise * 100.0);
        }
    }
    heads += " noise 2% beside 10% | left behind: one deviation | one run after the other, c 0.5 |";
    let _ = writeln!(tables, "{heads}\n|{}", "---|".repeat(heads.matches('|').count() - 1));
    for repeats in REPEATS {
        let _ = write!(tables, "| {repeats} |");
        for correlation in CORRELATIONS {
            for noise in NOISE {
                let share = Cell::alike(repeats, noise, correlation).decided(draws(repeats));
                worst = worst.max(share);
                if share > allowed(draws(repeats)) {
                    beyond.push(format!("{repeats} repeats, noise {noise}, c {correlation}: {share}"));
                }
                let _ = write!(tables, " {:.1} |", share * 100.0);
            }
        }
        let uneven = Cell { noise: [0.02, 0.10], ..Cell::alike(repeats, 0.02, 0.0) };
        let after = Cell { order: Order::OneAfterTheOther, ..Cell::alike(repeats, 0.05, 0.5) };
        let left = Cell { left_behind: 1.0, ..Cell::alike(repeats, 0.05, 0.0) };
        let [uneven, left, after] = [uneven, left, after].map(|cell| 100.0 * cell.decided(draws(repeats)));
        let _ = writeln!(tables, " {uneven:.1} | {left:.1} | {after:.1} |");
    }
    let (power, found) = power();
    tables += &power;
    let _ = write!(tables, "\n{END}");
    Simulated { worst, beyond, found, tables }
}

fn power() -> (String, f64) {
    let noises = [0.01, 0.02, 0.05, 0.10];
    let mut text = String::from("\nOne engine 5% faster: how often that is found, in percent.\n\n| repeats |");
    noises.iter().for_each(|noise| text += &format!(" noise {:.0}% |", noise * 100.0));
    let _ = writeln!(text, "\n|{}", "---|".repeat(noises.len() + 1));
    let mut found = 0.0;
    for repeats in REPEATS {
        let _ = write!(text, "| {repeats} |");
        for noise in noises {
            let share = Cell { ratio: 1.05, ..Cell::alike(repeats, noise, 0.0) }.decided(draws(repeats));
            if repeats == 5 && noise == 0.01 {
                found = share;
            }
            let _ = write!(text, " {:.1} |", share * 100.0);
        }
        text.push('\n');
    }
    (text, found)
}

/// The standard error of a share of 5%.
fn standard_error(draws: u32) -> f64 {
    (LEVEL * (1.0 - LEVEL) / f64::from(draws)).sqrt()
}

/// The largest share that so many draws of what errs in 5% of cases come to.
fn allowed(draws: u32) -> f64 {
    LEVEL + 3.0 * standard_error(draws)
}

impl Simulated {
    /// Whether no cell errs more often than it may, within three standard errors of the simulation.
    pub fn keeps_level(&self) -> bool {
        self.beyond.is_empty()
    }
}

/// Prints the tables, or puts them into docs/method.md; returns whether the goals are met.
///
/// # Errors
/// When docs/method.md lacks the place for them.
pub fn run(root: &Path, write: bool) -> Result<bool, Failure> {
    let simulated = simulate();
    if write {
        let path = root.join("docs/method.md");
        let page = std::fs::read_to_string(&path)?;
        let (Some(begin), Some(end)) = (page.find(BEGIN), page.find(END)) else {
            return Err(format!("docs/method.md lacks the lines `{BEGIN}` and `{END}`").into());
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

    /// Fewer draws than the committed table, the cells where tests that are not exact err most.
    #[test]
    fn few_repeats_of_engines_that_are_alike_are_not_told_apart() {
        for (repeats, most) in [(2, 0.0), (3, 0.0), (4, 2.0 / 70.0), (5, 12.0 / 252.0)] {
            let share = Cell::alike(repeats, 0.05, 0.0).decided(2000);
            assert!(share <= most + 0.015, "{repeats} repeats: {share}");
        }
        assert!(Cell::alike(5, 0.05, 0.9).decided(500) < 0.02, "taking turns cancels what the host does slowly");
    }

    #[test]
    fn the_tables_can_tell_an_error_of_5_percent_from_one_of_6() {
        for repeats in REPEATS {
            assert!(allowed(draws(repeats)) < 0.057, "{repeats} repeats: {}", allowed(draws(repeats)));
        }
        assert!(allowed(draws(8)) < 0.0535, "what four thousand draws did not tell: {}", allowed(draws(8)));
    }

    #[test]
    fn a_change_of_5_percent_is_found_in_five_repeats_of_1_percent_noise() {
        assert!(Cell { ratio: 1.05, ..Cell::alike(5, 0.01, 0.0) }.decided(500) > 0.9);
    }

    #[test]
    fn runs_one_after_the_other_err_where_runs_that_take_turns_do_not() {
        let after = Cell { order: Order::OneAfterTheOther, ..Cell::alike(6, 0.05, 0.9) };
        assert!(after.decided(500) > 0.15);
    }
}
