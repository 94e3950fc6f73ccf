//! Warnings that follow from a record's figures alone.

use rumba_engine_api::units::show_bytes;
use rumba_results::comparison::Remark;
use rumba_results::ratio::MAIN_SHARE;
use rumba_results::record::{OpStats, PhaseKind, PhaseRecord, Record};
use rumba_results::warning::Warning;

use crate::charge::{deferred_bytes, drained_bytes};

/// The shortfall of an open loop above which it did not measure its target rate.
const TARGET_SLACK: f64 = 0.05;
/// If the drain is above this share of the bytes written in warmup and loops, wkb_per_op is misleading.
const DRAIN_SHARE: f64 = 0.10;
/// A drain below this many bytes is a checkpoint's housekeeping.
const DRAIN_BYTES: f64 = (1 << 20) as f64;
/// If work below an engine's own triggers is above this share of the charged bytes, the charged figure is misleading.
const DEFERRED_SHARE: f64 = 0.10;
/// A file system writes its own metadata, a few percent if little is synced; above this factor other processes may be
/// writing.
const DEVICE_OVER_PROCESS: f64 = 1.5;
/// Below this difference the factor is not significant.
const DEVICE_OVER_PROCESS_BYTES: f64 = (64 << 20) as f64;
/// Ten samples beyond the 99th percentile.
const SAMPLES_FOR_P99: u64 = 1000;

/// A record's own warnings, then those that follow from its figures; a code
/// that the record already carries is not repeated.
pub fn remarks(record: &Record) -> Vec<Remark> {
    let mut warnings = record.warnings.clone();
    for warning in derived(record) {
        if !warnings.iter().any(|known| known.code == warning.code) {
            warnings.push(warning);
        }
    }
    warnings.into_iter().map(|warning| Remark { about: record.plan.name().into(), warning }).collect()
}

fn derived(record: &Record) -> Vec<Warning> {
    let mut warnings: Vec<Warning> = broken_data(record).collect();
    if record.suspended_run().is_some() {
        // Its figures are in no table, so further warnings about them would be misleading.
        return warnings;
    }
    warnings.extend(debt(record));
    warnings.extend(deferred(record));
    if let Some(run) = record.phase(PhaseKind::Loops).or_else(|| record.loops().last()) {
        warnings.extend(client_errors(run));
        warnings.extend(target_missed(run, record.plan.run.rate));
        warnings.extend(shared_device(record));
        warnings.extend(few_samples(run));
        warnings.extend(response_limits(run));
    }
    warnings.extend(throttled(record));
    warnings
}

fn broken_data(record: &Record) -> impl Iterator<Item = Warning> + '_ {
    let checks = record.phases.iter().flat_map(|phase| &phase.checks);
    checks.filter(|check| check.wrong > 0).map(|check| {
        let example = check.examples.first().map(|example| format!(", e.g. {example}")).unwrap_or_default();
        let (name, wrong, examined) = (&check.name, check.wrong, check.examined);
        Warning::new(
            "verification-failed",
            format!("the data is inconsistent: not so for {wrong} of {examined}: {name}{example}"),
            "do not use this trial's figures; report the engine, its version and settings to its developers",
        )
    })
}

fn client_errors(run: &PhaseRecord) -> Option<Warning> {
    let errors = run.op_types.values().fold(0_u64, |sum, op| sum.saturating_add(op.errors));
    let worst = run.op_types.iter().max_by_key(|(_, op)| op.errors).map(|(name, _)| name.as_str()).unwrap_or_default();
    let tried = run.ops.saturating_add(errors);
    (errors > 0).then(|| {
        Warning::new(
            "client-errors",
            format!("{errors} of {tried} operations were given up after their retries, most of them {worst}"),
            "use fewer clients or more rows, so that transactions conflict less",
        )
    })
}

fn target_missed(run: &PhaseRecord, rate: Option<f64>) -> Option<Warning> {
    let (rate, reached) = (rate?, run.metrics.ops_per_s.value()?);
    (reached < rate * (1.0 - TARGET_SLACK)).then(|| {
        Warning::new(
            "target-missed",
            format!(
                "{reached:.0} operations/s instead of the rate of {rate:.0}, so response times include a growing \
                     queue"
            ),
            "ask for a rate that the engine can sustain, or use more clients",
        )
    })
}

fn debt(record: &Record) -> Option<Warning> {
    let (served, drained) = drained_bytes(record)?;
    (drained > DRAIN_BYTES && drained > served * DRAIN_SHARE).then(|| {
        let drained_bytes = show_bytes(drained);
        let message = if served > 0.0 {
            let share = match drained / served {
                times if times > 10.0 => format!("{times:.0} times"),
                share => format!("{:.0}% of", 100.0 * share),
            };
            format!("the drain wrote {drained_bytes}, {share} the {} that warmup and loops wrote", show_bytes(served))
        } else {
            format!("the drain wrote {drained_bytes}; warmup and loops wrote nothing to the device")
        };
        Warning::new("debt-at-end", message, "read wkb_per_op_with_drain instead of wkb_per_op, or run longer loops")
    })
}

