//! Checks whether an engine can run a configuration here.
//!
//! A configuration that names a library is checked in a separate process. Two versions of one library (RocksDB's, for
//! example) cannot share a process, and an experiment may compare them.

use std::fs;
use std::io::{self, Read, Write};
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use rumba_engine_api::engine::{Engine, EngineConfig, Missing};
use rumba_engine_api::printable::shown;
use rumba_engine_api::setting::SettingError;
use serde::{Deserialize, Serialize};

use crate::registry::{Process, Registry, end_with};

/// How long a library may take to load and to check its settings.
const PATIENCE: Duration = Duration::from_secs(30);

/// The input of the process that loads a library.
#[derive(Serialize, Deserialize)]
struct Request {
    config: EngineConfig,
    parent: u32,
}

/// Why a configuration cannot run.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Refusal {
    /// Something that the engine needs is missing.
    Missing(Missing),
    Setting(SettingError),
}

/// Whether an engine can run a configuration.
///
/// # Errors
/// Why it cannot.
pub fn probe(engine: &dyn Engine, config: &EngineConfig, process: Option<Process>) -> Result<(), Refusal> {
    let refuse = |problem, remedy: &str| Err(Refusal::Setting(SettingError::new("library", problem, remedy)));
    let Some(library) = &config.library else { return here(engine, config) };
    // Opening a pipe or a device may wait forever.
    if fs::metadata(library).is_ok_and(|found| !found.is_file() && !found.is_dir()) {
        return refuse(format!("{} is not a file", shown(library)), "name the library's file");
    }
    let Some(process) = process else { return here(engine, config) };
    elsewhere(process("probe"), config, PATIENCE).unwrap_or_else(|error| {
        refuse(format!("it cannot be loaded: {error}"), "check the library with another program, or leave it out")
    })
}

fn here(engine: &dyn Engine, config: &EngineConfig) -> Result<(), Refusal> {
    match engine.availability(config.into()).missing {
        Some(missing) => Err(Refusal::Missing(missing)),
        None => engine.check(config).map_err(Refusal::Setting),
    }
}

fn elsewhere(
    command: io::Result<Command>,
    config: &EngineConfig,
    patience: Duration,
) -> io::Result<Result<(), Refusal>> {
    let mut child = command?.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn()?;
    if let Some(mut stdin) = child.stdin.take() {
        // A process that ends before it reads reports that by its exit status.
        let _ = stdin.write_all(&serde_json::to_vec(&Request { config: config.clone(), parent: std::process::id() })?);
    }
    let (sender, answer) = mpsc::channel();
    let stdout = child.stdout.take();
    thread::spawn(move || {
        let mut bytes = Vec::new();
        let read = stdout.map_or(Ok(0), |mut stdout| stdout.read_to_end(&mut bytes));
        sender.send(read.map(|_| bytes))
    });
    let Ok(bytes) = answer.recv_timeout(patience) else {
        child.kill()?;
        child.wait()?;
        let words = format!("its process did not answer within {} s, so rumba ended it", patience.as_secs());
        return Err(io::Error::new(io::ErrorKind::TimedOut, words));
    };
    let (bytes, status) = (bytes?, child.wait()?);
    if !status.success() {
        return Err(io::Error::other(format!("its process ended with {status}")));
    }
    // The library may have printed lines before the answer.
    let answer = bytes.split(|byte| *byte == b'\n').rfind(|line| !line.is_empty());
    Ok(serde_json::from_slice(answer.unwrap_or_default())?)
}

/// Reads a configuration from standard input and answers on standard output.
pub fn serve(registry: &Registry) -> io::Result<()> {
    let Request { config, parent } = serde_json::from_reader(io::stdin().lock())?;
    end_with(parent)?;
    let engine = registry.engine(&config.engine).ok_or_else(|| io::Error::other("no such engine"))?;
    println!("{}", serde_json::to_string(&here(engine, &config))?);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// rumba waited for a library that never loads, even in a dry run.
    #[test]
    fn library_that_hangs_is_ended_and_named() {
        let dir = tempfile::tempdir().unwrap();
        let pid = dir.path().join("pid");
        let mut hangs = Command::new("sh");
        hangs.args(["-c", "echo $$ > \"$0\"; exec sleep 1000"]).arg(&pid);
        let error = elsewhere(Ok(hangs), &EngineConfig::new("any"), Duration::from_secs(1)).unwrap_err();
        assert_eq!(error.to_string(), "its process did not answer within 1 s, so rumba ended it");
        let pid = fs::read_to_string(pid).unwrap();
        assert!(!fs::exists(format!("/proc/{}", pid.trim())).unwrap(), "its process works on");
    }
}
