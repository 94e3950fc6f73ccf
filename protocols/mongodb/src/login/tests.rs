//! Tests against a server's side of RFC 5802, implemented here.
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sha1::Sha1;
use sha2::Sha256;

use super::*;

const SALT: &[u8] = b"sixteen bytes of";

fn hmac<D: Digest>(key: &[u8], message: &[u8]) -> Vec<u8> {
    const BLOCK: usize = 64;
    let pad = |with: u8| (0..BLOCK).map(|at| key.get(at).copied().unwrap_or(0) ^ with).collect::<Vec<u8>>();
    let inner = D::digest([&pad(0x36), message].concat());
    D::digest([&pad(0x5c), &inner[..]].concat()).to_vec()
}

fn salted<D: Digest>(password: &[u8], iterations: u32) -> Vec<u8> {
    let mut last = hmac::<D>(password, &[SALT, &[0, 0, 0, 1]].concat());
    let mut sum = last.clone();
    for _ in 1..iterations {
        last = hmac::<D>(password, &last);
        sum.iter_mut().zip(&last).for_each(|(sum, byte)| *sum ^= byte);
    }
    sum
}

/// The server's side of a login in progress.
struct Server {
    password: Vec<u8>,
    first: String,
    challenge: String,
}

impl Server {
    fn new(password: &str) -> Self {
        Self { password: password.as_bytes().to_vec(), first: String::new(), challenge: String::new() }
    }

    fn challenge(&mut self, payload: &[u8], iterations: u64) -> String {
        self.first = std::str::from_utf8(payload).unwrap().strip_prefix("n,,").unwrap().to_owned();
        let nonce = self.first.split_once(",r=").unwrap().1;
        self.challenge = format!("r={nonce}server,s={},i={iterations}", STANDARD.encode(SALT));
        self.challenge.clone()
    }

    /// Whether the client knows the password, and the server's own proof.
    fn prove<D: Digest>(&self, payload: &[u8]) -> (bool, String) {
        let answer = std::str::from_utf8(payload).unwrap();
        let (without, proof) = answer.split_once(",p=").unwrap();
        let message = format!("{},{},{without}", self.first, self.challenge);
        let salted = salted::<D>(&self.password, 4096);
        let key = hmac::<D>(&salted, b"Client Key");
        let stored = D::digest(&key);
        let signature = hmac::<D>(&stored, message.as_bytes());
        let reported: Vec<u8> = STANDARD.decode(proof).unwrap().iter().zip(&signature).map(|(a, b)| a ^ b).collect();
        let own = hmac::<D>(&hmac::<D>(&salted, b"Server Key"), message.as_bytes());
        (reported == key, format!("v={}", STANDARD.encode(own)))
    }
}

fn answer(payload: &str, done: bool) -> DocumentBuf {
    DocumentBuf::of(|of| {
        of.small("conversationId", 1);
        of.bool("done", done);
        of.binary("payload", payload.as_bytes());
        of.double("ok", 1.0);
    })
}

fn payload(step: &DocumentBuf) -> Vec<u8> {
    step.get().blob("payload").unwrap().to_vec()
}

fn send(step: Step) -> DocumentBuf {
    let Step::Send(command) = step else { panic!("let in too early") };
    command
}

fn enter<D: Digest>(mechanism: Mechanism, known: &str, skips: bool) -> bool {
    let mut server = Server::new(known);
    let mut login = Login::new("user", "sesame", mechanism).unwrap();
    let first = login.first().unwrap();
    assert_eq!(first.get().blob("mechanism"), Ok(mechanism.name().as_bytes()));
    let challenge = server.challenge(&payload(&first), 4096);
    let proof = send(login.step(answer(&challenge, false).get()).unwrap());
    // mongod refuses another type than its own.
    assert_eq!(proof.get().get("conversationId"), Ok(Some(Value::Int32(1))));
    let (known, own) = server.prove::<D>(&payload(&proof));
    if !known {
        return false;
    }
    if skips {
        return login.step(answer(&own, true).get()).unwrap() == Step::In;
    }
    // Older servers require an additional empty exchange.
    let empty = send(login.step(answer(&own, false).get()).unwrap());
    assert!(payload(&empty).is_empty());
    login.step(answer("", true).get()).unwrap() == Step::In
}

#[test]
fn scram_sha1_and_sha256_accept_an_empty_last_exchange() {
    for skips in [true, false] {
        assert!(enter::<Sha256>(Mechanism::Sha256, "sesame", skips));
        // md5("user:mongo:sesame"), by md5sum.
        assert!(enter::<Sha1>(Mechanism::Sha1, &digest("user", "sesame"), skips));
    }
    assert!(!enter::<Sha256>(Mechanism::Sha256, "sesam", true));
    assert_eq!(digest("user", "pencil"), "1c33006ec1ffd90f9cadcbcc0e118200", "as the specification has it");
}

#[test]
fn a_server_that_does_not_prove_itself_is_not_believed() {
    let begun = || {
        let mut server = Server::new("sesame");
        let mut login = Login::new("user", "sesame", Mechanism::Sha256).unwrap();
        let challenge = server.challenge(&payload(&login.first().unwrap()), 4096);
        (login, challenge)
    };
    let (mut login, challenge) = begun();
    let error = login.step(answer(&challenge, true).get()).unwrap_err().to_string();
    assert!(error.contains("without having proven"), "{error}");
    let (mut login, challenge) = begun();
    send(login.step(answer(&challenge, false).get()).unwrap());
    assert!(login.step(answer("v=AAAA", true).get()).is_err(), "a wrong proof");
    let (mut login, _) = begun();
    assert!(login.step(answer("r=other,s=AAAA,i=4096", false).get()).is_err(), "another's nonce");
}

#[test]
fn no_server_keeps_a_client_busy_or_has_it_hash_too_little() {
    for iterations in [1, 4095, 1_000_001, u64::MAX] {
        let mut server = Server::new("sesame");
        let mut login = Login::new("user", "sesame", Mechanism::Sha256).unwrap();
        let challenge = server.challenge(&payload(&login.first().unwrap()), iterations);
        let error = login.step(answer(&challenge, false).get()).unwrap_err().to_string();
        assert!(error.contains("iterations"), "{error}");
    }
    assert!(Login::new("user", "", Mechanism::Sha256).err().unwrap().to_string().contains("no password"));
}

#[test]
fn truncated_server_messages_are_refused() {
    // Each of these made the library read beyond the end of a part.
    for (challenge, last) in [("r=NONCE,,i=4096", ""), ("r=NONCE,s,i=4096", "v"), ("r,s=AAAA,i=4096", "=")] {
        let mut server = Server::new("sesame");
        let mut login = Login::new("user", "sesame", Mechanism::Sha256).unwrap();
        let good = server.challenge(&payload(&login.first().unwrap()), 4096);
        let nonce = good.split_once(',').unwrap().0.strip_prefix("r=").unwrap();
        let error = login.step(answer(&challenge.replace("NONCE", nonce), false).get()).unwrap_err().to_string();
        assert!(error.contains("invalid attribute"), "{error}");

        let mut login = Login::new("user", "sesame", Mechanism::Sha256).unwrap();
        let good = Server::new("sesame").challenge(&payload(&login.first().unwrap()), 4096);
        send(login.step(answer(&good, false).get()).unwrap());
        let error = login.step(answer(last, true).get()).unwrap_err().to_string();
        assert!(error.contains("invalid attribute"), "{error}");
    }
}
