//! The process that serves a volume's file through FUSE: the mount's root is that file.
//!
//! Each thread takes a request from the kernel, performs it, waits until the delay has passed, and answers. There are
//! as many threads as a loop device has requests, so no request waits for another's delay.

use std::cell::RefCell;
use std::ffi::CString;
use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant, UNIX_EPOCH};

use fuser::{
    Config, Errno, FileAttr, FileHandle, FileType, Filesystem, FopenFlags, INodeNo, InitFlags, KernelConfig, LockOwner,
    OpenFlags, ReplyAttr, ReplyData, ReplyEmpty, ReplyOpen, ReplyWrite, Request, Session, SessionACL, WriteFlags,
};
use rustix::mount::{MountFlags, mount};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use super::super::aligned::AlignedBuffer;
use super::super::share::go_first;
use super::{FUSE, Order, READY};
use crate::registry::end_with;

/// Requests at once: the queue depth of a loop device.
const THREADS: u16 = 128;
/// The largest request, bytes; the kernel splits larger ones and sends the parts at once.
const LARGEST: usize = 1 << 20;
/// The kernel may keep the file's size for as long as the file is served.
const FOREVER: Duration = Duration::from_secs(1 << 30);

thread_local! {
    /// Direct I/O needs an aligned buffer, and a request's bytes are not aligned.
    static BUFFER: RefCell<AlignedBuffer> = RefCell::new(AlignedBuffer::new(LARGEST));
}

/// Serves the file of the order on standard input until the served file is unmounted.
///
/// # Errors
/// When no answer can be sent, or the connection to the kernel fails.
pub fn serve() -> io::Result<()> {
    // Only the unmount ends it: it serves the volume until rumba has ended everything on it.
    let ignored = Arc::new(AtomicBool::new(false));
    for signal in [SIGHUP, SIGINT, SIGTERM] {
        signal_hook::flag::register(signal, ignored.clone())?;
    }
    let mut line = String::new();
    io::stdin().lock().read_line(&mut line)?;
    let delay_us = Arc::new(AtomicU64::new(0));
    let session = match serde_json::from_str(&line).map_err(Into::into).and_then(|order| begin(&order, &delay_us)) {
        Ok(session) => session,
        Err(error) => return answer(&error.to_string()),
    };
    thread::spawn(move || follow(&delay_us));
    answer(READY)?;
    session.run()
}

fn answer(words: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    writeln!(out, "{words}")?;
    out.flush()
}

/// Takes each delay that the parent sends.
fn follow(delay_us: &AtomicU64) {
    for line in io::stdin().lock().lines().map_while(Result::ok) {
        line.trim().parse().into_iter().for_each(|us| delay_us.store(us, Relaxed));
    }
}

/// Mounts the file.
fn begin(order: &Order, delay_us: &Arc<AtomicU64>) -> io::Result<Session<Delayed>> {
    end_with(order.parent)?;
    serve_others_memory();
    go_first();
    let mut options = OpenOptions::new();
    let flags = if order.is_direct { libc::O_DIRECT } else { 0 };
    let image = options.read(true).write(true).custom_flags(flags).open(&order.image)?;
    let size = image.metadata()?.len();
    let fuse = OpenOptions::new().read(true).write(true).open(FUSE)?;
    let options = CString::new(format!("fd={},rootmode=100600,user_id=0,group_id=0", fuse.as_raw_fd()))?;
    let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
    mount("rumba", &order.point, "fuse.rumba", flags, options.as_c_str())?;
    let mut config = Config::default();
    config.n_threads = Some(THREADS.into());
    let served = Delayed { image, size, delay_us: delay_us.clone() };
    Session::from_fd(served, OwnedFd::from(fuse), SessionACL::Owner, config)
}

/// Keeps this process from waiting for its own volume. The kernel then frees no memory for it by writing pages of a
/// filesystem, and does not hold back its writes because pages wait for it. Its threads inherit both.
fn serve_others_memory() {
    // From `linux/prctl.h`; it needs Linux 5.6 and CAP_SYS_RESOURCE. Without it, only an exhausted host is at risk.
    const PR_SET_IO_FLUSHER: libc::c_int = 57;
    // SAFETY: the calls take numbers and change attributes of the calling thread alone.
    unsafe {
        libc::prctl(PR_SET_IO_FLUSHER, 1, 0, 0, 0);
        // Threads without real-time priority would oversleep by 50 µs.
        libc::prctl(libc::PR_SET_TIMERSLACK, 1, 0, 0, 0);
    }
}

