//! The cases that a seed draws: as many of every fault as its share, spread over its moments, engines and limits.

use std::time::Duration;

use rand::seq::SliceRandom as _;
use rand::{RngExt as _, SeedableRng as _};
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::action::Action;
use crate::available::Available;
use crate::axes::{Engine, Limit, Moment};
use crate::case::{Again, Case};
use crate::table::{FAULTS, Fault};

/// The longest that a fault waits once its moment has begun, ms.
const LONGEST_DELAY_MS: u64 = 80;

/// Whether injecting a fault requires root.
fn needs_root(action: Action) -> bool {
    matches!(action, Action::FillData | Action::FillResults | Action::ReadOnlyResults | Action::Plant(_))
}

/// The cases of a seed, and the faults that cannot be tried here.
pub fn draw(seed: u64, available: &Available) -> (Vec<Case>, Vec<&'static str>) {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
    let (mut cases, mut left_out) = (Vec::new(), Vec::new());
    for fault in FAULTS {
        let drawn = of(fault, available, &mut random);
        if drawn.is_empty() {
            left_out.push(fault.name);
        }
        cases.extend(drawn);
    }
    // Shuffled, so that a part of them is a sample of all.
    cases.shuffle(&mut random);
    for (number, case) in (1..).zip(&mut cases) {
        case.number = number;
    }
    (cases, left_out)
}

fn of(fault: &'static Fault, available: &Available, random: &mut Xoshiro256PlusPlus) -> Vec<Case> {
    let mut shuffled = |length: usize| {
        let mut places: Vec<usize> = (0..length).collect();
        places.shuffle(random);
        places
    };
    let here = |engine: &&Engine| available.engines.contains(engine);
    let engines: Vec<Engine> = fault.engines.iter().filter(here).copied().collect();
    let limits: Vec<Limit> = fault.limits.iter().filter(|limit| available.limits.contains(limit)).copied().collect();
    let (of_moments, of_engines, of_limits) =
        (shuffled(fault.moments.len()), shuffled(engines.len()), shuffled(limits.len()));
    if engines.is_empty() || limits.is_empty() || (needs_root(fault.action) && !available.is_root) {
        return Vec::new();
    }
    (0..fault.share as usize)
        .map(|turn| {
            let moment = fault.moments[of_moments[turn % of_moments.len()]];
            let engine = engines[of_engines[turn % of_engines.len()]];
            let limit = limits[of_limits[turn % of_limits.len()]];
            let delay = Duration::from_millis(random.random_range(0..=LONGEST_DELAY_MS));
            let ways: &[Again] = match Case::may_resume(fault) {
                true => &[Again::Run, Again::DoctorThenRun, Again::Resume],
                false => &[Again::Run, Again::DoctorThenRun],
            };
            let again = ways[random.random_range(0..ways.len())];
            fitting(Case { number: 0, fault, moment, engine, limit, delay, again })
        })
        .collect()
}

/// The null engine has no data to verify, and an existing server has its own limits.
fn fitting(case: Case) -> Case {
    let moment = match case {
        Case { engine: Engine::Null, moment: Moment::Verify, .. } => Moment::Loops,
        _ => case.moment,
    };
    let limit = if case.engine == Engine::Existing { Limit::None } else { case.limit };
    Case { moment, limit, ..case }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use strum::VariantArray as _;

    use super::*;

    fn in_words(cases: &[Case]) -> Vec<String> {
        cases.iter().map(|case| format!("{case} {:?} {:?}", case.delay, case.again)).collect()
    }

    #[test]
    fn a_seed_draws_the_same_cases_again_and_another_seed_others() {
        let (first, left_out) = draw(1, &Available::all());
        assert!(left_out.is_empty());
        assert_eq!(in_words(&first), in_words(&draw(1, &Available::all()).0));
        assert_ne!(in_words(&first), in_words(&draw(2, &Available::all()).0));
    }

    #[test]
    fn a_seed_tries_every_fault_engine_moment_and_limit() {
        let (cases, _) = draw(3, &Available::all());
        let names: BTreeSet<&str> = cases.iter().map(|case| case.fault.name).collect();
        assert_eq!(names.len(), FAULTS.len());
        let engines: BTreeSet<Engine> = cases.iter().map(|case| case.engine).collect();
        let moments: BTreeSet<Moment> = cases.iter().map(|case| case.moment).collect();
        let limits: BTreeSet<Limit> = cases.iter().map(|case| case.limit).collect();
        assert_eq!((engines.len(), moments.len(), limits.len()), (Engine::VARIANTS.len(), 8, Limit::ALL.len()));
        assert!(cases.len() >= 100, "{} cases", cases.len());
    }

    #[test]
    fn cases_that_the_machine_cannot_run_are_named() {
        let little =
            Available { engines: vec![Engine::Sqlite], limits: vec![Limit::None], is_root: false, ..Available::all() };
        let (cases, left_out) = draw(1, &little);
        assert!(cases.iter().all(|case| case.engine == Engine::Sqlite && case.limit == Limit::None));
        assert!(left_out.contains(&"the disk of the results is full") && left_out.contains(&"kill -9 of the server"));
        assert!(!left_out.contains(&"kill -9 of rumba"));
    }
}
