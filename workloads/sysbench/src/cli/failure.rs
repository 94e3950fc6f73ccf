//! The errors of a running test, in sysbench's words.

use std::time::Duration;

use thiserror::Error;

/// Why a run ends, or a script fails. Its text is printed on standard output, with a line end added.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Failure {
    /// `thread_init` failed in a thread.
    #[error("FATAL: Threads initialization failed!")]
    ThreadInit,
    /// Not all threads were ready within `--thread-init-timeout`.
    #[error("FATAL: Worker threads failed to initialize within {} seconds!", .0.as_secs())]
    ThreadInitTimeout(Duration),
    /// The time limit, and the extra time of `--forced-shutdown`, have passed. The closing report follows.
    #[error("FATAL: The --max-time limit has expired, forcing shutdown...")]
    ForcedShutdown,
    /// More events of `--rate` wait than [`QUEUE_EVENTS`].
    #[error(
        "FATAL: The event queue is full. This means the worker threads are unable to keep up with the specified event \
         generation rate"
    )]
    QueueFull,
}

/// How many events may wait with `--rate`.
pub const QUEUE_EVENTS: usize = 131_072;

impl Failure {
    /// The exit code of the process.
    pub fn exit_code(&self) -> u8 {
        match self {
            Failure::ThreadInitTimeout(_) | Failure::ForcedShutdown => 2,
            _ => 1,
        }
    }
}
