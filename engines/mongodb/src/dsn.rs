//! A server that the user brings, named by a DSN: `mongodb://user@host:27017/database?tls=verified&ca=/path` or
//! `mongodb:///database?socket=/path`.
//!
//! Its password comes from the environment.

use std::env;

use rumba_core::setting::SettingError;
use rumba_protocol_mongodb::{Address, Secret, Target};
use rumba_server_kit::dsn::{Dsn, Form};

const PASSWORD: &str = "RUMBA_MONGODB_PASSWORD";
/// The database that knows the user, if it is not `admin`.
const SOURCE: &str = "RUMBA_MONGODB_AUTH_SOURCE";
const USUAL_PORT: u16 = 27017;

/// How these servers' DSNs are written.
pub const FORM: Form = Form {
    schemes: &["mongodb://"],
    example: "mongodb://user@host:27017/database or mongodb:///database?socket=/path/of/its/socket",
    password_remedy: "give it in the environment variable RUMBA_MONGODB_PASSWORD",
    file: None,
};

/// Where to connect and as whom, with the password from where it is kept.
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
    fn a_server_is_named_by_its_address_or_its_socket() {
        let target = target(&FORM.parse("mongodb://host/lab").unwrap()).unwrap();
        assert_eq!(target.address, Address::Tcp { host: "host".into(), port: USUAL_PORT });
        let socket = FORM.parse("mongodb:///lab?socket=/run/mongodb-27017.sock").unwrap();
        assert_eq!(super::target(&socket).unwrap().address, Address::Socket("/run/mongodb-27017.sock".into()));
        let error = FORM.parse("mongodb://me:hunter2@host/x").unwrap_err();
        assert!(error.remedy.contains(PASSWORD) && !format!("{error:?}").contains("hunter2"), "{error:?}");
    }
}
