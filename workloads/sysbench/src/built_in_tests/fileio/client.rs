//! One thread of `fileio`: its requests, carried out and counted.

use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use crate::cli::settings::{FileIo, FileTest};
use crate::counters::{Counter, Counters};
use crate::random::Random;

use super::aio::Queue;
use super::contents;
use super::files::{OpenFiles, buffer};
use super::request::{Operation, Request, operation};
use crate::built_in_tests::failure::Failure;
use crate::built_in_tests::pages::Pages;
use crate::built_in_tests::task::Task;

/// By which way bytes go.
enum Way {
    /// One call at a time, or by copying; the buffer is this thread's.
    AtOnce(Pages),
    /// By several requests at once.
    Queue(Queue),
}

/// One thread.
pub(crate) struct FileClient {
    files: Arc<OpenFiles>,
    thread: u32,
    random: Random,
    counters: Arc<Counters>,
    way: Way,
    /// The drawn reads and writes, which keep to their ratio.
    reads: u64,
    writes: u64,
}

impl FileClient {
    /// The thread of a number.
    pub(crate) fn new(
        files: Arc<OpenFiles>,
        thread: u32,
        random: Random,
        counters: Arc<Counters>,
    ) -> Result<Self, Failure> {
        let buffer = buffer(files.requested.request_bytes())?;
        let way = match files.requested.io {
            FileIo::Async { backlog } => Way::Queue(Queue::new(backlog, buffer)?),
            FileIo::Sync | FileIo::Mmap => Way::AtOnce(buffer),
        };
        Ok(Self { files, thread, random, counters, way, reads: 0, writes: 0 })
    }

    fn read(&mut self, request: Request) -> Result<(), Failure> {
        let Self { files, counters, way, .. } = self;
        let file = &files.files[request.file as usize];
        let buffer = match way {
            Way::Queue(queue) => {
                return queue.begin(file.as_fd(), Operation::Read, request.offset, request.bytes, counters);
            }
            Way::AtOnce(buffer) => buffer.first(request.bytes as usize),
        };
        match files.maps.get(request.file as usize) {
            Some(map) => map.read(buffer, request.offset),
            None => whole(file.read_at(buffer, request.offset), request.bytes)
                .map_err(|why| failed("read", file, request.offset, &why))?,
        }
        if files.validate {
            contents::check(buffer, files.requested.block_bytes as usize, request.file, request.offset)?;
        }
        counters.count(Counter::Read);
        counters.count_by(Counter::BytesRead, request.bytes);
        Ok(())
    }

    fn write(&mut self, request: Request) -> Result<(), Failure> {
        let Self { files, counters, way, random, .. } = self;
        let file = &files.files[request.file as usize];
        let is_counted = match way {
            Way::Queue(queue) => {
                queue.begin(file.as_fd(), Operation::Write, request.offset, request.bytes, counters)?;
                false
            }
            Way::AtOnce(buffer) => {
                let buffer = buffer.first(request.bytes as usize);
                if files.validate {
                    contents::fill(buffer, files.requested.block_bytes as usize, request.offset, random);
                }
                match files.maps.get(request.file as usize) {
                    Some(map) => map.write(buffer, request.offset),
                    None => whole(file.write_at(buffer, request.offset), request.bytes)
                        .map_err(|why| failed("write", file, request.offset, &why))?,
                }
                true
            }
        };
        if self.files.requested.sync.after_writes {
            self.sync(request.file)?;
        }
        if is_counted {
            self.counters.count(Counter::Write);
            self.counters.count_by(Counter::BytesWritten, request.bytes);
        }
        Ok(())
    }

    /// Also in mode async: sysbench waits for syncs there, too.
    fn sync(&mut self, number: u32) -> Result<(), Failure> {
        let file = &self.files.files[number as usize];
        let synced = match self.files.maps.get(number as usize) {
            Some(map) => map.sync(),
            None if self.files.requested.sync.data_only => file.sync_data(),
            None => file.sync_all(),
        };
        let words = || format!("Failed to fsync file! file: {}", file.as_raw_fd());
        synced.map_err(|error| Failure::system(&words(), &error))?;
        self.counters.count(Counter::Other);
        Ok(())
    }
}

impl Task for FileClient {
    type Event = Request;

    fn next(&mut self) -> Option<Request> {
        let files = &self.files;
        let operation = operation(files.test, files.requested.read_write_ratio, self.reads, self.writes);
        let request = if files.test.is_random() {
            files.requests().at_random(operation, self.thread, &mut self.random)
        } else {
            files.requests().in_order(operation)
        };
        match request.operation {
            Operation::Read => self.reads += 1,
            Operation::Write => self.writes += 1,
            Operation::Sync => {}
        }
        Some(request)
    }

    fn execute(&mut self, request: Request) -> Result<(), Failure> {
        match request.operation {
            Operation::Read => self.read(request),
            Operation::Write => self.write(request),
            Operation::Sync => self.sync(request.file),
        }
    }

    /// Each thread syncs all files, as in sysbench.
    fn end(&mut self) -> Result<(), Failure> {
        let writes = !matches!(self.files.test, FileTest::SequentialRead | FileTest::RandomRead);
        if writes && self.files.requested.sync.at_end {
            (0..self.files.requested.files).try_for_each(|file| self.sync(file))?;
        }
        match &mut self.way {
            Way::Queue(queue) => queue.end(&self.counters),
            Way::AtOnce(_) => Ok(()),
        }
    }
}

/// Why not all bytes went.
enum Short {
    System(io::Error),
    Bytes { went: usize, of: u64 },
}

fn whole(went: io::Result<usize>, of: u64) -> Result<(), Short> {
    match went {
        Ok(went) if went as u64 == of => Ok(()),
        Ok(went) => Err(Short::Bytes { went, of }),
        Err(error) => Err(Short::System(error)),
    }
}

#[cold]
fn failed(what: &str, file: &impl AsRawFd, offset: u64, why: &Short) -> Failure {
    let words = format!("Failed to {what} file! file: {} pos: {offset}", file.as_raw_fd());
    match why {
        Short::System(error) => Failure::system(&words, error),
        Short::Bytes { went, of } => Failure::fatal(format!("{words}: {went} of {of} bytes")),
    }
}
