//! The environment of libpq, PostgreSQL's client library: its variables, service files and password files. A program
//! that replaces one with libpq follows it.
//!
//! The order of precedence is libpq's: an explicit option, the service, the variable, the default.
//!
//! Source: the sections "Environment Variables", "The Connection Service File" and "The Password File" of PostgreSQL's
//! documentation.

mod password_file;
mod service;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use rumba_transport::Address;

use crate::PgError;

pub use password_file::password_in;

/// The settings by their keywords in a service file, with their variables.
const SETTINGS: [(&str, &str); 15] = [
    ("host", "PGHOST"),
    ("hostaddr", "PGHOSTADDR"),
    ("port", "PGPORT"),
    ("dbname", "PGDATABASE"),
    ("user", "PGUSER"),
    ("password", "PGPASSWORD"),
    ("passfile", "PGPASSFILE"),
    ("sslmode", "PGSSLMODE"),
    ("sslrootcert", "PGSSLROOTCERT"),
    ("sslcert", "PGSSLCERT"),
    ("sslkey", "PGSSLKEY"),
    ("options", "PGOPTIONS"),
    ("application_name", "PGAPPNAME"),
    ("client_encoding", "PGCLIENTENCODING"),
    // A service file only. libpq uses it if nothing else sets the name.
    ("fallback_application_name", ""),
];

/// The settings that libpq sends in its first message.
const OF_STARTUP: [&str; 3] = ["options", "application_name", "client_encoding"];

/// Variables that libpq sends in its first message under these names. They are no keywords of a service file.
const SESSION_VARIABLES: [(&str, &str); 3] = [("datestyle", "PGDATESTYLE"), ("timezone", "PGTZ"), ("geqo", "PGGEQO")];

/// Settings that this client does not have, with their variables, and the values for which it acts as requested.
const UNSUPPORTED: [(&str, &str, &[&str]); 12] = [
    ("target_session_attrs", "PGTARGETSESSIONATTRS", &["any"]),
    ("load_balance_hosts", "PGLOADBALANCEHOSTS", &["disable"]),
    ("channel_binding", "PGCHANNELBINDING", &["prefer", "disable"]),
    ("gssencmode", "PGGSSENCMODE", &["prefer", "disable"]),
    ("require_auth", "PGREQUIREAUTH", &[]),
    ("requirepeer", "PGREQUIREPEER", &[]),
    ("requiressl", "PGREQUIRESSL", &["0"]),
    ("sslcrl", "PGSSLCRL", &[]),
    ("sslcrldir", "PGSSLCRLDIR", &[]),
    ("sslnegotiation", "PGSSLNEGOTIATION", &["postgres"]),
    ("ssl_min_protocol_version", "PGSSLMINPROTOCOLVERSION", &["TLSv1", "TLSv1.1", "TLSv1.2"]),
    ("ssl_max_protocol_version", "PGSSLMAXPROTOCOLVERSION", &["TLSv1.3"]),
];

/// The directories in which packages and PostgreSQL's own build put a server's socket.
const SOCKET_DIRECTORIES: [&str; 3] = ["/var/run/postgresql", "/run/postgresql", "/tmp"];
/// The host that a password file names for a socket in one of these directories.
const LOCAL: &str = "localhost";
/// The port if none is named.
const USUAL_PORT: &str = "5432";

/// The settings from libpq's environment variables.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Environment {
    /// Settings by their keywords, none empty.
    values: BTreeMap<&'static str, String>,
    /// Variables that only apply to a session.
    session: Vec<(&'static str, String)>,
    /// The user's home directory.
    home: Option<PathBuf>,
}

/// A server, as a list of hosts names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Server {
    /// The address to connect to.
    pub address: Address,
    /// The host in a password file.
    host: String,
    /// The port in a password file.
    port: u16,
}

impl Environment {
    /// The environment of this process.
    pub fn of_process() -> Result<Self, PgError> {
        Self::read(&|name| Some(std::env::var_os(name)?.to_string_lossy().into_owned()))
    }

    /// Reads the environment from these variables.
    ///
    /// # Errors
    /// A service that is not defined; a setting that this client cannot follow.
    pub fn read(variable: &dyn Fn(&str) -> Option<String>) -> Result<Self, PgError> {
        let variable = |name: &str| variable(name).filter(|value| !value.is_empty());
        let home = variable("HOME").map(PathBuf::from);
        let service = match variable("PGSERVICE") {
            Some(name) => service::find(&name, &service_files(&variable, home.as_deref()))?,
            None => BTreeMap::new(),
        };
        for (keyword, name, harmless) in UNSUPPORTED {
            let found = service.get(keyword).cloned().or_else(|| variable(name));
            if let Some(value) = found.filter(|value| !harmless.contains(&value.as_str())) {
                return Err(PgError::Unable(format!(
                    "{name} (`{keyword}` in a service file) is `{value}`, which rumba does not support; unset it"
                )));
            }
        }
        let value = |(keyword, name): (&'static str, &str)| {
            let value = service.get(keyword).cloned().or_else(|| variable(name))?;
            Some((keyword, value))
        };
        let values: BTreeMap<&'static str, String> = SETTINGS.into_iter().filter_map(value).collect();
        if values.get("client_encoding").is_some_and(|name| name == "auto") {
            let problem = "PGCLIENTENCODING is `auto`, which rumba does not support; name the encoding, such as UTF8";
            return Err(PgError::Unable(problem.into()));
        }
        let sent = |(parameter, name): (&'static str, &str)| {
            // libpq does not send this word, so that the server's own value applies.
            let value = variable(name).filter(|value| !value.eq_ignore_ascii_case("default"))?;
            Some((parameter, value))
        };
        Ok(Self { values, session: SESSION_VARIABLES.into_iter().filter_map(sent).collect(), home })
    }

