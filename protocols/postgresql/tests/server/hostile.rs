//! Servers that send more than a client can keep. Each is refused with bounded memory.

use std::io::Write;
use std::os::unix::net::UnixListener;

use rumba_engine_api::sql::SqlSession;
use rumba_protocol_postgresql::{Address, Admin, PgSession, Secret, SessionOptions, Target, Tls};
use rumba_testkit::sql::answer;

use crate::support::{TIMEOUT, message};

/// The messages of a server that accepts any user.
fn welcome() -> Vec<u8> {
    [message(b'R', &[0; 4]), message(b'S', b"server_version\x0015\0"), message(b'Z', b"I")].concat()
}

/// A server that sends `first`, and then `endless` again and again until the client has gone.
fn server(dir: &tempfile::TempDir, first: Vec<u8>, endless: Vec<u8>) -> Target {
    let socket = dir.path().join("s");
    let listener = UnixListener::bind(&socket).unwrap();
    std::thread::spawn(move || {
        let (mut client, _) = listener.accept().unwrap();
        if client.write_all(&first).is_ok() {
            while client.write_all(&endless).is_ok() {}
        }
    });
    Target {
        address: Address::Socket(socket),
        user: "tester".into(),
        password: Secret::default(),
        database: None,
        tls: Tls::Off,
    }
}

#[test]
fn endless_login_is_refused_after_some_kib() {
    let notice = message(b'N', b"SNOTICE\0C00000\0Mwait\0\0");
    let long = [b'N', 3, 0xff, 0xff, 0xff];
    for (first, endless) in [(message(b'R', &[0; 4]), notice.repeat(100)), (long.to_vec(), vec![b'x'; 4096])] {
        let dir = tempfile::tempdir().unwrap();
        let error = Admin::connect(&server(&dir, first, endless), TIMEOUT).err().unwrap().to_string();
        assert!(error.contains("more than the 64 KiB"), "{error}");
    }
}

#[test]
fn endless_administrative_answer_is_refused_after_some_mib() {
    let dir = tempfile::tempdir().unwrap();
    let row = message(b'D', &[&[0, 1, 0, 0, 0x10, 0][..], &[b'x'; 4096]].concat());
    let mut admin = Admin::connect(&server(&dir, welcome(), row), TIMEOUT).unwrap();
    let error = admin.query("SELECT 1").unwrap_err().to_string();
    assert!(error.contains("more than the 16 MiB"), "{error}");
}

#[test]
fn endless_row_is_refused_by_its_length() {
    let dir = tempfile::tempdir().unwrap();
    let first = [welcome(), vec![b'D', 4, 0, 0, 5]].concat();
    let target = server(&dir, first, vec![b'x'; 4096]);
    let mut session = PgSession::connect(&target, &SessionOptions::default()).unwrap();
    session.submit_text("SELECT 1").unwrap();
    let error = answer(&mut session, 1).unwrap_err().to_string();
    assert!(error.contains("at most 64 MiB"), "{error}");
}
