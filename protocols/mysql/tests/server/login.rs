//! Successful and refused logins: every authentication method, with and without encryption.

use std::io::Write;
use std::os::unix::net::UnixListener;
use std::time::Duration;

use crate::support::{Server, TIMEOUT};
use rumba_engine_api::error::{EngineError, ErrorCode};
use rumba_engine_api::sql::{Param, SqlSession};
use rumba_null_server::{Config, Listen, NullServer};
use rumba_protocol_mysql::{
    Address, Admin, Identified, SessionOptions, Target, Tls, UNREACHABLE, WireError, WireSession,
};
use rumba_testkit::sql::{answer, fetch};

fn refusal(target: &Target) -> WireError {
    match Admin::connect(target, TIMEOUT) {
        Ok(_) => panic!("let in"),
        Err(error) => error,
    }
}

#[test]
#[needs(MariaDb, Openssl)]
fn rows_arrive_as_text_and_null_differs_from_empty() {
    let server = Server::shared();
    let mut admin = server.admin();
    let rows = admin.query("SELECT 1 AS a, NULL AS b, '' AS c, 'ä€𝄞' AS d UNION ALL SELECT 2, 'x', 'y', 'z'").unwrap();
    assert_eq!(rows.columns, ["a", "b", "c", "d"]);
    let text = |text: &str| Some(text.to_owned());
    assert_eq!(rows.rows[0], [text("1"), None, text(""), text("ä€𝄞")]);
    assert_eq!(rows.rows[1], [text("2"), text("x"), text("y"), text("z")]);
    assert!(admin.server_version().contains("MariaDB"), "{}", admin.server_version());
    assert_eq!(admin.query("SET @a = 1; SELECT @a; SELECT 2").unwrap().rows, [[text("1")]]);
    assert_eq!(admin.query("SELECT REPEAT('x', 2000000)").unwrap().rows[0][0].as_ref().unwrap().len(), 2_000_000);
}

/// A hostile server filled the memory with an endless answer.
#[test]
#[needs(MariaDb, Openssl)]
fn an_administrative_answer_takes_bounded_memory() {
    let server = Server::shared();
    for sql in [
        "SELECT REPEAT('x', 20000000)",
        "SELECT REPEAT('x', 1000000) FROM mysql.seq_1_to_20",
        "SELECT NULL, NULL FROM mysql.seq_1_to_1000000",
    ] {
        let error = server.admin().query(sql).unwrap_err();
        assert!(matches!(error, WireError::Protocol(_)), "{sql}: {error:?}");
        assert!(error.to_string().contains("more than"), "{sql}: {error}");
    }
}

/// The client logged in as latin1, so that text from scripts was stored in twice its size.
#[test]
#[needs(MariaDb, Openssl)]
fn text_names_and_passwords_are_utf8() {
    const TEXT: &str = "żółw 😀";
    let server = Server::shared();
    let mut admin = server.admin();
    for host in ["localhost", "127.0.0.1"] {
        admin.query(&format!("CREATE OR REPLACE USER 'sbü'@'{host}' IDENTIFIED BY 'pässwörd'")).unwrap();
        admin.query(&format!("GRANT ALL ON test.* TO 'sbü'@'{host}'")).unwrap();
    }
    for (address, text) in [(server.socket(), false), (server.tcp(), false), (server.tcp(), true)] {
        let target = Target { database: Some("test".into()), ..server.target("sbü", "pässwörd", address) };
        let options = SessionOptions { text, ..SessionOptions::default() };
        let mut session = WireSession::connect(&target, &options).unwrap();
        session.submit_text("SELECT @@character_set_client, @@character_set_results, CURRENT_USER()").unwrap();
        let (_, rows) = answer(&mut session, 3).unwrap();
        assert_eq!(rows[0][..2], [b"utf8mb4", b"utf8mb4"]);
        assert!(rows[0][2].starts_with("sbü@".as_bytes()));
        session.run("CREATE OR REPLACE TEMPORARY TABLE turtle (a VARCHAR(6)) CHARACTER SET utf8mb4").unwrap();
        session.run(&format!("INSERT INTO turtle VALUES ('{TEXT}')")).unwrap();
        let insert = session.prepare("INSERT INTO turtle VALUES (?)").unwrap();
        fetch(&mut session, insert, &[Param::Text(TEXT.as_bytes())], 0).unwrap();
        let select = session.prepare("SELECT CONCAT(CHAR_LENGTH(a), ',', LENGTH(a)), a FROM turtle").unwrap();
        let (_, rows) = fetch(&mut session, select, &[], 2).unwrap();
        assert_eq!(rows, [[&b"6,12"[..], TEXT.as_bytes()], [&b"6,12"[..], TEXT.as_bytes()]], "text: {text}");
    }
}

