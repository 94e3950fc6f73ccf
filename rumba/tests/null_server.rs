//! The null server as a user starts it: its behaviour without free descriptors, and its end.
#![allow(clippy::unwrap_used)]

mod common;

use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use common::{TestDir, kill};
use rumba_protocol_mysql::{Address, Admin, Secret, Target, Tls, WireError};

/// Far more than any answer takes; only a hanging server exceeds it.
const PATIENCE: Duration = Duration::from_secs(30);

struct Server {
    process: Child,
    socket: PathBuf,
}

impl Server {
    /// A server with this many descriptors at most.
    fn start(place: &TestDir, descriptors: u32) -> Self {
        let socket = place.path("socket");
        let mut command = Command::new("sh");
        command.args(["-c", &format!("ulimit -n {descriptors}; exec \"$0\" null-server --threads 2 --socket \"$1\"")]);
        command.arg(env!("CARGO_BIN_EXE_rumba")).arg(&socket).stdout(Stdio::piped());
        let mut process = command.spawn().unwrap();
        let mut said = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut said).unwrap();
        assert!(said.starts_with("listening on "), "{said}");
        Self { process, socket }
    }

    fn connect(&self) -> Result<Admin, WireError> {
        let target = Target {
            address: Address::Socket(self.socket.clone()),
            user: "anybody".into(),
            password: Secret::new(String::new()),
            database: None,
            tls: Tls::Off,
        };
        Admin::connect(&target, PATIENCE)
    }

    /// How it ends after SIGTERM.
    fn end(mut self) -> ExitStatus {
        kill("-TERM", self.process.id());
        self.process.wait().unwrap()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[test]
fn null_server_out_of_descriptors_rejects_only_new_clients() {
    let place = TestDir::new();
    let server = Server::start(&place, 32);
    let mut clients = Vec::new();
    // Guards against a hang: the client that took the last descriptor once hung in its login, and the server with it.
    // The kernel refuses a descriptor before it checks for a waiting connection, and the server took that for a client
    // to reject.
    let refused = loop {
        match server.connect() {
            Ok(client) => clients.push(client),
            Err(error) => break error.to_string(),
        }
    };
    assert!(refused.contains("Too many connections") && refused.contains("ulimit"), "{refused}");
    assert!(clients.len() >= 8, "{} clients with 32 descriptors", clients.len());
    for client in &mut clients {
        client.query("SELECT 1").unwrap();
    }
    // A client that leaves makes room, as soon as the server notices.
    clients.pop();
    let since = Instant::now();
    while let Err(error) = server.connect().map(|client| clients.push(client)) {
        assert!(since.elapsed() < PATIENCE, "{error}");
    }
    let socket = server.socket.clone();
    assert_eq!(server.end().code(), Some(0));
    assert!(!socket.exists());
}
