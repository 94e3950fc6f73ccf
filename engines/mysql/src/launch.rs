//! Starting a server on a data directory, and talking to it.

use std::fs::{self, OpenOptions};
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::thread::sleep;
use std::time::{Duration, Instant};

use rumba_core::access::Access;
use rumba_core::engine::KEPT;
use rumba_core::error::EngineError;
use rumba_protocol_mysql::{Address, Admin, Secret, Target, Tls, WireError};

use rumba_server_kit::cache;
use rumba_server_kit::failure::last_lines;
use rumba_server_kit::files::{free_port, password, short_socket, write_private};
use rumba_server_kit::process::{LOOK, Process, Signals};
use rumba_server_kit::version::Version;
use rumba_server_kit::watch::Watch;

use crate::failure::LOG_WORDS;
use crate::software::{Brand, Software};

/// How long a server may take to start. One that gives up ends, and is noticed at once.
const START: Duration = Duration::from_secs(300);
/// How long a server may take to end cleanly: it writes its dirty pages first.
pub const STOP: Duration = Duration::from_secs(300);
/// The socket within the data directory.
const SOCKET: &str = "s";
/// The schema of a managed server.
pub const SCHEMA: &str = rumba_server_kit::dsn::DATABASE;

/// Where an instance's files are.
#[derive(Clone, Debug)]
pub struct Layout {
    dir: PathBuf,
}

impl Layout {
    /// Of an instance in a directory.
    pub fn new(dir: &Path) -> Self {
        Self { dir: dir.to_owned() }
    }

    /// The data directory.
    pub fn data(&self) -> PathBuf {
        self.dir.join("data")
    }

    /// The directory whose files are kept beside the results.
    pub fn kept(&self) -> PathBuf {
        self.dir.join(KEPT)
    }

    /// The server's log.
    pub fn log(&self) -> PathBuf {
        self.kept().join("error.log")
    }

    /// The directory of its temporary files: a server that starts removes
    /// every other server's from a directory that they share, such as `/tmp`.
    fn temporary(&self) -> PathBuf {
        self.dir.join("tmp")
    }

    fn configuration(&self) -> PathBuf {
        self.dir.join("my.cnf")
    }

    fn first_statements(&self) -> PathBuf {
        self.dir.join("first.sql")
    }

    /// What a client reads: where the server is, and the password.
    fn client(&self) -> PathBuf {
        self.dir.join("client.cnf")
    }
}

/// A line of the server's configuration; a switch has no value.
pub type Line = (String, Option<String>);

/// A server that answers.
pub struct Running {
    /// Its process and its log.
    pub watch: Arc<Watch>,
    /// Where it listens, and as whom to come.
    pub target: Target,
    /// How a person comes to it.
    pub access: Box<Access>,
    /// Keeps the short way to the socket open.
    _data: Option<OwnedFd>,
}

impl Drop for Running {
    fn drop(&mut self) {
        // Sessions may still hold it; it ends with its instance all the same.
        self.watch.kill();
    }
}

/// What a server finds in its data directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Data {
    /// No more than what every server has.
    New,
    /// What an earlier server of rumba's has left: its schema and its users are there.
    Left,
}

/// What is to be started.
pub struct Launch<'a> {
    /// The software.
    pub software: &'a Software,
    /// Where its files are; the data directory is there already.
    pub layout: &'a Layout,
    /// Its configuration beyond where its files are.
    pub lines: &'a [Line],
    /// Whether sessions use TCP on loopback; the port, 0 for any that is free.
    pub tcp: Option<u16>,
    /// What it finds there.
    pub data: Data,
}

