//! The settings of databases.

use crate::cli::options::{DRIVERS, OptionSet, Source};
use crate::cli::refusal::Refusal;

/// Whether statements are prepared on the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StatementMode {
    /// If the server supports them.
    Auto,
    /// Statements are built and sent as text.
    Disable,
}

/// Options of every database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DatabaseSettings {
    /// One of [`DRIVERS`].
    pub driver: &'static str,
    /// `--db-ps-mode`.
    pub statements: StatementMode,
    /// Time statements, and say so.
    pub debug: bool,
}

impl DatabaseSettings {
    /// Reads the options; sysbench does so when a script first requests its driver, and not for a test without one.
    /// `name` is the driver that a script requests by name.
    ///
    /// # Errors
    /// An unknown mode or driver.
    pub fn read(options: &OptionSet, name: Option<&str>) -> Result<Self, Refusal> {
        let statements = match options.text("db-ps-mode").unwrap_or_default() {
            "auto" => StatementMode::Auto,
            "disable" => StatementMode::Disable,
            other => return Err(Refusal::fatal(format!("Invalid value for db-ps-mode: {other}"))),
        };
        let Some(name) = name.or_else(|| options.text("db-driver")) else {
            let several = "Multiple DB drivers are available. Use --db-driver=name to specify which one to use";
            return Err(Refusal::fatal(several));
        };
        let driver = DRIVERS.iter().find(|driver| driver.name == name);
        let unknown = || Refusal::fatal(format!("invalid database driver name: '{name}'"));
        let driver = driver.ok_or_else(unknown)?.name;
        if driver == "mysql" {
            refuse_what_is_not_done(options)?;
        }
        Ok(Self { driver, statements, debug: options.flag("db-debug") })
    }
}

/// Refuses options that are not supported, because a run that ignored them would not be the requested one.
fn refuse_what_is_not_done(options: &OptionSet) -> Result<(), Refusal> {
    let given = |name: &str| options.text(name).is_some_and(|text| !text.is_empty());
    let refusals = [
        (
            given("mysql-ssl-cipher"),
            "--mysql-ssl-cipher is not done here: TLS 1.2 and 1.3 are spoken with the ciphers of rustls; leave it out, and \
             choose by the server's ssl_cipher",
        ),
        (
            options.flag("mysql-compression"),
            "--mysql-compression is not supported, so nothing is compressed; leave it out",
        ),
        (
            options.flag("mysql-debug"),
            "--mysql-debug is not supported: it traces MySQL's client library; --db-debug with --verbosity=5 reports \
             the time of statements",
        ),
        (
            given("mysql-ssl-cert") != given("mysql-ssl-key"),
            "--mysql-ssl-cert and --mysql-ssl-key go together: name the files of both",
        ),
    ];
    let first = refusals.into_iter().find(|(is_requested, _)| *is_requested);
    first.map_or(Ok(()), |(_, words)| Err(Refusal::fatal(words)))
}

/// The encryption of a connection to PostgreSQL, in the words of its `sslmode`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PgSslMode {
    /// Connections are never encrypted.
    Disable,
    /// If the server refuses unencrypted connections.
    Allow,
    /// If the server supports it.
    Prefer,
    /// Always, or the connection fails.
    Require,
    /// Always, with a certificate that an authority has signed.
    VerifyCa,
    /// With one that is for this host.
    VerifyFull,
}

impl PgSslMode {
    /// Reads `--pgsql-sslmode`.
    ///
    /// # Errors
    /// An unknown mode.
    pub fn read(options: &OptionSet) -> Result<Self, Refusal> {
        match options.text("pgsql-sslmode").unwrap_or_default() {
            "disable" => Ok(PgSslMode::Disable),
            "allow" => Ok(PgSslMode::Allow),
            "prefer" | "" => Ok(PgSslMode::Prefer),
            "require" => Ok(PgSslMode::Require),
            "verify-ca" => Ok(PgSslMode::VerifyCa),
            "verify-full" => Ok(PgSslMode::VerifyFull),
            other => {
                let modes = "disable, allow, prefer, require, verify-ca or verify-full";
                Err(Refusal::not_allowed("pgsql-sslmode", other, modes))
            }
        }
    }
}

/// The encryption of a connection to MySQL, in the words of its `--ssl-mode`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SslMode {
    /// Connections are never encrypted.
    Disabled,
    /// If the server supports it.
    Preferred,
    /// Always, or the connection fails.
    Required,
    /// With a certificate that an authority has signed.
    VerifyCa,
    /// With one that is for this host.
    VerifyIdentity,
}

