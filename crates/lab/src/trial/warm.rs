//! Runs the engine until it is steady: a warmup, and the ageing of loaded data.
//!
//! After the load an LSM writes less than it will later: each level absorbs incoming data until it is full, and passes
//! nothing on before. Its writes are steady when every level has been written once over. Writing the last level once
//! over would mean to write the whole database. It needs only a tenth, about the size of the level above it. A B-tree
//! has no levels. For every engine, the last seconds must have no significant trend. A trend may be undecided. The
//! warmup does not wait for that, because noise can delay a decision for ever. It reports the case if an interval shows
//! how large the trend may be.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use rumba_engine_api::engine::Gauge;
use rumba_engine_api::units::show_bytes;
use rumba_engine_api::workload::Ops;
use rumba_results::course::{Course, Settled};
use rumba_results::event::Event;
use rumba_results::record::PhaseKind;
use rumba_results::warning::Warning;
use rumba_statistics::steady::{Served, WATCHED, courses_of, undecided};

use super::phases::{choices, finish};
use super::span::Span;
use super::{Step, Trial};
use crate::fleet::Role;
use crate::run::driver::Schedule;
use crate::run::group::ClientGroup;

/// The share of the last level that must have been written.
const LAST_LEVEL: f64 = 0.1;
/// The seconds that must have no trend: a loop's length, within these limits.
const WINDOW_S: (f64, f64) = (30.0, 120.0);
/// The interval between requests for the engine's counters, which cost a server a query.
const LOOK_S: f64 = 5.0;

impl Trial<'_> {
    /// The warmup: for a fixed time, or until the engine is steady, at most as long as the plan permits.
    pub(super) fn warm_up(
        &mut self,
        span: &mut Span,
        running: &mut dyn ClientGroup,
        infos: &Ops,
        until: Instant,
    ) -> Step<()> {
        let run = &self.job.plan.run;
        let Some(most_s) = run.warmup_most_s else { return self.follow(span, running, infos, Some(until)) };
        // The levels of aged data have been written once over already.
        let levels = if run.age_s.is_some() { Levels::Aged } else { Levels::Since(self.instance.counters()) };
        let loop_s = run.loop_s;
        let found = self.steady(span, running, infos, until, most_s, levels)?;
        if let Some(warning) = found.warning("the warmup", loop_s, |lacking| not_steady(most_s, lacking)) {
            self.emit(Event::Warning(warning));
        }
        Ok(())
    }

    /// Ages the loaded data: the mix runs over it until the engine is steady. Kept data, from which every repeat
    /// starts, is then no freshly loaded tree, and no repeat has to wait for the steady state.
    pub(super) fn age(&mut self, most_s: f64) -> Step<Span> {
        self.phase = PhaseKind::Age;
        self.emit(Event::PhaseStarted { phase: PhaseKind::Age, seconds: None, rows: None });
        let (ops, seed) = (self.bound.ops(), choices(self.job.plan.run.seed, 0));
        let made = self.make_clients(self.job.plan.clients, &ops, Schedule::closed(seed), Role::Mix { seed })?;
        let mut span = self.begin(PhaseKind::Age);
        let mut running = made();
        self.begin_looking();
        let (until, levels) = (span.started, Levels::Since(self.instance.counters()));
        let steady = self.steady(&mut span, running.as_mut(), &ops, until, most_s, levels);
        let span = self.end(span, steady.is_ok(), Vec::new());
        let finished = finish(running);
        if finished.is_ok() {
            self.end_looking();
            self.end_requesting();
        }
        let loop_s = self.job.plan.run.loop_s;
        if let Some(warning) = steady?.warning("the ageing", loop_s, |lacking| not_aged(most_s, lacking)) {
            self.emit(Event::Warning(warning));
        }
        finished.map(|()| span)
    }

    /// Runs clients until the engine is steady, from `until` on and for at most `most_s`; returns the findings at that
    /// time.
    fn steady(
        &mut self,
        span: &mut Span,
        running: &mut dyn ClientGroup,
        infos: &Ops,
        until: Instant,
        most_s: f64,
        levels: Levels,
    ) -> Step<Found> {
        let run = &self.job.plan.run;
        let most = span.started + Duration::from_secs_f64(most_s);
        let interval = Duration::from_secs_f64(run.interval_s);
        let mut warm = Warm::new(levels, run.loop_s);
        let mut look = until;
        loop {
            self.follow(span, running, infos, Some((span.ended + interval).min(most)))?;
            warm.serve(self.since_epoch_s(span.ended), span.served());
            if span.ended < look.min(most) {
                continue;
            }
            let counters = self.instance.counters();
            let found = warm.found(&counters);
            if found.lacking.is_empty() || span.ended >= most {
                if let Levels::Since(start) = &warm.levels {
                    levels_unknown(start, &counters).into_iter().for_each(|warning| self.emit(Event::Warning(warning)));
                }
                return Ok(found);
            }
            look = span.ended + Duration::from_secs_f64(LOOK_S);
        }
    }
}

