//! The source of an experiment's text: a file, a pipe (`<(…)` of a shell), or standard input (`-`).

use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::fs::FileTypeExt;
use std::path::Path;

use rumba_engine_api::printable::shown;
use rumba_engine_api::units::show_bytes;

use super::error::{Origin, SpecError};

/// The longest experiment, bytes: far longer than any real one.
const LONGEST: u64 = 4 << 20;

const REMEDY: &str = "name an experiment's .toml file, or a workload (see `rumba workloads`)";

pub fn is_standard_input(path: &Path) -> bool {
    path == Path::new("-")
}

/// The name of a source in messages.
pub fn name(path: &Path) -> String {
    if is_standard_input(path) { "standard input".to_owned() } else { shown(path) }
}

/// Reads a source completely.
///
/// # Errors
/// A source that cannot be read, is not text, or is no experiment by its type or length.
pub fn read(path: &Path) -> Result<String, SpecError> {
    let name = name(path);
    let wrong = |problem: String| SpecError::new(&Origin::Option(name.clone()), problem, REMEDY);
    let unreadable = |error: io::Error| wrong(format!("{name} cannot be read: {error}"));
    let bytes = if is_standard_input(path) {
        beginning(io::stdin().lock())
    } else {
        let kind = fs::metadata(path).map_err(unreadable)?.file_type();
        if !kind.is_file() && !kind.is_fifo() {
            return Err(wrong(format!("{name} is {}, and no experiment's file", kind_of(kind))));
        }
        File::open(path).and_then(beginning)
    };
    let bytes = bytes.map_err(unreadable)?;
    if bytes.len() as u64 > LONGEST {
        return Err(wrong(format!("{name} is longer than {}, too long for an experiment", show_bytes(LONGEST as f64))));
    }
    String::from_utf8(bytes).map_err(|error| unreadable(io::Error::new(io::ErrorKind::InvalidData, error.utf8_error())))
}

/// The whole text, or one byte more than an experiment may have, so that an endless source does not block.
fn beginning(source: impl Read) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    source.take(LONGEST + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn kind_of(kind: fs::FileType) -> &'static str {
    match kind {
        kind if kind.is_dir() => "a directory",
        kind if kind.is_socket() => "a socket",
        _ => "a device",
    }
}
