//! Starts a server on a data directory and connects to it.

use std::fs::{self, OpenOptions};
use std::io;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use rumba_engine_api::access::Access;
use rumba_engine_api::error::{EngineError, Result};
use rumba_protocol_mysql::{Address, Admin, Secret, Target, Tls, WireError};

use rumba_server_kit::cache;
use rumba_server_kit::files::{free_port, password, short_socket, write_private};
use rumba_server_kit::host::{CALL, Data, Layout, Running};
use rumba_server_kit::process::{Process, Signals};
use rumba_server_kit::version::Version;
use rumba_server_kit::watch::Watch;

use crate::failure::LOG_WORDS;
use crate::plan::Line;
use crate::software::{Brand, Software};

/// The socket within the data directory.
const SOCKET: &str = "s";
/// The directory of the server's temporary files. It is private because a server that starts deletes the temporary
/// files of other servers in a shared directory such as `/tmp`.
const TEMPORARY: &str = "tmp";
/// The server's option file.
const CONFIGURATION: &str = "my.cnf";
/// Statements that the server runs before it accepts connections.
const FIRST_STATEMENTS: &str = "first.sql";
/// The client's option file, with the server's address and the password.
const CLIENT: &str = "client.cnf";
/// The schema of a managed server.
pub const SCHEMA: &str = rumba_server_kit::dsn::DATABASE;

/// The parameters of a server start.
pub struct Launch<'a> {
    /// The software.
    pub software: &'a Software,
    /// The paths of its files; the data directory exists already.
    pub layout: &'a Layout,
    /// Its configuration, apart from the paths.
    pub lines: &'a [Line],
    /// The TCP port on loopback if sessions use TCP; 0 for any free port.
    pub tcp: Option<u16>,
    /// The contents of the data directory.
    pub data: Data,
}

