//! Certificates for one test, made by the program openssl. Each is valid for two days.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::process::output_of;

/// An authority's certificate and its key: `NAME.pem` and `NAME.key` in this directory.
pub fn of_authority(dir: &Path, name: &str) -> [PathBuf; 2] {
    self_signed(dir, name, "test authority", &[])
}

/// A self-signed certificate of a server at 127.0.0.1, which signs no other, and its key: `server.pem` and `server.key`
/// in this directory.
pub fn of_server(dir: &Path) -> [PathBuf; 2] {
    self_signed(dir, "server", "test server", &["subjectAltName=IP:127.0.0.1", "basicConstraints=critical,CA:FALSE"])
}

fn self_signed(dir: &Path, name: &str, subject: &str, extensions: &[&str]) -> [PathBuf; 2] {
    let [certificate, key] = ["pem", "key"].map(|kind| dir.join(format!("{name}.{kind}")));
    let mut make = Command::new("openssl");
    make.args(["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2"]);
    make.args(["-subj", &format!("/CN={subject}")]);
    for extension in extensions {
        make.arg("-addext").arg(extension);
    }
    make.arg("-keyout").arg(&key).arg("-out").arg(&certificate);
    output_of(&mut make);
    [certificate, key]
}