fn not_steady(most_s: f64, lacking: &[String]) -> Warning {
    Warning::new(
        "warmup-not-steady",
        format!(
            "the warmup ended after {most_s:.0} s, its longest, and the engine was not steady: {}",
            lacking.join("; ")
        ),
        "raise warmup_most, have the data aged before it is kept (age), or scale it down so that its levels fill sooner",
    )
}

fn not_aged(most_s: f64, lacking: &[String]) -> Warning {
    Warning::new(
        "not-aged",
        format!(
            "the data was aged for {most_s:.0} s, the longest, and the engine was not steady: {}",
            lacking.join("; ")
        ),
        "raise age, or scale the data down so that its levels fill sooner",
    )
}

/// The findings about an engine that has served clients for a while.
#[derive(Debug, Default, PartialEq)]
struct Found {
    /// Conditions of the steady state that are missing.
    lacking: Vec<String>,
    /// Undecided trends: they are not significant, but may exist.
    undecided: Vec<String>,
}

impl Found {
    /// The warning that it was not steady, made by `not_steady`; or that the trend is undecided before loops of this
    /// length.
    fn warning(&self, span: &str, loop_s: f64, not_steady: impl FnOnce(&[String]) -> Warning) -> Option<Warning> {
        if !self.lacking.is_empty() {
            return Some(not_steady(&self.lacking));
        }
        let (open, longest_s) = (self.undecided.join("; "), WINDOW_S.1);
        let longer = if loop_s < longest_s {
            format!("; a longer loop has more seconds tested before it, up to {longest_s:.0}")
        } else {
            String::new()
        };
        (!open.is_empty()).then(|| {
            Warning::new(
                "warmup-undecided",
                format!("{span} ended without a sure trend, and whether the engine was steady is undecided: {open}"),
                format!("read the change over the loops, which three or more repeats show together{longer}"),
            )
        })
    }
}

/// The condition on an LSM's levels.
enum Levels {
    /// Each level has been written once over since these counters.
    Since(Vec<Gauge>),
    /// No condition: it was checked when the data was aged.
    Aged,
}

/// The observations of a warmup.
struct Warm {
    levels: Levels,
    window_s: f64,
    seconds: Vec<Served>,
    /// Operations and bytes written until the last second.
    ops: u64,
    written: Option<f64>,
    ended_s: Option<f64>,
}

impl Warm {
    fn new(levels: Levels, loop_s: f64) -> Self {
        let window_s = loop_s.clamp(WINDOW_S.0, WINDOW_S.1);
        Self { levels, window_s, seconds: Vec::new(), ops: 0, written: Some(0.0), ended_s: None }
    }

    /// Adds the operations and bytes served until now.
    fn serve(&mut self, now_s: f64, (ops, written): (u64, rumba_results::metric::Metric)) {
        if let Some(start_s) = self.ended_s {
            let before = self.written.unwrap_or_default();
            let written_bytes = written.map(|bytes| bytes - before);
            self.seconds.push(Served { start_s, seconds: now_s - start_s, ops: ops - self.ops, written_bytes });
        }
        (self.ops, self.written, self.ended_s) = (ops, written.value(), Some(now_s));
    }

