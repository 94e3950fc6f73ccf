//! Finds the shared library and its version.
//!
//! A process loads only one RocksDB. Two of Debian's cannot share a process: they share libgflags, which ends the
//! process if a flag is defined twice. Other builds share C++ objects that the dynamic loader makes unique in the
//! process.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use rumba_engine_api::engine::Availability;
use rumba_engine_api::error::EngineError;

use crate::catalogue;
use crate::db::Options;
use crate::ffi::{self, Api, LoadError};

/// Names tried in order if no release of the catalogue is installed: Debian 12's, the development package's link, then
/// the sonames of other current distributions.
const NAMES: [&str; 6] = [
    "librocksdb.so.7.8",
    "librocksdb.so",
    "librocksdb.so.9.10",
    "librocksdb.so.9.11",
    "librocksdb.so.8.9",
    "librocksdb.so.10",
];

/// The command that installs the default release, and the alternative without Maven.
const INSTALL: &str = "rumba engines install rocksdb@10.4";
const WITHOUT_MAVEN: &str = "apt-get install librocksdb7.8";

/// A loaded RocksDB.
pub struct Library {
    /// Its functions.
    pub api: Api,
    /// The file it was loaded from, with symbolic links resolved.
    pub path: PathBuf,
}

/// The library of this process, and the requested name.
static LOADED: Mutex<Option<(Option<PathBuf>, Arc<Library>)>> = Mutex::new(None);

impl Library {
    /// Loads the named library, or the first of the default ones; later calls return the same one.
    ///
    /// # Errors
    /// No usable library, or another one is already loaded.
    pub fn load(named: Option<&Path>) -> Result<Arc<Self>, LoadError> {
        let mut slot = LOADED.lock().unwrap_or_else(PoisonError::into_inner);
        let names = names(named)?;
        if let Some((by, library)) = &*slot {
            let same = by.as_deref() == named || named.is_some() && names.iter().any(|name| ffi::is_loaded(name));
            return if same { Ok(library.clone()) } else { Err(LoadError::Another { loaded: library.path.clone() }) };
        }
        let (api, path) = ffi::load(&names)?;
        let library = Arc::new(Self { api, path });
        *slot = Some((named.map(Path::to_owned), library.clone()));
        Ok(library)
    }

    /// The version in the file's name: `7.8.3` of `librocksdb.so.7.8.3`.
    pub fn version(&self) -> Option<String> {
        version_of(&self.path)
    }
}

/// The names for the dynamic loader: the library of a named release, or a named file or soname. By default it is the
/// default release if installed, then the system's libraries.
fn names(named: Option<&Path>) -> Result<Vec<PathBuf>, LoadError> {
    let Some(name) = named else {
        let ours = catalogue::default_release().and_then(catalogue::installed);
        return Ok(ours.into_iter().chain(NAMES.iter().map(PathBuf::from)).collect());
    };
    let not_installed = |words, install| LoadError::NotInstalled { words, install };
    match catalogue::named(name) {
        Ok(None) => Ok(vec![name.to_owned()]),
        Ok(Some(release)) => catalogue::installed(release)
            .map(|path| vec![path])
            .ok_or_else(|| not_installed(format!("{} is not installed", release.about), release.install_command())),
        Err(words) => Err(not_installed(words, INSTALL.to_owned())),
    }
}

/// The version at the end of a file's name, if any.
pub fn version_of(path: &Path) -> Option<String> {
    let (_, version) = path.file_name()?.to_str()?.split_once(".so.")?;
    version.starts_with(|first: char| first.is_ascii_digit()).then(|| version.to_owned())
}

impl LoadError {
    /// Describes the problem.
    pub fn what(&self) -> String {
        match self {
            LoadError::NotLoaded { tried, words } => {
                let tried: Vec<_> = tried.iter().map(|name| name.display().to_string()).collect();
                format!("the RocksDB library is missing (tried {}; {words})", tried.join(", "))
            }
            LoadError::NoSymbol { library, symbol } => {
                format!("{} has no function {symbol}: it is not RocksDB 7.0 or later", library.display())
            }
            LoadError::NotInstalled { words, .. } => words.clone(),
            LoadError::Another { loaded } => {
                format!("this process has loaded {}, and two RocksDB libraries cannot share one", loaded.display())
            }
        }
    }

    /// Describes the remedy.
    pub fn remedy(&self) -> String {
        match self {
            LoadError::Another { .. } => "run each engine in its own process".to_owned(),
            LoadError::NotInstalled { install, .. } => format!("install it with `{install}`"),
            _ => format!(
                "install it with `{INSTALL}` (without Maven `{WITHOUT_MAVEN}`), or name another with \
                 `library = \"/path/to/librocksdb.so\"`"
            ),
        }
    }

    /// Converts the error to an engine error.
    pub fn into_engine_error(self) -> EngineError {
        EngineError::failed("dlopen", format!("{}; {}", self.what(), self.remedy()))
    }
}

/// The availability for `rumba engines`.
pub fn availability(named: Option<&Path>) -> Availability {
    match Library::load(named) {
        Ok(library) => {
            let mut version = library.version();
            if Options::new(&library).built_with_assertions() {
                version = Some(format!("{} (built with assertions)", version.as_deref().unwrap_or("unknown")));
            }
            Availability::here(version, library.path.display().to_string())
        }
        // Only facts that are known without loading this library in addition to the other.
        Err(LoadError::Another { .. }) if file_of(named).is_some() => {
            let path = file_of(named).unwrap_or_default();
            Availability::here(version_of(&path), path.display().to_string())
        }
        Err(LoadError::NotInstalled { words, install }) => {
            Availability::lacking(named.unwrap_or(Path::new("")).display().to_string(), words, install)
        }
        Err(error) => {
            let source = named.map_or_else(|| NAMES[0].to_owned(), |name| name.display().to_string());
            Availability::lacking(source, error.what(), INSTALL)
        }
    }
}

/// The file of a library's name, if it can be found without loading it.
fn file_of(named: Option<&Path>) -> Option<PathBuf> {
    let names = names(Some(named?)).ok()?;
    names.first().filter(|name| name.is_file())?.canonicalize().ok()
}
