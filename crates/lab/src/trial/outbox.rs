//! Sends events to the process that started the trial.
//!
//! A pipe holds 64 KiB. A stopped reader, or one that waits for its terminal, would block the trial. The clients would
//! run on, but their intervals would not be counted. Events that do not fit into the pipe are therefore kept in memory,
//! bounded by a run's total events, and sent with the next event.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, ErrorKind, Write};
use std::os::fd::OwnedFd;

use rumba_results::event::Event;
use rustix::fs::{FileType, OFlags, fcntl_getfl, fcntl_setfl, fstat};

/// Sends a line for each event. It loses none, and waits only at the end.
pub struct Outbox {
    to: File,
    /// Whether it is a pipe, so that unsent bytes can be kept.
    is_pipe: bool,
    waiting: VecDeque<u8>,
}

impl Outbox {
    /// Sends events to this descriptor. For a pipe this must be the only writer. Anything else, such as a terminal, may
    /// have other users, and is written with blocking calls.
    ///
    /// # Errors
    /// The system's error.
    pub fn new(to: OwnedFd) -> io::Result<Self> {
        let is_pipe = FileType::from_raw_mode(fstat(&to)?.st_mode) == FileType::Fifo;
        if is_pipe {
            fcntl_setfl(&to, fcntl_getfl(&to)? | OFlags::NONBLOCK)?;
        }
        Ok(Self { to: File::from(to), is_pipe, waiting: VecDeque::new() })
    }

    /// Sends an event, as soon as the pipe has space for it.
    ///
    /// # Errors
    /// When the reader has ended.
    pub fn notify(&mut self, event: &Event) -> io::Result<()> {
        serde_json::to_writer(&mut self.waiting, event)?;
        self.waiting.push_back(b'\n');
        match self.send() {
            Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(()),
            sent => sent,
        }
    }

    /// Sends all remaining events, and waits for the reader.
    ///
    /// # Errors
    /// When the reader has ended.
    pub fn finish(mut self) -> io::Result<()> {
        if self.is_pipe {
            fcntl_setfl(&self.to, fcntl_getfl(&self.to)? - OFlags::NONBLOCK)?;
        }
        self.send()
    }

    fn send(&mut self) -> io::Result<()> {
        while !self.waiting.is_empty() {
            let (next, _) = self.waiting.as_slices();
            match self.to.write(next) {
                Ok(0) => return Err(ErrorKind::WriteZero.into()),
                Ok(count) => drop(self.waiting.drain(..count)),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader};

    use rumba_results::warning::Warning;

    use super::*;

    #[test]
    fn slow_reader_does_not_block_the_outbox_and_misses_nothing() {
        let (from, to) = io::pipe().unwrap();
        let mut outbox = Outbox::new(to.into()).unwrap();
        let message = "m".repeat(1000);
        // Four times the capacity of a pipe. It blocked at the sixty-fifth.
        for number in 0..256 {
            outbox.notify(&Event::Warning(Warning::new("test", format!("{number} {message}"), "none"))).unwrap();
        }
        assert!(outbox.waiting.len() > 128 * 1024, "{}", outbox.waiting.len());
        let read = std::thread::spawn(|| BufReader::new(from).lines().map(Result::unwrap).collect::<Vec<String>>());
        outbox.finish().unwrap();
        let read = read.join().unwrap();
        assert_eq!(read.len(), 256);
        for (number, line) in read.iter().enumerate() {
            let Event::Warning(warning) = serde_json::from_str(line).unwrap() else { panic!("{line}") };
            assert!(warning.message.starts_with(&format!("{number} m")), "{line}");
        }
    }

    #[test]
    fn missing_reader_is_reported() {
        let (from, to) = io::pipe().unwrap();
        let mut outbox = Outbox::new(to.into()).unwrap();
        drop(from);
        assert_eq!(outbox.notify(&Event::Finished).unwrap_err().kind(), ErrorKind::BrokenPipe);
    }
}
