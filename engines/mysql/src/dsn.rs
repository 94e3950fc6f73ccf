//! A server that the user brings, named by a DSN:
//! `mysql://user@host:3306/schema?tls=verified&ca=/path` or `mysql://user@/schema?socket=/path`.
//!
//! Its password never is in the DSN, which is kept with the results: it comes
//! from the environment or from an option file.

use std::path::{Path, PathBuf};
use std::{env, fs};

use rumba_core::setting::SettingError;
use rumba_protocol_mysql::{Address, Secret, Target, Tls};

/// The schema that is used when the DSN names none.
pub const SCHEMA: &str = "rumba";
const PASSWORDS: [&str; 2] = ["RUMBA_MYSQL_PASSWORD", "MYSQL_PWD"];
const PASSWORD_REMEDY: &str = "give it in the environment variable RUMBA_MYSQL_PASSWORD (or MYSQL_PWD), or in an \
    option file named with ?defaults-file=/path/.my.cnf";
const EXAMPLE: &str = "mysql://user@host:3306/schema or mysql://user@/schema?socket=/path/to/socket";

/// Where a server of the user's is, and who one is to it; without a password.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Dsn {
    user: Option<String>,
    host: Option<String>,
    port: Option<u16>,
    socket: Option<PathBuf>,
    /// The schema.
    pub schema: String,
    tls: Tls,
    defaults_file: Option<PathBuf>,
}

/// Whether a text is meant as a DSN.
pub fn is_dsn(text: &str) -> bool {
    text.contains("://")
}

/// Refuses what looks like a DSN that lacks its scheme, and is no path that is there; without its text, which may hold
/// a password.
///
/// # Errors
/// How a DSN is written.
pub fn refuse_without_scheme(text: &str) -> Result<(), SettingError> {
    let has_login = text.contains('@') && text.contains(['/', '?']);
    if (has_login || text.contains(':')) && !Path::new(text).exists() {
        let remedy = format!("write it like {EXAMPLE}, and without a password: {PASSWORD_REMEDY}");
        return Err(wrong("it looks like a DSN, and a DSN begins with mysql:// or mariadb://", remedy));
    }
    Ok(())
}

fn wrong(problem: impl Into<String>, remedy: impl Into<String>) -> SettingError {
    SettingError::new("server", problem, remedy)
}

impl Dsn {
    /// Reads a DSN.
    ///
    /// # Errors
    /// What is wrong with it; never with its text, which may hold a password.
    pub fn parse(text: &str) -> Result<Self, SettingError> {
        let like = || format!("write it like {EXAMPLE}");
        let rest = text.strip_prefix("mysql://").or_else(|| text.strip_prefix("mariadb://"));
        let rest = rest.ok_or_else(|| wrong("a DSN begins with mysql:// or mariadb://", like()))?;
        let (place, query) = rest.split_once('?').unwrap_or((rest, ""));
        let (authority, schema) = place.split_once('/').unwrap_or((place, ""));
        let (user, address) = authority.rsplit_once('@').map_or((None, authority), |(user, at)| (Some(user), at));
        // A `?` or a `/` in a password ends the part that the user and the host would stand in.
        let is_cut = user.is_none() && rest.contains('@') && split_port(address).is_none();
        if is_cut || user.is_some_and(|user| user.contains(':')) {
            return Err(holds_password());
        }
        let (host, port) = split_port(address).ok_or_else(|| wrong("its port is not a number up to 65535", like()))?;
        let given = |text: &str| (!text.is_empty()).then(|| decode(text));
        let mut dsn = Dsn {
            user: user.and_then(given),
            host: given(host),
            port,
            schema: given(schema).unwrap_or_else(|| SCHEMA.to_owned()),
            ..Dsn::default()
        };
        if dsn.schema.contains(['`', '/', '\0']) {
            return Err(wrong("its schema has a character that a schema cannot have", like()));
        }
        let mut parameters = Parameters::default();
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) =
                pair.split_once('=').ok_or_else(|| wrong("its parameters are not written name=value", like()))?;
            parameters.take(name, decode(value))?;
        }
        dsn.tls = parameters.tls()?;
        (dsn.socket, dsn.defaults_file) = (parameters.socket, parameters.defaults_file);
        if dsn.socket.is_some() && dsn.host.is_some() {
            return Err(wrong("it names both a host and a socket", "name one of them"));
        }
        Ok(dsn)
    }

    /// Where to connect and as whom, with the password from where it is kept.
    ///
    /// # Errors
    /// An option file that cannot be read; a user that nobody names.
    pub fn target(&self) -> Result<Target, SettingError> {
        let file = match &self.defaults_file {
            Some(path) => OptionFile::read(path)?,
            None => OptionFile::default(),
        };
        let user = self.user.clone().or_else(|| file.get("user"));
        let user = user.ok_or_else(|| wrong("it names no user", format!("write it like {EXAMPLE}")))?;
        let in_environment = || PASSWORDS.iter().find_map(|name| env::var(name).ok());
        let password = file.get("password").or_else(in_environment).unwrap_or_default();
        let socket = self.socket.clone().or_else(|| {
            let unnamed = self.host.is_none() && file.get("host").is_none();
            unnamed.then(|| file.get("socket").map(PathBuf::from)).flatten()
        });
        let address = match socket {
            Some(path) => Address::Socket(path),
            None => {
                let host = self.host.clone().or_else(|| file.get("host")).unwrap_or_else(|| "127.0.0.1".to_owned());
                let port = self.port.or_else(|| file.get("port")?.parse().ok()).unwrap_or(3306);
                Address::Tcp { host, port }
            }
        };
        Ok(Target { address, user, password: Secret::new(password), database: None, tls: self.tls.clone() })
    }
}

