//! The backlog: operations that were started or due in the last loop are served to their end.

use std::time::Duration;

use rumba_engine_api::workload::Ops;
use rumba_results::event::Event;
use rumba_results::record::PhaseKind;
use rumba_results::warning::Warning;

use super::span::Span;
use super::{Halt, Step, Trial};
use crate::run::group::{ClientGroup, Waited};
use crate::run::tail::Tail;

/// A backlog this short is no separate phase: idle clients need about this time to see the end.
const UNNOTICED: Duration = Duration::from_millis(200);

impl Trial<'_> {
    /// Waits until the clients have served the operations that were started or due at the span's end. The wait is
    /// limited by the plan; the result is stored in the span. An interrupt or a failed client ends it. Returns the
    /// backlog's own span, if it took long enough to be a phase.
    pub(super) fn serve_backlog(
        &mut self,
        span: &mut Span,
        running: &mut dyn ClientGroup,
        infos: &Ops,
    ) -> (Step<()>, Option<Span>) {
        let limit = Duration::from_secs_f64(self.job.plan.run.backlog_s);
        let deadline = span.ended + limit;
        let waited = self.wait(running, deadline.min(span.ended + UNNOTICED));
        let (mut end, mut served) = (Ok(()), None);
        match waited {
            None => end = Err(Halt::Interrupted),
            Some(Waited::Until) if limit > UNNOTICED => {
                let phase = PhaseKind::Backlog;
                self.phase = phase;
                self.emit(Event::PhaseStarted { phase, seconds: None, rows: None });
                let mut backlog = self.begin_after(span, phase);
                end = self.follow(&mut backlog, running, infos, Some(deadline));
                served = Some(backlog);
            }
            Some(_) => {}
        }
        if let (Ok(()), Some(error)) = (&end, running.failure()) {
            end = Err(Halt::Failed(error.to_string()));
        }
        let (counts, censored) = running.cut();
        let mut tail = Tail::new(span.ended.elapsed(), counts, censored);
        if let Some(backlog) = &mut served {
            backlog.counts().for_each(|counts| tail.ended.merge(counts));
        }
        let is_still = !tail.censored.open.is_empty();
        for span in served.iter_mut().chain([&mut *span]) {
            span.requests_engine = !is_still;
        }
        self.warn_open(&tail, limit);
        span.tail = Some(tail);
        (end, served)
    }

    fn warn_open(&mut self, tail: &Tail, limit: Duration) {
        if tail.censored.is_empty() {
            return;
        }
        let (open, not_begun) = (tail.censored.open.len(), tail.censored.not_begun);
        let waited_s = tail.censored.longest_ns().unwrap_or(0) as f64 / 1e9;
        self.emit(Event::Warning(Warning::new(
            "open-at-end",
            format!(
                "{:.1} s after the last loop, {open} operations were open and {not_begun} arrivals had not started; \
                 the longest had waited {waited_s:.1} s. Percentiles that they could change are left out",
                tail.seconds.min(limit.as_secs_f64())
            ),
            "look at the last seconds of the timeline for a stall; a lower rate, or a longer run.backlog, lets all of them end",
        )));
    }
}
