//! Starts a server on a data directory and connects to it.

use std::fs::{self, OpenOptions};
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rumba_engine_api::access::Access;
use rumba_engine_api::error::{EngineError, Result};
use rumba_protocol_postgresql::{Address, Admin, PgError, Secret, Target, Tls};
use rumba_server_kit::cache;
use rumba_server_kit::dsn::DATABASE;
use rumba_server_kit::files::{free_port, password, short_socket, write_private};
use rumba_server_kit::host::{self, CALL, Data, Layout};
use rumba_server_kit::identity::Identity;
use rumba_server_kit::process::{Process, Signals};
use rumba_server_kit::watch::Watch;
use rustix::process::Signal;

use crate::failure::{LOG_WORDS, failed};
use crate::plan::{Line, Plan};
use crate::shared_memory::SharedMemory;
use crate::software::{Software, command};

/// The signals that end the server's processes. They share memory, which a killed server leaves behind.
pub const SIGNALS: Signals = Signals { stop: Signal::INT, abort: Signal::QUIT };
/// rumba's role in managed servers.
pub const SUPERUSER: &str = "rumba";
/// A database that exists on every server.
const MAINTENANCE: &str = "postgres";
/// The port number in the socket's name if TCP is not used.
const USUAL_PORT: u16 = 5432;

/// A server that accepts connections.
pub struct Running {
    /// The server.
    pub server: host::Running,
    /// The server's shared memory, which a killed server leaves behind.
    memory: Mutex<SharedMemory>,
}

impl Running {
    /// Records the shared memory that the server has allocated so far.
    pub fn note_memory(&self) {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner).look();
    }
}

impl AsRef<host::Running> for Running {
    fn as_ref(&self) -> &host::Running {
        &self.server
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.server.watch.kill();
        self.memory.lock().unwrap_or_else(PoisonError::into_inner).remove();
    }
}

/// The parameters of a server start.
pub struct Launch<'a> {
    /// The software.
    pub software: &'a Software,
    /// The paths of its files; the data directory exists already.
    pub layout: &'a Layout,
    /// Its configuration.
    pub plan: &'a Plan,
    /// The user that runs the server, if it is not the user of rumba.
    pub identity: Option<&'a Identity>,
    /// The contents of the data directory.
    pub data: Data,
}