#[derive(Default)]
struct Parameters {
    tls: Option<String>,
    ca: Option<PathBuf>,
    socket: Option<PathBuf>,
    defaults_file: Option<PathBuf>,
}

impl Parameters {
    fn take(&mut self, name: &str, value: String) -> Result<(), SettingError> {
        match name {
            "tls" => self.tls = Some(value),
            "ca" => self.ca = Some(value.into()),
            "socket" => self.socket = Some(value.into()),
            "defaults-file" => self.defaults_file = Some(value.into()),
            "password" | "passwd" | "pwd" => return Err(holds_password()),
            // Whatever this is, it may be a part of a password.
            _ if name.contains(|c: char| !c.is_ascii_alphanumeric() && !"-_".contains(c)) => {
                return Err(wrong("its parameters are not written name=value", format!("write it like {EXAMPLE}")));
            }
            _ => {
                let known = ["tls", "ca", "socket", "defaults-file"];
                let remedy = match rumba_core::nearest(name, known) {
                    Some(nearest) => format!("did you mean `{nearest}`?"),
                    None => format!("it may have: {}", known.join(", ")),
                };
                return Err(wrong(format!("a DSN has no parameter `{name}`"), remedy));
            }
        }
        Ok(())
    }

    fn tls(&mut self) -> Result<Tls, SettingError> {
        match (self.tls.as_deref(), self.ca.take()) {
            (None | Some("off"), None) => Ok(Tls::Off),
            (Some("required"), None) => Ok(Tls::Required),
            (None | Some("verified"), ca) => Ok(Tls::Verified { ca }),
            (Some("off" | "required"), Some(_)) => {
                Err(wrong("`ca` is of use only when the certificate is verified", "write tls=verified"))
            }
            (Some(other), _) => Err(wrong(
                format!("`{other}` is not a way of encrypting"),
                "tls is one of off, required (whoever the server is), verified",
            )),
        }
    }
}

fn holds_password() -> SettingError {
    let remedy = format!("leave it out: {PASSWORD_REMEDY}");
    wrong("a DSN is kept with the results and must not hold a password", remedy)
}

fn split_port(address: &str) -> Option<(&str, Option<u16>)> {
    if let Some(rest) = address.strip_prefix('[') {
        let (host, rest) = rest.split_once(']')?;
        return match rest.strip_prefix(':') {
            Some(port) => Some((host, Some(port.parse().ok()?))),
            None => Some((host, None)),
        };
    }
    match address.split_once(':') {
        Some((host, port)) => Some((host, Some(port.parse().ok()?))),
        None => Some((address, None)),
    }
}