    /// The current findings: empty when the engine is surely steady.
    fn found(&self, counters: &[Gauge]) -> Found {
        let mut found = Found::default();
        if let Levels::Since(start) = &self.levels {
            found.lacking = levels_lacking(start, counters, self.written);
        }
        let last_s = self.ended_s.unwrap_or_default() - self.window_s;
        let window = self.seconds.iter().position(|second| second.start_s >= last_s).unwrap_or_default();
        if self.seconds.first().is_none_or(|second| second.start_s > last_s + 1.0) {
            found.lacking.push(format!("it has not run for the {:.0} s that must be without a trend", self.window_s));
            return found;
        }
        let courses = courses_of(&self.seconds[window..]);
        for (metric, words) in WATCHED {
            let Some(course) = courses.get(metric) else { continue };
            found.lacking.extend(still_moving(course, words));
            found.undecided.extend(undecided(metric, course));
        }
        found
    }
}

fn still_moving(course: &Course, words: &str) -> Option<String> {
    let moves = match course.settled {
        Settled::Rising => "rise",
        Settled::Falling => "fall",
        // An undecided trend is not steady either; it is reported separately.
        Settled::Steady | Settled::Undecided => return None,
    };
    let trend = course.trend.value()?;
    Some(format!("{words} still {moves}, by {:.0}% in the last seconds", trend.abs() * 100.0))
}

/// The levels of an LSM that have not been written once over; none without levels. If the engine does not count writes
/// by level, the writes of all compactions are compared with all levels together. If it counts neither, all device
/// writes are used. Fewer writes than required are then surely too few. More writes prove nothing, because the share of
/// compactions is unknown.
fn levels_lacking(start: &[Gauge], now: &[Gauge], device: Option<f64>) -> Vec<String> {
    let levels = levels(now);
    let Some((last, _)) = levels.iter().next_back() else { return Vec::new() };
    let due = |level: u32, bytes: f64| if level == *last { bytes * LAST_LEVEL } else { bytes };
    let grown = |name: &str| Some(gauge(now, name)? - gauge(start, name).unwrap_or_default());
    let written: Option<Vec<f64>> =
        levels.keys().map(|level| grown(&format!("written_compaction_level{level}_bytes"))).collect();
    let short = |what: String, written: f64, due: f64| {
        let (written, due) = (show_bytes(written), show_bytes(due));
        format!("{what}: {written} written of the {due} that must pass")
    };
    match written {
        Some(written) => {
            let each =
                levels.iter().zip(written).map(|((level, bytes), written)| (*level, due(*level, *bytes), written));
            each.filter(|(_, due, written)| written < due)
                .map(|(level, due, written)| short(format!("level {level}"), written, due))
                .collect()
        }
        None => {
            let (what, written) = match grown(COMPACTED) {
                Some(written) => ("all levels", Some(written)),
                None => ("all levels, together with all other device writes", device),
            };
            let due: f64 = levels.iter().map(|(level, bytes)| due(*level, *bytes)).sum();
            let short = |written: f64| short(what.to_owned(), written, due);
            written.filter(|written| *written < due).map(short).into_iter().collect()
        }
    }
}

/// The warning that it is unknown whether an LSM's levels have been written once over, because its compactions are not
/// counted. [`levels_lacking`] then detects only the cases that surely have not.
fn levels_unknown(start: &[Gauge], now: &[Gauge]) -> Option<Warning> {
    let levels = levels(now);
    if levels.is_empty() {
        return None;
    }
    let by_level = |level: &u32| gauge(now, &format!("written_compaction_level{level}_bytes")).is_some();
    let why = if gauge(now, COMPACTED).is_none() && !levels.keys().all(by_level) {
        "the engine does not count the bytes that compactions write"
    } else if start.is_empty() {
        // Writes from before the warmup would count as part of it.
        "the engine's counters could not be read as the warmup began"
    } else {
        return None;
    };
    Some(Warning::new(
        "warmup-levels-unknown",
        format!(
            "whether each level of the engine was written once over before it was taken for steady is not known: {why}"
        ),
        "have the engine count it, where it has a setting for that (`settings.statistics = true`), or read the writes of each \
         loop to see whether they still rise",
    ))
}

