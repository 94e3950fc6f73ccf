//! Guards a host that cannot hold a thread per client: the error names the number that works. A thread without a
//! mapping for its signal stack would end the whole process. The test runs in a separate process with almost all
//! mappings used.
#![allow(clippy::unwrap_used)]

use std::sync::Arc;
use std::time::{Duration, Instant};

use rumba_engine_api::error::Result;
use rumba_engine_api::worker::{Client, HostShare, Op, OpKind, Worker};
use rumba_lab::meter::ThreadCpuRegistry;
use rumba_lab::run::driver::{Made, Make, Plan, Schedule};
use rumba_lab::run::group::{ClientGroup, Waited};
use rumba_lab::run::{Driving, room};

/// The number of threads for which mappings are left.
const ROOM: usize = 400;

/// A client that does one operation.
struct Once(bool);

impl Worker for Once {
    fn draw(&mut self) -> Option<OpKind> {
        (!std::mem::replace(&mut self.0, true)).then_some(0)
    }

    async fn perform(&mut self) -> Result<Op> {
        Ok(Op::default())
    }
}

fn run(clients: u32) -> Result<()> {
    let make: Make = Arc::new(|_| Ok(Box::new(Once(false)) as Box<dyn Client>));
    let driving = Driving::Threads { threads: clients };
    let plan = Plan { clients, share: HostShare::ALL, kinds: 1, schedule: Schedule::closed(1), driving };
    let mut running = Made::new(&plan, &make, &ThreadCpuRegistry::new())?.start();
    assert_eq!(running.wait(Instant::now() + Duration::from_secs(60)), Waited::AllEnded);
    assert_eq!(running.failure(), None);
    assert_eq!(running.collect().ops(), u64::from(clients));
    running.join();
    Ok(())
}

fn mapped() -> usize {
    std::fs::read_to_string("/proc/self/maps").unwrap().lines().count()
}

/// Protects alternate pages, so that no two of them share a mapping.
fn use_up(mappings: usize) {
    for number in 0..mappings {
        let protection = if number % 2 == 0 { libc::PROT_NONE } else { libc::PROT_READ };
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        // SAFETY: a new mapping, wherever the kernel puts it, overlaps nothing; no code reads it.
        let page = unsafe { libc::mmap(std::ptr::null_mut(), 4096, protection, flags, -1, 0) };
        assert_ne!(page, libc::MAP_FAILED, "after {number}");
    }
}

#[test]
fn clients_run_up_to_the_thread_limit_and_more_are_refused() {
    let limit: usize = std::fs::read_to_string("/proc/sys/vm/max_map_count").unwrap().trim().parse().unwrap();
    // 2048 are reserved for everything else, and a thread takes 5.
    use_up(limit - mapped() - 2048 - 5 * ROOM);
    let most = room::of_threads(1).unwrap();
    assert!((64..=ROOM as u32).contains(&most.clients), "{most:?}");
    run(most.clients).unwrap();
    // Guards against the death of the process here.
    let error = run(100 * ROOM as u32).unwrap_err().to_string();
    assert!(error.contains("40000 clients are more than the") && error.contains("vm.max_map_count"), "{error}");
}
