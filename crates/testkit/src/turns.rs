//! A pace for tests that run a client without the lab.

use std::task::{Context, Poll};
use std::time::Duration;

use rumba_engine_api::worker::{ClientAddress, Op, OpKind, Pace};

/// The only client.
pub const ALONE: ClientAddress = ClientAddress { host: 0, driver: 0, client: 0, clients: 1 };

/// Lets a client run this many operations, as fast as possible. An operation that was given up fails the test.
#[derive(Debug)]
pub struct Turns {
    left: usize,
    /// The pauses that the client asked for, which it did not wait.
    pub pauses: Vec<Duration>,
}

impl Turns {
    /// This many operations.
    pub fn of(left: usize) -> Self {
        Self { left, pauses: Vec::new() }
    }
}

impl Pace for Turns {
    fn poll_turn(&mut self, _: &mut Context<'_>) -> Poll<bool> {
        let is_left = self.left > 0;
        self.left = self.left.saturating_sub(1);
        Poll::Ready(is_left)
    }

    fn pause(&mut self, pause: Duration) {
        self.pauses.push(pause);
    }

    fn start(&mut self, _: OpKind) {}

    fn done(&mut self, _: OpKind, op: Op) -> u64 {
        assert!(!op.failed, "{op:?}");
        1
    }
}
