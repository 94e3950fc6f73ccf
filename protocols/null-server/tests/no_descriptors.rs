//! The host has no descriptor left, not even one to refuse a client. The test takes the descriptors of the whole
//! process away, so it runs in a separate process.

mod common;

use std::os::unix::net::UnixStream;
use std::time::Duration;

use common::*;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use rustix::time::{ClockId, clock_gettime};

/// CPU time of this process, including its server's threads.
fn cpu() -> Duration {
    clock_gettime(ClockId::ProcessCPUTime).try_into().expect("a time that was used is not negative")
}

#[test]
fn client_waits_without_cpu_until_descriptors_are_free() {
    const FOR: Duration = Duration::from_millis(500);
    let place = TestServer::new(|_| {});
    let socket = rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None).unwrap();
    let before = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: Some(3), ..before }).unwrap();
    rustix::net::connect(&socket, &SocketAddrUnix::new(place.socket()).unwrap()).unwrap();
    let start = cpu();
    std::thread::sleep(FOR);
    let spent = cpu() - start;
    setrlimit(Resource::Nofile, before).unwrap();
    // epoll reported the waiting client continuously, which kept one core busy.
    assert!(spent < FOR / 2, "{spent:?} of CPU in {FOR:?}");
    let mut client = Client::over(UnixStream::from(socket));
    client.log_in(0, b"");
    place.server.stop().unwrap();
    assert!(client.is_at_end());
}
