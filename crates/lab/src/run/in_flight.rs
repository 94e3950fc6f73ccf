//! The state of a client's operation in flight, for counting the open operations at the end.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};

use rumba_engine_api::worker::OpKind;

/// It has neither an arrival nor an operation.
const NOTHING: u32 = 0;
/// It is about to take an arrival, or is counting an operation that has ended: wait for it.
const UNSETTLED: u32 = 1;
/// It has an arrival and waits for it.
const ARRIVAL: u32 = 2;
const OPERATION: u32 = 3;

/// Written by one client, on separate cache lines. The order of the writes is guaranteed. A reader that sees
/// [`Stage::Operation`] before and after it collects the counts did not find that operation in them. A reader that sees
/// [`Stage::Nothing`] did.
#[derive(Debug, Default)]
#[repr(align(128))]
pub struct InFlight {
    stage: AtomicU32,
    kind: AtomicU32,
    intended_ns: AtomicU64,
    started_ns: AtomicU64,
}

/// A client's arrival or operation; times by the clients' clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    Nothing,
    /// Unknown at this moment.
    Unsettled,
    /// An arrival that it waits for, or is about to start.
    Arrival {
        /// Its due time.
        intended_ns: u64,
    },
    Operation {
        /// Its type.
        kind: OpKind,
        /// Its due time.
        intended_ns: u64,
        started_ns: u64,
    },
}

impl InFlight {
    /// The client is about to take an arrival, or to count an operation that has ended.
    #[inline]
    pub fn unsettled(&self) {
        self.stage.store(UNSETTLED, Ordering::Relaxed);
        fence(Ordering::Release);
    }

    #[inline]
    pub fn has_arrival(&self, intended_ns: u64) {
        self.intended_ns.store(intended_ns, Ordering::Relaxed);
        self.stage.store(ARRIVAL, Ordering::Release);
    }

    #[inline]
    pub fn has_operation(&self, kind: OpKind, intended_ns: u64, started_ns: u64) {
        self.kind.store(kind as u32, Ordering::Relaxed);
        self.intended_ns.store(intended_ns, Ordering::Relaxed);
        self.started_ns.store(started_ns, Ordering::Relaxed);
        self.stage.store(OPERATION, Ordering::Release);
    }

    /// Its operation turns out to be of this type.
    #[inline]
    pub fn set_kind(&self, kind: OpKind) {
        self.kind.store(kind as u32, Ordering::Relaxed);
    }

    /// It has counted its operation.
    #[inline]
    pub fn has_nothing(&self) {
        self.stage.store(NOTHING, Ordering::Release);
    }

    /// The state, read by another thread.
    pub fn now(&self) -> Stage {
        // Counts that were collected before are no newer than this state.
        fence(Ordering::Acquire);
        let stage = self.stage.load(Ordering::Acquire);
        let intended_ns = self.intended_ns.load(Ordering::Relaxed);
        let (kind, started_ns) = (self.kind.load(Ordering::Relaxed) as OpKind, self.started_ns.load(Ordering::Relaxed));
        fence(Ordering::Acquire);
        if self.stage.load(Ordering::Relaxed) != stage {
            return Stage::Unsettled;
        }
        match stage {
            NOTHING => Stage::Nothing,
            ARRIVAL => Stage::Arrival { intended_ns },
            OPERATION => Stage::Operation { kind, intended_ns, started_ns },
            _ => Stage::Unsettled,
        }
    }
}
