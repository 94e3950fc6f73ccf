//! A private MariaDB for the tests: directory, Unix socket, a loopback port, TLS.

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use rumba_protocol_mysql::{Address, Admin, Secret, SessionOptions, Target, Tls, WireSession};
use rumba_testkit::certificate;
use rumba_testkit::mariadb::{Installed, MariaDb};
use rumba_testkit::process::output_of;
use rustix::process::Signal;

pub const TIMEOUT: Duration = Duration::from_secs(30);

/// A running server; it is killed and removed when the last test drops it.
pub struct Server {
    server: MariaDb,
    pub port: u16,
}

impl Server {
    /// The server that the tests of one binary share.
    pub fn shared() -> Arc<Self> {
        static SHARED: Mutex<Weak<Server>> = Mutex::new(Weak::new());
        let mut shared = SHARED.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if let Some(server) = shared.upgrade() {
            return server;
        }
        let server = Arc::new(Self::start(&[]));
        *shared = Arc::downgrade(&server);
        server
    }

    /// A private server.
    pub fn start(options: &[&str]) -> Self {
        Self::start_as("server", options)
    }

    /// A private server that shows one of the certificates that [`certify`] makes.
    pub fn start_as(certificate: &str, options: &[&str]) -> Self {
        let installed = Installed::new();
        let dir = installed.directory();
        certify(dir);
        let port = TcpListener::bind(("127.0.0.1", 0)).unwrap().local_addr().unwrap().port();
        let at = |name: &str| dir.join(name).display().to_string();
        let own = [
            ("skip-networking", "0".into()),
            ("bind-address", "127.0.0.1".into()),
            ("skip-name-resolve", "1".into()),
            ("port", port.to_string()),
            ("ssl-ca", at("ca.pem")),
            ("ssl-cert", at(&format!("{certificate}.pem"))),
            ("ssl-key", at(&format!("{certificate}.key"))),
            ("plugin-load-add", "auth_ed25519".into()),
            ("plugin-maturity", "unknown".into()),
            ("local-infile", "1".into()),
            ("max-allowed-packet", "64M".into()),
            ("innodb-buffer-pool-size", "64M".into()),
            ("innodb-log-file-size", "192M".into()),
            ("innodb-flush-log-at-trx-commit", "0".into()),
            ("sql-mode", "STRICT_TRANS_TABLES".into()),
        ];
        let own = own.iter().map(|(option, value)| format!("--{option}={value}"));
        let options: Vec<String> = own.chain(options.iter().map(|&option| option.to_owned())).collect();
        let server = Self { server: installed.start(&options), port };
        server.make_schema();
        server
    }

    /// Starts it again after [`Server::kill`], on the same data.
    pub fn start_again(&self) {
        self.server.start_again();
        self.make_schema();
    }

    fn make_schema(&self) {
        self.admin().query("CREATE DATABASE IF NOT EXISTS test CHARACTER SET latin1").unwrap();
    }

    pub fn socket(&self) -> Address {
        Address::Socket(self.server.socket())
    }

    pub fn tcp(&self) -> Address {
        Address::Tcp { host: "127.0.0.1".into(), port: self.port }
    }

    pub fn ca(&self) -> PathBuf {
        self.server.directory().join("ca.pem")
    }

    fn root(&self) -> Target {
        self.target("root", "", self.socket())
    }

    pub fn target(&self, user: &str, password: &str, address: Address) -> Target {
        Target { address, user: user.into(), password: Secret::new(password), database: None, tls: Tls::Off }
    }

    pub fn admin(&self) -> Admin {
        Admin::connect(&self.root(), TIMEOUT).unwrap()
    }

    /// The sessions' address: the schema `test`, over the socket.
    pub fn test(&self) -> Target {
        Target { database: Some("test".into()), ..self.root() }
    }

    pub fn session(&self, options: &SessionOptions) -> WireSession {
        WireSession::connect(&self.test(), options).unwrap()
    }

    /// A session over each kind of connection: its socket, TCP, encrypted TCP.
    pub fn sessions(&self, options: &SessionOptions) -> [WireSession; 3] {
        self.admin().query("CREATE USER IF NOT EXISTS root@'127.0.0.1'").unwrap();
        self.admin().query("GRANT ALL ON *.* TO root@'127.0.0.1' WITH GRANT OPTION").unwrap();
        let tcp = Target { address: self.tcp(), ..self.test() };
        let tls = Target { tls: Tls::Verified { ca: Some(self.ca()) }, ..tcp.clone() };
        [self.test(), tcp, tls].map(|target| WireSession::connect(&target, options).unwrap())
    }

    /// Stops the server from reading its sockets until [`Server::go_on`].
    pub fn pause(&self) {
        self.server.signal(Signal::STOP);
    }

    pub fn go_on(&self) {
        self.server.signal(Signal::CONT);
    }

    /// kill -9.
    pub fn kill(&self) {
        self.server.kill();
    }
}

/// Creates an authority, three servers' certificates signed by it, and an unrelated authority. The certificates `old`
/// and `curved` have X.509 version 1, as openssl makes them without extensions, and `curved` has a key of P-521.
fn certify(dir: &Path) {
    certificate::of_authority(dir, "ca");
    certificate::of_authority(dir, "outsider");
    let names = dir.join("names");
    std::fs::write(&names, "subjectAltName=IP:127.0.0.1,DNS:localhost\nbasicConstraints=CA:FALSE\n").unwrap();
    sign(dir, "server", "P-256", &["-extfile", &names.display().to_string()]);
    sign(dir, "old", "P-256", &[]);
    sign(dir, "curved", "P-521", &[]);
}

/// Makes a key on this curve, and a certificate for it by the authority.
fn sign(dir: &Path, name: &str, curve: &str, extensions: &[&str]) {
    let at = |name: &str, kind: &str| dir.join(format!("{name}.{kind}")).display().to_string();
    let (key, request_file) = (at(name, "key"), at(name, "csr"));
    let mut request = Command::new("openssl");
    request.args(["req", "-newkey", "ec", "-pkeyopt", &format!("ec_paramgen_curve:{curve}"), "-nodes"]);
    output_of(request.args(["-subj", "/CN=test server", "-keyout", &key, "-out", &request_file]));
    let mut sign = Command::new("openssl");
    sign.args(["x509", "-req", "-days", "2", "-CA", &at("ca", "pem"), "-CAkey", &at("ca", "key"), "-CAcreateserial"]);
    output_of(sign.args(["-in", &request_file, "-out", &at(name, "pem")]).args(extensions));
}
