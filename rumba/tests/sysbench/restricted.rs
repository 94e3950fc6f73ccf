//! Processes that may not make memory executable, as under systemd's `MemoryDenyWriteExecute=yes`.

use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Command, Output};

use super::common::text;
use super::{TestDir, figure};

/// `prctl`'s option to forbid memory that is writable and then executable, since Linux 6.3.
const PR_SET_MDWE: libc::c_int = 65;
const PR_MDWE_REFUSE_EXEC_GAIN: libc::c_ulong = 1;
const NONE: libc::c_ulong = 0;

/// A loop that LuaJIT compiles at once, in a script that asks for it.
const HOT: &str = "jit.on() local t = {} function event() for i = 1, 300 do t[i] = (t[i] or 0) + i end end";

/// The command's output under the restriction; `None` if the kernel does not know it.
fn restricted(command: &mut Command) -> Option<Output> {
    let restrict = || {
        // SAFETY: it changes this process only, and only the kernel reads the arguments.
        match unsafe { libc::prctl(PR_SET_MDWE, PR_MDWE_REFUSE_EXEC_GAIN, NONE, NONE, NONE) } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    };
    // SAFETY: it makes one system call.
    let output = unsafe { command.pre_exec(restrict) }.output();
    match output {
        Err(error) if error.kind() == io::ErrorKind::InvalidInput => None,
        output => Some(output.unwrap()),
    }
}

/// sysbench dies: `PANIC: unprotected error in call to Lua API (runtime code generation failed, restricted kernel?)`.
#[test]
fn scripts_are_interpreted_if_memory_cannot_be_executable() {
    let place = TestDir::new();
    std::fs::write(place.path("hot.lua"), HOT).unwrap();
    let cases: [(&[&str], usize); 3] = [(&[], 1), (&["--luajit-cmd=off"], 0), (&["--luajit-cmd=on"], 1)];
    for (given, warnings) in cases {
        let words =
            [&["sysbench"][..], given, &["hot.lua", "--threads=4", "--events=2000", "--time=0", "run"]].concat();
        let Some(output) = restricted(&mut place.rumba(&words)) else { return };
        let said = text(&output);
        assert!(output.status.success(), "{given:?}: {said}");
        assert_eq!(said.matches("WARNING: this process may not make memory executable").count(), warnings, "{said}");
        assert_eq!(figure(&said, "total number of events:"), 2000.0, "{given:?}: {said}");
    }
}

#[test]
fn record_says_that_scripts_were_interpreted() {
    let place = TestDir::new();
    let mut run = place.rumba(&["run", "sysbench", "--engine", "sqlite", "--out", "out"]);
    for set in ["script=oltp_point_select", "table_size=100", "warmup=0s", "loops=1", "loop=500ms", "rate=500"] {
        run.args(["--set", set]);
    }
    let Some(output) = restricted(&mut run) else { return };
    assert!(output.status.success(), "{}", text(&output));
    let condition = &place.report()["trials"][0]["conditions"]["script compiler"];
    assert!(condition.as_str().is_some_and(|words| words.starts_with("off: ")), "{condition}");
}
