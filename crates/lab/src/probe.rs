//! Checks whether an engine can run a configuration here.
//!
//! A configuration that names a library is checked in a separate process. Two versions of one library (RocksDB's, for
//! example) cannot share a process, and an experiment may compare them.

use std::io::{self, Write};
use std::process::Stdio;

use rumba_engine_api::engine::{Engine, EngineConfig, Missing};
use rumba_engine_api::setting::SettingError;
use serde::{Deserialize, Serialize};

use crate::registry::{Process, Registry};

/// Why a configuration cannot run.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Refusal {
    /// Something that the engine needs is missing.
    Missing(Missing),
    /// A setting is invalid.
    Setting(SettingError),
}

/// Whether an engine can run a configuration.
///
/// # Errors
/// Why it cannot.
pub fn probe(engine: &dyn Engine, config: &EngineConfig, process: Option<Process>) -> Result<(), Refusal> {
    match (process, &config.library) {
        (Some(process), Some(_)) => elsewhere(process, config).unwrap_or_else(|error| {
            let remedy = "try the library with a program of its own, or leave it out";
            Err(Refusal::Setting(SettingError::new("library", format!("it cannot be tried: {error}"), remedy)))
        }),
        _ => here(engine, config),
    }
}

fn here(engine: &dyn Engine, config: &EngineConfig) -> Result<(), Refusal> {
    match engine.availability(config.into()).missing {
        Some(missing) => Err(Refusal::Missing(missing)),
        None => engine.check(config).map_err(Refusal::Setting),
    }
}

fn elsewhere(process: Process, config: &EngineConfig) -> io::Result<Result<(), Refusal>> {
    let mut child = process("probe")?.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn()?;
    if let Some(mut stdin) = child.stdin.take() {
        stdin.write_all(&serde_json::to_vec(config)?)?;
    }
    let output = child.wait_with_output()?;
    if !output.status.success() {
        return Err(io::Error::other(format!("the process that loaded it ended with {}", output.status)));
    }
    // The library may have printed lines before the answer.
    let answer = output.stdout.split(|byte| *byte == b'\n').rfind(|line| !line.is_empty());
    Ok(serde_json::from_slice(answer.unwrap_or_default())?)
}

/// Reads a configuration from standard input and answers on standard output.
///
/// # Errors
/// When reading or writing fails.
pub fn serve(registry: &Registry) -> io::Result<()> {
    let config: EngineConfig = serde_json::from_reader(io::stdin().lock())?;
    let engine = registry.engine(&config.engine).ok_or_else(|| io::Error::other("no such engine"))?;
    println!("{}", serde_json::to_string(&here(engine, &config))?);
    Ok(())
}
