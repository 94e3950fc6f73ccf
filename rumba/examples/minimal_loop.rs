//! The minimal client cost of prepared point selects over the wire: an event loop of `epoll_wait`, `recv` and `send`.
//! The length of answers is known; they are neither decoded nor recorded. `make bench` compares rumba's clients with
//! it: the difference is rumba's own cost.
//!
//! `minimal_loop SOCKET|HOST:PORT [protocol=mysql] [clients=64] [seconds=5] [warmup=5] [rows=100000] [user=root] [database=sbtest]
//! [blocking=0]`
//!
//! With `blocking=1` there is a thread for each client that blocks in `recv`: the fewest system calls with few clients.
//!
//! The server must accept the user without a password; all rows must have the same length, like those of `sbtest1`.

#[path = "common/point_selects.rs"]
mod point_selects;

use std::fs::File;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use point_selects::{Arguments, Failure, cpu_us, next_id};

/// A connection to a Unix socket, or to a host and port, with the calls that files and sockets share. An answer that
/// does not arrive in time is an error. All answers must have the length of the first; the rest of a shorter one,
/// without a row, would never arrive.
fn connect(server: &str) -> Result<File, Failure> {
    const PATIENCE: Option<Duration> = Some(Duration::from_secs(10));
    let named = |error| format!("{server}: {error}");
    if server.starts_with('/') {
        let stream = UnixStream::connect(server).map_err(named)?;
        stream.set_read_timeout(PATIENCE)?;
        return Ok(OwnedFd::from(stream).into());
    }
    let stream = TcpStream::connect(server).map_err(named)?;
    stream.set_read_timeout(PATIENCE)?;
    stream.set_nodelay(true)?;
    Ok(OwnedFd::from(stream).into())
}

/// One repeated request: its bytes, the position of the id in them, and the length of the answer.
#[derive(Clone, Default)]
struct Exchange {
    request: Vec<u8>,
    id_at: usize,
    is_big_endian: bool,
    answer_bytes: usize,
}

impl Exchange {
    fn set_id(&mut self, id: u64) {
        let place = &mut self.request[self.id_at..];
        if self.is_big_endian {
            place[..4].copy_from_slice(&(id as u32).to_be_bytes());
        } else {
            place[..8].copy_from_slice(&id.to_le_bytes());
        }
    }
}

/// A packet of MySQL's protocol: its payload.
fn read_packet(stream: &mut File) -> Result<Vec<u8>, Failure> {
    let mut head = [0; 4];
    stream.read_exact(&mut head)?;
    let mut payload = vec![0; u32::from_le_bytes([head[0], head[1], head[2], 0]) as usize];
    stream.read_exact(&mut payload)?;
    match payload.first() {
        Some(0xff) => Err(format!("the server says: {}", String::from_utf8_lossy(&payload[3..])).into()),
        _ => Ok(payload),
    }
}

fn packet(sequence: u8, payload: &[u8]) -> Vec<u8> {
    let length = (payload.len() as u32).to_le_bytes();
    [&length[..3], &[sequence], payload].concat()
}

/// Logs in to MySQL or MariaDB and prepares the statement.
fn mysql(stream: &mut File, user: &str, database: &str) -> Result<Exchange, Failure> {
    // Protocol 4.1, a database, secure authentication by named plugins.
    const CAPABILITIES: u32 = 1 | 8 | 0x200 | 0x2000 | 0x8000 | 0x8_0000;
    read_packet(stream)?;
    let mut login = [CAPABILITIES.to_le_bytes(), (1_u32 << 24).to_le_bytes()].concat();
    login.push(45);
    login.extend([0; 23]);
    login.extend([user.as_bytes(), b"\0\0", database.as_bytes(), b"\0mysql_native_password\0"].concat());
    stream.write_all(&packet(1, &login))?;
    if read_packet(stream)?.first() == Some(&0xfe) {
        stream.write_all(&packet(3, &[]))?;
        read_packet(stream)?;
    }
    stream.write_all(&packet(0, b"\x16SELECT c FROM sbtest1 WHERE id=?"))?;
    let prepared = read_packet(stream)?;
    // The parameter, the column, and an end after each.
    for _ in 0..4 {
        read_packet(stream)?;
    }
    let mut execute = [&[0x17], &prepared[1..5], &[0, 1, 0, 0, 0, 0, 1, 8, 0]].concat();
    let id_at = 4 + execute.len();
    execute.extend([0; 8]);
    let mut exchange = Exchange { request: packet(0, &execute), id_at, ..Exchange::default() };
    exchange.set_id(1);
    stream.write_all(&exchange.request)?;
    // The number of columns, the column, an end, a row, an end.
    for _ in 0..5 {
        exchange.answer_bytes += 4 + read_packet(stream)?.len();
    }
    Ok(exchange)
}

