//! Clients over connections, with a server that echoes.

use std::future::poll_fn;
use std::io::{ErrorKind, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Poll;
use std::time::{Duration, Instant};

use rumba_engine_api::error::EngineError;
use rumba_engine_api::wait::{Wait, forget, sleep, wait_for};
use rumba_engine_api::worker::{Client, HostShare, Op, OpKind, Worker};
use rumba_results::record::QueueKind;

use super::cells::Counts;
use super::choice::Driving;
use super::driver::{Made, Make, Plan, Schedule};
use super::group::{ClientGroup, Waited};
use crate::meter::ThreadCpuRegistry;

/// Long enough for any machine; no test waits so long unless it fails.
const PATIENCE: Duration = Duration::from_secs(60);

/// One operation of a test's client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// A question and its answer.
    Request,
    /// More data than the connection takes at once, with its length as the answer.
    RequestMuch,
    Pause(Duration),
    /// Waits until another thread wakes it.
    BeWoken,
    WakeSelf,
    /// No work: it never waits.
    Nothing,
    /// Closes its connection and makes a new one, which mostly gets the same descriptor.
    Reconnect,
    Fail,
    Panic,
}

/// Bytes of a long question: beyond what a socket buffers.
const MUCH: usize = 1 << 20;

/// A connection to a separate server that answers each question with its last byte. A question is its length in eight
/// bytes, and that many bytes.
pub struct Connection(UnixStream);

impl Connection {
    pub fn new() -> Self {
        let (mine, mut theirs) = UnixStream::pair().unwrap();
        mine.set_nonblocking(true).unwrap();
        std::thread::spawn(move || {
            let mut length = [0; 8];
            let mut question = Vec::new();
            while theirs.read_exact(&mut length).is_ok() {
                question.resize(u64::from_le_bytes(length) as usize, 0);
                theirs.read_exact(&mut question).unwrap();
                if theirs.write_all(&question[question.len() - 1..]).is_err() {
                    break;
                }
            }
        });
        Self(mine)
    }

    async fn write(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            match self.0.write(bytes) {
                Ok(count) => bytes = &bytes[count..],
                Err(error) if error.kind() == ErrorKind::WouldBlock => self.wait(true).await,
                Err(error) => panic!("{error}"),
            }
        }
    }

    async fn read(&mut self) -> u8 {
        let mut answer = [0];
        loop {
            match self.0.read(&mut answer) {
                Ok(1) => return answer[0],
                Err(error) if error.kind() == ErrorKind::WouldBlock => self.wait(false).await,
                other => panic!("{other:?}"),
            }
        }
    }

    /// Waits once; the caller checks for the event itself.
    async fn wait(&mut self, to_write: bool) {
        let fd = self.0.as_raw_fd();
        let wait = if to_write { Wait::Writable(fd) } else { Wait::Readable(fd) };
        let mut reported = false;
        poll_fn(|_| {
            if reported {
                return Poll::Ready(());
            }
            reported = true;
            if wait_for(wait) {
                return Poll::Pending;
            }
            // The thread runs only this client, so its calls may block.
            self.0.set_nonblocking(false).unwrap();
            Poll::Ready(())
        })
        .await;
    }

    /// Sends a question of this length and checks its answer.
    pub async fn fetch(&mut self, length: usize, last: u8) {
        let mut question = (length as u64).to_le_bytes().to_vec();
        question.resize(8 + length, last);
        self.write(&question).await;
        assert_eq!(self.read().await, last, "the answer is to this question");
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        forget(self.0.as_raw_fd());
    }
}

/// A client that performs actions in turn, `left` in total.
pub struct ScriptedClient {
    pub actions: Vec<Action>,
    pub left: u64,
    pub connection: Connection,
    /// Called at the start of each operation.
    pub log: Box<dyn FnMut() + Send>,
}

impl ScriptedClient {
    /// A client without a log.
    pub fn new(actions: &[Action], left: u64) -> Self {
        Self { actions: actions.to_vec(), left, connection: Connection::new(), log: Box::new(|| {}) }
    }