/// No drain does work below an engine's own triggers; if much of it is left, the charged bytes are too few.
fn deferred(record: &Record) -> Option<Warning> {
    let ((served, drained), deferred) = (drained_bytes(record)?, deferred_bytes(record)?);
    let charged = served + drained;
    (charged > 0.0 && deferred > DRAIN_BYTES && deferred > charged * DEFERRED_SHARE).then(|| {
        Warning::new(
            "debt-deferred",
            format!(
                "the engine deferred work below its own triggers, about {} to write by its own sizes: {:.0}% of the {} that \
                 warmup, loops and drain wrote",
                show_bytes(deferred),
                100.0 * deferred / charged,
                show_bytes(charged)
            ),
            "add wkb_per_op_deferred to wkb_per_op_with_drain for an estimate, or run longer loops",
        )
    })
}

/// Compares over all phases together, because a process is charged when it dirties a page, and the device when the page
/// is written back, possibly phases later. A separate volume is not shared with other processes. The bytes that it
/// wrote beyond the process come from its file system, and are a cost of the engine. The file system writes inode and
/// journal with every synced write that extends a file.
fn shared_device(record: &Record) -> Option<Warning> {
    if record.plan.engine.limits.storage.is_some() {
        return None;
    }
    let phases = record.phases.iter().filter(|phase| phase.phase != PhaseKind::Loops);
    let (mut device, mut process) = (0.0, 0.0);
    for phase in phases {
        device += phase.spent.device_write_bytes.value()?;
        process += phase.spent.process_write_bytes.value()?;
    }
    let beyond = device - process;
    (device > process * DEVICE_OVER_PROCESS && beyond > DEVICE_OVER_PROCESS_BYTES).then(|| {
        let (device, process) = (show_bytes(device), show_bytes(process));
        Warning::new(
            "device-shared",
            format!(
                "the device wrote {device} but the engine's process only {process}: others write to it too, or the \
                 metadata and journal of its file system are the rest"
            ),
            "put the data on its own volume (limits.storage), or read proc_wkb_per_op",
        )
    })
}

/// Considers only types that tables and verdicts show. Percentiles of very rare types are seldom needed, and are absent
/// with their reason if requested.
fn few_samples(run: &PhaseRecord) -> Option<Warning> {
    let all: f64 = run.op_types.values().map(|op| op.count as f64).sum();
    let is_shown = |op: &OpStats| op.short.is_some() || op.count as f64 >= MAIN_SHARE * all;
    let few = run.op_types.iter().filter(|(_, op)| op.count > 0 && op.count < SAMPLES_FOR_P99 && is_shown(op));
    let named: Vec<String> = few.map(|(name, op)| format!("{name} ({})", op.count)).collect();
    (!named.is_empty()).then(|| {
        Warning::new(
            "few-samples",
            format!("too few operations for a 99th percentile: {}", named.join(", ")),
            "run longer loops",
        )
    })
}

fn response_limits(run: &PhaseRecord) -> Option<Warning> {
    let missed = run.op_types.iter().filter_map(|(name, op)| {
        let kept = op.limit.as_ref().filter(|kept| kept.is_kept() == Some(false))?;
        let (within, limit) = (kept.within_percent.value()?, &kept.limit);
        Some(format!("{name}: {within:.1}% within {} s instead of {}%", limit.seconds, limit.percent))
    });
    let missed: Vec<String> = missed.collect();
    (!missed.is_empty()).then(|| {
        Warning::new(
            "response-limit",
            format!("more were slow or given up than the workload's specification allows: {}", missed.join(", ")),
            "read the rate as one that the specification does not accept; use fewer clients",
        )
    })
}

/// The slow responses come from a throttle's bursts, not from the engine.
fn throttled(record: &Record) -> Option<Warning> {
    let storage = record.plan.engine.limits.storage.as_ref()?;
    record.phase(PhaseKind::Loops).or_else(|| record.loops().last())?;
    storage.is_throttled().then(|| {
        Warning::new(
            "throttled-latency",
            "p99 and beyond are an artefact of the throttled device, which lets requests through in bursts",
            "compare throughput, reads and bytes; for response times use storage without a throttle",
        )
    })
}

#[cfg(test)]
mod tests {
    use rumba_engine_api::check::Check;
    use rumba_engine_api::engine::{DEFERRED_BYTES, Gauge};
    use rumba_engine_api::limits::StorageLimit;
    use rumba_engine_api::workload::ResponseLimit;
    use rumba_results::metric::Metric;
    use rumba_results::record::LatencySlo;

    use super::*;
    use crate::testing::record;

    fn codes(record: &Record) -> Vec<String> {
        remarks(record).into_iter().map(|remark| remark.warning.code).collect()
    }

    fn changed(change: impl Fn(&mut PhaseRecord)) -> Record {
        let mut record = record("a", 8, 1);
        record.phases.iter_mut().for_each(change);
        record
    }