const COMPACTED: &str = "written_compaction_bytes";

/// The bytes of every non-empty level below level 0.
fn levels(gauges: &[Gauge]) -> BTreeMap<u32, f64> {
    let level = |gauge: &Gauge| {
        let number = gauge.name.strip_prefix("level")?.strip_suffix("_bytes")?.parse().ok()?;
        (number > 0 && gauge.value > 0.0).then_some((number, gauge.value))
    };
    gauges.iter().filter_map(level).collect()
}

fn gauge(gauges: &[Gauge], name: &str) -> Option<f64> {
    gauges.iter().find(|gauge| gauge.name == name).map(|gauge| gauge.value)
}

#[cfg(test)]
mod tests {
    use rumba_results::metric::Metric;

    use super::*;

    const MIB: f64 = 1048576.0;

    fn gauges(pairs: &[(&str, f64)]) -> Vec<Gauge> {
        pairs.iter().map(|(name, mib)| Gauge::new(*name, mib * MIB)).collect()
    }

    fn tree(level1: f64, level2: f64) -> Vec<Gauge> {
        gauges(&[
            ("level0_bytes", 5.0),
            ("level1_bytes", 8.0),
            ("level2_bytes", 80.0),
            ("level3_bytes", 0.0),
            ("written_compaction_level1_bytes", level1),
            ("written_compaction_level2_bytes", level2),
        ])
    }

    #[test]
    fn each_level_must_be_rewritten_once_and_the_last_by_a_tenth() {
        let start = tree(100.0, 500.0);
        assert_eq!(
            levels_lacking(&start, &tree(104.0, 504.0), None),
            [
                "level 1: 4.00 MiB written of the 8.00 MiB that must pass",
                "level 2: 4.00 MiB written of the 8.00 MiB that must pass"
            ]
        );
        assert_eq!(levels_lacking(&start, &tree(108.0, 507.0), None).len(), 1, "the last level is still short");
        assert_eq!(levels_lacking(&start, &tree(108.0, 508.0), Some(0.0)), [""; 0], "what is counted decides");
    }

    #[test]
    fn engine_with_one_compaction_counter_is_held_to_the_level_sum() {
        let tree = |written| gauges(&[("level1_bytes", 8.0), ("level2_bytes", 80.0), (COMPACTED, written)]);
        assert_eq!(levels_lacking(&tree(50.0), &tree(65.0), Some(900.0 * MIB)).len(), 1);
        assert_eq!(levels_lacking(&tree(50.0), &tree(66.0), Some(0.0)), [""; 0]);
        let no_levels = gauges(&[("dirty_bytes", 1.0)]);
        assert_eq!(levels_lacking(&[], &no_levels, Some(0.0)), [""; 0], "a B-tree has none");
    }

    #[test]
    fn levels_without_compaction_counters_are_not_taken_as_steady() {
        let uncounted = gauges(&[("level0_bytes", 1.0), ("level1_bytes", 8.0), ("level2_bytes", 80.0)]);
        assert_eq!(levels_lacking(&uncounted, &uncounted, None), [""; 0], "nothing is known");
        let warning = levels_unknown(&uncounted, &uncounted).unwrap();
        assert_eq!(warning.code, "warmup-levels-unknown");
        assert!(warning.remedy.contains("statistics"), "{}", warning.remedy);
        let of_one_level = [uncounted.clone(), gauges(&[("written_compaction_level1_bytes", 9.0)])].concat();
        assert!(levels_unknown(&of_one_level, &of_one_level).is_some());
        let summed = [uncounted, gauges(&[(COMPACTED, 9.0)])].concat();
        assert_eq!(levels_unknown(&summed, &summed), None);
        assert!(levels_unknown(&[], &summed).unwrap().message.contains("as the warmup began"));
        assert_eq!(levels_unknown(&tree(1.0, 1.0), &tree(2.0, 2.0)), None);
        assert_eq!(levels_unknown(&[], &gauges(&[("dirty_bytes", 1.0)])), None, "a B-tree has no levels");
    }

