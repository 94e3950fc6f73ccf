//! A small part of a fuzzer's work for every test run: the seeds of a fuzz target, and mutations of them.

use std::io::{Read, Write};
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::thread::{self, JoinHandle};

/// SplitMix64: the same mutations in every run.
pub struct Random(pub u64);

impl Random {
    /// A number below this; 0 if it is 0.
    pub fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((mixed ^ (mixed >> 31)) % bound.max(1) as u64) as usize
    }
}

/// The seeds of a fuzz target of the crate in this directory, ordered by their names.
pub fn seeds(directory: &str, target: &str) -> Vec<(String, Vec<u8>)> {
    let directory = Path::new(directory).join("fuzz/corpus").join(target);
    let entries = std::fs::read_dir(&directory).expect("a corpus");
    let mut files: Vec<_> = entries.map(|entry| entry.expect("an entry").path()).collect();
    files.sort();
    let name = |path: &Path| path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let seeds: Vec<_> = files.iter().map(|file| (name(file), std::fs::read(file).expect("a seed"))).collect();
    assert!(!seeds.is_empty(), "{} is empty", directory.display());
    seeds
}

/// Changes a few bytes: inserts one of the protocol's significant bytes, flips a bit, sets a byte, truncates, appends a
/// byte, or duplicates a piece.
pub fn mutate(bytes: &mut Vec<u8>, telling: &[u8], random: &mut Random) {
    for _ in 0..1 + random.below(4) {
        let at = random.below(bytes.len());
        match random.below(6) {
            _ if bytes.is_empty() => {}
            0 => bytes[at] = telling[random.below(telling.len())],
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

/// A server that sends each of these to one client after the other, without regard to requests. It ends with the last.
fn server(listener: UnixListener, said: Vec<Vec<u8>>) -> JoinHandle<()> {
    thread::spawn(move || {
        for bytes in said {
            let (mut client, _) = listener.accept().expect("a client");
            let _gone_before_the_end = client.write_all(&bytes);
            let _gone = client.shutdown(std::net::Shutdown::Write);
            let _ = client.read_to_end(&mut Vec::new());
        }
    })
}

/// Runs a session with each of these servers, which send prepared bytes. `run` connects to the socket, and returns the
/// number of received answers if it was let in. A panic or a hang fails the test, and so do too few sessions that were
/// let in.
pub fn sessions(said: Vec<Vec<u8>>, least_let_in: usize, mut run: impl FnMut(&Path) -> Option<usize>) {
    let dir = tempfile::tempdir().expect("a directory");
    let socket = dir.path().join("s");
    let sessions = said.len();
    let server = server(UnixListener::bind(&socket).expect("a socket"), said);
    let answers: Vec<usize> = (0..sessions).filter_map(|_| run(&socket)).collect();
    let (let_in, answered) = (answers.len(), answers.iter().sum::<usize>());
    assert!(let_in > least_let_in && answered > 0, "{let_in} let in, {answered} answers");
    server.join().expect("the server has sent everything");
}

/// Passes each seed, and this many mutations of each, to a fuzz target's entry point.
pub fn all_of(
    seeds: &[(String, Vec<u8>)],
    mutations: usize,
    mut mutate: impl FnMut(&mut Vec<u8>, &mut Random),
    entry: fn(&[u8]),
) {
    seeds.iter().for_each(|(_, seed)| entry(seed));
    let mut random = Random(7);
    for _ in 0..mutations {
        let mut bytes = seeds[random.below(seeds.len())].1.clone();
        mutate(&mut bytes, &mut random);
        entry(&bytes);
    }
}
