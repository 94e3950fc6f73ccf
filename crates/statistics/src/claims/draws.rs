//! The figures that a claim's expression sees: medians of all repeats first,
//! then of repeats drawn again.

use std::cell::RefCell;
use std::rc::Rc;

use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use rumba_core::comparison::{Figure, PhaseFigures, Row};

use super::expression::{Asked, Lookup, Scope, Trouble};
use crate::median;

/// The bootstrap's seed: a verdict must not depend on when it is asked for.
const SEED: u64 = 0x636c_6169_6d73;

/// Repeats as drawn: for each row, the numbers of the trials that are taken; all of them at first.
type Picks = Vec<Vec<u32>>;

/// The figures of a run, drawn again and again.
pub struct Draws {
    rows: Rc<[Row]>,
    picks: Rc<RefCell<Picks>>,
    random: Xoshiro256PlusPlus,
}

impl Draws {
    /// The figures of all repeats.
    pub fn new(rows: &[Row]) -> Self {
        let picks = rows.iter().map(|row| trials(row).to_vec()).collect();
        Self { rows: rows.into(), picks: Rc::new(RefCell::new(picks)), random: Xoshiro256PlusPlus::seed_from_u64(SEED) }
    }

    /// The fewest repeats that any row has.
    pub fn fewest_repeats(&self) -> Option<usize> {
        self.rows.iter().map(|row| trials(row).len()).min()
    }

    /// Draws the repeats of every row again, with replacement. One draw serves
    /// all metrics of a row, so that figures of one trial stay together.
    pub fn again(&mut self) {
        for (row, pick) in self.rows.iter().zip(self.picks.borrow_mut().iter_mut()) {
            let trials = trials(row);
            pick.fill_with(|| trials[self.random.random_range(0..trials.len())]);
        }
    }
}

/// The trials to draw from: those that ended their loops; where none did, their load.
fn trials(row: &Row) -> &[u32] {
    row.run.as_ref().or(row.load.as_ref()).map_or(&[], |figures| &figures.trials)
}

impl Lookup for Draws {
    fn scope(&self) -> Scope {
        let mut scope = Scope::default();
        for row in self.rows.iter() {
            scope.add(&row.engine, row.clients);
        }
        scope
    }

    fn reader(&self) -> Box<dyn Fn(&Asked<'_>) -> Result<f64, Trouble>> {
        let (rows, picks) = (self.rows.clone(), self.picks.clone());
        Box::new(move |asked| {
            let place = rows.iter().position(|row| row.engine == asked.engine && row.clients == asked.clients);
            let place = place.ok_or_else(|| Trouble::Absent(format!("{} has not run", asked.engine)))?;
            let (phase, figure) = figure(&rows[place], asked)?;
            let of_trial = |trial: &u32| {
                let index = phase.trials.iter().position(|known| known == trial)?;
                figure.values.get(index)?.value()
            };
            let numbers: Vec<f64> = picks.borrow()[place].iter().filter_map(of_trial).collect();
            median(&numbers).ok_or_else(|| {
                let why = figure.median.reason().unwrap_or("too few repeats have it");
                Trouble::Absent(format!("{} of {}: {why}", asked.metric, asked.engine))
            })
        })
    }
}

/// A figure, and the phase whose trials it has values of.
fn figure<'a>(row: &'a Row, asked: &Asked<'_>) -> Result<(&'a PhaseFigures, &'a Figure), Trouble> {
    let absent = |what: &str| Trouble::Absent(format!("{} of {}: {what}", asked.metric, asked.engine));
    let phase = if asked.load { &row.load } else { &row.run };
    let phase = phase.as_ref().ok_or_else(|| absent("no repeat came to its end"))?;
    let found = match asked.op {
        None => phase.metrics.get(asked.metric),
        Some(op) => {
            let figures = phase.op_types.get(op).ok_or_else(|| absent(&format!("no operation `{op}` was run")))?;
            figures.response.get(asked.metric)
        }
    };
    found.map(|figure| (phase, figure)).ok_or_else(|| absent("it was not measured"))
}