    #[test]
    fn errors_few_samples_and_a_shared_device_are_reported() {
        let errors = changed(|phase| phase.op_types.get_mut("get_node").unwrap().errors = 3);
        assert_eq!(codes(&errors), ["client-errors"]);
        let few = changed(|phase| phase.op_types.get_mut("get_node").unwrap().count = 999);
        assert_eq!(codes(&few), ["few-samples"]);
        let rare = changed(|phase| {
            let mut rare = phase.op_types["get_node"].clone();
            (rare.short, rare.count) = (None, 30);
            phase.op_types.insert("delete_node".to_owned(), rare);
        });
        assert_eq!(codes(&rare), [""; 0], "one in hundreds is in no table");
        let shared = changed(|phase| phase.spent.process_write_bytes = Metric::Value(1e6));
        assert_eq!(codes(&shared), ["device-shared"]);
        let mut own = shared.clone();
        own.plan.engine.limits.storage = Some(StorageLimit::unthrottled());
        assert_eq!(codes(&own), [""; 0], "no other process writes to the trial's own volume");
        let unknown = changed(|phase| phase.spent.process_write_bytes = Metric::absent("no permission"));
        assert_eq!(codes(&unknown), [""; 0]);
    }

    #[test]
    fn broken_data_is_reported() {
        let mut broken = record("a", 8, 1);
        let check = Check { name: "counts match".to_owned(), examined: 9, wrong: 2, examples: vec!["id 7".to_owned()] };
        broken.phases.last_mut().unwrap().checks = vec![check];
        assert_eq!(codes(&broken), ["verification-failed"]);
    }

    #[test]
    fn an_open_loop_may_stay_5_percent_below_its_target_and_no_more() {
        let mut record = record("a", 8, 1);
        record.plan.run.rate = Some(2100.0);
        assert_eq!(codes(&record), [""; 0]);
        record.plan.run.rate = Some(2110.0);
        assert_eq!(codes(&record), ["target-missed"]);
    }

    #[test]
    fn large_drain_is_reported_as_a_share_or_a_factor() {
        for (bytes, share) in [(6e8, ", 200% of the "), (112.0 * 3e8, ", 112 times the ")] {
            let mut record = record("a", 8, 1);
            record.phases.last_mut().unwrap().spent.device_write_bytes = Metric::Value(bytes);
            let Warning { code, message, .. } = remarks(&record).remove(0).warning;
            assert!(code == "debt-at-end" && message.contains(share), "{message}");
        }
    }

    #[test]
    fn deferred_work_is_reported_with_its_share_of_what_was_charged() {
        let mut record = record("a", 8, 1);
        let (served, drained) = drained_bytes(&record).unwrap();
        let mut deferring = |share: f64| {
            let drain = record.phases.iter_mut().find(|phase| phase.phase == PhaseKind::Drain).unwrap();
            drain.debt_end = vec![Gauge::new(DEFERRED_BYTES, share * (served + drained))];
            remarks(&record).into_iter().map(|remark| remark.warning).collect::<Vec<_>>()
        };
        assert_eq!(deferring(0.1), []);
        let warnings = deferring(0.25);
        assert_eq!((warnings.len(), warnings[0].code.as_str()), (1, "debt-deferred"));
        assert!(warnings[0].message.contains(": 25% of the "), "{}", warnings[0].message);
    }

    #[test]
    fn response_time_beyond_its_limit_is_reported_with_its_share() {
        let kept = |within_percent: Metric| {
            changed(|phase| {
                let limit = ResponseLimit { percent: 90.0, seconds: 5.0 };
                let kept = LatencySlo { limit, within_percent: within_percent.clone() };
                phase.op_types.get_mut("get_node").unwrap().limit = Some(kept);
            })
        };
        let slow = remarks(&kept(Metric::Value(89.9))).remove(0).warning;
        assert_eq!(slow.code, "response-limit");
        assert!(slow.message.ends_with("get_node: 89.9% within 5 s instead of 90%"), "{}", slow.message);
        assert_eq!(codes(&kept(Metric::Value(90.0))), [""; 0], "nine in ten are enough");
        assert_eq!(codes(&kept(Metric::absent("nothing was done"))), [""; 0], "what is not known is not said");
    }

    #[test]
    fn bursts_of_a_throttle_are_reported() {
        let mut slow = record("a", 8, 1);
        slow.plan.engine.limits.storage = Some(StorageLimit { read_iops: Some(1000), ..StorageLimit::unthrottled() });
        assert_eq!(codes(&slow), ["throttled-latency"]);
        slow.plan.engine.limits.storage = Some(StorageLimit::unthrottled());
        assert_eq!(codes(&slow), [""; 0]);
    }

    #[test]
    fn a_warning_that_the_record_carries_is_not_repeated() {
        let mut record = changed(|phase| phase.op_types.get_mut("get_node").unwrap().errors = 3);
        record.warnings = vec![Warning::new("client-errors", "seen while running", "none")];
        assert_eq!(codes(&record), ["client-errors"]);
    }
}