/// Undoes percent-encoding; what is not one stays as it is.
fn decode(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let code = (bytes[at] == b'%').then(|| text.get(at + 1..at + 3)).flatten();
        match code.and_then(|code| u8::from_str_radix(code, 16).ok()) {
            Some(byte) => {
                out.push(byte);
                at += 3;
            }
            None => {
                out.push(bytes[at]);
                at += 1;
            }
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

/// The groups `[client]`, `[mysql]` and `[rumba]` of an option file; what comes later holds.
#[derive(Default)]
struct OptionFile(Vec<(String, String)>);

impl OptionFile {
    fn read(path: &Path) -> Result<Self, SettingError> {
        let text = fs::read_to_string(path).map_err(|error| {
            let remedy = "name an option file with a [client] group that this user may read";
            wrong(format!("its option file {} cannot be read: {error}", path.display()), remedy)
        })?;
        Ok(Self::parse(&text))
    }

    fn parse(text: &str) -> Self {
        let mut options = Vec::new();
        let mut ours = false;
        for line in text.lines().map(str::trim).filter(|line| !line.starts_with(['#', ';'])) {
            if let Some(group) = line.strip_prefix('[').and_then(|line| line.split(']').next()) {
                ours = matches!(group, "client" | "mysql" | "rumba");
            } else if let Some((name, value)) = line.split_once('=').filter(|_| ours) {
                options.push((name.trim().replace('_', "-"), unquote(value.trim()).to_owned()));
            }
        }
        Self(options)
    }

    fn get(&self, name: &str) -> Option<String> {
        self.0.iter().rev().find(|(known, _)| known == name).map(|(_, value)| value.clone())
    }
}

fn unquote(value: &str) -> &str {
    ['"', '\''].iter().find_map(|&quote| value.strip_prefix(quote)?.strip_suffix(quote)).unwrap_or(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_in_a_dsn_is_refused_without_being_repeated() {
        for text in [
            "mysql://me:hunter2@host/x",
            "mysql://me@host/x?password=hunter2",
            "mysql://me@host/x?pwd=hunter2",
            "mysql://me:hun@ter2@host/x",
            // These were repeated, as the name of a parameter.
            "mysql://me:hun?hunter2@host/x",
            "mysql://me:hun/hunter2@host/x",
        ] {
            let error = Dsn::parse(text).unwrap_err();
            assert!(error.remedy.contains("RUMBA_MYSQL_PASSWORD"), "{error:?}");
            assert!(!format!("{error:?}").contains("hun"), "{error:?}");
        }
    }

    #[test]
    fn a_dsn_without_its_scheme_is_not_repeated_either() {
        for text in ["me:hunter2@host/x", "mysql:me:hunter2@host", "mysql:/me:hunter2@host/x", "me:hunter2"] {
            let error = refuse_without_scheme(text).unwrap_err();
            assert!(error.problem.contains("begins with mysql://"), "{error:?}");
            assert!(!format!("{error:?}").contains("hunter2"), "{error:?}");
        }
        let error = Dsn::parse("mysql://me@host/x?hunter2").unwrap_err();
        assert!(!format!("{error:?}").contains("hunter2"), "{error:?}");
        for text in ["mariadb@10.12", "/opt/mysql", "no-such-server"] {
            assert_eq!(refuse_without_scheme(text), Ok(()), "{text}");
        }
    }

    #[test]
    fn a_dsn_names_a_host_or_a_socket() {
        let dsn = Dsn::parse("mysql://me@db.example:3307/lab").unwrap();
        assert_eq!((dsn.host.as_deref(), dsn.port, dsn.schema.as_str()), (Some("db.example"), Some(3307), "lab"));
        let dsn = Dsn::parse("mysql://me@/?socket=%2Frun%2Fs").unwrap();
        assert_eq!((dsn.socket, dsn.schema.as_str()), (Some(PathBuf::from("/run/s")), "rumba"));
        assert_eq!(Dsn::parse("mysql://me@[::1]:1/x").unwrap().host.as_deref(), Some("::1"));
        assert!(Dsn::parse("mysql://me@host:port/x").is_err());
        assert!(Dsn::parse("mysql://me@host/x?socket=/s").is_err());
    }

    #[test]
    fn encryption_is_off_required_or_verified() {
        let tls = |query: &str| Dsn::parse(&format!("mysql://me@host/x?{query}")).map(|dsn| dsn.tls);
        assert_eq!(tls("tls=required"), Ok(Tls::Required));
        assert_eq!(tls("ca=/ca.pem"), Ok(Tls::Verified { ca: Some("/ca.pem".into()) }));
        assert!(tls("tls=maybe").unwrap_err().remedy.contains("verified"));
        assert_eq!(tls("tsl=off").unwrap_err().remedy, "it may have: tls, ca, socket, defaults-file");
        assert_eq!(tls("defaults_file=/x").unwrap_err().remedy, "did you mean `defaults-file`?");
    }

    #[test]
    fn an_option_file_is_read_as_clients_read_it() {
        let file = OptionFile::parse("[mysqld]\npassword=no\n[client]\n# one\npassword = \"a=b\"\nport=3308\n");
        assert_eq!(file.get("password").as_deref(), Some("a=b"));
        assert_eq!(file.get("port").as_deref(), Some("3308"));
    }
}
