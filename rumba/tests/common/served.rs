//! A rumba process that serves, and its clients.
#![allow(clippy::unwrap_used, dead_code)] // Each test file uses its part.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, ExitStatus, Stdio};
use std::time::Duration;

use serde_json::Value;

use crate::common::{CALM, TestDir, kill};

/// The maximum time for an answer, on any machine.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// A process that serves, and where.
pub struct Served {
    pub child: Child,
    /// `127.0.0.1:PORT`.
    pub host: String,
    /// The secret below which everything is.
    pub secret: String,
    /// The rest of its standard error.
    said: Option<std::thread::JoinHandle<String>>,
}

impl Served {
    /// Waits for the line with the address; a run prints it on standard error, `serve` on standard output.
    pub fn start(mut command: std::process::Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut stderr = BufReader::new(child.stderr.take().unwrap());
        let mut line = String::new();
        if command.get_args().next().is_some_and(|first| first == "serve") {
            BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        } else {
            while !line.contains("live page: ") {
                line.clear();
                assert!(stderr.read_line(&mut line).unwrap() > 0, "it ended without an address");
            }
        }
        let address = line.trim().split("http://").nth(1).unwrap_or_else(|| panic!("no address: {line}"));
        let mut parts = address.split('/').map(str::to_owned);
        let (host, secret) = (parts.next().unwrap(), parts.next().unwrap());
        let said = std::thread::spawn(move || {
            let mut all = String::new();
            let _ = stderr.read_to_string(&mut all);
            all
        });
        Self { child, host, secret, said: Some(said) }
    }

    /// A run of minutes over LMDB, with results in `results/a`.
    pub fn long_run(place: &TestDir) -> Self {
        let mut command = place.rumba(&["run", "linkbench", "--engine", "lmdb", "--out", "results/a", "--live"]);
        for set in ["maxid1=2000", "clients=2", CALM, "warmup=0s", "loops=2", "loop=5m", "interval=200ms"] {
            command.args(["--set", set]);
        }
        Self::start(command)
    }

    pub fn send(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> TcpStream {
        let mut stream = TcpStream::connect(&self.host).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let mut request =
            format!("{method} {path} HTTP/1.1\r\nConnection: close\r\nContent-Length: {}\r\n", body.len());
        if headers.iter().all(|(name, _)| *name != "Host") {
            request += &format!("Host: {}\r\n", self.host);
        }
        headers.iter().for_each(|(name, value)| request += &format!("{name}: {value}\r\n"));
        stream.write_all(format!("{request}\r\n{body}").as_bytes()).unwrap();
        stream
    }

    /// The status and the rest of an answer.
    pub fn fetch(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> (u16, String) {
        let mut answer = String::new();
        self.send(method, path, headers, body).read_to_string(&mut answer).unwrap();
        let status = answer.split(' ').nth(1).unwrap().parse().unwrap();
        (status, answer)
    }

    pub fn get(&self, below: &str) -> (u16, String) {
        self.fetch("GET", &format!("/{}/{below}", self.secret), &[], "")
    }

    pub fn post(&self, below: &str, body: &str) -> (u16, String) {
        let origin = format!("http://{}", self.host);
        let headers = [("Origin", origin.as_str()), ("Content-Type", "application/x-www-form-urlencoded")];
        self.fetch("POST", &format!("/{}/{below}", self.secret), &headers, body)
    }

    /// The JSON of an answer.
    pub fn data(&self, below: &str) -> Value {
        let (status, answer) = self.get(below);
        assert_eq!(status, 200, "{answer}");
        serde_json::from_str(answer.split_once("\r\n\r\n").unwrap().1).unwrap()
    }

    pub fn events(&self, headers: &[(&str, &str)]) -> Events {
        Events(BufReader::new(self.send("GET", &format!("/{}/live/events", self.secret), headers, "")))
    }

    /// Waits until a second of a loop has been reported.
    pub fn await_loop(&self) {
        let mut events = self.events(&[]);
        events.find(|(_, kind, what)| kind == "interval" && what["phase"] == "loop 1").unwrap();
    }

    pub fn ended(mut self) -> (ExitStatus, String) {
        (self.child.wait().unwrap(), self.said.take().unwrap().join().unwrap())
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        // Ends the process after a failed test, unless it has ended already.
        if self.child.try_wait().is_ok_and(|ended| ended.is_none()) {
            kill("-INT", self.child.id());
            let _ = self.child.wait();
        }
    }
}

/// Server-sent events: number, kind, and the rest.
pub struct Events(BufReader<TcpStream>);

impl Iterator for Events {
    type Item = (u64, String, Value);

    fn next(&mut self) -> Option<Self::Item> {
        let (mut id, mut kind, mut what) = (0, String::new(), Value::Null);
        loop {
            let mut line = String::new();
            if self.0.read_line(&mut line).ok()? == 0 {
                return None;
            }
            let line = line.trim_end();
            if let Some((name, value)) = line.split_once(": ") {
                match name {
                    "id" => id = value.parse().unwrap(),
                    "event" => kind = value.to_owned(),
                    "data" => what = serde_json::from_str(value).unwrap(),
                    _ => {}
                }
            }
            if line.is_empty() && id > 0 {
                return Some((id, kind, what));
            }
        }
    }
}
