//! Successful and refused logins.

use std::time::Instant;

use rumba_engine_api::sql::{Param, SqlSession};
use rumba_protocol_postgresql::{Address, Admin, PgError, PgSession, Secret, SessionOptions, Target, Tls};
use rumba_testkit::certificate;
use rumba_testkit::postgresql::PostgreSql;
use rumba_testkit::sql::fetch;

use crate::support::{TIMEOUT, admin, local, shared, tcp};

fn refused(target: &Target) -> String {
    Admin::connect(target, TIMEOUT).err().unwrap().to_string()
}

#[test]
#[needs(PostgreSql)]
fn a_password_is_proven_by_scram_and_by_md5() {
    let hba = [
        "host all scram 127.0.0.1/32 scram-sha-256",
        "host all md5 127.0.0.1/32 md5",
        "host all clear 127.0.0.1/32 password",
    ];
    let server = PostgreSql::start(&[], &hba);
    let mut root = admin(&server);
    root.query("CREATE ROLE scram LOGIN PASSWORD 'o''pen \\ sesame'").unwrap();
    root.query("SET password_encryption = 'md5'; CREATE ROLE md5 LOGIN PASSWORD 'o''pen \\ sesame'").unwrap();
    root.query("CREATE ROLE clear LOGIN PASSWORD 'x'").unwrap();
    for user in ["scram", "md5"] {
        let target = |password: &str| Target { user: user.into(), password: Secret::new(password), ..tcp(&server) };
        let mut session = PgSession::connect(&target("o'pen \\ sesame"), &SessionOptions::default()).unwrap();
        session.run("SELECT 1").unwrap();
        let error = refused(&target("wrong"));
        assert!(error.contains("28P01") && error.contains("check the user's name"), "{user}: {error}");
        assert!(refused(&target("")).contains("none is given"), "{user}");
    }
    let clear = Target { user: "clear".into(), password: Secret::new("x"), ..tcp(&server) };
    assert!(refused(&clear).contains("clear text"));
    assert!(refused(&Target { user: "nobody".into(), ..tcp(&server) }).contains("28000"));
}

#[test]
#[needs(PostgreSql)]
fn missing_database_or_socket_is_reported_by_name() {
    let server = shared();
    let error = refused(&Target { database: Some("nowhere".into()), ..local(&server) });
    assert!(error.contains("3D000") && error.contains("create the database"), "{error}");
    let missing = server.directory().join("missing");
    let error = refused(&Target { address: Address::Socket(missing), ..local(&server) });
    assert!(error.contains("connecting to") && error.contains("missing"), "{error}");
    assert!(admin(&server).server_version().starts_with("15."), "{}", admin(&server).server_version());
}

/// Creates a self-signed certificate for 127.0.0.1.
fn certify(server: &PostgreSql) -> std::path::PathBuf {
    let made = tempfile::tempdir().unwrap();
    let [certificate, key] = certificate::of_server(made.path());
    server.keep("key.pem", &std::fs::read(key).unwrap());
    server.keep("certificate.pem", &std::fs::read(certificate).unwrap())
}

