use super::*;

fn read(variables: &[(&str, &str)]) -> Result<Environment, PgError> {
    let variables: BTreeMap<String, String> =
        variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    Environment::read(&|name| variables.get(name).cloned())
}

fn pair(name: &'static str, value: &str) -> (&'static str, String) {
    (name, value.to_owned())
}

/// `PGOPTIONS=-c search_path=s2` was ignored, so other tables were measured.
#[test]
fn session_variables_are_sent_at_startup() {
    let environment = read(&[
        ("PGOPTIONS", "-c synchronous_commit=off -c search_path=s2"),
        ("PGAPPNAME", "mine"),
        ("PGCLIENTENCODING", "LATIN1"),
        ("PGTZ", "UTC"),
        ("PGDATESTYLE", "default"),
        ("PGGEQO", ""),
    ]);
    let expected = [
        pair("options", "-c synchronous_commit=off -c search_path=s2"),
        pair("application_name", "mine"),
        pair("client_encoding", "LATIN1"),
        pair("timezone", "UTC"),
    ];
    assert_eq!(environment.unwrap().startup(), expected);
    assert!(read(&[]).unwrap().startup().is_empty());
}

#[test]
fn a_service_precedes_the_variables() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("services");
    std::fs::write(&file, "[lab]\nhost=db1,db2\nuser=they\nfallback_application_name=fall\n").unwrap();
    let file = file.to_str().unwrap();
    let variables = [("PGSERVICE", "lab"), ("PGSERVICEFILE", file), ("PGHOST", "other"), ("PGDATABASE", "d")];
    let environment = read(&variables).unwrap();
    let values = ["host", "user", "dbname", "port"].map(|keyword| environment.value(keyword));
    assert_eq!(values, [Some("db1,db2"), Some("they"), Some("d"), None]);
    assert_eq!(environment.startup(), [pair("application_name", "fall")]);
    let error = read(&[("PGSERVICE", "none"), ("PGSERVICEFILE", file)]).unwrap_err().to_string();
    assert!(error.contains("service none"), "{error}");
}

#[test]
fn a_setting_that_cannot_be_followed_is_refused() {
    for (name, value) in [
        ("PGTARGETSESSIONATTRS", "read-write"),
        ("PGCHANNELBINDING", "require"),
        ("PGSSLMINPROTOCOLVERSION", "TLSv1.3"),
        ("PGCLIENTENCODING", "auto"),
    ] {
        let error = read(&[(name, value)]).unwrap_err().to_string();
        assert!(error.contains(name) && error.contains(value), "{error}");
    }
    assert!(read(&[("PGCHANNELBINDING", "prefer"), ("PGTARGETSESSIONATTRS", "any")]).is_ok());
}

#[test]
fn hosts_and_ports_are_lists_and_a_directory_is_a_socket() {
    let environment = read(&[]).unwrap();
    let tcp = |host: &str, port| Address::Tcp { host: host.to_owned(), port };
    let addresses = |environment: &Environment, hosts, ports| {
        let servers = environment.servers(hosts, ports)?;
        Ok::<_, PgError>(servers.into_iter().map(|server| server.address).collect::<Vec<_>>())
    };
    let found = addresses(&environment, Some("a,/dir"), Some("5432,5433")).unwrap();
    assert_eq!(found, [tcp("a", 5432), Address::Socket("/dir/.s.PGSQL.5433".into())]);
    let found = addresses(&environment, Some("a,b"), Some("7")).unwrap();
    assert_eq!(found, [tcp("a", 7), tcp("b", 7)]);
    assert_eq!(addresses(&environment, Some("a"), None).unwrap(), [tcp("a", 5432)]);
    for (hosts, ports) in [("a,b,c", "1,2"), ("a", "x"), ("a", "70000"), ("a", "0")] {
        assert!(addresses(&environment, Some(hosts), Some(ports)).is_err(), "{hosts} {ports}");
    }
    let numbered = read(&[("PGHOSTADDR", "127.0.0.2")]).unwrap();
    assert_eq!(addresses(&numbered, Some("a"), Some("7")).unwrap(), [tcp("127.0.0.2", 7)]);
}

#[test]
fn password_comes_from_its_variable_or_the_password_file() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join(".pgpass"), "db:5432:lab:me:of-home\n/dir:*:*:*:of-socket\n").unwrap();
    std::fs::write(dir.path().join("other"), "*:*:*:*:of-file\n").unwrap();
    let (home, other) = (dir.path().to_str().unwrap(), dir.path().join("other"));
    let password = |variables: &[(&str, &str)], host: &str| {
        let environment = read(variables).unwrap();
        let server = environment.servers(Some(host), None).unwrap().remove(0);
        environment.password(&server, "lab", "me")
    };
    assert_eq!(password(&[("HOME", home)], "db").as_deref(), Some("of-home"));
    assert_eq!(password(&[("HOME", home)], "/dir").as_deref(), Some("of-socket"));
    assert_eq!(password(&[("HOME", home)], "elsewhere"), None);
    let named = [("HOME", home), ("PGPASSFILE", other.to_str().unwrap())];
    assert_eq!(password(&named, "db").as_deref(), Some("of-file"));
    let all = [named[0], named[1], ("PGPASSWORD", "of-variable")];
    assert_eq!(password(&all, "db").as_deref(), Some("of-variable"));
    assert_eq!(password(&[("HOME", "/no/such"), ("PGPASSFILE", "/no/such/file")], "db"), None);
}
