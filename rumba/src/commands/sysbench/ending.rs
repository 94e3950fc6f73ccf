//! The end of a run from outside: by a signal, or because its reports have no reader any more.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};

use rumba_lab::trial::child::stop_signals;
use rumba_workload_sysbench::output;
use signal_hook::consts::{SIGHUP, SIGINT, SIGPIPE, SIGTERM, SIGXFSZ};
use signal_hook::flag;

use super::Ended;

/// The exit code after a hang-up, as after an interrupt in shells.
const INTERRUPTED: u8 = 130;

/// The signals that end a run.
#[derive(Default)]
pub struct Interrupt {
    is_received: Arc<AtomicBool>,
    signal: Arc<AtomicUsize>,
}

impl Interrupt {
    /// Catches SIGINT, SIGTERM and, unless `nohup` has it ignored, SIGHUP. A second signal ends the program at once, as
    /// without this handler.
    pub fn catch(&self) -> std::io::Result<()> {
        let heeded = stop_signals();
        for signal in [SIGINT, SIGTERM, SIGHUP].into_iter().filter(|signal| heeded.contains(signal)) {
            flag::register_conditional_default(signal, self.is_received.clone())?;
            flag::register_usize(signal, self.signal.clone(), signal as usize)?;
            flag::register(signal, self.is_received.clone())?;
        }
        Ok(())
    }

    /// The signal that was received, if any.
    pub fn received(&self) -> Option<i32> {
        self.is_received.load(Relaxed).then(|| self.signal.load(Relaxed) as i32)
    }
}

/// After a signal and the closing report. The program dies of the signal, because a shell ends its loop only then. A
/// hang-up has an exit code, because no terminal is left to print on.
pub fn by_signal(signal: i32) -> Ended {
    match signal {
        SIGHUP => Ended::after(INTERRUPTED, "the terminal hung up"),
        SIGTERM => Ended::of_signal(signal, "terminated"),
        _ => Ended::of_signal(signal, "interrupted"),
    }
}

/// After a write to a pipe without a reader, or to a terminal that hung up.
pub fn by_closed_output() -> Ended {
    match output::finish() {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
            Ended::after(INTERRUPTED, format!("standard output: {error}"))
        }
        _ => Ended::of_signal(SIGPIPE, "standard output was closed"),
    }
}

/// Lets a write beyond the limit of `ulimit -f` fail, instead of ending the program.
pub fn survive_file_size_limit() {
    // Without the handler such a write ends the program, as in sysbench.
    let _ = flag::register(SIGXFSZ, Arc::new(AtomicBool::new(false)));
}

/// Ends the process by a signal, after the scripts' output is written.
pub fn die_of(signal: i32) {
    output::flush_all();
    // It returns only for a signal that it does not know.
    let _ = signal_hook::low_level::emulate_default_handler(signal);
}
