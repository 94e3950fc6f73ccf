//! Runs the fuzz targets' seeds and mutations of them through the same entry functions, as a short version of fuzzing
//! in every test run.

#[path = "../fuzz/entry.rs"]
mod entry;

use rumba_engine_api::sql::{Param, Row, SqlSession};
use rumba_engine_api::worker::block_on;
use rumba_protocol_mysql::{Address, SessionOptions, Target, WireSession};
use rumba_testkit::corpus::{self, Random};

const MUTATIONS: usize = 100_000;

fn seeds(target: &str) -> Vec<Vec<u8>> {
    corpus::seeds(env!("CARGO_MANIFEST_DIR"), target).into_iter().map(|(_, seed)| seed).collect()
}

/// Changes a few bytes: a possible length, a bit, a cut, or a doubled piece.
fn mutate(bytes: &mut Vec<u8>, random: &mut Random) {
    const TELLING: [u8; 10] = [0, 1, 0x0c, 0xfa, 0xfb, 0xfc, 0xfd, 0xfe, 0xff, 0x80];
    corpus::mutate(bytes, &TELLING, random);
}

fn all_of(target: &str, entry: fn(&[u8])) {
    corpus::all_of(&corpus::seeds(env!("CARGO_MANIFEST_DIR"), target), MUTATIONS, mutate, entry);
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
    let (handshakes, answers) = (seeds("handshake"), seeds("answers"));
    let prepared: Vec<&Vec<u8>> = answers.iter().filter(|seed| seed[0] & 8 != 0).collect();
    let mut random = Random(11);
    let mut said = Vec::new();
    for _ in 0..SESSIONS {
        let mut bytes = handshakes[random.below(handshakes.len())][1..].to_vec();
        let entered = bytes.len();
        bytes.extend_from_slice(&prepared[random.below(prepared.len())][1..]);
        for _ in 0..3 {
            bytes.extend_from_slice(&answers[random.below(answers.len())][1..]);
        }
        // A successful login tests more code than a failed one.
        let mut tail = bytes.split_off(if random.below(8) == 0 { 0 } else { entered });
        mutate(&mut tail, &mut random);
        bytes.extend_from_slice(&tail);
        said.push(bytes);
    }
    corpus::sessions(said, SESSIONS / 4, |socket| {
        let target = Target::anonymous(Address::Socket(socket.to_owned()));
        let mut session = WireSession::connect(&target, &SessionOptions::default()).ok()?;
        let Ok(statement) = session.prepare("SELECT ?") else { return Some(0) };
        let submitted = (0..3).filter(|&id| session.submit(statement, &[Param::Int(id)]).is_ok()).count();
        let session: &mut dyn SqlSession = &mut session;
        let visit = &mut |row: &dyn Row| {
            std::hint::black_box((row.int(0), row.bytes(1).len()));
        };
        Some((0..submitted).filter(|_| block_on(session.answer(visit)).is_ok()).count())
    });
}