impl SslMode {
    /// Reads `--mysql-ssl`: the name of a mode, as in 1.1, or a flag, as in 1.0.
    ///
    /// # Errors
    /// It is neither.
    pub fn read(options: &OptionSet) -> Result<Self, Refusal> {
        let Some(text) = options.text("mysql-ssl") else {
            let is_alone = options.source("mysql-ssl").is_some_and(|source| source != Source::Default);
            return Ok(if is_alone { SslMode::Required } else { SslMode::Disabled });
        };
        match text.to_ascii_lowercase().as_str() {
            "disabled" | "off" | "false" | "0" => Ok(SslMode::Disabled),
            "preferred" => Ok(SslMode::Preferred),
            "required" | "on" | "true" | "1" => Ok(SslMode::Required),
            "verify_ca" => Ok(SslMode::VerifyCa),
            "verify_identity" => Ok(SslMode::VerifyIdentity),
            _ => Err(Refusal::fatal(format!("Invalid value for --mysql-ssl: '{text}'"))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ssl(value: Option<&str>) -> Result<SslMode, Refusal> {
        let mut options = OptionSet::general();
        options.set("mysql-ssl", value, Source::CommandLine).unwrap();
        SslMode::read(&options)
    }

    #[test]
    fn encryption_is_a_mode_or_a_flag() {
        assert_eq!(SslMode::read(&OptionSet::general()), Ok(SslMode::Disabled));
        assert_eq!(ssl(None), Ok(SslMode::Required));
        assert_eq!(ssl(Some("on")), Ok(SslMode::Required));
        assert_eq!(ssl(Some("VERIFY_CA")), Ok(SslMode::VerifyCa));
        assert_eq!(ssl(Some("off")), Ok(SslMode::Disabled));
        assert_eq!(ssl(Some("maybe")).unwrap_err().to_string(), "FATAL: Invalid value for --mysql-ssl: 'maybe'");
    }

    #[test]
    fn unsupported_options_are_refused_unless_set_to_off() {
        let refusal = |driver, given: &[(&str, &str)]| {
            let mut options = OptionSet::general();
            given.iter().for_each(|(name, value)| options.set(name, Some(value), Source::CommandLine).unwrap());
            DatabaseSettings::read(&options, Some(driver)).map(drop).map_err(|refusal| refusal.to_string())
        };
        for (name, value) in [
            ("mysql-ssl-cipher", "AES128-SHA"),
            ("mysql-compression", "on"),
            ("mysql-debug", "on"),
            ("mysql-ssl-key", "k"),
        ] {
            let words = refusal("mysql", &[(name, value)]).unwrap_err();
            assert!(words.starts_with("FATAL: ") && words.contains(&format!("--{name}")), "{words}");
            assert_eq!(refusal("pgsql", &[(name, value)]), Ok(()));
        }
        let nothing = [("mysql-ssl-cipher", ""), ("mysql-compression", "off"), ("mysql-debug", "off")];
        assert_eq!(refusal("mysql", &nothing), Ok(()));
        assert_eq!(refusal("mysql", &[("mysql-ssl-key", "k"), ("mysql-ssl-cert", "c")]), Ok(()));
    }

    #[test]
    fn encryption_of_postgresql_is_one_of_its_modes() {
        let mut options = OptionSet::general();
        assert_eq!(PgSslMode::read(&options), Ok(PgSslMode::Prefer));
        options.set("pgsql-sslmode", Some("allow"), Source::CommandLine).unwrap();
        assert_eq!(PgSslMode::read(&options), Ok(PgSslMode::Allow));
        options.set("pgsql-sslmode", Some("verify_ca"), Source::CommandLine).unwrap();
        assert!(PgSslMode::read(&options).unwrap_err().to_string().contains("'verify_ca'; it is disable,"));
    }

    #[test]
    fn a_driver_is_one_that_there_is() {
        let mut options = OptionSet::general();
        let settings = DatabaseSettings::read(&options, None).unwrap();
        assert_eq!(settings, DatabaseSettings { driver: "mysql", statements: StatementMode::Auto, debug: false });
        assert_eq!(DatabaseSettings::read(&options, Some("sqlite")).unwrap().driver, "sqlite");
        options.set("db-driver", Some("nonexisting"), Source::CommandLine).unwrap();
        assert_eq!(
            DatabaseSettings::read(&options, None).unwrap_err().to_string(),
            "FATAL: invalid database driver name: 'nonexisting'"
        );
        options.set("db-ps-mode", Some("on"), Source::CommandLine).unwrap();
        assert_eq!(
            DatabaseSettings::read(&options, None).unwrap_err().to_string(),
            "FATAL: Invalid value for db-ps-mode: on"
        );
    }
}
