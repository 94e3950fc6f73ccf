//! Samples the waits of clients' processes in `pg_stat_activity`. The server does not count the time of waits, so rumba
//! samples several times a second. It assumes that each wait it sees has lasted since the previous sample.

use std::collections::BTreeMap;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rumba_protocol_postgresql::{Admin, Target};

use crate::control::Control;

/// The pause between two samples. A pause of at least this multiple of their cost limits sampling to a hundredth of a
/// core.
const EVERY: Duration = Duration::from_millis(100);
const OF_COST: u32 = 100;
/// The longest pause. On a busy host most of a sample's time is not its own cost, and the pause limits the accuracy.
const SELDOM: Duration = Duration::from_secs(1);
/// Timeout of an answer.
const ANSWER: Duration = Duration::from_secs(60);

/// The waits of active clients' processes, except waits for their clients. `{control}` is the process of rumba's control
/// session, whose vacuums and readings are no work of clients.
const LOOK: &str = "SELECT wait_event_type, wait_event, count(*) FROM pg_stat_activity \
    WHERE backend_type = 'client backend' AND state = 'active' AND wait_event_type <> 'Client' \
    AND pid NOT IN (pg_backend_pid(), {control}) GROUP BY 1, 2";

/// The server's wait types that rumba reports as metrics, with their counters.
const TYPES: [(&str, &str); 4] = [
    ("Lock", "waited_locks_us"),
    ("LWLock", "waited_lwlocks_us"),
    ("IO", "waited_io_us"),
    ("BufferPin", "waited_buffer_pins_us"),
];

type Counted = Arc<Mutex<BTreeMap<String, f64>>>;

/// A sampler with its own thread and connection, which stops when this is dropped.
pub struct Waits {
    counted: Counted,
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Waits {
    /// Starts sampling a server. Without a connection or a thread there are no counts.
    pub fn watch(target: &Target, control: &mut Control) -> Self {
        let counted = Counted::default();
        let own = control.firsts("SELECT pg_backend_pid()").unwrap_or_default().pop();
        let (Ok(admin), Some(own)) = (Admin::connect(target, ANSWER), own) else {
            return Self { counted, stop: None, thread: None };
        };
        let sql = LOOK.replace("{control}", &own);
        for (_, counter) in TYPES {
            add(&counted, counter.to_owned(), 0.0);
        }
        let (stop, stopped) = channel();
        let reported = counted.clone();
        let thread = std::thread::Builder::new().name("looks at waits".to_owned());
        let thread = thread.spawn(move || look(admin, &sql, &stopped, &reported)).ok();
        Self { counted, stop: Some(stop), thread }
    }

    /// Microseconds waited by all clients together since the start: by type, and by each server event's name.
    pub fn counted(&self) -> Vec<(String, f64)> {
        let counted = self.counted.lock().unwrap_or_else(PoisonError::into_inner);
        counted.iter().map(|(name, us)| (name.clone(), *us)).collect()
    }
}

impl Drop for Waits {
    fn drop(&mut self) {
        drop(self.stop.take());
        // Join even after a panic, because the server's shutdown would wait for an open connection.
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

fn add(counted: &Counted, name: String, us: f64) {
    *counted.lock().unwrap_or_else(PoisonError::into_inner).entry(name).or_default() += us;
}

/// Samples until it is stopped or the server is gone.
fn look(mut admin: Admin, sql: &str, stopped: &Receiver<()>, counted: &Counted) {
    let mut last = Instant::now();
    loop {
        let begun = Instant::now();
        let Ok(answer) = admin.query(sql) else { return };
        let since_us = begun.duration_since(last).as_secs_f64() * 1e6;
        last = begun;
        for row in &answer.rows {
            let [Some(kind), Some(event), Some(count)] = row.as_slice() else { continue };
            let us = since_us * count.parse::<f64>().unwrap_or_default();
            if let Some((_, counter)) = TYPES.iter().find(|(known, _)| known == kind) {
                add(counted, (*counter).to_owned(), us);
            }
            add(counted, format!("wait_event_{kind}_{event}_us"), us);
        }
        let pause = (begun.elapsed() * OF_COST).clamp(EVERY, SELDOM);
        if stopped.recv_timeout(pause) != Err(RecvTimeoutError::Timeout) {
            return;
        }
    }
}