#[test]
#[needs(MariaDb, Openssl)]
fn every_authentication_method_requires_the_password() {
    let server = Server::shared();
    let mut admin = server.admin();
    for (user, identified) in [
        ("native", "VIA mysql_native_password USING PASSWORD('sesame')"),
        ("ed", "VIA ed25519 USING PASSWORD('sesame')"),
        ("either", "VIA ed25519 USING PASSWORD('other') OR mysql_native_password USING PASSWORD('sesame')"),
    ] {
        for host in ["localhost", "127.0.0.1"] {
            admin.query(&format!("CREATE OR REPLACE USER {user}@'{host}' IDENTIFIED {identified}")).unwrap();
        }
        for address in [server.socket(), server.tcp()] {
            for tls in [Tls::Off, Tls::Required] {
                let target = Target { tls, ..server.target(user, "sesame", address.clone()) };
                let mut entered = Admin::connect(&target, TIMEOUT).unwrap();
                let who = entered.query("SELECT CURRENT_USER()").unwrap();
                assert!(who.rows[0][0].as_ref().unwrap().starts_with(user));
                for password in ["", "guess"] {
                    let refused =
                        refusal(&Target { password: rumba_protocol_mysql::Secret::new(password), ..target.clone() });
                    let words = refused.to_string();
                    assert!(words.contains("server error 1045 (28000)"), "{user}: {words}");
                    assert!(words.ends_with("check the user's name, its host part, and the password"), "{words}");
                }
            }
        }
    }
}

#[test]
#[needs(MariaDb, Openssl)]
fn a_missing_schema_is_named_with_its_remedy() {
    let server = Server::shared();
    let refused = refusal(&Target { database: Some("nowhere".into()), ..server.test() }).to_string();
    assert!(refused.contains("1049") && refused.contains("'nowhere'") && refused.contains("create the schema"));
}

#[test]
#[needs(MariaDb, Openssl)]
fn a_certificate_of_another_name_or_authority_is_refused() {
    let server = Server::start(&["--bind-address=127.0.0.2"]);
    let target = Target {
        address: Address::Tcp { host: "127.0.0.2".into(), port: server.port },
        tls: Tls::Verified { ca: Some(server.ca()) },
        ..server.test()
    };
    let error = refusal(&target);
    assert!(matches!(error, WireError::Tls(_)), "{error:?}");
    assert!(error.to_string().contains("connect by the name that the certificate is for"), "{error}");
    // With an authority alone, the host name is not checked.
    server.admin().query("CREATE USER any@'%'").unwrap();
    let any = |ca| Target { user: "any".into(), database: None, tls: Tls::Signed { ca }, ..target.clone() };
    Admin::connect(&any(Some(server.ca())), TIMEOUT).unwrap();
    for (file, remedy) in
        [("outsider.pem", "the authority that signed"), ("names", "no certificate in it"), ("missing", "missing: ")]
    {
        let error = refusal(&any(Some(server.ca().with_file_name(file))));
        assert!(matches!(error, WireError::Tls(_)) && error.to_string().contains(remedy), "{error:?}");
    }
}

#[test]
#[needs(MariaDb, Openssl)]
fn client_certificate_is_sent_when_the_server_requires_it() {
    let server = Server::shared();
    server.admin().query("CREATE OR REPLACE USER shown@'127.0.0.1' REQUIRE X509").unwrap();
    let how = Tls::Verified { ca: Some(server.ca()) };
    let target = |tls| Target { tls, ..server.target("shown", "", server.tcp()) };
    assert!(refusal(&target(how.clone())).to_string().contains("denied"), "a login without one is refused");
    let file = |name: &str| server.ca().with_file_name(name);
    let own = |certificate: &str, key: &str| {
        target(Tls::Identified(Box::new(Identified {
            how: how.clone(),
            certificate: file(certificate),
            key: file(key),
        })))
    };
    Admin::connect(&own("server.pem", "server.key"), TIMEOUT).unwrap();
    Admin::connect(&own("old.pem", "old.key"), TIMEOUT).unwrap();
    for (certificate, key, words) in [
        ("nowhere.pem", "server.key", "a PEM file of your certificate"),
        ("server.pem", "nowhere.pem", "your certificate's private key"),
    ] {
        let error = refusal(&own(certificate, key));
        assert!(error.to_string().contains(words), "{error}");
    }
}