#[test]
#[needs(PostgreSql, Openssl)]
fn tls_connection_works_and_is_verified_on_request() {
    let server = PostgreSql::start(&[], &["hostssl all all 127.0.0.1/32 trust"]);
    let error = refused(&Target { tls: Tls::Required, ..tcp(&server) });
    assert!(error.contains("does not offer TLS"), "{error}");
    let plain = refused(&Target { tls: Tls::Preferred, ..tcp(&server) });
    assert!(plain.contains("28000"), "who only prefers it goes on without, and is refused by the server: {plain}");
    let certificate = certify(&server);
    let at = |name: &str| server.directory().join(name).display().to_string();
    let mut root = admin(&server);
    for (setting, value) in
        [("ssl_cert_file", at("certificate.pem")), ("ssl_key_file", at("key.pem")), ("ssl", "on".into())]
    {
        root.query(&format!("ALTER SYSTEM SET {setting} = '{value}'")).unwrap();
    }
    root.query("SELECT pg_reload_conf()").unwrap();
    let since = Instant::now();
    while root.query("SHOW ssl").unwrap().rows[0][0].as_deref() != Some("on") {
        assert!(since.elapsed() < TIMEOUT);
    }
    assert!(refused(&tcp(&server)).contains("28000"), "a login without encryption is refused");
    let ca = Some(certificate);
    for tls in [Tls::Preferred, Tls::Required, Tls::Signed { ca: ca.clone() }, Tls::Verified { ca }] {
        let mut session = PgSession::connect(&Target { tls, ..tcp(&server) }, &SessionOptions::default()).unwrap();
        let echo = session.prepare("SELECT $1::bytea, version FROM pg_stat_ssl WHERE pid = pg_backend_pid()").unwrap();
        let value = vec![9; 1 << 20];
        let found = fetch(&mut session, echo, &[Param::Bytes(&value)], 2).unwrap().1.remove(0);
        assert!(found[0] == value && found[1].starts_with(b"TLS"));
    }
    let outsider = Target { tls: Tls::Verified { ca: None }, ..tcp(&server) };
    let error = Admin::connect(&outsider, TIMEOUT).err().unwrap();
    assert!(matches!(error, PgError::Transport(_)) && error.to_string().contains("TLS: "), "{error}");
    assert!(Admin::connect(&Target { tls: Tls::Preferred, ..local(&server) }, TIMEOUT).is_ok(), "over a socket, plain");
    let socket = refused(&Target { tls: Tls::Required, ..local(&server) });
    assert!(socket.contains("does not encrypt a socket"), "{socket}");

    // TLS that the server offers, but without a cipher in common with this client.
    for setting in ["ssl_max_protocol_version = 'TLSv1.2'", "ssl_ciphers = 'AES256-SHA256'"] {
        root.query(&format!("ALTER SYSTEM SET {setting}")).unwrap();
    }
    root.query("SELECT pg_reload_conf()").unwrap();
    let since = Instant::now();
    while root.query("SHOW ssl_ciphers").unwrap().rows[0][0].as_deref() != Some("AES256-SHA256") {
        assert!(since.elapsed() < TIMEOUT);
    }
    let plain = refused(&Target { tls: Tls::Preferred, ..tcp(&server) });
    assert!(plain.contains("28000"), "it goes on without, and the server refuses this user: {plain}");
    assert!(refused(&Target { tls: Tls::Required, ..tcp(&server) }).contains("TLS: "));
}

/// `PGOPTIONS` and its like were ignored.
#[test]
#[needs(PostgreSql)]
fn startup_parameters_apply_to_the_session() {
    let server = shared();
    let startup = vec![
        ("options", "-c synchronous_commit=off -c search_path=s2".to_owned()),
        ("application_name", "mine".to_owned()),
        ("datestyle", "SQL, DMY".to_owned()),
    ];
    let options = SessionOptions { startup, ..SessionOptions::default() };
    let mut session = PgSession::connect(&local(&server), &options).unwrap();
    let names = ["synchronous_commit", "search_path", "application_name", "DateStyle"];
    let settings = names.map(|name| format!("current_setting('{name}')")).join(" || ' ' || ");
    let shown = session.prepare(&format!("SELECT {settings}")).unwrap();
    assert_eq!(fetch(&mut session, shown, &[], 1).unwrap().1, [[b"off s2 mine SQL, DMY"]]);
    let usual = admin(&server).query("SELECT current_setting('application_name')").unwrap();
    assert_eq!(usual.rows[0][0].as_deref(), Some("rumba"));
}

#[test]
#[needs(PostgreSql)]
fn hosts_and_kinds_of_encryption_are_tried_in_turn() {
    let server = shared();
    let missing = Target { address: Address::Socket(server.directory().join("missing")), ..local(&server) };
    let encrypted = Target { tls: Tls::Required, ..tcp(&server) };
    let options = SessionOptions::default();
    let hosts = [vec![missing.clone()], vec![encrypted.clone(), tcp(&server)]];
    PgSession::connect_any(&hosts, &options).unwrap().run("SELECT 1").unwrap();
    let error = PgSession::connect_any(&[vec![missing], vec![encrypted]], &options).err().unwrap().to_string();
    assert!(error.contains("missing"), "the first error: {error}");
    assert!(PgSession::connect_any(&[], &options).is_err());
}
