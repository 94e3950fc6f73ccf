//! Processes of a test's own.

use std::io::Write as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::thread;

use rustix::process::{Signal, set_parent_process_death_signal};

/// This binary again, with only one of its ignored tests: `crash::commit_until_killed`. It prints the test's output.
/// With an unknown name it does nothing, and ends well.
pub fn with_test(test: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().expect("the path of this program"));
    command.args(["--exact", test, "--ignored", "--nocapture", "--test-threads=1"]);
    command
}

/// Runs a program to its end; returns its output.
pub fn output_of(command: &mut Command) -> Vec<u8> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command.output().unwrap_or_else(|error| panic!("{name}: {error}"));
    let said = || [&output.stderr, &output.stdout].map(|bytes| String::from_utf8_lossy(bytes).into_owned()).concat();
    assert!(output.status.success(), "{name}: {}", said());
    output.stdout
}

/// Starts a process that gets a signal when this one ends, for any reason. The kernel watches the thread that started
/// it, so that thread must never end.
pub fn bound(mut command: Command, signal: Signal) -> Child {
    let name = command.get_program().to_string_lossy().into_owned();
    let (started, child) = mpsc::channel();
    thread::spawn(move || {
        use std::os::unix::process::CommandExt;
        // SAFETY: one system call between fork and exec, nothing allocated.
        unsafe {
            command.pre_exec(move || {
                set_parent_process_death_signal(Some(signal))?;
                Ok(())
            })
        };
        started.send(command.spawn()).expect("somebody waits");
        loop {
            thread::park();
        }
    });
    child.recv().expect("the thread that starts it").unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// Writes an executable program, through another process. If this process had the file open for writing, each process
/// that a parallel test starts would keep it open for a moment. A file that is open for writing cannot be executed
/// (ETXTBSY).
pub fn executable(bytes: &[u8], at: &Path) {
    let mut install = Command::new("install");
    let mut child =
        install.args(["-m", "755", "/dev/stdin"]).arg(at).stdin(Stdio::piped()).spawn().expect("install(1)");
    child.stdin.take().expect("a pipe").write_all(bytes).expect("install(1) reads");
    assert!(child.wait().is_ok_and(|status| status.success()), "{} cannot be written", at.display());
}
