//! Servers that send more than a client can keep. Each is refused with bounded memory.

use std::io::Write;
use std::os::unix::net::UnixListener;

use rumba_protocol_postgresql::{Address, Admin, Secret, Target, Tls};

use crate::support::{TIMEOUT, message};

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
    let welcome = [message(b'R', &[0; 4]), message(b'S', b"server_version\x0015\0"), message(b'Z', b"I")].concat();
    let mut admin = Admin::connect(&server(&dir, welcome, row), TIMEOUT).unwrap();
    let error = admin.query("SELECT 1").unwrap_err().to_string();
    assert!(error.contains("more than the 16 MiB"), "{error}");
}
