//! What the options of databases ask for.

use crate::options::{DRIVERS, OptionSet, Source};
use crate::refusal::Refusal;

/// Whether statements are prepared on the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StatementMode {
    /// Where the server can.
    Auto,
    /// Never: texts are put together and sent.
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
    /// Reads the options; sysbench does so when a script first asks for its driver, and not for a test without one.
    /// `name` is the driver that a script asks for by name.
    ///
    /// # Errors
    /// The mode is none, or the driver is.
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
        Ok(Self { driver: driver.ok_or_else(unknown)?.name, statements, debug: options.flag("db-debug") })
    }
}

/// How a connection to MySQL is encrypted, in the words of its `--ssl-mode`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SslMode {
    /// Not at all.
    Disabled,
    /// If the server can.
    Preferred,
    /// Or not at all.
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
