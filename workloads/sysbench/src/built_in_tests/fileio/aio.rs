//! Several requests at once: Linux's own asynchronous I/O, which sysbench uses through libaio.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

use crate::counters::{Counter, Counters};

use super::request::Operation;
use crate::built_in_tests::failure::Failure;
use crate::built_in_tests::pages::Pages;

/// `IOCB_CMD_PREAD` and `IOCB_CMD_PWRITE` of linux/aio_abi.h.
const PREAD: u16 = 0;
const PWRITE: u16 = 1;

/// `struct io_event` of linux/aio_abi.h.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct IoEvent {
    data: u64,
    object: u64,
    result: i64,
    result2: i64,
}

#[derive(Clone, Copy)]
struct IoRequest {
    operation: Operation,
    bytes: u64,
}

/// The requests of one thread, up to the requested number at once.
pub(super) struct Queue {
    context: libc::c_ulong,
    /// The system's control block of each request, by its number.
    blocks: Box<[libc::iocb]>,
    requests: Box<[IoRequest]>,
    ended: Box<[IoEvent]>,
    /// Unused numbers.
    free: Vec<usize>,
    /// All requests read into it and write from it, as in sysbench. Freed after the requests have ended.
    buffer: Pages,
}

impl Queue {
    /// For at most this many requests at once, each of a buffer's length at most.
    pub(super) fn new(backlog: u32, buffer: Pages) -> Result<Self, Failure> {
        let mut context: libc::c_ulong = 0;
        // SAFETY: io_setup writes the context's number.
        let made = unsafe { libc::syscall(libc::SYS_io_setup, libc::c_long::from(backlog), &raw mut context) };
        succeeded(made).map_err(|error| Failure::system("io_queue_init() failed!", &error))?;
        let room = backlog as usize;
        // SAFETY: the struct is numbers alone.
        let block = || unsafe { std::mem::zeroed::<libc::iocb>() };
        Ok(Self {
            context,
            blocks: (0..room).map(|_| block()).collect(),
            requests: vec![IoRequest { operation: Operation::Sync, bytes: 0 }; room].into(),
            ended: vec![IoEvent::default(); room].into(),
            free: (0..room).collect(),
            buffer,
        })
    }

    /// Begins a read or a write; at the maximum number of requests, it first waits until one has ended.
    pub(super) fn begin(
        &mut self,
        file: BorrowedFd<'_>,
        operation: Operation,
        offset: u64,
        bytes: u64,
        counters: &Counters,
    ) -> Result<(), Failure> {
        if self.free.is_empty() {
            self.wait(1, counters)?;
        }
        let Some(number) = self.free.pop() else { return Err(Failure::fatal("io_getevents() failed!")) };
        self.requests[number] = IoRequest { operation, bytes };
        let block = &mut self.blocks[number];
        block.aio_data = number as u64;
        block.aio_lio_opcode = if operation == Operation::Read { PREAD } else { PWRITE };
        block.aio_fildes = file.as_raw_fd().cast_unsigned();
        block.aio_buf = self.buffer.start() as u64;
        block.aio_nbytes = bytes;
        block.aio_offset = offset.cast_signed();
        let mut only: *mut libc::iocb = block;
        // SAFETY: one block, which stays where it is; the buffer is there until all requests have ended.
        let begun = unsafe { libc::syscall(libc::SYS_io_submit, self.context, 1 as libc::c_long, &raw mut only) };
        if let Err(error) = succeeded(begun) {
            self.free.push(number);
            return Err(Failure::system("io_submit() failed!", &error));
        }
        if self.free.is_empty() { self.wait(1, counters) } else { Ok(()) }
    }

    /// Waits until all requests have ended.
    pub(super) fn end(&mut self, counters: &Counters) -> Result<(), Failure> {
        while self.free.len() < self.blocks.len() {
            self.wait(self.blocks.len() - self.free.len(), counters)?;
        }
        Ok(())
    }

    /// Waits until at least this many have ended, and counts all that have.
    fn wait(&mut self, least: usize, counters: &Counters) -> Result<(), Failure> {
        let ended = loop {
            // SAFETY: there is room for this many; no time limit.
            let ended = unsafe {
                libc::syscall(
                    libc::SYS_io_getevents,
                    self.context,
                    least as libc::c_long,
                    self.ended.len() as libc::c_long,
                    self.ended.as_mut_ptr(),
                    std::ptr::null_mut::<libc::timespec>(),
                )
            };
            match succeeded(ended) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(Failure::system("io_getevents() failed!", &error)),
                Ok(ended) => break ended,
            }
        };
        for at in 0..ended {
            let IoEvent { data, result, .. } = self.ended[at];
            let number = data as usize;
            self.free.push(number);
            count(self.requests[number], result, counters)?;
        }
        Ok(())
    }
}

/// Counts a request that has ended, unless it failed or fell short.
fn count(request: IoRequest, result: i64, counters: &Counters) -> Result<(), Failure> {
    let (of_operation, of_bytes, name) = match request.operation {
        Operation::Write => (Counter::Write, Counter::BytesWritten, "write"),
        _ => (Counter::Read, Counter::BytesRead, "read"),
    };
    if result != request.bytes.cast_signed() {
        let words = format!("Asynchronous {name} failed!");
        return Err(match i32::try_from(-result) {
            Ok(code) if code > 0 => Failure::system(&words, &io::Error::from_raw_os_error(code)),
            _ => Failure::fatal(format!("{words} {result} of {} bytes", request.bytes)),
        });
    }
    counters.count(of_operation);
    counters.count_by(of_bytes, request.bytes);
    Ok(())
}

fn succeeded(returned: libc::c_long) -> io::Result<usize> {
    usize::try_from(returned).map_err(|_| io::Error::last_os_error())
}

impl Drop for Queue {
    fn drop(&mut self) {
        // SAFETY: the context is this value's; the call returns when no request is under way any more.
        unsafe { libc::syscall(libc::SYS_io_destroy, self.context) };
    }
}