    /// The value of a setting, by its keyword in a service file, such as `dbname`.
    pub fn value(&self, keyword: &str) -> Option<&str> {
        self.values.get(keyword).map(String::as_str)
    }

    /// The parameters of a session's first message.
    pub fn startup(&self) -> Vec<(&'static str, String)> {
        let name = "application_name";
        let fallback = self.value("fallback_application_name").filter(|_| self.value(name).is_none());
        let settings = OF_STARTUP.into_iter().filter_map(|keyword| Some((keyword, self.value(keyword)?.to_owned())));
        let settings = settings.chain(fallback.map(|value| (name, value.to_owned())));
        settings.chain(self.session.iter().cloned()).collect()
    }

    /// The servers of a list of hosts, to be tried in turn. Without a host it is the socket of a server on this host.
    ///
    /// # Errors
    /// A port that is no number; lists of different lengths.
    pub fn servers(&self, hosts: Option<&str>, ports: Option<&str>) -> Result<Vec<Server>, PgError> {
        let ports = ports.unwrap_or(USUAL_PORT).split(',').map(port).collect::<Result<Vec<u16>, PgError>>()?;
        let hosts: Vec<&str> = hosts.map_or_else(Vec::new, |hosts| hosts.split(',').collect());
        let addresses: Vec<&str> = self.value("hostaddr").map_or_else(Vec::new, |list| list.split(',').collect());
        let count = hosts.len().max(addresses.len()).max(1);
        let fits = |length: usize| length == 0 || length == count;
        let are_whole = fits(hosts.len()) && fits(addresses.len()) && [1, count].contains(&ports.len());
        if !are_whole {
            return Err(PgError::Unable(format!(
                "{} hosts, {} addresses of PGHOSTADDR and {} ports do not match; give as many of each, or one port for \
                 all hosts",
                hosts.len(),
                addresses.len(),
                ports.len()
            )));
        }
        let nth = |at: usize| {
            let port = if ports.len() == 1 { ports[0] } else { ports[at] };
            let host = hosts.get(at).copied().filter(|host| !host.is_empty());
            server(host, addresses.get(at).copied(), port)
        };
        Ok((0..count).map(nth).collect())
    }

    /// The password for a server: from the environment, or from the password file.
    pub fn password(&self, server: &Server, database: &str, user: &str) -> Option<String> {
        if let Some(password) = self.value("password") {
            return Some(password.to_owned());
        }
        let named = self.value("passfile").map(PathBuf::from);
        let path = named.or_else(|| Some(self.home.as_ref()?.join(".pgpass")))?;
        // As for libpq, a missing file is no error, because the server may not ask for a password.
        let text = std::fs::read_to_string(path).ok()?;
        password_in(&text, &[&server.host, &server.port.to_string(), database, user])
    }

    /// The file of authorities for certificates. `None` means those of the system.
    pub fn authorities(&self) -> Option<PathBuf> {
        match self.value("sslrootcert") {
            Some("system") => None,
            Some(named) => Some(named.into()),
            None => Some(self.home.as_ref()?.join(".postgresql/root.crt")).filter(|file| file.is_file()),
        }
    }
}

/// The files that may define a service, in the order in which libpq reads them.
fn service_files(variable: &dyn Fn(&str) -> Option<String>, home: Option<&Path>) -> Vec<PathBuf> {
    let own = variable("PGSERVICEFILE").map(PathBuf::from);
    let own = own.or_else(|| Some(home?.join(".pg_service.conf")));
    // The default is that of Debian's packages.
    let of_system = variable("PGSYSCONFDIR").unwrap_or_else(|| "/etc/postgresql-common".to_owned());
    own.into_iter().chain([Path::new(&of_system).join("pg_service.conf")]).collect()
}

fn port(text: &str) -> Result<u16, PgError> {
    let text = if text.is_empty() { USUAL_PORT } else { text.trim() };
    text.parse().ok().filter(|&port: &u16| port > 0).ok_or_else(|| {
        PgError::Unable(format!("invalid port `{text}` (--pgsql-port or PGPORT); expected a number such as 5432"))
    })
}

/// The server of a host, or of a numeric address that precedes it.
fn server(host: Option<&str>, address: Option<&str>, port: u16) -> Server {
    if let Some(address) = address.filter(|address| !address.is_empty()) {
        let name = host.unwrap_or(address).to_owned();
        return Server { address: Address::Tcp { host: address.to_owned(), port }, host: name, port };
    }
    let socket = |directory: &str| Path::new(directory).join(format!(".s.PGSQL.{port}"));
    let usual = || SOCKET_DIRECTORIES.into_iter().find(|directory| socket(directory).exists());
    match host.or_else(usual) {
        Some(directory) if directory.starts_with('/') => {
            let is_usual = SOCKET_DIRECTORIES.contains(&directory);
            let host = if is_usual { LOCAL } else { directory };
            Server { address: Address::Socket(socket(directory)), host: host.to_owned(), port }
        }
        host => {
            let host = host.unwrap_or(LOCAL).to_owned();
            Server { address: Address::Tcp { host: host.clone(), port }, host, port }
        }
    }
}

#[cfg(test)]
mod tests;