/// A message of PostgreSQL's protocol.
fn message(kind: u8, body: &[u8]) -> Vec<u8> {
    [&[kind], &(body.len() as u32 + 4).to_be_bytes()[..], body].concat()
}

/// Reads messages until the server reports that it is ready; returns the number of bytes.
fn read_until_ready(stream: &mut File) -> Result<usize, Failure> {
    let mut bytes = 0;
    loop {
        let mut head = [0; 5];
        stream.read_exact(&mut head)?;
        let length = u32::from_be_bytes([head[1], head[2], head[3], head[4]]) as usize;
        let mut body = vec![0; length.checked_sub(4).ok_or("a message shorter than its head")?];
        stream.read_exact(&mut body)?;
        bytes += 1 + length;
        match head[0] {
            b'E' => return Err(format!("the server says: {}", String::from_utf8_lossy(&body)).into()),
            b'R' if body != [0; 4] => return Err("the server wants a password".into()),
            b'Z' => return Ok(bytes),
            _ => {}
        }
    }
}

/// Logs in to PostgreSQL and prepares the statement.
fn postgresql(stream: &mut File, user: &str, database: &str) -> Result<Exchange, Failure> {
    let version = 196_608_u32.to_be_bytes();
    let words = [b"user\0", user.as_bytes(), b"\0database\0", database.as_bytes(), b"\0\0"].concat();
    let startup = [&(words.len() as u32 + 8).to_be_bytes()[..], &version, &words].concat();
    stream.write_all(&startup)?;
    read_until_ready(stream)?;
    let parse = message(b'P', b"s\0SELECT c FROM sbtest1 WHERE id=$1\0\0\0");
    stream.write_all(&[parse, message(b'S', &[])].concat())?;
    read_until_ready(stream)?;
    // No portal name, the statement's name; one parameter, all binary, of four bytes; all results binary.
    let bind = message(b'B', b"\0s\0\0\x01\0\x01\0\x01\0\0\0\x04\0\0\0\x01\0\x01\0\x01");
    let id_at = bind.len() - 8;
    let request = [bind, message(b'E', b"\0\0\0\0\0"), message(b'S', &[])].concat();
    let mut exchange = Exchange { request, id_at, is_big_endian: true, answer_bytes: 0 };
    stream.write_all(&exchange.request)?;
    exchange.answer_bytes = read_until_ready(stream)?;
    Ok(exchange)
}

/// A connection with its request, and the number of bytes that an answer still lacks.
struct Connection {
    stream: File,
    exchange: Exchange,
    missing: usize,
    random: u64,
}

impl Connection {
    fn fetch(&mut self, rows: u64) -> Result<(), Failure> {
        let id = next_id(&mut self.random, rows);
        self.exchange.set_id(id);
        self.missing = self.exchange.answer_bytes;
        let request = &self.exchange.request;
        // SAFETY: the length is that of the buffer.
        let sent = unsafe { libc::send(self.stream.as_raw_fd(), request.as_ptr().cast(), request.len(), 0) };
        if sent == request.len() as isize { Ok(()) } else { Err(std::io::Error::last_os_error().into()) }
    }

    /// Receives the available bytes; returns whether the answer is complete.
    fn receive(&mut self, buffer: &mut [u8]) -> Result<bool, Failure> {
        // SAFETY: the length is that of the buffer.
        let got = unsafe { libc::recv(self.stream.as_raw_fd(), buffer.as_mut_ptr().cast(), buffer.len(), 0) };
        if got <= 0 {
            return Err(format!("the server is gone: {}", std::io::Error::last_os_error()).into());
        }
        self.missing =
            self.missing.checked_sub(got as usize).ok_or("an answer of another length: are all rows alike?")?;
        Ok(self.missing == 0)
    }
}

/// The answers of an event loop so far, on a separate cache line.
#[derive(Default)]
#[repr(align(128))]
struct AnswerCount(AtomicU64);

fn watch(epoll: &OwnedFd, place: usize, stream: RawFd) -> Result<(), Failure> {
    let mut event = libc::epoll_event { events: libc::EPOLLIN as u32, u64: place as u64 };
    // SAFETY: both descriptors are open, and the event outlives the call.
    match unsafe { libc::epoll_ctl(epoll.as_raw_fd(), libc::EPOLL_CTL_ADD, stream, &raw mut event) } {
        0 => Ok(()),
        _ => Err(std::io::Error::last_os_error().into()),
    }
}

