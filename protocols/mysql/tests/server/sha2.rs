//! caching_sha2_password, MySQL's default, which MariaDB does not have. Each step is compared with values computed by
//! Python's hashlib.

use std::process::Command;

use rumba_protocol_mysql::WireError;
use rumba_protocol_mysql::handshake::{Agreed, Caller, Login, Step, greeting};
use rumba_testkit::process::output_of;

const NONCE: &[u8; 20] = b"ABCDEFGHIJKLMNOPQRST";
/// SHA256(p) xor SHA256(SHA256(SHA256(p)) + nonce), p = sesame.
const SHA2: &str = "14f1a4f00a2d42c66e5655340a4781f3a868c8459bd06d313bd9b7919ff02cba";
/// SHA1(p) xor SHA1(nonce + SHA1(SHA1(p))), p = sesame.
const NATIVE: &str = "e070ba146d19cdd1d0347618485d3b366fd1298f";
const OK: &[u8] = &[0, 0, 0, 2, 0, 0, 0];

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The greeting of MySQL 8.
fn packet(plugin: &str) -> Vec<u8> {
    let mut packet = b"\x0a8.4.0\0\x07\0\0\0".to_vec();
    packet.extend_from_slice(&NONCE[..8]);
    packet.extend_from_slice(b"\0\xff\xff\xff\x02\0\xff\xdf\x15\0\0\0\0\0\0\0\0\0\0");
    packet.extend_from_slice(&NONCE[8..]);
    packet.push(0);
    packet.extend_from_slice(plugin.as_bytes());
    packet.push(0);
    packet
}

fn caller(password: &str, tls: bool, local: bool) -> Caller<'_> {
    Caller { user: "u", password, database: None, collation: 8, tls, local }
}

fn start(plugin: &str, caller: Caller<'static>) -> (Login<'static>, Vec<u8>) {
    let greeting = greeting(&packet(plugin)).unwrap();
    assert_eq!((greeting.version.as_str(), greeting.connection_id, &greeting.nonce[..]), ("8.4.0", 7, &NONCE[..]));
    let agreed = Agreed::with(&greeting, caller.tls, false);
    let (login, first) = Login::start(caller, &greeting, agreed).unwrap();
    assert_eq!(&first[32..34], b"u\0");
    (login, first)
}

#[test]
fn auth_response_follows_the_method_in_the_greeting() {
    for (plugin, proof) in [("caching_sha2_password", SHA2), ("mysql_native_password", NATIVE)] {
        let (_, first) = start(plugin, caller("sesame", false, false));
        let length = proof.len() / 2;
        assert_eq!(usize::from(first[34]), length);
        assert_eq!(hex(&first[35..35 + length]), proof, "{plugin}");
        assert!(first.ends_with(format!("{plugin}\0").as_bytes()));
        let (_, empty) = start(plugin, caller("", false, false));
        assert_eq!(empty[34], 0, "no password, no proof");
    }
}

#[test]
fn a_password_that_the_server_remembers_is_proven_at_once() {
    let (mut login, _) = start("caching_sha2_password", caller("sesame", false, false));
    assert_eq!(login.step(&[1, 3]).unwrap(), Step::Wait);
    assert_eq!(login.step(OK).unwrap(), Step::In { status: 2 });
}

#[test]
fn cleartext_password_is_sent_only_over_secure_channels() {
    for (tls, local) in [(true, false), (false, true)] {
        let (mut login, _) = start("caching_sha2_password", caller("sesame", tls, local));
        assert_eq!(login.step(&[1, 4]).unwrap(), Step::Send(b"sesame\0".to_vec()));
        assert_eq!(login.step(OK).unwrap(), Step::In { status: 2 });
    }
    let (mut login, _) = start("caching_sha2_password", caller("sesame", false, false));
    assert_eq!(login.step(&[1, 4]).unwrap(), Step::Send(vec![2]), "it requests the server's key");
    assert!(matches!(login.step(b"\x01no key"), Err(WireError::Protocol(_))));
}

#[test]
#[needs(Openssl)]
fn in_the_open_the_password_goes_under_the_servers_key() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name).display().to_string();
    let openssl = |words: &[&str]| output_of(Command::new("openssl").args(words));
    openssl(&["genpkey", "-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:2048", "-out", &at("key")]);
    let public = openssl(&["pkey", "-in", &at("key"), "-pubout"]);
    let (mut login, _) = start("caching_sha2_password", caller("sesame", false, false));
    login.step(&[1, 4]).unwrap();
    let Step::Send(hidden) = login.step(&[&[1], &public[..]].concat()).unwrap() else { panic!("nothing is sent") };
    std::fs::write(at("hidden"), hidden).unwrap();
    let decrypt =
        ["pkeyutl", "-decrypt", "-inkey", &at("key"), "-in", &at("hidden"), "-pkeyopt", "rsa_padding_mode:oaep"];
    let shown: Vec<u8> = openssl(&decrypt).iter().zip(NONCE).map(|(byte, nonce)| byte ^ nonce).collect();
    assert_eq!(shown, b"sesame\0");
}

/// A key of one byte made the client panic.
#[test]
fn a_tiny_key_for_the_password_is_refused() {
    for (pem, words) in [
        ("-----BEGIN RSA PUBLIC KEY-----\nMAcCAgDRAgED\n-----END RSA PUBLIC KEY-----\n", "8 bits"),
        ("-----BEGIN PUBLIC KEY-----\nMIAA\n-----END PUBLIC KEY-----\n", "malformed"),
    ] {
        let (mut login, _) = start("caching_sha2_password", caller("sesame", false, false));
        login.step(&[1, 4]).unwrap();
        let error = login.step(&[b"\x01", pem.as_bytes()].concat()).unwrap_err().to_string();
        assert!(error.contains("the server's RSA key") && error.contains(words), "{error}");
    }
}

#[test]
fn a_switch_brings_the_method_of_the_user_and_another_nonce() {
    let (mut login, _) = start("mysql_native_password", caller("sesame", false, false));
    let request = [b"\xfecaching_sha2_password\0", &NONCE[..], b"\0"].concat();
    let Step::Send(proof) = login.step(&request).unwrap() else { panic!("nothing is sent") };
    assert_eq!(hex(&proof), SHA2);
    let unknown = login.step(b"\xfesha1_with_love\0abc").unwrap_err().to_string();
    assert!(unknown.contains("sha1_with_love") && unknown.contains("caching_sha2_password"), "{unknown}");
    let clear = login.step(b"\xfemysql_clear_password\0").unwrap_err();
    assert!(matches!(&clear, WireError::Tls(why) if why.contains("turn TLS on")), "{clear}");
}
