//! A delay of each request of a volume. A process of rumba's serves the volume's file through FUSE, and the loop device
//! is over the served file.
//!
//! It is a separate process, because a process that waits for the volume could not end if it served the volume itself.
//! When it is killed, the kernel ends the connection, and every request fails until the volume is removed.

mod serve;

use std::fs::OpenOptions;
use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Stdio};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::registry::Process;

pub use serve::serve;

pub const FUSE: &str = "/dev/fuse";
/// The argument of the binary that runs [`serve`].
const ARGUMENT: &str = "delay";
/// The answer of the process once the file is served.
const READY: &str = "ready";

/// The input of the process, the first line on its standard input. Each further line is a delay in microseconds.
#[derive(Debug, Serialize, Deserialize)]
struct Order {
    /// The volume's file.
    image: PathBuf,
    /// The empty file over which the served file is mounted.
    point: PathBuf,
    /// Whether the volume's file is accessed without the page cache.
    is_direct: bool,
    /// The process that sends the order.
    parent: u32,
}

/// The process that delays requests. It ends once the served file is unmounted, and is killed when dropped.
#[derive(Debug)]
pub struct Delayer {
    child: Child,
    input: ChildStdin,
}

impl Delayer {
    /// Serves a file at `point`, which must not exist, without a delay yet.
    ///
    /// # Errors
    /// The reason why it cannot be served, for a person.
    pub fn start(process: Option<Process>, image: &Path, point: &Path, is_direct: bool) -> io::Result<Self> {
        let process = process.ok_or_else(|| io::Error::other("this program has no process for it"))?;
        OpenOptions::new().write(true).create_new(true).mode(0o600).open(point)?;
        let mut command = process(ARGUMENT)?;
        // A signal to rumba's group, as by Ctrl-C, must not end it before the volume is unmounted.
        command.current_dir("/").process_group(0);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn()?;
        let (Some(input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(io::Error::other("its pipes are missing"));
        };
        let mut delayer = Self { child, input };
        let (image, point) = (image.to_owned(), point.to_owned());
        let order = Order { image, point, is_direct, parent: std::process::id() };
        // A process that died before reading sends no answer.
        let _ = delayer.send(&serde_json::to_string(&order)?);
        let mut answer = String::new();
        BufReader::new(output).read_line(&mut answer)?;
        match answer.trim() {
            READY => Ok(delayer),
            "" => Err(io::Error::other("its process ended early")),
            why => Err(io::Error::other(why.to_owned())),
        }
    }

    /// Delays requests from now on; zero ends the delay.
    ///
    /// # Errors
    /// The process is gone.
    pub fn delay(&mut self, by: Duration) -> io::Result<()> {
        self.send(&by.as_micros().to_string())
    }

    /// The process.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    fn send(&mut self, line: &str) -> io::Result<()> {
        self.input.write_all(format!("{line}\n").as_bytes())
    }
}

impl Drop for Delayer {
    fn drop(&mut self) {
        // It ends on its own when the volume was unmounted. If that failed, nothing on the volume counts any more.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
