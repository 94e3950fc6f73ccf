//! A scope of the user's systemd: limits memory without root. systemd makes the group, runs the command in it, and
//! removes it when its last process has ended.

use std::ffi::OsStr;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use super::tree::Version;
use crate::provision::Owner;

/// A scope that a trial's process is started in.
#[derive(Debug)]
pub struct Scope {
    unit: String,
    limit_bytes: u64,
}

/// Whether the user's systemd can make one: it limits memory only with version 2.
pub fn is_offered(version: Version) -> bool {
    let runtime = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
    version == Version::Two
        && runtime.is_some_and(|dir| dir.join("systemd/private").exists())
        && ["/usr/bin/systemd-run", "/bin/systemd-run"].iter().any(|path| PathBuf::from(path).exists())
}

impl Scope {
    /// A scope of this process; it is made when the command starts.
    pub fn new(limit_bytes: u64, owner: &Owner) -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let unit = format!("rumba-{}-{}-{number}.scope", owner.process.pid, owner.process.start_ticks);
        Self { unit, limit_bytes }
    }

    /// The command that runs a command in the scope, in the same process. Set its standard streams afterwards.
    pub fn wrap(&self, command: &Command) -> Command {
        let mut wrapped = Command::new("systemd-run");
        wrapped.args(["--user", "--scope", "--quiet"]).arg(format!("--unit={}", self.unit));
        wrapped.args(["-p", &format!("MemoryMax={}", self.limit_bytes), "-p", "MemorySwapMax=0", "--"]);
        wrapped.arg(command.get_program()).args(command.get_args());
        for (name, value) in command.get_envs() {
            match value {
                Some(value) => wrapped.env(name, value),
                None => wrapped.env_remove(name),
            };
        }
        if let Some(dir) = command.get_current_dir() {
            wrapped.current_dir(dir);
        }
        wrapped
    }

    /// How memory is limited, for the conditions.
    pub fn how(&self) -> String {
        format!("systemd scope {} (MemoryMax), no swap", self.unit)
    }

    /// Whether the kernel killed one of its processes for lack of memory, according to systemd.
    pub fn was_killed(&self) -> bool {
        self.systemctl(&["show", "--property=Result", "--value"]).is_some_and(|result| result.trim() == "oom-kill")
    }

    fn systemctl(&self, arguments: &[&str]) -> Option<String> {
        let mut command = Command::new("systemctl");
        command.arg("--user").args(arguments).arg(OsStr::new(&self.unit)).stdin(Stdio::null());
        let output = command.output().ok()?;
        output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned())
    }
}

impl Drop for Scope {
    fn drop(&mut self) {
        // A scope that ended normally is gone; systemd keeps a killed one as failed until this command.
        let _ = self.systemctl(&["stop"]);
        let _ = self.systemctl(&["reset-failed"]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrapped_command_keeps_its_words_directory_and_environment() {
        let scope = Scope { unit: "rumba-1-2-0.scope".to_owned(), limit_bytes: 1 << 30 };
        let mut command = Command::new("/opt/rumba");
        command.args(["trial", "a b"]).env("KEY", "value").env_remove("OTHER").current_dir("/tmp");
        let wrapped = scope.wrap(&command);
        let words: Vec<_> = wrapped.get_args().map(|word| word.to_str().unwrap()).collect();
        assert_eq!(wrapped.get_program(), "systemd-run");
        assert_eq!(&words[..4], ["--user", "--scope", "--quiet", "--unit=rumba-1-2-0.scope"]);
        let rest = ["-p", "MemoryMax=1073741824", "-p", "MemorySwapMax=0", "--", "/opt/rumba", "trial", "a b"];
        assert_eq!(&words[4..], rest);
        assert_eq!(wrapped.get_current_dir(), command.get_current_dir());
        assert!(wrapped.get_envs().eq(command.get_envs()));
        std::mem::forget(scope);
    }
}
