//! An existing server, named by a DSN: `scheme://user@host:port/database?tls=verified&ca=/path` or
//! `scheme://user@/database?socket=/path`.
//!
//! A password is never part of the DSN, because the DSN is stored with the results.

use std::path::{Path, PathBuf};

use rumba_engine_api::setting::SettingError;
use rumba_transport::Tls;

/// The DSN syntax of a family of servers.
#[derive(Clone, Copy, Debug)]
pub struct Form {
    /// The schemes, including `://`; the most common first.
    pub schemes: &'static [&'static str],
    /// Two examples of a DSN.
    pub example: &'static str,
    /// Alternative places for a password.
    pub password_remedy: &'static str,
    /// The parameter that names an additional file, if there is one.
    pub file: Option<&'static str>,
}

/// The default database or schema.
pub const DATABASE: &str = "rumba";

/// An existing server and the user to connect as, without a password.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Dsn {
    /// The user, if one is named.
    pub user: Option<String>,
    /// The host, if one is named.
    pub host: Option<String>,
    /// The port, if one is named.
    pub port: Option<u16>,
    /// The Unix socket, if one is named.
    pub socket: Option<PathBuf>,
    /// The database (PostgreSQL) or schema (MySQL) that rumba uses. It must be empty, rumba's own, or absent.
    pub database: String,
    /// How the connection is encrypted.
    pub tls: Tls,
    /// The file that [`Form::file`] names.
    pub file: Option<PathBuf>,
    /// Whether settle and drain leave it to the server when it writes, for a user without privileges on the whole server.
    pub without_flush: bool,
}

/// The text of `Instance::unpaid` for a server with `flush=no`.
pub const UNFLUSHED: &str =
    "the server may still hold deferred writes, because `flush=no` keeps rumba from requesting them";

/// The remedy for a user without the privileges that make a server write.
pub const FLUSH_NO: &str = "add `flush=no` to the server's address, which leaves deferred writes out of all figures";

/// An error about an experiment's server.
pub fn wrong(problem: impl Into<String>, remedy: impl Into<String>) -> SettingError {
    SettingError::new("server", problem, remedy)
}

impl Form {
    /// Describes the syntax, for error messages.
    pub fn like(&self) -> String {
        format!("write it like {}", self.example)
    }

    fn begins(&self) -> String {
        format!("a DSN begins with {}", self.schemes.join(" or "))
    }

    fn holds_password(&self) -> SettingError {
        let remedy = format!("leave it out: {}", self.password_remedy);
        wrong("a DSN is kept with the results and must not hold a password", remedy)
    }

    /// Refuses a text that looks like a DSN without its scheme and is not an existing path. The error omits the text,
    /// which may contain a password.
    ///
    /// # Errors
    /// The syntax of a DSN.
    pub fn refuse_without_scheme(&self, text: &str) -> Result<(), SettingError> {
        let has_login = text.contains('@') && text.contains(['/', '?']);
        if (has_login || text.contains(':')) && !Path::new(text).exists() {
            let remedy = format!("{}, and without a password: {}", self.like(), self.password_remedy);
            return Err(wrong(format!("it looks like a DSN, and {}", self.begins()), remedy));
        }
        Ok(())
    }

    /// Parses a DSN.
    ///
    /// # Errors
    /// The mistake in the DSN, without its text, which may contain a password.
    pub fn parse(&self, text: &str) -> Result<Dsn, SettingError> {
        let like = || self.like();
        let rest = self.schemes.iter().find_map(|scheme| text.strip_prefix(scheme));
        let rest = rest.ok_or_else(|| wrong(self.begins(), like()))?;
        let (place, query) = rest.split_once('?').unwrap_or((rest, ""));
        let (authority, database) = place.split_once('/').unwrap_or((place, ""));
        let (user, address) = authority.rsplit_once('@').map_or((None, authority), |(user, at)| (Some(user), at));
        // An unescaped `?` or `/` in a password ends the part with user and host.
        let is_cut = user.is_none() && rest.contains('@') && split_port(address).is_none();
        if is_cut || user.is_some_and(|user| user.contains(':')) {
            return Err(self.holds_password());
        }
        let (host, port) = split_port(address).ok_or_else(|| wrong("its port is not a number up to 65535", like()))?;
        let given = |text: &str| (!text.is_empty()).then(|| decode(text));
        let mut dsn = Dsn {
            user: user.and_then(given),
            host: given(host),
            port,
            database: given(database).unwrap_or_else(|| DATABASE.to_owned()),
            ..Dsn::default()
        };
        if dsn.database.contains(['`', '/', '\0']) {
            return Err(wrong("its database has a character that a name cannot have", like()));
        }
        let mut parameters = Parameters::default();
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) =
                pair.split_once('=').ok_or_else(|| wrong("its parameters are not written name=value", like()))?;
            parameters.take(self, name, decode(value))?;
        }
        dsn.tls = parameters.tls()?;
        dsn.without_flush = parameters.without_flush()?;
        (dsn.socket, dsn.file) = (parameters.socket, parameters.file);
        if dsn.socket.is_some() && dsn.host.is_some() {
            return Err(wrong("it names both a host and a socket", "name one of them"));
        }
        Ok(dsn)
    }
}

#[derive(Default)]
struct Parameters {
    tls: Option<String>,
    ca: Option<PathBuf>,
    socket: Option<PathBuf>,
    file: Option<PathBuf>,
    flush: Option<String>,
}

