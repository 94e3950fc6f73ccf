//! The two processes of a trial that test transactions after the measurement. The first is killed with its database
//! while clients work. The second looks for the commits that were acknowledged.

use std::time::Instant;

use rumba_engine_api::workload::State;
use rumba_results::record::{Status, TrialPart};

use super::{TrialRunner, Watch};
use crate::limits::Enforcement;
use crate::provision::DataDir;
use crate::store::TrialWriter;
use crate::trial::Act;
use crate::trial::child::Order;

impl TrialRunner<'_> {
    /// Kills the database while clients work, and opens it again. This needs a trial that ended as planned and left its
    /// data. It never runs over a load that other trials start from.
    pub(super) fn kill_and_look(
        &self,
        (measured, began): (&Order, Instant),
        left: Option<&State>,
        data: &DataDir,
        limited: &mut Enforcement,
        writer: &mut TrialWriter,
        watch: &mut dyn Watch,
    ) {
        let plan = &measured.plan;
        let is_killed = plan.run.crash_s.is_some() && plan.part != TrialPart::Load;
        let Some(state) = left.filter(|_| is_killed) else { return };
        for act in [Act::Crash, Act::Recover] {
            if !matches!(writer.status(), Status::Done | Status::Suspended { .. } | Status::Running) {
                return;
            }
            // A server that is still ending would block the next one, which then reports it.
            let _ = data.vacate();
            writer.goes_on();
            let order =
                Order { act, state: Some(state.clone()), begun_s: began.elapsed().as_secs_f64(), ..measured.clone() };
            self.follow(&order, &data.mark(), limited, writer, &mut None, watch);
        }
    }
}