/// The served file.
struct Delayed {
    image: File,
    size: u64,
    delay_us: Arc<AtomicU64>,
}

impl Delayed {
    fn attributes(&self) -> FileAttr {
        FileAttr {
            ino: INodeNo::ROOT,
            size: self.size,
            blocks: self.size / 512,
            atime: UNIX_EPOCH,
            mtime: UNIX_EPOCH,
            ctime: UNIX_EPOCH,
            crtime: UNIX_EPOCH,
            kind: FileType::RegularFile,
            perm: 0o600,
            nlink: 1,
            uid: 0,
            gid: 0,
            rdev: 0,
            blksize: 4096,
            flags: 0,
        }
    }

    /// Waits for the rest of the delay of a request that began then.
    fn wait(&self, begun: Instant) {
        let delay = Duration::from_micros(self.delay_us.load(Relaxed));
        thread::sleep(delay.saturating_sub(begun.elapsed()));
    }
}

/// Runs this with the thread's buffer, which holds any request.
fn with_buffer<T>(bytes: usize, run: impl FnOnce(&mut [u8]) -> io::Result<T>) -> Result<T, Errno> {
    let ran = BUFFER.with_borrow_mut(|buffer| match buffer.bytes().get_mut(..bytes) {
        Some(part) => run(part),
        None => Err(io::Error::from_raw_os_error(libc::EINVAL)),
    });
    ran.map_err(|error| errno(&error))
}

fn errno(error: &io::Error) -> Errno {
    Errno::from_i32(error.raw_os_error().unwrap_or(libc::EIO))
}

impl Filesystem for Delayed {
    fn init(&mut self, _: &Request, config: &mut KernelConfig) -> io::Result<()> {
        let wrong = |nearest| io::Error::other(format!("the kernel allows {nearest} only"));
        config.set_max_background(THREADS).map_err(wrong)?;
        config.set_congestion_threshold(THREADS).map_err(wrong)?;
        config.set_max_write(LARGEST as u32).map_err(|nearest| io::Error::other(nearest.to_string()))?;
        // Without it, the loop device would have one request at a time.
        let lacking = |flags: InitFlags| io::Error::other(format!("this kernel has no {flags:?}"));
        config.add_capabilities(InitFlags::FUSE_ASYNC_DIO).map_err(lacking)
    }

    fn getattr(&self, _: &Request, _: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        reply.attr(&FOREVER, &self.attributes());
    }

    fn open(&self, _: &Request, _: INodeNo, _: OpenFlags, reply: ReplyOpen) {
        reply.opened(FileHandle(0), FopenFlags::FOPEN_DIRECT_IO | FopenFlags::FOPEN_PARALLEL_DIRECT_WRITES);
    }

    fn read(
        &self,
        _: &Request,
        _: INodeNo,
        _: FileHandle,
        offset: u64,
        size: u32,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyData,
    ) {
        let begun = Instant::now();
        let read = with_buffer(size as usize, |buffer| self.image.read_at(buffer, offset));
        self.wait(begun);
        match read {
            Ok(bytes) => BUFFER.with_borrow_mut(|buffer| reply.data(&buffer.bytes()[..bytes])),
            Err(error) => reply.error(error),
        }
    }

    fn write(
        &self,
        _: &Request,
        _: INodeNo,
        _: FileHandle,
        offset: u64,
        data: &[u8],
        _: WriteFlags,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        let begun = Instant::now();
        let written = with_buffer(data.len(), |buffer| {
            buffer.copy_from_slice(data);
            self.image.write_all_at(buffer, offset)
        });
        self.wait(begun);
        match written {
            Ok(()) => reply.written(data.len() as u32),
            Err(error) => reply.error(error),
        }
    }

    /// A flush has no delay, because a loop device begins no other request during one.
    fn fsync(&self, _: &Request, _: INodeNo, _: FileHandle, _: bool, reply: ReplyEmpty) {
        match self.image.sync_data() {
            Ok(()) => reply.ok(),
            Err(error) => reply.error(errno(&error)),
        }
    }

    fn flush(&self, _: &Request, _: INodeNo, _: FileHandle, _: LockOwner, reply: ReplyEmpty) {
        reply.ok();
    }
}
