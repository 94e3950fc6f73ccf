//! Disturbances by other processes, for records of versions without a metric of them.

use rumba_results::metric::Metric;
use rumba_results::record::{PhaseKind, PhaseRecord, Record};

/// A phase's missing metric, derived from other values of the record; `None` if there are none.
///
/// The share of steal was only in the text of the warning `stolen-cpu`, which was about the loops.
pub fn of_older_record(metric: &str, record: &Record, phase: &PhaseRecord) -> Option<Metric> {
    match metric {
        "stolen_cpu_percent" if phase.phase != PhaseKind::Load => stolen_percent(record).map(Metric::Value),
        "others_cpu_percent" => others_percent(phase).map(Metric::Value),
        _ => None,
    }
}

fn stolen_percent(record: &Record) -> Option<f64> {
    let warning = record.warnings.iter().find(|warning| warning.code == "stolen-cpu")?;
    let before = warning.message.split('%').next()?;
    before.rsplit(' ').next()?.parse().ok()
}

/// The number of the host's CPUs follows from its used CPU, in seconds and in percent.
fn others_percent(phase: &PhaseRecord) -> Option<f64> {
    let (others_s, host_s) = (phase.spent.others_cpu_s.value()?, phase.spent.host_cpu_s.value()?);
    let host_percent = phase.metrics.host_cpu_percent.value()?;
    (host_s > 0.0).then(|| host_percent * others_s / host_s)
}

#[cfg(test)]
mod tests {
    use rumba_results::warning::Warning;

    use super::*;
    use crate::testing::record;

    #[test]
    fn steal_share_is_parsed_from_the_warning_of_an_older_record() {
        let mut older = record("a", 8, 1);
        let loops = older.phase(PhaseKind::Loops).unwrap().clone();
        assert_eq!(of_older_record("stolen_cpu_percent", &older, &loops), None);
        let message = "the hypervisor gave 8.1% of this host's CPU to others during the loops";
        older.warnings.push(Warning::new("stolen-cpu", message, "run elsewhere"));
        assert_eq!(of_older_record("stolen_cpu_percent", &older, &loops), Some(Metric::Value(8.1)));
        let load = older.phase(PhaseKind::Load).unwrap().clone();
        assert_eq!(of_older_record("stolen_cpu_percent", &older, &load), None, "it was about the loops");
    }

    #[test]
    fn the_share_of_other_programs_follows_from_the_hosts_cpu() {
        let mut older = record("a", 8, 1);
        let loops = older.phases.iter_mut().find(|phase| phase.phase == PhaseKind::Loops).unwrap();
        loops.spent.others_cpu_s = Metric::Value(2.0);
        loops.spent.host_cpu_s = Metric::Value(40.0);
        loops.metrics.host_cpu_percent = Metric::Value(50.0);
        let loops = loops.clone();
        assert_eq!(of_older_record("others_cpu_percent", &older, &loops), Some(Metric::Value(2.5)));
    }
}
