//! An existing server, named by a DSN: `mongodb://user@host:27017/database?tls=verified&ca=/path` or
//! `mongodb:///database?socket=/path`.
//!
//! The password comes from the environment.

use std::env;

use rumba_engine_api::setting::SettingError;
use rumba_protocol_mongodb::{Address, Secret, Target};
use rumba_server_kit::dsn::{Dsn, Form};

const PASSWORD: &str = "RUMBA_MONGODB_PASSWORD";
/// The authentication database, if it is not `admin`.
const SOURCE: &str = "RUMBA_MONGODB_AUTH_SOURCE";
const USUAL_PORT: u16 = 27017;

/// The syntax of these servers' DSNs.
pub const FORM: Form = Form {
    schemes: &["mongodb://"],
    example: "mongodb://user@host:27017/database or mongodb:///database?socket=/path/of/its/socket",
    password_remedy: "give it in the environment variable RUMBA_MONGODB_PASSWORD",
    file: None,
};

/// The server's own databases, for users, settings and replication.
const OF_SERVER: [&str; 3] = ["admin", "config", "local"];

/// Parses a DSN.
///
/// # Errors
/// The mistake in the DSN. The server's own databases are refused for two reasons. Drivers take a name at that place
/// for the authentication database, and its contents do not look like user data.
pub fn parse(text: &str) -> Result<Dsn, SettingError> {
    let dsn = FORM.parse(text)?;
    if !OF_SERVER.contains(&dsn.database.as_str()) {
        return Ok(dsn);
    }
    let problem = format!("the database {} is the server's own, and rumba would fill and empty it", dsn.database);
    let remedy = format!("name the database to use; if another database than admin holds the user, set {SOURCE}");
    Err(SettingError::new("server", problem, remedy))
}

/// Returns the address and user to connect with, and the password from the environment.
///
/// # Errors
/// A user without a password.
pub fn target(dsn: &Dsn) -> Result<Target, SettingError> {
    let address = match &dsn.socket {
        Some(socket) => Address::Socket(socket.clone()),
        None => {
            let host = dsn.host.clone().unwrap_or_else(|| "127.0.0.1".to_owned());
            Address::Tcp { host, port: dsn.port.unwrap_or(USUAL_PORT) }
        }
    };
    let password = env::var(PASSWORD).unwrap_or_default();
    if dsn.user.is_some() && password.is_empty() {
        return Err(SettingError::new("server", "its user has no password here", FORM.password_remedy));
    }
    Ok(Target {
        address,
        user: dsn.user.clone().unwrap_or_default(),
        password: Secret::new(password),
        database: env::var(SOURCE).ok(),
        tls: dsn.tls.clone(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_database_of_the_servers_own_is_never_worked_in() {
        for name in OF_SERVER {
            let error = parse(&format!("mongodb://me@host/{name}")).unwrap_err();
            assert!(error.problem.contains(name) && error.remedy.contains(SOURCE), "{error:?}");
        }
        assert_eq!(parse("mongodb://me@host/lab").unwrap().database, "lab");
        assert_eq!(parse("mongodb://me@host").unwrap().database, "rumba");
    }

    #[test]
    fn a_server_is_named_by_its_address_or_its_socket() {
        let target = target(&FORM.parse("mongodb://host/lab").unwrap()).unwrap();
        assert_eq!(target.address, Address::Tcp { host: "host".into(), port: USUAL_PORT });
        let socket = FORM.parse("mongodb:///lab?socket=/run/mongodb-27017.sock").unwrap();
        assert_eq!(super::target(&socket).unwrap().address, Address::Socket("/run/mongodb-27017.sock".into()));
    }
}
