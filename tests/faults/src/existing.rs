//! An existing server: a MariaDB as a user would run it, which rumba reaches by a DSN.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use rumba_protocol_mysql::{Address, Admin, Secret, Target, Tls};
use rustix::process::Signal;

use crate::host;
use crate::trouble::{Doing, Trouble};

/// Its program.
pub const PROGRAM: &str = "/usr/sbin/mariadbd";
/// The schema that rumba uses. It does not exist before.
const SCHEMA: &str = "lab";
/// How long it may take to start, and to end.
const PATIENCE: Duration = Duration::from_secs(60);

/// The server; it ends when it is dropped.
pub struct Existing {
    dir: PathBuf,
    process: Option<Child>,
}

impl Existing {
    /// Makes one below a directory.
    pub fn make(base: &Path) -> Result<Self, Trouble> {
        let dir = base.join("existing");
        let _ = fs::remove_dir_all(&dir);
        fs::create_dir_all(&dir).doing("making the directory of the existing server")?;
        let existing = Self { dir, process: None };
        let mut install = Command::new("mariadb-install-db");
        install.args(["--no-defaults", "--auth-root-authentication-method=normal", "--skip-test-db"]);
        install.args(existing.common()).stdin(Stdio::null());
        let installed = install.output().doing("mariadb-install-db")?;
        if !installed.status.success() {
            return Err(Trouble::new("mariadb-install-db", crate::place::text(&installed)));
        }
        Ok(existing)
    }

    fn common(&self) -> Vec<String> {
        let mut common = vec![
            format!("--datadir={}", self.dir.join("data").display()),
            // Starting servers remove each other's files from a shared directory.
            format!("--tmpdir={}", self.dir.display()),
        ];
        if rustix::process::geteuid().is_root() {
            common.push("--user=root".to_owned());
        }
        common
    }

    fn socket(&self) -> PathBuf {
        self.dir.join("s")
    }

    /// Starts it, unless it runs, and waits until it answers.
    pub fn serve(&mut self) -> Result<(), Trouble> {
        if self.pid().is_some() {
            return Ok(());
        }
        let mut command = Command::new(PROGRAM);
        command.args(["--no-defaults", "--skip-networking"]).args(self.common());
        command.arg(format!("--socket={}", self.socket().display()));
        command.arg(format!("--pid-file={}", self.dir.join("pid").display()));
        command.arg(format!("--log-error={}", self.dir.join("error.log").display()));
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        self.process = Some(command.spawn().doing(PROGRAM)?);
        let since = Instant::now();
        loop {
            match self.connect() {
                Ok(_) => return Ok(()),
                Err(error) if since.elapsed() > PATIENCE || self.pid().is_none() => return Err(error),
                Err(_) => sleep(Duration::from_millis(50)),
            }
        }
    }

    /// Its process, while it runs.
    pub fn pid(&mut self) -> Option<u32> {
        let process = self.process.as_mut()?;
        match process.try_wait() {
            Ok(None) => Some(process.id()),
            _ => None,
        }
    }

    /// Ends it by a signal, and waits for it.
    pub fn end(&mut self, signal: Signal) -> Result<(), Trouble> {
        let Some(pid) = self.pid() else { return Ok(()) };
        host::signal(pid, signal)?;
        let since = Instant::now();
        while self.pid().is_some() {
            if since.elapsed() > PATIENCE {
                return Err(Trouble::new("ending the existing server", "it runs on"));
            }
            sleep(Duration::from_millis(10));
        }
        Ok(())
    }

    /// The setting that sends rumba there.
    pub fn requests(&self) -> String {
        format!("server=mysql://root@/{SCHEMA}?socket={}", self.socket().display())
    }

    fn connect(&self) -> Result<Admin, Trouble> {
        let target = Target {
            address: Address::Socket(self.socket()),
            user: "root".into(),
            password: Secret::new(String::new()),
            database: None,
            tls: Tls::Off,
        };
        Admin::connect(&target, PATIENCE).doing("connecting to the existing server")
    }

    fn rows(&self, sql: &str) -> Result<Vec<Vec<Option<String>>>, Trouble> {
        Ok(self.connect()?.query(sql).doing(sql)?.rows)
    }

    /// Its configuration as it is now.
    pub fn variables(&self) -> Result<BTreeMap<String, String>, Trouble> {
        let pair = |row: Vec<Option<String>>| {
            let mut cells = row.into_iter().map(Option::unwrap_or_default);
            Some((cells.next()?, cells.next()?))
        };
        Ok(self.rows("SHOW GLOBAL VARIABLES")?.into_iter().filter_map(pair).collect())
    }

    /// Whether the schema that rumba makes is there.
    pub fn has_schema(&self) -> Result<bool, Trouble> {
        Ok(!self.rows(&format!("SHOW DATABASES LIKE '{SCHEMA}'"))?.is_empty())
    }
}

impl Drop for Existing {
    fn drop(&mut self) {
        if let Some(mut process) = self.process.take() {
            // An error is fine if it has ended; it must not remain.
            let _ = process.kill();
            let _ = process.wait();
        }
        let _ = fs::remove_dir_all(&self.dir);
    }
}
