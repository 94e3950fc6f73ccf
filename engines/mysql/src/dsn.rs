//! An existing server, named by a DSN: `mysql://user@host:3306/schema?tls=verified&ca=/path` or
//! `mysql://user@/schema?socket=/path`.
//!
//! The password comes from the environment or from an option file.

use std::path::{Path, PathBuf};
use std::{env, fs};

use rumba_engine_api::setting::SettingError;
use rumba_protocol_mysql::{Address, Secret, Target};
use rumba_server_kit::dsn::{Dsn, Form, wrong};

const PASSWORDS: [&str; 2] = ["RUMBA_MYSQL_PASSWORD", "MYSQL_PWD"];

/// The syntax of these servers' DSNs.
pub const FORM: Form = Form {
    schemes: &["mysql://", "mariadb://"],
    example: "mysql://user@host:3306/schema or mysql://user@/schema?socket=/path/to/socket",
    password_remedy: "give it in the environment variable RUMBA_MYSQL_PASSWORD (or MYSQL_PWD), or in an option file \
        named with ?defaults-file=/path/.my.cnf",
    file: Some("defaults-file"),
};

/// Returns the address and user to connect with, and the password from its source.
///
/// # Errors
/// An option file that cannot be read; no user name.
pub fn target(dsn: &Dsn) -> Result<Target, SettingError> {
    let file = match &dsn.file {
        Some(path) => OptionFile::read(path)?,
        None => OptionFile::default(),
    };
    let user = dsn.user.clone().or_else(|| file.get("user"));
    let user = user.ok_or_else(|| wrong("it names no user", FORM.like()))?;
    let in_environment = || PASSWORDS.iter().find_map(|name| env::var(name).ok());
    let password = file.get("password").or_else(in_environment).unwrap_or_default();
    let socket = dsn.socket.clone().or_else(|| {
        let unnamed = dsn.host.is_none() && file.get("host").is_none();
        unnamed.then(|| file.get("socket").map(PathBuf::from)).flatten()
    });
    let address = match socket {
        Some(path) => Address::Socket(path),
        None => {
            let host = dsn.host.clone().or_else(|| file.get("host")).unwrap_or_else(|| "127.0.0.1".to_owned());
            let port = dsn.port.or_else(|| file.get("port")?.parse().ok()).unwrap_or(3306);
            Address::Tcp { host, port }
        }
    };
    Ok(Target { address, user, password: Secret::new(password), database: None, tls: dsn.tls.clone() })
}

/// The groups `[client]`, `[mysql]` and `[rumba]` of an option file. Later values override earlier ones.
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
    fn an_option_file_is_read_as_clients_read_it() {
        let file = OptionFile::parse("[mysqld]\npassword=no\n[client]\n# one\npassword = \"a=b\"\nport=3308\n");
        assert_eq!(file.get("password").as_deref(), Some("a=b"));
        assert_eq!(file.get("port").as_deref(), Some("3308"));
    }
}