impl Parameters {
    fn take(&mut self, form: &Form, name: &str, value: String) -> Result<(), SettingError> {
        match name {
            "tls" => self.tls = Some(value),
            "ca" => self.ca = Some(value.into()),
            "socket" => self.socket = Some(value.into()),
            "flush" => self.flush = Some(value),
            _ if form.file == Some(name) => self.file = Some(value.into()),
            "password" | "passwd" | "pwd" => return Err(form.holds_password()),
            // An unexpected name may be a part of a password, so the error must not repeat it.
            _ if name.contains(|c: char| !c.is_ascii_alphanumeric() && !"-_".contains(c)) => {
                return Err(wrong("its parameters are not written name=value", form.like()));
            }
            _ => {
                let known: Vec<&str> = ["tls", "ca", "socket", "flush"].into_iter().chain(form.file).collect();
                let remedy = match rumba_engine_api::nearest(name, known.iter().copied()) {
                    Some(nearest) => format!("did you mean `{nearest}`?"),
                    None => format!("it may have: {}", known.join(", ")),
                };
                return Err(wrong(format!("a DSN has no parameter `{name}`"), remedy));
            }
        }
        Ok(())
    }

    fn without_flush(&self) -> Result<bool, SettingError> {
        match self.flush.as_deref() {
            None | Some("yes") => Ok(false),
            Some("no") => Ok(true),
            Some(other) => Err(wrong(
                format!("invalid `flush={other}`"),
                "flush is yes, or no for a user who may not make the server write",
            )),
        }
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
                "tls is one of off, required (any server), verified",
            )),
        }
    }
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

/// Decodes percent-encoding; invalid sequences stay unchanged.
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

#[cfg(test)]
mod tests {
    use super::*;

    const FORM: Form = Form {
        schemes: &["mysql://", "mariadb://"],
        example: "mysql://user@host:3306/schema",
        password_remedy: "give it in RUMBA_MYSQL_PASSWORD",
        file: Some("defaults-file"),
    };

    #[test]
    fn a_password_in_a_dsn_is_refused_without_being_repeated() {
        for text in [
            "mysql://me:hunter2@host/x",
            "mysql://me@host/x?password=hunter2",
            "mysql://me@host/x?pwd=hunter2",
            "mysql://me:hun@ter2@host/x",
            // The errors for these DSNs repeated the password as the name of a parameter.
            "mysql://me:hun?hunter2@host/x",
            "mysql://me:hun/hunter2@host/x",
        ] {
            let error = FORM.parse(text).unwrap_err();
            assert!(error.remedy.contains("RUMBA_MYSQL_PASSWORD"), "{error:?}");
            assert!(!format!("{error:?}").contains("hun"), "{error:?}");
        }
    }

    #[test]
    fn a_dsn_without_its_scheme_is_not_repeated_either() {
        for text in ["me:hunter2@host/x", "mysql:me:hunter2@host", "mysql:/me:hunter2@host/x", "me:hunter2"] {
            let error = FORM.refuse_without_scheme(text).unwrap_err();
            assert!(error.problem.contains("begins with mysql://"), "{error:?}");
            assert!(!format!("{error:?}").contains("hunter2"), "{error:?}");
        }
        let error = FORM.parse("mysql://me@host/x?hunter2").unwrap_err();
        assert!(!format!("{error:?}").contains("hunter2"), "{error:?}");
        for text in ["mariadb@10.12", "/opt/mysql", "no-such-server"] {
            assert_eq!(FORM.refuse_without_scheme(text), Ok(()), "{text}");
        }
    }

    #[test]
    fn a_dsn_names_a_host_or_a_socket() {
        let dsn = FORM.parse("mysql://me@db.example:3307/lab").unwrap();
        assert_eq!((dsn.host.as_deref(), dsn.port, dsn.database.as_str()), (Some("db.example"), Some(3307), "lab"));
        let dsn = FORM.parse("mysql://me@/?socket=%2Frun%2Fs").unwrap();
        assert_eq!((dsn.socket, dsn.database.as_str()), (Some(PathBuf::from("/run/s")), "rumba"));
        assert_eq!(FORM.parse("mysql://me@[::1]:1/x").unwrap().host.as_deref(), Some("::1"));
        assert!(FORM.parse("mysql://me@host:port/x").is_err());
        assert!(FORM.parse("mysql://me@host/x?socket=/s").is_err());
    }

    #[test]
    fn encryption_is_off_required_or_verified() {
        let tls = |query: &str| FORM.parse(&format!("mysql://me@host/x?{query}")).map(|dsn| dsn.tls);
        assert_eq!(tls("tls=required"), Ok(Tls::Required));
        assert_eq!(tls("ca=/ca.pem"), Ok(Tls::Verified { ca: Some("/ca.pem".into()) }));
        assert!(tls("tls=maybe").unwrap_err().remedy.contains("verified"));
        assert_eq!(tls("tsl=off").unwrap_err().remedy, "it may have: tls, ca, socket, flush, defaults-file");
        assert_eq!(tls("flush=maybe").unwrap_err().problem, "invalid `flush=maybe`");
        assert_eq!(tls("defaults_file=/x").unwrap_err().remedy, "did you mean `defaults-file`?");
    }
}