    /// As the drivers take it.
    pub fn boxed(self) -> Box<dyn Client> {
        Box::new(self)
    }
}

impl Worker for ScriptedClient {
    fn draw(&mut self) -> Option<OpKind> {
        self.left = self.left.checked_sub(1)?;
        Some(0)
    }

    async fn perform(&mut self) -> Result<Op, EngineError> {
        (self.log)();
        let action = self.actions[self.left as usize % self.actions.len()];
        match action {
            Action::Request => self.connection.fetch(1, self.left as u8).await,
            Action::RequestMuch => self.connection.fetch(MUCH, self.left as u8).await,
            Action::Pause(pause) => sleep(pause).await,
            Action::BeWoken => be_woken().await,
            Action::WakeSelf => wake_self().await,
            Action::Nothing => {}
            Action::Reconnect => {
                self.connection = Connection::new();
                self.connection.fetch(1, 1).await;
            }
            Action::Fail => return Err(EngineError::failed("action", "failed as planned")),
            Action::Panic => panic!("as planned"),
        }
        Ok(Op { rows: 1, ..Op::default() })
    }
}

async fn be_woken() {
    let came = Arc::new(AtomicBool::new(false));
    let mut sent = false;
    poll_fn(|context| {
        if !std::mem::replace(&mut sent, true) {
            let (waker, came) = (context.waker().clone(), came.clone());
            std::thread::spawn(move || {
                came.store(true, Ordering::SeqCst);
                waker.wake();
            });
        }
        if came.load(Ordering::SeqCst) { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
}

async fn wake_self() {
    let mut polled = false;
    poll_fn(|context| {
        if std::mem::replace(&mut polled, true) {
            return Poll::Ready(());
        }
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

/// Both drivers for this many clients, with loops that share threads.
pub fn drivers(clients: u32) -> [Driving; 3] {
    [Driving::Threads { threads: clients }, Driving::Loops { threads: 1 }, Driving::Loops { threads: clients.min(2) }]
}

/// Makes and starts clients.
pub fn made(
    driving: Driving,
    clients: u32,
    rate: Option<f64>,
    make: impl Fn(u32) -> Result<Box<dyn Client>, EngineError> + Send + Sync + 'static,
) -> Result<Made, EngineError> {
    made_for(
        driving,
        clients,
        rate.map_or(Schedule::closed(7), |rate| Schedule::open(rate, QueueKind::Client, 7)),
        make,
    )
}

/// Makes clients with a schedule.
pub fn made_for(
    driving: Driving,
    clients: u32,
    schedule: Schedule,
    make: impl Fn(u32) -> Result<Box<dyn Client>, EngineError> + Send + Sync + 'static,
) -> Result<Made, EngineError> {
    let make: Make = Arc::new(move |at| make(at.client));
    Made::new(&Plan { clients, share: HostShare::ALL, kinds: 1, schedule, driving }, &make, &ThreadCpuRegistry::new())
}

/// Runs clients to their end.
pub fn run(
    driving: Driving,
    clients: u32,
    make: impl Fn(u32) -> ScriptedClient + Send + Sync + 'static,
) -> (Counts, Option<EngineError>) {
    let mut running = made(driving, clients, None, move |client| Ok(make(client).boxed())).unwrap().start();
    assert_eq!(running.wait(Instant::now() + PATIENCE), Waited::AllEnded, "{driving:?}: a client waits for ever");
    let (counts, failure) = (running.collect(), running.failure().cloned());
    running.join();
    (counts, failure)
}

/// Waits until all have ended.
pub fn wait_for_end(running: &mut super::driver::Running) {
    assert_eq!(running.wait(Instant::now() + PATIENCE), Waited::AllEnded, "a client waits for ever");
}

/// A future that never completes.
pub fn never() -> Pin<Box<dyn Future<Output = Result<(), EngineError>>>> {
    Box::pin(std::future::pending())
}