/// `openssl x509 -req` makes certificates of X.509 version 1, and the client refused them although it verified nothing.
#[test]
#[needs(MariaDb, Openssl)]
fn unverified_tls_accepts_any_version_and_key() {
    for (certificate, refused) in [("old", ["X.509 version 1", "-extfile"]), ("curved", ["P-384", "the server's log"])]
    {
        let server = Server::start_as(certificate, &[]);
        server.admin().query("CREATE USER tcp@'127.0.0.1'").unwrap();
        let target = |tls| Target { tls, ..server.target("tcp", "", server.tcp()) };
        for tls in [Tls::Required, Tls::Preferred] {
            let mut admin = Admin::connect(&target(tls), TIMEOUT).unwrap();
            let rows = admin.query("SHOW STATUS LIKE 'Ssl_cipher'").unwrap().rows;
            assert_ne!(rows[0][1].as_deref(), Some(""), "{certificate}");
        }
        let ca = Some(server.ca());
        for tls in [Tls::Signed { ca: ca.clone() }, Tls::Verified { ca: ca.clone() }] {
            let error = refusal(&target(tls));
            assert!(matches!(error, WireError::Tls(_)), "{certificate}: {error:?}");
            assert!(refused.iter().all(|words| error.to_string().contains(words)), "{certificate}: {error}");
        }
    }
}

#[test]
fn a_server_without_tls_is_named_as_that() {
    let server = NullServer::start(&Config::new(Listen::Port(0))).unwrap();
    let port = server.place().rsplit(':').next().unwrap().parse().unwrap();
    let error = refusal(&Target { tls: Tls::Required, ..no_user(Address::Tcp { host: "127.0.0.1".into(), port }) });
    assert!(matches!(&error, WireError::Tls(why) if why.contains("does not offer TLS")), "{error:?}");
}

fn no_user(address: Address) -> Target {
    Target { address, user: "root".into(), password: Default::default(), database: None, tls: Tls::Off }
}

/// A session reported a server that is not there as 2013, a connection lost in a statement.
#[test]
fn unreachable_servers_have_the_client_librarys_numbers() {
    let dir = tempfile::tempdir().unwrap();
    let missing = dir.path().join("missing");
    let port = std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap().local_addr().unwrap().port();
    let tcp = |host: &str| Address::Tcp { host: host.to_owned(), port };
    let path = missing.display();
    let in_socket =
        format!("Can't connect to local server through socket '{path}' (2); connecting to {path}: No such file");
    let refused =
        format!("Can't connect to server on '127.0.0.1' (111); connecting to 127.0.0.1:{port}: Connection refused");
    for (address, number, words) in [
        (Address::Socket(missing), 2002, in_socket.as_str()),
        (tcp("127.0.0.1"), 2002, refused.as_str()),
        (tcp("no-such-host.invalid"), 2005, "Unknown server host 'no-such-host.invalid'; "),
    ] {
        let error = WireSession::connect(&no_user(address), &SessionOptions::default()).err().unwrap();
        assert_eq!(error.code(), ErrorCode::of_server(number, *b"HY000"), "{error}");
        assert!(UNREACHABLE.contains(&number));
        let EngineError::Refused(refusal) = &error else { panic!("{error}") };
        assert!(refusal.words.starts_with(words), "{}", refusal.words);
    }
}

/// Serves one connection on a socket in this directory by sending `piece` again and again, until the client has gone.
fn endless(dir: &std::path::Path, piece: Vec<u8>) -> Address {
    let socket = dir.join("s");
    let listener = UnixListener::bind(&socket).unwrap();
    std::thread::spawn(move || {
        let (mut client, _) = listener.accept().unwrap();
        while client.write_all(&piece).is_ok() {}
    });
    Address::Socket(socket)
}

/// A greeting of endless frames filled the memory.
#[test]
fn a_greeting_without_an_end_is_refused() {
    for frame in [vec![0xff, 0xff, 0xff, 0], vec![0, 0, 2, 0]] {
        let dir = tempfile::tempdir().unwrap();
        let mut piece = frame;
        piece.resize(1 << 16, 10);
        let error = refusal(&no_user(endless(dir.path(), piece)));
        assert!(matches!(error, WireError::Protocol(_)), "{error:?}");
        assert!(error.to_string().contains("more than the 64 KiB that are accepted"), "{error}");
    }
}

#[test]
fn silent_server_is_named_with_the_stage() {
    let dir = tempfile::tempdir().unwrap();
    let socket = dir.path().join("s");
    let _listener = UnixListener::bind(&socket).unwrap();
    let silent = no_user(Address::Socket(socket.clone()));
    let error = Admin::connect(&silent, Duration::from_millis(200)).err().unwrap().to_string();
    let expected = format!("waiting for the greeting of {}: no answer within ", socket.display());
    assert!(error.starts_with(&expected), "{error}");
}
