//! A server on a private socket, and a minimal MySQL client that only writes and reads packets.
#![allow(clippy::unwrap_used, dead_code)] // Each test file uses its part.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::Duration;

use rumba_null_server::{Config, Listen, NullServer};

pub const PROTOCOL_41: u32 = 1 << 9;
pub const LOCAL_FILES: u32 = 1 << 7;
pub const SECURE_CONNECTION: u32 = 1 << 15;
pub const MULTI_STATEMENTS: u32 = 1 << 16;
pub const PLUGIN_AUTH: u32 = 1 << 19;
pub const DEPRECATE_EOF: u32 = 1 << 24;

/// The name that clients of PostgreSQL expect of a socket.
const SOCKET: &str = ".s.PGSQL.5432";

/// A server on a private socket.
pub struct TestServer {
    pub dir: tempfile::TempDir,
    pub server: NullServer,
}

impl TestServer {
    pub fn new(change: impl FnOnce(&mut Config)) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let mut config = Config::new(Listen::Socket(dir.path().join(SOCKET)));
        config.threads = 2;
        change(&mut config);
        let server = NullServer::start(&config).unwrap();
        Self { dir, server }
    }

    pub fn socket(&self) -> PathBuf {
        self.dir.path().join(SOCKET)
    }

    /// All that the server answers to a client that sends these bytes and no more.
    pub fn answer_to(&self, bytes: &[u8]) -> Vec<u8> {
        let mut stream = UnixStream::connect(self.socket()).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        stream.write_all(bytes).unwrap();
        stream.shutdown(std::net::Shutdown::Write).unwrap();
        let mut said = Vec::new();
        stream.read_to_end(&mut said).unwrap();
        said
    }

    pub fn client(&self, capabilities: u32) -> Client {
        let mut client = Client::connect(&self.socket());
        client.log_in(capabilities, b"");
        client
    }
}

pub struct Client {
    stream: UnixStream,
    pub greeting: Vec<u8>,
}

impl Client {
    pub fn connect(socket: &std::path::Path) -> Self {
        Self::over(UnixStream::connect(socket).unwrap())
    }

    /// A client that is connected and waits for the greeting.
    pub fn over(stream: UnixStream) -> Self {
        // Far longer than any answer takes, so that only a hanging server times out.
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        stream.set_write_timeout(Some(Duration::from_secs(60))).unwrap();
        let mut client = Self { stream, greeting: Vec::new() };
        client.greeting = client.read(0);
        client
    }

    pub fn log_in(&mut self, capabilities: u32, plugin: &[u8]) {
        let mut payload = (capabilities | PROTOCOL_41 | SECURE_CONNECTION).to_le_bytes().to_vec();
        payload.extend_from_slice(&[0; 28]);
        payload.extend_from_slice(b"anybody\0\x04word");
        if !plugin.is_empty() {
            payload.extend_from_slice(plugin);
            payload.push(0);
        }
        self.write(1, &payload);
        if plugin.is_empty() {
            assert_eq!(self.read(2)[0], 0, "everybody is let in");
        }
    }

    pub fn write(&mut self, sequence: u8, payload: &[u8]) {
        self.send(&packet(sequence, payload));
    }

    pub fn send(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).unwrap();
    }

    /// A second handle of the connection, to send while another thread reads.
    pub fn another_hand(&self) -> UnixStream {
        self.stream.try_clone().unwrap()
    }

    pub fn read(&mut self, sequence: u8) -> Vec<u8> {
        let mut header = [0; 4];
        self.stream.read_exact(&mut header).unwrap();
        assert_eq!(header[3], sequence, "sequence number");
        let mut payload = vec![0; u32::from_le_bytes([header[0], header[1], header[2], 0]) as usize];
        self.stream.read_exact(&mut payload).unwrap();
        payload
    }

    /// Reads packets with these sequence numbers.
    pub fn read_all(&mut self, sequences: std::ops::RangeInclusive<u8>) -> Vec<Vec<u8>> {
        sequences.map(|sequence| self.read(sequence)).collect()
    }

    pub fn query(&mut self, sql: &str) {
        self.write(0, &command(0x03, sql.as_bytes()));
    }

    /// The connection's number, which follows the version in the greeting.
    pub fn number(&self) -> &[u8] {
        let at = 1 + rumba_null_server::Protocol::MySql.version().len() + 1;
        &self.greeting[at..at + 4]
    }

    /// Whether the server has closed the connection.
    pub fn is_at_end(&mut self) -> bool {
        matches!(self.stream.read(&mut [0; 1]), Ok(0) | Err(_))
    }
}

pub fn command(code: u8, body: &[u8]) -> Vec<u8> {
    [&[code], body].concat()
}

pub fn packet(sequence: u8, payload: &[u8]) -> Vec<u8> {
    let mut bytes = (payload.len() as u32).to_le_bytes();
    bytes[3] = sequence;
    [&bytes[..], payload].concat()
}

pub fn is_eof(payload: &[u8]) -> bool {
    payload[0] == 0xFE && payload.len() < 9
}

pub fn status(ok: &[u8]) -> u16 {
    u16::from_le_bytes([ok[3], ok[4]])
}
