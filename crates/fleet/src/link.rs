//! One connection: a thread that reads, a thread that sends signs of life, and a shared writer.

use std::io;
use std::net::{Shutdown, TcpStream};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::{Duration, Instant};

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::frame::{self, Frame, MOST_BYTES};

/// The silence after which the other side is lost.
pub const SILENCE: Duration = Duration::from_secs(3);
/// How often a side says that it lives.
const SIGN_OF_LIFE: Duration = Duration::from_millis(500);
/// The stack of a thread that only reads or sends.
const STACK_BYTES: usize = 256 << 10;

/// Sends frames. The connection ends with the last copy.
#[derive(Clone)]
pub struct Link(Arc<Writer>);

struct Writer(Mutex<TcpStream>);

impl Drop for Writer {
    fn drop(&mut self) {
        // The reading thread ends too.
        let _ = self.0.get_mut().unwrap_or_else(PoisonError::into_inner).shutdown(Shutdown::Both);
    }
}

impl Link {
    /// A link over a connection. `take` gets every frame with the time of its arrival, on the reading thread, and at
    /// last why there are no more. `alive` is sent as the sign of life.
    ///
    /// # Errors
    /// The system's.
    pub fn new<In: DeserializeOwned, Out: Serialize + Send + 'static>(
        mut stream: TcpStream,
        alive: Out,
        mut take: impl FnMut(&Link, Result<Frame<In>, String>, Instant) + Send + 'static,
    ) -> io::Result<Self> {
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(SILENCE))?;
        stream.set_write_timeout(Some(SILENCE))?;
        let link = Self(Arc::new(Writer(Mutex::new(stream.try_clone()?))));
        let weak = Arc::downgrade(&link.0);
        thread("fleet-reader", move || {
            loop {
                let frame = frame::read(&mut stream, MOST_BYTES);
                let at = Instant::now();
                // Without its owner, messages have no receiver.
                let Some(link) = weak.upgrade().map(Link) else { return };
                let is_last = frame.is_err();
                take(&link, frame.map_err(|error| why_lost(&error)), at);
                if is_last {
                    return;
                }
            }
        })?;
        let weak = Arc::downgrade(&link.0);
        thread("fleet-alive", move || send_signs_of_life(&weak, &alive))?;
        Ok(link)
    }

    /// Sends a message.
    ///
    /// # Errors
    /// The connection's, also if the other side takes nothing for [`SILENCE`].
    pub fn send<T: Serialize>(&self, message: &T, tail: &[u8]) -> io::Result<()> {
        frame::write(&mut *self.0.0.lock().unwrap_or_else(PoisonError::into_inner), message, tail)
    }

    /// Closes the connection for all copies.
    pub fn close(&self) {
        let _ = self.0.0.lock().unwrap_or_else(PoisonError::into_inner).shutdown(Shutdown::Both);
    }
}

fn send_signs_of_life<T: Serialize>(weak: &Weak<Writer>, alive: &T) {
    loop {
        std::thread::sleep(SIGN_OF_LIFE);
        let Some(link) = weak.upgrade().map(Link) else { return };
        // The reading thread reports a broken connection.
        if link.send(alive, &[]).is_err() {
            return;
        }
    }
}

/// Starts a thread with a small stack.
pub fn thread(name: &str, body: impl FnOnce() + Send + 'static) -> io::Result<()> {
    std::thread::Builder::new().name(name.to_owned()).stack_size(STACK_BYTES).spawn(body).map(drop)
}

fn why_lost(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => {
            format!("it was silent for {} s", SILENCE.as_secs())
        }
        io::ErrorKind::UnexpectedEof => "it closed the connection".to_owned(),
        _ => error.to_string(),
    }
}