impl Launch<'_> {
    /// Starts the server and waits until it answers.
    ///
    /// # Errors
    /// If the server exits: its last messages and the setting that they concern.
    pub fn start(&self) -> Result<Running> {
        let failed =
            |what: &str, error: io::Error| rumba_server_kit::failure::full_or_failed(CALL, format!("{what}: {error}"));
        let (layout, data) = (self.layout, self.layout.data());
        cache::make_private(&layout.kept()).map_err(|error| failed("its directory", error))?;
        let port = match self.plan.tcp {
            Some(0) => Some(free_port().map_err(|error| failed("a free port", error))?),
            port => port,
        };
        self.write_configuration(port).map_err(|error| failed("its configuration", error))?;
        if let Some(identity) = self.identity {
            identity.own(&data).map_err(|error| failed("giving it its data directory", error))?;
        }
        let socket = format!(".s.PGSQL.{}", port.unwrap_or(USUAL_PORT));
        let (socket, held) = short_socket(&data, &socket).map_err(|error| failed("its socket", error))?;
        let target = Target {
            address: Address::Socket(socket),
            user: SUPERUSER.into(),
            password: Secret::new(String::new()),
            database: Some(MAINTENANCE.into()),
            tls: Tls::Off,
        };
        let process = self.spawn().map_err(|error| failed(&self.software.program.display().to_string(), error))?;
        let reported = self.plan.lines.iter().map(|line| (line.name.clone(), line.value.clone()));
        let watch = Arc::new(Watch::new(process, layout.log(), LOG_WORDS, reported.collect()));
        let memory = Mutex::new(SharedMemory::of(watch.pid(), &data));
        let access = Box::new(self.access(data.display().to_string(), USUAL_PORT, Vec::new(), None));
        let mut running = Running { server: host::Running { watch, target, access, socket: held }, memory };
        let mut admin = wait(&running.server)?;
        running.memory = Mutex::new(SharedMemory::of(running.server.watch.pid(), &data));
        self.prepare(&mut admin, &mut running.server, port)?;
        Ok(running)
    }

    /// Creates the database, and a password if TCP is used, because TCP connections require one.
    fn prepare(&self, admin: &mut Admin, running: &mut host::Running, port: Option<u16>) -> Result<()> {
        if self.data == Data::New {
            admin.query(&format!("CREATE DATABASE {DATABASE}")).map_err(|error| failed("CREATE DATABASE", &error))?;
        }
        if let Some(port) = port {
            let password = password().map_err(|error| EngineError::failed("/dev/urandom", error.to_string()))?;
            let sql = format!("ALTER ROLE {SUPERUSER} PASSWORD '{password}'");
            admin.query(&sql).map_err(|error| failed("ALTER ROLE", &error))?;
            let admitted =
                self.admit(&password, port).map_err(|error| EngineError::failed(CALL, format!("pgpass: {error}")))?;
            *running.access = admitted;
            running.target.address = Address::Tcp { host: "127.0.0.1".into(), port };
            running.target.password = Secret::new(password);
        }
        running.target.database = Some(DATABASE.into());
        Ok(())
    }

    /// Writes the client's password file and returns the client's command line.
    fn admit(&self, password: &str, port: u16) -> io::Result<Access> {
        let file = self.layout.file("pgpass");
        write_private(&file, &format!("127.0.0.1:{port}:*:{SUPERUSER}:{password}\n"))?;
        let environment = vec![("PGPASSFILE".to_owned(), file.display().to_string())];
        Ok(self.access("127.0.0.1".to_owned(), port, environment, Some(file)))
    }

    fn access(
        &self,
        host: String,
        port: u16,
        environment: Vec<(String, String)>,
        password_file: Option<PathBuf>,
    ) -> Access {
        let client = self.software.client();
        let command = [client, "-h".into(), host, "-p".into(), port.to_string(), "-U".into(), SUPERUSER.into()];
        let command = command.into_iter().chain([DATABASE.to_owned()]).collect();
        Access { environment, command, password_file }
    }

    fn spawn(&self) -> io::Result<Process> {
        let log = OpenOptions::new().create(true).append(true).open(self.layout.log())?;
        let mut command = command(&self.software.program);
        command.arg("-D").arg(self.layout.data()).stdout(log.try_clone()?).stderr(log);
        if let Some(identity) = self.identity {
            identity.take_on(&mut command);
        }
        Process::start(&mut command, SIGNALS)
    }

    /// Writes the server's configuration files into its data directory, and stores the settings with the results.
    fn write_configuration(&self, port: Option<u16>) -> io::Result<()> {
        let data = self.layout.data();
        let text = configuration(&self.plan.lines, port);
        write_private(&data.join("postgresql.conf"), &text)?;
        write_private(&self.layout.kept().join("postgresql.conf"), &text)?;
        // Clear this file, because settings left by ALTER SYSTEM override the configuration.
        write_private(&data.join("postgresql.auto.conf"), "")?;
        // Peer authentication over the socket: only the operating-system user who runs rumba may connect as rumba.
        write_private(&data.join("pg_ident.conf"), &format!("rumba {} {SUPERUSER}\n", own_name()?))?;
        let mut hba = "local all all peer map=rumba\n".to_owned();
        if port.is_some() {
            hba.push_str("host all all 127.0.0.1/32 scram-sha-256\n");
        }
        write_private(&data.join("pg_hba.conf"), &hba)
    }
}

fn configuration(lines: &[Line], port: Option<u16>) -> String {
    let listen = if port.is_some() { "127.0.0.1" } else { "" };
    let port = port.unwrap_or(USUAL_PORT).to_string();
    let own = [
        ("listen_addresses", listen),
        ("port", port.as_str()),
        // The data directory, because its full path may not fit in a socket's address.
        ("unix_socket_directories", "."),
        ("unix_socket_permissions", "0700"),
    ];
    let ours = lines.iter().filter(|line| line.name != "port").map(|line| (line.name.as_str(), line.value.as_str()));
    own.into_iter().chain(ours).map(|(name, value)| format!("{name} = '{}'\n", value.replace('\'', "''"))).collect()
}

/// The name of the user who runs rumba, for peer authentication over the socket.
fn own_name() -> io::Result<String> {
    let user = rustix::process::geteuid().as_raw().to_string();
    let users = fs::read_to_string("/etc/passwd")?;
    let name = users.lines().find_map(|line| {
        let mut fields = line.split(':');
        let name = fields.next()?;
        (fields.nth(1)? == user).then(|| name.to_owned())
    });
    name.ok_or_else(|| io::Error::other(format!("user {user} has no name in /etc/passwd, which the server asks for")))
}

/// Waits until a server accepts a connection.
fn wait(running: &host::Running) -> Result<Admin> {
    running.wait(|target| match Admin::connect(target, Duration::from_secs(10)) {
        Err(error @ PgError::Server { .. }) if !error.is_starting() => {
            Err(EngineError::failed(CALL, format!("it does not let rumba in: {error}")))
        }
        answered => Ok(answered.map_err(|error| error.to_string())),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_quoted_as_the_server_reads_them() {
        let line = Line { name: "search_path".into(), value: "a'b".into(), must_hold: true };
        let text = configuration(&[line], None);
        assert!(text.contains("search_path = 'a''b'\n") && text.contains("listen_addresses = ''\n"), "{text}");
    }
}