impl Launch<'_> {
    /// Starts the server and waits until it answers.
    ///
    /// # Errors
    /// If the server exits: its last messages and the setting that they concern.
    pub fn start(&self) -> Result<Running> {
        let failed = |what: &str, error: io::Error| EngineError::failed(CALL, format!("{what}: {error}"));
        let layout = self.layout;
        for dir in [layout.kept(), layout.file(TEMPORARY)] {
            cache::make_private(&dir).map_err(|error| failed("its directory", error))?;
        }
        let password = password().map_err(|error| failed("/dev/urandom", error))?;
        let port = match self.tcp {
            Some(0) => Some(free_port().map_err(|error| failed("a free port", error))?),
            port => port,
        };
        write_private(&layout.file(FIRST_STATEMENTS), &self.first_statements(&password, port.is_some()))
            .map_err(|error| failed("first.sql", error))?;
        let access = self.admit(&password, port).map_err(|error| failed("client.cnf", error))?;
        let configuration = self.configuration(port);
        // This copy holds no password: the password is in the init file, which is removed below.
        fs::write(layout.kept().join("my.cnf"), &configuration).map_err(|error| failed("my.cnf", error))?;
        let first =
            format!("{configuration}init_file = {}\n", quoted(&layout.file(FIRST_STATEMENTS).display().to_string()));
        write_private(&layout.file(CONFIGURATION), &first).map_err(|error| failed("my.cnf", error))?;
        let (socket, data) = short_socket(&layout.data(), SOCKET).map_err(|error| failed("its socket", error))?;
        let address = match port {
            Some(port) => Address::Tcp { host: "127.0.0.1".into(), port },
            None => Address::Socket(socket),
        };
        let target =
            Target { address, user: "root".into(), password: Secret::new(password), database: None, tls: Tls::Off };
        let process = self.spawn().map_err(|error| failed(&self.software.program.display().to_string(), error))?;
        let reported = self.lines.iter().map(|line| (line.name.clone(), line.value.clone().unwrap_or_default()));
        let watch = Arc::new(Watch::new(process, layout.log(), LOG_WORDS, reported.collect()));
        let mut running = Running { watch, target, access: Box::new(access), socket: data };
        let answers = wait(&running);
        let removed = fs::remove_file(layout.file(FIRST_STATEMENTS));
        answers?;
        removed.map_err(|error| failed("first.sql", error))?;
        // Replace the configuration so that a later start works without the init file.
        write_private(&layout.file(CONFIGURATION), &configuration).map_err(|error| failed("my.cnf", error))?;
        running.target.database = Some(SCHEMA.into());
        Ok(running)
    }

    /// Writes the client's option file and returns the client's command line. The client reads no option file of the
    /// user's, because a file that is read later would override this one.
    fn admit(&self, password: &str, port: Option<u16>) -> io::Result<Access> {
        let file = self.layout.file(CLIENT);
        let place = match port {
            Some(port) => format!("protocol = tcp\nhost = 127.0.0.1\nport = {port}\n"),
            None => format!("socket = {}\n", quoted(&self.layout.data().join(SOCKET).display().to_string())),
        };
        write_private(&file, &format!("[client]\nuser = root\npassword = {password}\n{place}"))?;
        let options = format!("--defaults-file={}", file.display());
        let command = vec![self.software.client(), options, SCHEMA.to_owned()];
        Ok(Access { environment: Vec::new(), command, password_file: Some(file) })
    }

    fn spawn(&self) -> io::Result<Process> {
        let log = OpenOptions::new().create(true).append(true).open(self.layout.log())?;
        let mut command = self.software.command();
        command.arg(format!("--defaults-file={}", self.layout.file(CONFIGURATION).display()));
        command.current_dir(self.layout.data()).stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log);
        if let Some(allocator) = &self.software.allocator {
            command.env("LD_PRELOAD", allocator);
        }
        Process::start(&mut command, Signals::ONE_PROCESS)
    }

    /// Statements that the server runs before it accepts connections, one a line.
    fn first_statements(&self, password: &str, over_tcp: bool) -> String {
        let old = self.software.brand == Brand::MySql && self.software.version < Version(5, 7, 0);
        let mut sql = match old {
            true => format!("SET PASSWORD FOR 'root'@'localhost' = PASSWORD('{password}');\n"),
            false => format!("ALTER USER 'root'@'localhost' IDENTIFIED BY '{password}';\n"),
        };
        // Name resolution is off, so no TCP connection comes from `localhost`. The earlier server may have run without
        // TCP.
        let all = "GRANT ALL PRIVILEGES ON *.* TO 'root'@'127.0.0.1'";
        match (over_tcp, old) {
            (true, true) => sql.push_str(&format!("{all} IDENTIFIED BY '{password}' WITH GRANT OPTION;\n")),
            (true, false) => sql.push_str(&format!(
                "DROP USER IF EXISTS 'root'@'127.0.0.1';\n\
                 CREATE USER 'root'@'127.0.0.1' IDENTIFIED BY '{password}';\n{all} WITH GRANT OPTION;\n"
            )),
            (false, _) => {}
        }
        if self.data == Data::New {
            sql.push_str(&format!("CREATE DATABASE {SCHEMA} DEFAULT CHARACTER SET latin1;\n"));
        }
        sql
    }

    fn configuration(&self, port: Option<u16>) -> String {
        let mut text = String::from("[mysqld]\n");
        let own = |name: &str, value: String| (name.to_owned(), Some(value));
        let mut lines: Vec<(String, Option<String>)> =
            self.software.options().into_iter().map(|(name, value)| (name, Some(value))).collect();
        lines.push(own("datadir", self.layout.data().display().to_string()));
        lines.push(own("tmpdir", self.layout.file(TEMPORARY).display().to_string()));
        lines.push(own("socket", SOCKET.into()));
        lines.push(own("pid_file", "pid".into()));
        if self.software.brand == Brand::MySql && self.software.version >= Version(8, 0, 0) {
            // Disable MySQL's X protocol listener if the server has one.
            lines.push(own("loose_mysqlx", "0".into()));
        }
        match port {
            Some(port) => lines.extend([own("bind_address", "127.0.0.1".into()), own("port", port.to_string())]),
            None => lines.push(("skip_networking".into(), None)),
        }
        let ours = self.lines.iter().filter(|line| line.name != "port");
        for (name, value) in lines.into_iter().chain(ours.map(|line| (line.name.clone(), line.value.clone()))) {
            match value {
                Some(value) => text.push_str(&format!("{name} = {}\n", quoted(&value))),
                None => text.push_str(&format!("{name}\n")),
            }
        }
        text
    }
}

/// Waits until a server accepts a connection. It refuses connections until it has run the first statements, which set
/// the password.
fn wait(running: &Running) -> Result<()> {
    running.wait(|target| match Admin::connect(target, Duration::from_secs(10)) {
        Err(error @ WireError::Server { code: ACCESS_DENIED, .. }) => {
            Err(EngineError::failed(CALL, format!("it does not take the password that it was given: {error}")))
        }
        answered => Ok(answered.map(drop).map_err(|error| error.to_string())),
    })
}

const ACCESS_DENIED: u16 = 1045;

/// Quotes a value of an option file if it would be truncated otherwise.
fn quoted(value: &str) -> String {
    if value.contains(['#', '"', '\'', '\\']) || value.trim() != value {
        format!("\"{}\"", value.replace('\\', "\\\\").replace('"', "\\\""))
    } else {
        value.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_that_an_option_file_would_cut_short_are_quoted() {
        assert_eq!(quoted("O_DIRECT"), "O_DIRECT");
        assert_eq!(quoted("a=1;b={c=2}"), "a=1;b={c=2}");
        assert_eq!(quoted("a#b"), "\"a#b\"");
    }
}
