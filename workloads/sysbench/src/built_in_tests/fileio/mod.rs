//! `fileio`: files that `prepare` creates, and that events read and write one block at a time.

mod aio;
mod client;
mod contents;
mod files;
mod map;
mod request;
#[cfg(test)]
mod tests;

use crate::cli::settings::{FileIo, FileSettings, FileTest, Settings};
use crate::cli::{OptionSet, Refusal};

pub(crate) use client::FileClient;
pub(crate) use files::{OpenFiles, cleanup, prepare};

/// Reads the options. It also refuses values for which sysbench divides by zero, waits endlessly or reports damage.
pub(crate) fn read(options: &OptionSet, settings: &Settings, is_run: bool) -> Result<FileSettings, Refusal> {
    let requested = FileSettings::read(options, is_run)?;
    if requested.file_bytes == 0 {
        let total = options.text("file-total-size").unwrap_or_default();
        let words = format!("Invalid value for file-total-size: {total}: {} files would be empty", requested.files);
        return Err(Refusal::Fatal(words));
    }
    match settings.validate.then(|| not_validated(&requested, settings)).flatten() {
        Some(why) => Err(Refusal::Fatal(format!("--validate {why}"))),
        None => Ok(requested),
    }
}

/// Why contents cannot be checked.
fn not_validated(requested: &FileSettings, settings: &Settings) -> Option<String> {
    let least_bytes = contents::MARK_BYTES as u64 + 1;
    if requested.block_bytes < least_bytes {
        return Some(format!("needs a --file-block-size of {least_bytes} or more: a checksum is part of each block"));
    }
    if !requested.file_bytes.is_multiple_of(requested.block_bytes) {
        return Some(format!(
            "needs files of whole blocks, and {} bytes are not a multiple of {}: change --file-total-size or \
             --file-num",
            requested.file_bytes, requested.block_bytes
        ));
    }
    if matches!(requested.io, FileIo::Async { .. }) {
        return Some("cannot be used with --file-io-mode=async: requests of a thread share one buffer".to_owned());
    }
    let blocks = requested.file_bytes / requested.block_bytes * u64::from(requested.files);
    if requested.test.is_some_and(FileTest::is_random) && blocks < u64::from(settings.threads) {
        return Some(format!("needs a block for each thread: there are {blocks} for {} threads", settings.threads));
    }
    None
}
