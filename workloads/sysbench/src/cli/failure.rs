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

#[cfg(test)]
mod tests {
    use super::*;

    /// From api_basic.t, opt_rate.t and cmdline.t.
    #[test]
    fn words_and_exit_codes_are_sysbenchs() {
        let full = "FATAL: The event queue is full. This means the worker threads are unable to keep up with the \
                    specified event generation rate";
        for (failure, words, exit_code) in [
            (Failure::QueueFull, full, 1),
            (
                Failure::ThreadInitTimeout(Duration::from_secs(30)),
                "FATAL: Worker threads failed to initialize within 30 seconds!",
                2,
            ),
            (Failure::ForcedShutdown, "FATAL: The --max-time limit has expired, forcing shutdown...", 2),
        ] {
            assert_eq!(failure.to_string(), words);
            assert_eq!(failure.exit_code(), exit_code, "{words}");
        }
    }
}
