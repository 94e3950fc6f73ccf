//! Runs external commands.

use std::io::{BufRead, BufReader, Read};
use std::process::{Command, Stdio};

use rumba_engine_api::error::Result;

use crate::failure::{full_or_failed, last_lines};

/// Runs a command to its end and returns its output.
pub fn output_of(command: &mut Command, what: &'static str) -> Result<String> {
    let mut text = String::new();
    progress_of(command, what, &mut |line| {
        text.push_str(line);
        text.push('\n');
    })?;
    Ok(text)
}

/// Runs a command to its end and passes on each line as it is printed.
pub fn progress_of(command: &mut Command, what: &'static str, line_printed: &mut dyn FnMut(&str)) -> Result<()> {
    let name = command.get_program().to_string_lossy().into_owned();
    let cannot = |error: std::io::Error| full_or_failed(what, format!("{name} cannot be run: {error}"));
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(cannot)?;
    let mut stderr = child.stderr.take();
    let errors = std::thread::spawn(move || {
        let mut bytes = Vec::new();
        // If the output cannot be read, the exit status still reports the failure.
        let _ = stderr.as_mut().map(|stderr| stderr.read_to_end(&mut bytes));
        String::from_utf8_lossy(&bytes).into_owned()
    });
    if let Some(stdout) = child.stdout.take() {
        for line in BufReader::new(stdout).split(b'\n').map_while(Result::ok) {
            line_printed(&String::from_utf8_lossy(&line));
        }
    }
    let status = child.wait().map_err(cannot)?;
    let errors = errors.join().unwrap_or_default();
    if status.success() {
        return Ok(());
    }
    Err(full_or_failed(what, format!("{name} ended with {status}:\n{}", last_lines(&errors, 8))))
}
