//! The needs of a test: facilities of the machine that runs it.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Mutex, OnceLock, PoisonError};

use rumba_engine_api::engine::ExternalLibrary;

use crate::probe;

/// A facility that a test cannot run without, and that is looked for on the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Need {
    /// The rights of root.
    Root,
    /// Two CPUs on which this process may run.
    TwoCpus,
    /// To mount a file system in memory.
    Tmpfs,
    /// To make network namespaces and links between them.
    NetworkNamespaces,
    /// The packages of Slurm, which `scripts/three-hosts` downloads.
    ThreeHosts,
    /// To make an ext4 on a loop device and mount it.
    LoopDevice,
    /// The device of FUSE.
    Fuse,
    /// Limits of operations and bytes of a device, by control groups.
    StorageRates,
    /// A limit of memory: a control group of either version, or a scope of the user's systemd.
    MemoryGroup,
    /// A temporary directory whose pages the kernel caches.
    PageCache,
    /// A C compiler.
    CCompiler,
    /// The header of WiredTiger 3.2.
    WiredTigerHeader,
    /// The server of Debian's package mariadb-server, in /usr/sbin.
    MariaDb,
    /// The client `mariadb`.
    MariaDbClient,
    /// MariaDB's plugin MyRocks.
    MyRocks,
    /// The programs of Debian's package postgresql-15.
    PostgreSql,
    /// The program of Debian's package pgbouncer.
    PgBouncer,
    /// The server SecantusDB, in the build's tools, where `scripts/setup test` puts it.
    SecantusDb,
    /// A server of the catalogue: `Server("mysql@9.7")`. Only for tests of the crate rumba, because its program reports
    /// it.
    Server(&'static str),
    /// The program openssl.
    Openssl,
    /// The program sysbench.
    Sysbench,
    /// The program valgrind.
    Valgrind,
    /// The program node.
    Node,
    /// The program perf, which may sample processes of this user.
    Perf,
    /// A file or a directory that the user provides: `ExternalLibrary(LIBRARY)`, with a constant of the engine's.
    ExternalLibrary(ExternalLibrary),
}

/// As written below a test, `Server("mysql@9.7")`; a user-provided need is named by its variable:
/// `ExternalLibrary("RUMBA_NAME")`.
impl fmt::Display for Need {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Need::ExternalLibrary(brought) => write!(f, "ExternalLibrary({:?})", brought.variable),
            need => write!(f, "{need:?}"),
        }
    }
}

/// A need that is not met.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Missing {
    /// The need.
    pub need: Need,
    /// Why it is missing, if known, and a remedy.
    pub why: String,
}

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "needs {}: {}", self.need, self.why)
    }
}

impl Need {
    /// Why this machine does not have it; checked once in each process.
    pub fn missing(self) -> Option<Missing> {
        static FOUND: Mutex<BTreeMap<Need, Option<String>>> = Mutex::new(BTreeMap::new());
        let mut found = FOUND.lock().unwrap_or_else(PoisonError::into_inner);
        let why = found.entry(self).or_insert_with(|| probe_for(self).err()).clone()?;
        Some(Missing { need: self, why })
    }
}

fn probe_for(need: Need) -> Result<(), String> {
    if denied().contains(&need.to_string()) {
        return Err(format!("{DENIED} says so"));
    }
    match need {
        Need::Root => probe::root(),
        Need::TwoCpus => probe::two_cpus(),
        Need::Tmpfs => probe::tmpfs(),
        Need::NetworkNamespaces => probe::network_namespaces(),
        Need::ThreeHosts => probe::three_hosts(),
        Need::LoopDevice => probe::loop_device(),
        Need::Fuse => probe::fuse(),
        Need::StorageRates => probe::storage_rates(),
        Need::MemoryGroup => probe::memory_group(),
        Need::PageCache => probe::page_cache(),
        Need::CCompiler => probe::program("cc", "gcc libc6-dev"),
        Need::WiredTigerHeader => probe::file("/usr/include/wiredtiger.h", "libwiredtiger-dev"),
        Need::MariaDb => probe::file("/usr/sbin/mariadbd", "mariadb-server"),
        Need::MariaDbClient => probe::program("mariadb", "mariadb-client"),
        Need::MyRocks => probe::file("/usr/lib/mysql/plugin/ha_rocksdb.so", "mariadb-plugin-rocksdb"),
        Need::PostgreSql => probe::file("/usr/lib/postgresql/15/bin/postgres", "postgresql-15"),
        Need::PgBouncer => probe::file("/usr/sbin/pgbouncer", "pgbouncer"),
        Need::SecantusDb => probe::built(&crate::secantusdb::program()),
        Need::Server(name) => probe::server(RUMBA.get().copied().flatten(), name),
        Need::Openssl => probe::program("openssl", "openssl"),
        Need::Sysbench => probe::program("sysbench", "sysbench"),
        Need::Valgrind => probe::program("valgrind", "valgrind"),
        Need::Node => probe::program("node", "nodejs"),
        Need::Perf => probe::perf(),
        Need::ExternalLibrary(brought) => probe::brought(brought),
    }
}

/// Needs that count as missing, separated by spaces: to test the behaviour of a machine without them.
const DENIED: &str = "RUMBA_TESTS_WITHOUT";

fn denied() -> Vec<String> {
    std::env::var(DENIED).unwrap_or_default().split_whitespace().map(str::to_owned).collect()
}

static RUMBA: OnceLock<Option<&'static str>> = OnceLock::new();

pub(crate) fn rumba_is_at(program: Option<&'static str>) {
    RUMBA.get_or_init(|| program);
}

pub(crate) fn first_missing(needs: &[Need]) -> Option<Missing> {
    needs.iter().find_map(|need| need.missing())
}

static SKIPPED: Mutex<BTreeMap<String, String>> = Mutex::new(BTreeMap::new());

pub(crate) fn note_skipped(path: &str, missing: &Missing) {
    SKIPPED.lock().unwrap_or_else(PoisonError::into_inner).insert(path.to_owned(), missing.to_string());
}

/// A line for each skipped test; `scripts/test` reads them.
pub(crate) fn skipped(package: &str) -> String {
    let skipped = SKIPPED.lock().unwrap_or_else(PoisonError::into_inner);
    skipped.iter().map(|(path, why)| format!("skipped: {package} {path} {why}\n")).collect()
}