impl Launch<'_> {
    /// Starts it and waits until it answers.
    ///
    /// # Errors
    /// A server that ended instead: its last words and the setting that they are about.
    pub fn start(&self) -> Result<Running, EngineError> {
        let failed =
            |what: &str, error: io::Error| EngineError::failed("start of the server", format!("{what}: {error}"));
        let layout = self.layout;
        for dir in [layout.kept(), layout.temporary()] {
            cache::make_private(&dir).map_err(|error| failed("its directory", error))?;
        }
        let password = password().map_err(|error| failed("/dev/urandom", error))?;
        let port = match self.tcp {
            Some(0) => Some(free_port().map_err(|error| failed("a free port", error))?),
            port => port,
        };
        write_private(&layout.first_statements(), &self.first_statements(&password, port.is_some()))
            .map_err(|error| failed("first.sql", error))?;
        let access = self.admit(&password, port).map_err(|error| failed("client.cnf", error))?;
        let configuration = self.configuration(port);
        // It holds no password: that is in the first statements, which are removed below.
        fs::write(layout.kept().join("my.cnf"), &configuration).map_err(|error| failed("my.cnf", error))?;
        let first =
            format!("{configuration}init_file = {}\n", quoted(&layout.first_statements().display().to_string()));
        write_private(&layout.configuration(), &first).map_err(|error| failed("my.cnf", error))?;
        let (socket, data) = short_socket(&layout.data(), SOCKET).map_err(|error| failed("its socket", error))?;
        let address = match port {
            Some(port) => Address::Tcp { host: "127.0.0.1".into(), port },
            None => Address::Socket(socket),
        };
        let target =
            Target { address, user: "root".into(), password: Secret::new(password), database: None, tls: Tls::Off };
        let process = self.spawn().map_err(|error| failed(&self.software.program.display().to_string(), error))?;
        let told = self.lines.iter().map(|(name, value)| (name.clone(), value.clone().unwrap_or_default()));
        let watch = Arc::new(Watch::new(process, layout.log(), LOG_WORDS, told.collect()));
        let mut running = Running { watch, target, access: Box::new(access), _data: data };
        let answers = wait(&running);
        let removed = fs::remove_file(layout.first_statements());
        answers?;
        removed.map_err(|error| failed("first.sql", error))?;
        // What is left of it starts once more as it is: without the statements, which are done and gone.
        write_private(&layout.configuration(), &configuration).map_err(|error| failed("my.cnf", error))?;
        running.target.database = Some(SCHEMA.into());
        Ok(running)
    }

    /// Writes what a client reads, and says how it is called. No option file of the user's is read with it: one that is
    /// read later would count more.
    fn admit(&self, password: &str, port: Option<u16>) -> io::Result<Access> {
        let file = self.layout.client();
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
        command.arg(format!("--defaults-file={}", self.layout.configuration().display()));
        command.current_dir(self.layout.data()).stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log);
        if let Some(allocator) = &self.software.allocator {
            command.env("LD_PRELOAD", allocator);
        }
        Process::start(&mut command, Signals::ONE_PROCESS)
    }

    /// Run by the server before it takes a connection, each on a line of its own.
    fn first_statements(&self, password: &str, over_tcp: bool) -> String {
        let old = self.software.brand == Brand::MySql && self.software.version < Version(5, 7, 0);
        let mut sql = match old {
            true => format!("SET PASSWORD FOR 'root'@'localhost' = PASSWORD('{password}');\n"),
            false => format!("ALTER USER 'root'@'localhost' IDENTIFIED BY '{password}';\n"),
        };
        // Names are not resolved, so over TCP nobody comes from `localhost`. The server before may have been without.
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
        let mut lines: Vec<Line> =
            self.software.options().into_iter().map(|(name, value)| (name, Some(value))).collect();
        lines.push(own("datadir", self.layout.data().display().to_string()));
        lines.push(own("tmpdir", self.layout.temporary().display().to_string()));
        lines.push(own("socket", SOCKET.into()));
        lines.push(own("pid_file", "pid".into()));
        if self.software.brand == Brand::MySql && self.software.version >= Version(8, 0, 0) {
            // A listener of MySQL's second protocol, where it was built in.
            lines.push(own("loose_mysqlx", "0".into()));
        }
        match port {
            Some(port) => lines.extend([own("bind_address", "127.0.0.1".into()), own("port", port.to_string())]),
            None => lines.push(("skip_networking".into(), None)),
        }
        let ours = self.lines.iter().filter(|(name, _)| name != "port");
        for (name, value) in lines.iter().chain(ours) {
            match value {
                Some(value) => text.push_str(&format!("{name} = {}\n", quoted(value))),
                None => text.push_str(&format!("{name}\n")),
            }
        }
        text
    }
}

/// Waits until a server takes a connection. A connection is refused until it has
/// run the first statements, which set the password.
fn wait(running: &Running) -> Result<(), EngineError> {
    let call = "start of the server";
    let begun = Instant::now();
    loop {
        if let Some(end) = running.watch.end(call) {
            return Err(end);
        }
        let last = match Admin::connect(&running.target, Duration::from_secs(10)) {
            Ok(_) => return Ok(()),
            Err(error @ WireError::Server { code: ACCESS_DENIED, .. }) => {
                return Err(EngineError::failed(
                    call,
                    format!("it does not take the password that it was given: {error}"),
                ));
            }
            Err(error) => error,
        };
        if begun.elapsed() > START {
            let words = format!(
                "it does not answer after {} s ({last}); its log says:\n{}",
                START.as_secs(),
                last_lines(&running.watch.log(), 10)
            );
            return Err(EngineError::failed(call, words));
        }
        sleep(LOOK);
    }
}

const ACCESS_DENIED: u16 = 1045;

/// A value of an option file: quoted where it would be cut short otherwise.
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
