//! Runs the fuzz targets' seeds and mutations of them through the same entry functions, as a short version of fuzzing
//! in every test run.

#[path = "../fuzz/entry.rs"]
mod entry;

use rumba_engine_api::bson::Document;
use rumba_engine_api::document::{Command, DocumentSession, Find};
use rumba_engine_api::worker::block_on;
use rumba_protocol_mongodb::{Address, MongoSession, SessionOptions, Target};
use rumba_testkit::corpus::{self, Random};

const MUTATIONS: usize = 50_000;

fn seeds(target: &str) -> Vec<(String, Vec<u8>)> {
    corpus::seeds(env!("CARGO_MANIFEST_DIR"), target)
}

/// Changes a few bytes: a possible length, a possible type, a bit, a cut, or a doubled piece.
fn mutate(bytes: &mut Vec<u8>, random: &mut Random) {
    const TELLING: [u8; 12] = [0, 1, 2, 3, 4, 5, 0x10, 0x12, 0x7f, 0xff, 0x80, 0x0f];
    corpus::mutate(bytes, &TELLING, random);
    // A cut tests the decoder only if the message's own length matches it.
    if random.below(2) == 0 && bytes.len() >= 4 {
        let length = bytes.len() as u32;
        bytes[..4].copy_from_slice(&length.to_le_bytes());
    }
}

/// Turns a message into the answer to the request of this number.
fn numbered(message: &[u8], question: u32) -> Vec<u8> {
    let mut bytes = message.to_vec();
    bytes[8..12].copy_from_slice(&question.to_le_bytes());
    bytes
}

fn all_of(target: &str, entry: fn(&[u8])) {
    corpus::all_of(&corpus::seeds(env!("CARGO_MANIFEST_DIR"), target), MUTATIONS, mutate, entry);
}

#[test]
fn no_answer_makes_the_codec_panic() {
    all_of("answers", entry::answers);
}

#[test]
fn no_server_makes_the_login_panic() {
    all_of("login", entry::login);
}

#[test]
fn no_server_makes_a_session_panic_or_hang() {
    const SESSIONS: usize = 2_000;
    let answers = seeds("answers");
    let hello = answers.iter().find(|(name, _)| name == "hello").unwrap().1.clone();
    let mut random = Random(11);
    let mut said = Vec::new();
    for session in 0..SESSIONS {
        let mut bytes = numbered(&hello, 1);
        for question in 2..5 {
            bytes.extend(numbered(&answers[random.below(answers.len())].1, question));
        }
        // Mutate every second session; the others are received unchanged, to their end.
        if session % 2 == 0 {
            let mut tail = bytes.split_off(if random.below(8) == 0 { 0 } else { hello.len() });
            mutate(&mut tail, &mut random);
            bytes.extend_from_slice(&tail);
        }
        said.push(bytes);
    }
    corpus::sessions(said, SESSIONS / 2, |socket| {
        let target = Target::anonymous(Address::Socket(socket.to_owned()));
        let mut session = MongoSession::connect(&target, &SessionOptions::to("db")).ok()?;
        let session: &mut dyn DocumentSession = &mut session;
        let mut answered = 0;
        for _ in 0..3 {
            let find = Command::Find { of: "t", find: Find::by(Document::EMPTY) };
            let visit = &mut |document: Document<'_>| {
                std::hint::black_box(format!("{document:?}"));
            };
            answered += usize::from(block_on(session.execute(find, visit)).is_ok());
        }
        Some(answered)
    });
}
