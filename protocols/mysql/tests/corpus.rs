//! The fuzz targets' seeds and mutations of them, through the same entry
//! functions: what the fuzzer does for long, every test run does a little.
#![allow(clippy::unwrap_used)]

#[path = "../fuzz/entry.rs"]
mod entry;

use std::io::{Read, Write};
use std::os::unix::net::UnixListener;
use std::path::Path;

use rumba_core::sql::{Param, SqlSession};
use rumba_core::worker::block_on;
use rumba_protocol_mysql::{Address, SessionOptions, Target, Tls, WireSession};

const MUTATIONS: usize = 100_000;

/// SplitMix64: the same mutations in every run.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((mixed ^ (mixed >> 31)) % bound.max(1) as u64) as usize
    }
}

fn seeds(target: &str) -> Vec<Vec<u8>> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus").join(target);
    let mut files: Vec<_> = std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files.iter().map(|file| std::fs::read(file).unwrap()).collect()
}

/// Changes a few bytes: what a length may be, what a bit may be, a cut, a piece doubled.
fn mutate(bytes: &mut Vec<u8>, random: &mut Random) {
    const TELLING: [u8; 10] = [0, 1, 0x0c, 0xfa, 0xfb, 0xfc, 0xfd, 0xfe, 0xff, 0x80];
    for _ in 0..1 + random.below(4) {
        let at = random.below(bytes.len());
        match random.below(6) {
            _ if bytes.is_empty() => {}
            0 => bytes[at] = TELLING[random.below(TELLING.len())],
            1 => bytes[at] ^= 1 << random.below(8),
            2 => bytes[at] = random.below(256) as u8,
            3 => bytes.truncate(at),
            4 => bytes.insert(at, random.below(256) as u8),
            _ => {
                let end = (at + random.below(32)).min(bytes.len());
                let piece = bytes[at..end].to_vec();
                bytes.extend_from_slice(&piece);
            }
        }
    }
}

fn all_of(target: &str, entry: fn(&[u8])) {
    let seeds = seeds(target);
    assert!(!seeds.is_empty());
    seeds.iter().for_each(|seed| entry(seed));
    let mut random = Random(7);
    for _ in 0..MUTATIONS {
        let mut bytes = seeds[random.below(seeds.len())].clone();
        mutate(&mut bytes, &mut random);
        entry(&bytes);
    }
}

#[test]
fn no_answer_makes_the_codec_panic() {
    all_of("answers", entry::answers);
}

#[test]
fn no_handshake_makes_the_login_panic() {
    all_of("handshake", entry::handshake);
}

#[test]
fn no_server_makes_a_session_panic_or_hang() {
    const SESSIONS: usize = 2_000;
    let dir = tempfile::tempdir().unwrap();
    let socket = dir.path().join("s");
    let listener = UnixListener::bind(&socket).unwrap();
    let (handshakes, answers) = (seeds("handshake"), seeds("answers"));
    let prepared: Vec<&Vec<u8>> = answers.iter().filter(|seed| seed[0] & 8 != 0).collect();
    let server = std::thread::spawn({
        let mut random = Random(11);
        let mut said = Vec::new();
        for _ in 0..SESSIONS {
            let mut bytes = handshakes[random.below(handshakes.len())][1..].to_vec();
            let entered = bytes.len();
            bytes.extend_from_slice(&prepared[random.below(prepared.len())][1..]);
            for _ in 0..3 {
                bytes.extend_from_slice(&answers[random.below(answers.len())][1..]);
            }
            // Who is let in sees more than who is not.
            let mut tail = bytes.split_off(if random.below(8) == 0 { 0 } else { entered });
            mutate(&mut tail, &mut random);
            bytes.extend_from_slice(&tail);
            said.push(bytes);
        }
        move || {
            for bytes in said {
                let (mut client, _) = listener.accept().unwrap();
                let _gone_before_the_end = client.write_all(&bytes);
                client.shutdown(std::net::Shutdown::Write).unwrap();
                let _ = client.read_to_end(&mut Vec::new());
            }
        }
    });
    let target = Target {
        address: Address::Socket(socket),
        user: "root".into(),
        password: Default::default(),
        database: None,
        tls: Tls::Off,
    };
    let (mut entered, mut answered) = (0, 0);
    for _ in 0..SESSIONS {
        let Ok(mut session) = WireSession::connect(&target, &SessionOptions::default()) else { continue };
        entered += 1;
        let Ok(statement) = session.prepare("SELECT ?") else { continue };
        let submitted = (0..3).filter(|&id| session.submit(statement, &[Param::Int(id)]).is_ok()).count();
        let session: &mut dyn SqlSession = &mut session;
        for _ in 0..submitted {
            let visit = &mut |row: &dyn rumba_core::sql::Row| {
                std::hint::black_box((row.int(0), row.bytes(1).len()));
            };
            answered += usize::from(block_on(session.answer(visit)).is_ok());
        }
    }
    assert!(entered > SESSIONS / 4 && answered > 0, "{entered} let in, {answered} answers");
    server.join().unwrap();
}
