//! Tests with as many clients as a large benchmark has.

mod common;

use common::*;
use rumba_null_server::allow_many_connections;

const CLIENTS: usize = 1000;
const CHANGED: [u8; 7] = [0, 1, 0, 2, 0, 0, 0];

/// The number of this process's threads, including its servers'.
fn threads() -> usize {
    std::fs::read_dir("/proc/self/task").expect("Linux lists the threads of a process").count()
}

/// Every client sends a request before any reads its answer.
fn request_all(clients: &mut [Client]) {
    for client in &mut *clients {
        client.query("UPDATE t SET a=1");
    }
    for client in clients {
        assert_eq!(client.read(1), CHANGED);
    }
}

#[test]
fn two_threads_serve_a_thousand_changing_clients() {
    allow_many_connections();
    let place = TestServer::new(|_| {});
    let before = threads();
    let mut clients: Vec<Client> = (0..CLIENTS).map(|_| place.client(0)).collect();
    assert!(threads() <= before, "a connection costs no thread");
    for _ in 0..3 {
        request_all(&mut clients);
    }
    // The remaining half is served while the other half disconnects, and new clients take their places.
    clients.truncate(CLIENTS / 2);
    request_all(&mut clients);
    clients.extend((0..CLIENTS / 2).map(|_| place.client(0)));
    request_all(&mut clients);
    // The greeting contains the connection's number, which must be unique among live connections.
    let numbers: std::collections::HashSet<&[u8]> = clients.iter().map(Client::number).collect();
    assert_eq!(numbers.len(), clients.len());
    place.server.stop().unwrap();
    assert!(clients.iter_mut().all(Client::is_at_end), "the end of the server is the end of its connections");
}
