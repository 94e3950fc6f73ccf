//! Runs the fuzz targets' seeds and mutations of them through the same entry functions, as a short version of fuzzing
//! in every test run.

#[path = "../fuzz/entry.rs"]
mod entry;

use rumba_engine_api::sql::{Row, SqlSession};
use rumba_engine_api::worker::block_on;
use rumba_protocol_postgresql::{Address, PgSession, SessionOptions, Target};
use rumba_testkit::corpus::{self, Random};

const MUTATIONS: usize = 50_000;

fn seeds(target: &str) -> Vec<(String, Vec<u8>)> {
    corpus::seeds(env!("CARGO_MANIFEST_DIR"), target)
}

/// Changes a few bytes: a possible length, a bit, a cut, or a doubled piece.
fn mutate(bytes: &mut Vec<u8>, random: &mut Random) {
    const TELLING: [u8; 12] = [0, 1, 4, 0x7f, 0xff, 0x80, b'Z', b'D', b'E', b'C', b'T', b'2'];
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
fn no_startup_makes_the_login_panic() {
    all_of("startup", entry::startup);
}

#[test]
fn no_server_makes_a_session_panic_or_hang() {
    const SESSIONS: usize = 2_000;
    let (startups, answers) = (seeds("startup"), seeds("answers"));
    let trust = &startups.iter().find(|(name, _)| name == "trust").unwrap().1;
    let named = |name: &str| &answers.iter().find(|(seed, _)| seed == name).unwrap().1;
    let mut random = Random(11);
    let mut said = Vec::new();
    for _ in 0..SESSIONS {
        let mut bytes = trust.clone();
        let entered = bytes.len();
        bytes.extend_from_slice(named("prepare-rows"));
        bytes.extend_from_slice(named("rows"));
        for _ in 0..3 {
            bytes.extend_from_slice(&answers[random.below(answers.len())].1);
        }
        // A successful login tests more code than a failed one.
        let mut tail = bytes.split_off(if random.below(8) == 0 { 0 } else { entered });
        mutate(&mut tail, &mut random);
        bytes.extend_from_slice(&tail);
        said.push(bytes);
    }
    corpus::sessions(said, SESSIONS / 4, |socket| {
        let target = Target::anonymous(Address::Socket(socket.to_owned()));
        let mut session = PgSession::connect(&target, &SessionOptions::default()).ok()?;
        let Ok(statement) = session.prepare("SELECT 1") else { return Some(0) };
        let submitted = (0..3).filter(|&_| session.submit(statement, &[]).is_ok()).count();
        let session: &mut dyn SqlSession = &mut session;
        let visit = &mut |row: &dyn Row| {
            std::hint::black_box((row.int(0), row.bytes(1).len()));
        };
        Some((0..submitted).filter(|_| block_on(session.answer(visit)).is_ok()).count())
    });
}