    /// Guards against accepting too few writes. RocksDB without statistics was aged for 31 s, and the device wrote 107
    /// MB including the log. That was half of its levels, with the last one counted by a tenth.
    #[test]
    fn levels_pass_only_after_the_device_has_written_as_much() {
        let uncounted = gauges(&[("level0_bytes", 5.0), ("level1_bytes", 8.0), ("level2_bytes", 80.0)]);
        let found = |served_mib: f64| {
            let mut warm = Warm::new(Levels::Since(uncounted.clone()), 10.0);
            for second in 0..=40 {
                let written = Metric::Value(served_mib * MIB * second as f64 / 40.0);
                warm.serve(second as f64, (1000 * second, written));
            }
            warm.found(&uncounted).lacking
        };
        let short =
            "all levels, together with all other device writes: 15.0 MiB written of the 16.0 MiB that must pass";
        assert_eq!(found(15.0), [short]);
        assert_eq!(found(16.0), [""; 0]);
    }

    fn warmed(rate: impl Fn(u64) -> u64, seconds: u64) -> Warm {
        let mut warm = Warm::new(Levels::Aged, 10.0);
        let (mut ops, mut written) = (0, 0.0);
        for second in 0..=seconds {
            ops += rate(second);
            written += rate(second) as f64 * 1024.0;
            warm.serve(second as f64, (ops, Metric::Value(written)));
        }
        warm
    }

    #[test]
    fn ladder_continues_until_throughput_levels_off() {
        let wobble = |second: u64| [0, 7, 3, 9, 1][second as usize % 5];
        let early = warmed(|second| 1000 + wobble(second), 20).found(&[]);
        assert!(early.lacking[0].contains("has not run for the 30 s"), "{early:?}");
        let rising = warmed(|second| 1000 + 20 * second + wobble(second), 40).found(&[]);
        assert!(rising.lacking[0].starts_with("operations/s still rise"), "{rising:?}");
        let levelled = |second: u64| 1000 + 20 * second.min(40) + wobble(second);
        let steady = warmed(levelled, 75).found(&[]);
        assert_eq!(steady, Found::default());
        assert_eq!(steady.warning("the warmup", 10.0, |lacking| not_steady(60.0, lacking)), None);
    }

    /// An undecided trend ends the warmup, but does not count as a steady state.
    #[test]
    fn undecided_trend_ends_the_warmup_with_a_warning() {
        let found = warmed(|second| 1000 + 100 * (7 * second % 11), 40).found(&[]);
        assert_eq!(found.lacking, [""; 0], "no trend is sure");
        let reported = |found: &Found, loop_s| found.warning("the warmup", loop_s, |lacking| not_steady(60.0, lacking));
        let warning = reported(&found, 30.0).unwrap();
        assert_eq!(warning.code, "warmup-undecided");
        assert!(warning.message.starts_with("the warmup ended without a sure trend, and whether "), "{warning:?}");
        let how_far = "is undecided: operations/s changed by +5.4% (95%: -18.0 to +28.8%)";
        assert!(warning.message.ends_with(how_far), "what is written of each operation stays the same: {warning:?}");
        assert!(
            warning.remedy.ends_with("; a longer loop has more seconds tested before it, up to 120"),
            "{warning:?}"
        );
        let longest = reported(&found, 120.0).unwrap();
        assert_eq!(longest.remedy, "read the change over the loops, which three or more repeats show together");
        let moving = Found { lacking: vec!["operations/s still rise".to_owned()], ..found };
        assert_eq!(reported(&moving, 30.0).unwrap().code, "warmup-not-steady", "the known one of the two is reported");
    }

    #[test]
    fn too_few_effective_seconds_end_warmup_without_a_finding() {
        let sways = |second: u64| (1000.0 + 300.0 * (second as f64 * 0.42).sin()) as u64;
        assert_eq!(warmed(sways, 40).found(&[]), Found::default());
    }

    #[test]
    fn unmetered_writes_do_not_prolong_the_warmup() {
        let mut warm = Warm::new(Levels::Aged, 10.0);
        (0..=40).for_each(|second| warm.serve(second as f64, (1000 * second, Metric::absent("no device"))));
        assert_eq!(warm.found(&[]), Found::default());
    }
}
