//! Successful and refused logins: every authentication method, with and without encryption.

use crate::support::{Server, TIMEOUT};
use rumba_protocol_mysql::{Address, Admin, Identified, Target, Tls, WireError};

fn refusal(target: &Target) -> WireError {
    match Admin::connect(target, TIMEOUT) {
        Ok(_) => panic!("let in"),
        Err(error) => error,
    }
}

#[test]
#[needs(MariaDb, Openssl)]
fn rows_come_as_text_and_null_is_told_from_empty() {
    let server = Server::shared();
    let mut admin = server.admin();
    let rows = admin.query("SELECT 1 AS a, NULL AS b, '' AS c, 'ä€𝄞' AS d UNION ALL SELECT 2, 'x', 'y', 'z'").unwrap();
    assert_eq!(rows.columns, ["a", "b", "c", "d"]);
    let text = |text: &str| Some(text.to_owned());
    assert_eq!(rows.rows[0], [text("1"), None, text(""), text("ä€𝄞")]);
    assert_eq!(rows.rows[1], [text("2"), text("x"), text("y"), text("z")]);
    assert!(admin.server_version().contains("MariaDB"), "{}", admin.server_version());
    assert_eq!(admin.query("SET @a = 1; SELECT @a; SELECT 2").unwrap().rows, [[text("1")]]);
    assert_eq!(admin.query("SELECT REPEAT('x', 20000000)").unwrap().rows[0][0].as_ref().unwrap().len(), 20_000_000);
}

#[test]
#[needs(MariaDb, Openssl)]
fn a_refused_statement_leaves_the_connection_usable() {
    let server = Server::shared();
    let mut admin = server.admin();
    let error = admin.query("SELECT nonsense FROM nowhere.at_all").unwrap_err().to_string();
    assert!(error.starts_with("server error 1146 (42S02): "), "{error}");
    assert_eq!(admin.query("SELECT 1").unwrap().rows.len(), 1);
}

#[test]
#[needs(MariaDb, Openssl)]
fn an_answer_that_takes_too_long_is_given_up() {
    let server = Server::shared();
    let mut admin = server.admin();
    admin.set_timeout(Some(std::time::Duration::from_millis(50)));
    assert!(matches!(admin.query("SELECT SLEEP(60)"), Err(WireError::Io { .. })));
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
fn a_connection_is_encrypted_when_asked() {
    let server = Server::shared();
    server.admin().query("CREATE OR REPLACE USER tcp@'127.0.0.1'").unwrap();
    let target = server.target("tcp", "", server.tcp());
    let cipher = |tls: Tls| {
        let mut admin = Admin::connect(&Target { tls, ..target.clone() }, TIMEOUT).unwrap();
        let rows = admin.query("SHOW STATUS LIKE 'Ssl_cipher'").unwrap();
        rows.rows[0][1].clone().unwrap()
    };
    assert_eq!(cipher(Tls::Off), "");
    assert_ne!(cipher(Tls::Required), "");
    assert_ne!(cipher(Tls::Preferred), "", "it is offered");
    let local = Target { tls: Tls::Preferred, ..server.test() };
    let told = Admin::connect(&local, TIMEOUT).unwrap().query("SHOW STATUS LIKE 'Ssl_cipher'").unwrap();
    assert_eq!(told.rows[0][1].as_deref(), Some(""), "not over a socket");
    assert_ne!(cipher(Tls::Verified { ca: Some(server.ca()) }), "");
}

#[test]
#[needs(MariaDb, Openssl)]
fn an_untrusted_certificate_is_refused_with_a_remedy() {
    let server = Server::shared();
    let verified = |ca| Target { tls: Tls::Verified { ca }, ..server.target("root", "", server.tcp()) };
    let stranger = server.ca().with_file_name("stranger.pem");
    let cases = [
        (verified(Some(stranger)), "the authority that signed"),
        (verified(Some(server.ca().with_file_name("names"))), "no certificate in it"),
        (verified(Some(server.ca().with_file_name("missing"))), "missing: "),
        (
            Target {
                address: Address::Tcp { host: "127.0.0.2".into(), port: server.port },
                ..verified(Some(server.ca()))
            },
            "",
        ),
    ];
    for (target, remedy) in cases {
        let error = refusal(&target);
        assert!(error.to_string().contains(remedy), "{error}");
        assert!(matches!(error, WireError::Tls(_)) || remedy.is_empty(), "{error:?}");
    }
}

#[test]
#[needs(MariaDb, Openssl)]
fn a_certificate_for_another_name_is_refused() {
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
    let error = refusal(&any(Some(server.ca().with_file_name("stranger.pem"))));
    assert!(error.to_string().contains("the authority that signed"), "{error}");
}

#[test]
#[needs(MariaDb, Openssl)]
fn a_server_that_asks_for_a_certificate_is_shown_it() {
    let server = Server::shared();
    server.admin().query("CREATE OR REPLACE USER shown@'127.0.0.1' REQUIRE X509").unwrap();
    let how = Tls::Verified { ca: Some(server.ca()) };
    let target = |tls| Target { tls, ..server.target("shown", "", server.tcp()) };
    assert!(refusal(&target(how.clone())).to_string().contains("denied"), "nobody is let in without one");
    let file = |name: &str| server.ca().with_file_name(name);
    let own = |certificate: &str, key: &str| {
        target(Tls::Identified(Box::new(Identified {
            how: how.clone(),
            certificate: file(certificate),
            key: file(key),
        })))
    };
    Admin::connect(&own("server.pem", "server.key"), TIMEOUT).unwrap();
    for (certificate, key, words) in [
        ("nowhere.pem", "server.key", "a PEM file of your certificate"),
        ("server.pem", "nowhere.pem", "your certificate's private key"),
    ] {
        let error = refusal(&own(certificate, key));
        assert!(error.to_string().contains(words), "{error}");
    }
}

#[test]
#[needs(MariaDb, Openssl)]
fn a_server_without_tls_is_named_as_that() {
    let server = Server::start(&["--skip-ssl"]);
    let error = refusal(&Target { tls: Tls::Required, ..server.target("root", "", server.tcp()) });
    assert!(matches!(&error, WireError::Tls(why) if why.contains("does not offer TLS")), "{error:?}");
}

#[test]
fn nobody_there_is_named_with_the_address() {
    let dir = tempfile::tempdir().unwrap();
    let target =
        |address| Target { address, user: "root".into(), password: Default::default(), database: None, tls: Tls::Off };
    let missing = dir.path().join("missing");
    let error = refusal(&target(Address::Socket(missing.clone()))).to_string();
    assert!(error.starts_with(&format!("connecting to {}: No such file", missing.display())), "{error}");
    let port = std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap().local_addr().unwrap().port();
    let error = refusal(&target(Address::Tcp { host: "127.0.0.1".into(), port })).to_string();
    assert!(error.starts_with(&format!("connecting to 127.0.0.1:{port}: Connection refused")), "{error}");
}