/// Serves connections one after the other until the stop: for a thread of one connection.
fn serve_blocking(
    mut connections: Vec<Connection>,
    rows: u64,
    stop: &AtomicBool,
    reported: &AnswerCount,
) -> Result<(), Failure> {
    let (mut buffer, mut queries) = (vec![0; 1 << 14], 0);
    while !stop.load(Relaxed) {
        for connection in &mut connections {
            connection.fetch(rows)?;
            while !connection.receive(&mut buffer)? {}
            queries += 1;
        }
        reported.0.store(queries, Relaxed);
    }
    Ok(())
}

/// Serves connections until the stop.
fn serve(
    mut connections: Vec<Connection>,
    rows: u64,
    stop: &AtomicBool,
    reported: &AnswerCount,
) -> Result<(), Failure> {
    // SAFETY: the call takes no pointer.
    let epoll = unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) };
    if epoll < 0 {
        return Err(std::io::Error::last_os_error().into());
    }
    // SAFETY: it was opened above, and nothing else owns it.
    let epoll = unsafe { OwnedFd::from_raw_fd(epoll) };
    for (place, connection) in connections.iter_mut().enumerate() {
        watch(&epoll, place, connection.stream.as_raw_fd())?;
        connection.fetch(rows)?;
    }
    let (mut buffer, mut queries) = (vec![0; 1 << 14], 0);
    let mut events = vec![libc::epoll_event { events: 0, u64: 0 }; 256];
    while !stop.load(Relaxed) {
        let room = events.len() as libc::c_int;
        // SAFETY: there is room for as many events as are requested.
        let ready = unsafe { libc::epoll_wait(epoll.as_raw_fd(), events.as_mut_ptr(), room, 100) };
        let ready = usize::try_from(ready).map_err(|_| std::io::Error::last_os_error())?;
        for event in &events[..ready] {
            let connection = &mut connections[event.u64 as usize];
            if connection.receive(&mut buffer)? {
                queries += 1;
                connection.fetch(rows)?;
            }
        }
        reported.0.store(queries, Relaxed);
    }
    Ok(())
}

fn main() -> Result<(), Failure> {
    let (server, requested) = Arguments::read()?;
    let log_in = match requested.text("protocol", "mysql").as_str() {
        "mysql" => mysql,
        "postgresql" => postgresql,
        other => return Err(format!("protocol={other}: mysql or postgresql").into()),
    };
    let (clients, rows) = (requested.number("clients", 64)?, u64::from(requested.number("rows", 100_000)?));
    let [warmup, seconds] = [requested.number("warmup", 5)?, requested.number("seconds", 5)?];
    let [warmup, seconds] = [warmup, seconds].map(|s| Duration::from_secs(s.into()));
    let (user, database) = (requested.text("user", "root"), requested.text("database", "sbtest"));
    let is_blocking = requested.number("blocking", 0)? != 0;
    let most = if is_blocking { clients as usize } else { std::thread::available_parallelism()?.get() };
    let loops = most.min(clients as usize);
    let serve = if is_blocking { serve_blocking } else { serve };
    let mut shares: Vec<Vec<Connection>> = (0..loops).map(|_| Vec::new()).collect();
    for client in 0..clients {
        let mut stream = connect(&server)?;
        let exchange = log_in(&mut stream, &user, &database)?;
        shares[client as usize % loops].push(Connection { stream, exchange, missing: 0, random: client.into() });
    }
    let reported: Vec<AnswerCount> = (0..loops).map(|_| AnswerCount::default()).collect();
    let queries = || reported.iter().map(|reported| reported.0.load(Relaxed)).sum::<u64>();
    // The loops end at a signal, because this thread may wake seconds late next to hundreds of busy ones.
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let running: Vec<_> = shares
            .into_iter()
            .zip(&reported)
            .map(|(share, reported)| scope.spawn(|| serve(share, rows, &stop, reported)))
            .collect();
        let window = || -> Result<(f64, u64, f64), Failure> {
            std::thread::sleep(warmup);
            let (start, before, cpu) = (Instant::now(), queries(), cpu_us()?);
            std::thread::sleep(seconds);
            Ok((start.elapsed().as_secs_f64(), queries() - before, cpu_us()? - cpu))
        };
        let measured = window();
        stop.store(true, Relaxed);
        for running in running {
            running.join().map_err(|_| "an event loop has panicked")??;
        }
        let (span, served, cpu) = measured?;
        let (per_s, cpu) = (served as f64 / span, cpu / served as f64);
        println!("{}", serde_json::json!({ "queries_per_s": per_s, "client_cpu_us_per_query": cpu }));
        Ok(())
    })
}
