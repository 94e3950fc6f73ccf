//! Guards the engine's own figures against allocator noise: the drivers allocate nothing per operation, for every kind
//! of wait.
#![allow(clippy::unwrap_used)]

use rumba_testkit::allocations::{self, Counting};
use std::future::poll_fn;
use std::io::{ErrorKind, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::Poll;
use std::time::{Duration, Instant};

use rumba_engine_api::error::Result;
use rumba_engine_api::wait::{Wait, forget, sleep, wait_for};
use rumba_engine_api::worker::{Client, HostShare, Op, OpKind, Worker};
use rumba_lab::meter::ThreadCpuRegistry;
use rumba_lab::run::Driving;
use rumba_lab::run::driver::{Made, Make, Plan, Schedule};
use rumba_lab::run::group::{ClientGroup, Waited};
use rumba_results::record::QueueKind;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Operations of a client, and how many of them are warmup.
const OPS: u64 = 2_000;
const WARM: u64 = 500;

/// Sends requests to an echo server; now and then it pauses or does not wait at all.
struct Asker {
    socket: UnixStream,
    done: u64,
    allocated_before: u64,
    /// Allocations of the thread over the operations after the warmup.
    allocated: Arc<AtomicU64>,
}

impl Worker for Asker {
    fn draw(&mut self) -> Option<OpKind> {
        let now = allocations::count();
        if self.done == WARM {
            self.allocated_before = now;
        }
        if self.done == OPS {
            self.allocated.fetch_max(now - self.allocated_before, Ordering::Relaxed);
            return None;
        }
        self.done += 1;
        Some(0)
    }

    async fn perform(&mut self) -> Result<Op> {
        match self.done % 8 {
            0 => sleep(Duration::from_micros(50)).await,
            1 => {}
            _ => self.fetch().await,
        }
        Ok(Op::default())
    }
}

impl Asker {
    async fn fetch(&mut self) {
        let socket = &mut self.socket;
        socket.write_all(b"?").unwrap();
        poll_fn(|_| {
            loop {
                match socket.read(&mut [0]) {
                    Ok(1) => return Poll::Ready(()),
                    Err(error) if error.kind() == ErrorKind::WouldBlock => {
                        if wait_for(Wait::Readable(socket.as_raw_fd())) {
                            return Poll::Pending;
                        }
                        // The thread runs only this client, so its calls may block.
                        socket.set_nonblocking(false).unwrap();
                    }
                    other => panic!("{other:?}"),
                }
            }
        })
        .await;
    }
}

impl Drop for Asker {
    fn drop(&mut self) {
        forget(self.socket.as_raw_fd());
    }
}

fn echoing() -> UnixStream {
    let (mine, mut theirs) = UnixStream::pair().unwrap();
    mine.set_nonblocking(true).unwrap();
    std::thread::spawn(move || {
        let mut byte = [0];
        while theirs.read_exact(&mut byte).is_ok() && theirs.write_all(&byte).is_ok() {}
    });
    mine
}

/// Allocations of the busiest thread over one client's operations after the warmup.
fn allocated(driving: Driving, rate: Option<f64>) -> u64 {
    const CLIENTS: u32 = 6;
    let allocated = Arc::new(AtomicU64::new(0));
    let most = allocated.clone();
    let make: Make = Arc::new(move |_| {
        let allocated = most.clone();
        Ok(Box::new(Asker { socket: echoing(), done: 0, allocated_before: 0, allocated }) as Box<dyn Client>)
    });
    let schedule = rate.map_or(Schedule::closed(7), |rate| Schedule::open(rate, QueueKind::Shared, 7));
    let plan = Plan { clients: CLIENTS, share: HostShare::ALL, kinds: 1, schedule, driving };
    let mut running = Made::new(&plan, &make, &ThreadCpuRegistry::new()).unwrap().start();
    assert_eq!(running.wait(Instant::now() + Duration::from_secs(60)), Waited::AllEnded);
    assert_eq!(running.failure(), None);
    assert_eq!(running.collect().ops(), u64::from(CLIENTS) * OPS);
    running.join();
    allocated.load(Ordering::Relaxed)
}

#[test]
fn threads_allocate_nothing_per_operation() {
    let driving = Driving::Threads { threads: 6 };
    assert_eq!(allocated(driving, None), 0);
    assert_eq!(allocated(driving, Some(60_000.0)), 0);
}

#[test]
fn loops_allocate_when_clients_end_and_never_per_operation() {
    let driving = Driving::Loops { threads: 2 };
    for rate in [None, Some(60_000.0)] {
        // A client that ends reports it, which allocates on the thread that others still use.
        let allocated = allocated(driving, rate);
        assert!(allocated <= 6, "{allocated} allocations in some {} operations of a loop", 3 * (OPS - WARM));
    }
}
