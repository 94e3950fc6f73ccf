//! A network of three hosts: namespaces on a bridge. The namespaces end with their processes, so the test leaves nothing
//! behind.

use std::ffi::OsStr;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rumba_testkit::process::output_of;
use rustix::thread::{UnshareFlags, unshare_unsafe};

/// The address of the host of the run and of the server.
pub const COORDINATOR: &str = "10.77.0.1";
const HOSTS: u32 = 3;

/// The client hosts: each is a process that holds its namespaces.
pub struct Network(Vec<Child>);

impl Drop for Network {
    fn drop(&mut self) {
        for host in &mut self.0 {
            let _ = host.kill().and_then(|()| host.wait());
        }
    }
}

/// Runs a test on a thread in a separate network, which the processes that it starts share.
pub fn in_network(test: impl FnOnce(&Network) + Send) {
    std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            // SAFETY: it gives this thread a network namespace, and changes no descriptors.
            unsafe { unshare_unsafe(UnshareFlags::NEWNET) }.unwrap();
            test(&Network::new());
        });
        if let Err(panic) = thread.join() {
            std::panic::resume_unwind(panic);
        }
    });
}

fn ip(words: &str) {
    output_of(Command::new("ip").args(words.split(' ')));
}

impl Network {
    fn new() -> Self {
        ip("link set lo up");
        ip("link add br0 type bridge");
        ip(&format!("addr add {COORDINATOR}/24 dev br0"));
        ip("link set br0 up");
        let mut network = Self(Vec::new());
        for rank in 0..HOSTS {
            let mut command = Command::new("unshare");
            command.args(["--net", "--uts", "sleep", "600"]).stdout(Stdio::null());
            let host = command.spawn().unwrap();
            let pid = host.id();
            network.0.push(host);
            await_namespace(pid);
            ip(&format!("link add v{rank} type veth peer name eth0 netns {pid}"));
            ip(&format!("link set v{rank} master br0 up"));
            let on_host = |words: &str| output_of(network.on_host(rank, "ip").args(words.split(' ')));
            on_host(&format!("addr add 10.77.0.1{}/24 dev eth0", rank + 1));
            on_host("link set eth0 up");
            output_of(network.on_host(rank, "hostname").arg(format!("n{}", rank + 1)));
        }
        network
    }

    pub fn on_host(&self, rank: u32, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new("nsenter");
        command.args(["--net", "--uts", "--target", &self.0[rank as usize].id().to_string(), "--"]).arg(program);
        command
    }

    /// Takes a client host's link down.
    pub fn cut_off(&self, rank: u32) {
        ip(&format!("link set v{rank} down"));
    }

    /// Takes it up again.
    pub fn reconnect(&self, rank: u32) {
        ip(&format!("link set v{rank} up"));
    }
}

/// Waits until a process has its own network.
fn await_namespace(pid: u32) {
    let network = |of: &str| std::fs::read_link(format!("/proc/{of}/ns/net")).unwrap();
    let until = Instant::now() + Duration::from_secs(60);
    while network(&pid.to_string()) == network("thread-self") {
        assert!(Instant::now() < until, "unshare does not begin");
        std::thread::sleep(Duration::from_millis(5));
    }
}
