//! What programs of others have in common that are measured beside rumba: whoever measures names them, they are told a
//! port, and say their figures in words.

use std::path::PathBuf;
use std::process::Command;

use super::Failure;
use super::servers::{Whose, cpu_us};

/// What somebody has named by a variable of the environment.
pub fn named(variable: &str, what: &str) -> Result<PathBuf, Failure> {
    let told = std::env::var_os(variable).map(PathBuf::from).filter(|path| path.exists());
    told.ok_or_else(|| format!("{what} is not here: name it by {variable}").into())
}

/// A port that nobody listens on at this moment.
pub fn free_port() -> Result<u16, Failure> {
    Ok(std::net::TcpListener::bind("127.0.0.1:0")?.local_addr()?.port())
}

/// CPU that `command` spent, with those that it has started, µs, and what it said.
pub fn spent(command: &mut Command) -> Result<(f64, String), Failure> {
    let before = cpu_us("self", Whose::Children)?;
    let output = command.output().map_err(|error| format!("{command:?}: {error}"))?;
    let cpu = cpu_us("self", Whose::Children)? - before;
    let told = String::from_utf8_lossy(&output.stdout).into_owned();
    if !output.status.success() {
        return Err(format!("{command:?}: {told}{}", String::from_utf8_lossy(&output.stderr)).into());
    }
    Ok((cpu, told))
}

/// The number behind the last of a word in what a program said.
pub fn behind(told: &str, word: &str) -> Result<f64, Failure> {
    let rest = told.rsplit_once(word).ok_or_else(|| format!("{word} is not in: {told}"))?.1;
    let digits = rest.trim_start().split(|c: char| !c.is_ascii_digit() && c != '.').next().unwrap_or_default();
    digits.parse().map_err(|error| format!("{word} {digits}: {error}").into())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn figures_are_read_behind_the_last_of_their_words() {
        let told = "READ   - Takes(s): 1.0, Count: 10, OPS: 9.9\nREAD   - Takes(s): 2.0, Count: 1234, OPS: 617.0\n";
        assert_eq!((behind(told, "Takes(s):").unwrap(), behind(told, "Count:").unwrap()), (2.0, 1234.0));
        assert!(behind(told, "TOTAL").unwrap_err().to_string().starts_with("TOTAL is not in: READ"));
    }
}
