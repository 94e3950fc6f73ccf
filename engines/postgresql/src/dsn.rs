//! An existing server, named by a DSN: `postgresql://user@host:5432/database?tls=verified&ca=/path` or
//! `postgresql://user@/database?socket=/directory`.
//!
//! The password comes from the environment or from a password file.

use std::path::{Path, PathBuf};
use std::{env, fs};

use rumba_engine_api::setting::SettingError;
use rumba_protocol_postgresql::libpq::password_in;
use rumba_protocol_postgresql::{Address, Secret, Target};
use rumba_server_kit::dsn::{Dsn, Form, wrong};

const PASSWORDS: [&str; 2] = ["RUMBA_POSTGRESQL_PASSWORD", "PGPASSWORD"];
const USUAL_PORT: u16 = 5432;

/// The syntax of these servers' DSNs.
pub const FORM: Form = Form {
    schemes: &["postgresql://", "postgres://"],
    example: "postgresql://user@host:5432/database or postgresql://user@/database?socket=/directory/of/its/socket",
    password_remedy: "give it in the environment variable RUMBA_POSTGRESQL_PASSWORD (or PGPASSWORD), or in a password \
        file (~/.pgpass, or named with ?passfile=/path)",
    file: Some("passfile"),
};

/// Returns the address and user to connect with, and the password from its source.
///
/// # Errors
/// A password file that cannot be read; no user name.
pub fn target(dsn: &Dsn) -> Result<Target, SettingError> {
    let user = dsn.user.clone().ok_or_else(|| wrong("it names no user", FORM.like()))?;
    let port = dsn.port.unwrap_or(USUAL_PORT);
    let host = dsn.host.clone().unwrap_or_else(|| "127.0.0.1".to_owned());
    let (address, place) = match &dsn.socket {
        Some(socket) => (Address::Socket(socket_at(socket, port)), "localhost".to_owned()),
        None => (Address::Tcp { host: host.clone(), port }, host),
    };
    let in_environment = PASSWORDS.iter().find_map(|name| env::var(name).ok());
    let password = match in_environment {
        Some(password) => Some(password),
        None => in_file(dsn.file.as_deref(), &[&place, &port.to_string(), &dsn.database, &user])?,
    };
    let password = Secret::new(password.unwrap_or_default());
    Ok(Target { address, user, password, database: Some(dsn.database.clone()), tls: dsn.tls.clone() })
}

/// The path of the socket, because users of these servers name its directory.
fn socket_at(place: &Path, port: u16) -> PathBuf {
    if place.is_dir() { place.join(format!(".s.PGSQL.{port}")) } else { place.to_owned() }
}

fn in_file(named: Option<&Path>, who: &[&str; 4]) -> Result<Option<String>, SettingError> {
    let home = || Some(PathBuf::from(env::var_os("HOME")?).join(".pgpass"));
    let usual = || env::var_os("PGPASSFILE").map(PathBuf::from).or_else(home);
    let Some(path) = named.map(Path::to_owned).or_else(usual) else { return Ok(None) };
    match fs::read_to_string(&path) {
        Ok(text) => Ok(password_in(&text, who)),
        // The default password file is optional.
        Err(_) if named.is_none() => Ok(None),
        Err(error) => {
            let problem = format!("its password file {} cannot be read: {error}", path.display());
            Err(wrong(problem, "name a file of lines host:port:database:user:password that this user may read"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_socket_is_named_by_its_directory_or_itself() {
        assert_eq!(socket_at(Path::new("/"), 5433), Path::new("/.s.PGSQL.5433"));
        assert_eq!(socket_at(Path::new("/no/such/socket"), 1), Path::new("/no/such/socket"));
    }
}
