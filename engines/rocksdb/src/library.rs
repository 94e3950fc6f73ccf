//! The shared library: where it is looked for, and which version it is.
//!
//! A process loads one RocksDB. Two of Debian's cannot be in one process: they
//! share libgflags, which ends the process when a flag is defined twice. Others
//! share C++ objects that the dynamic loader makes unique in the process.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use rumba_core::engine::Availability;
use rumba_core::error::EngineError;

use crate::db::Options;
use crate::ffi::{self, Api, LoadError};

/// Names tried in order: what Debian 12 installs, whatever the development
/// package points at, then the sonames of other current distributions.
const NAMES: [&str; 6] = [
    "librocksdb.so.7.8",
    "librocksdb.so",
    "librocksdb.so.9.10",
    "librocksdb.so.9.11",
    "librocksdb.so.8.9",
    "librocksdb.so.10",
];

/// The command that installs the run-time library on Debian 12.
const INSTALL: &str = "apt-get install librocksdb7.8";

/// A loaded RocksDB.
pub struct Library {
    /// Its functions.
    pub api: Api,
    /// The file it came from, symbolic links followed.
    pub path: PathBuf,
}

/// The library of this process, and the name it was asked for by.
static LOADED: Mutex<Option<(Option<PathBuf>, Arc<Library>)>> = Mutex::new(None);

impl Library {
    /// Loads the library named, or the first of the usual ones; later calls
    /// give the same.
    ///
    /// # Errors
    /// None that can be used, or another one is loaded already.
    pub fn load(named: Option<&Path>) -> Result<Arc<Self>, LoadError> {
        let mut slot = LOADED.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((by, library)) = &*slot {
            let same = by.as_deref() == named || named.is_some_and(ffi::is_loaded);
            return if same { Ok(library.clone()) } else { Err(LoadError::Another { loaded: library.path.clone() }) };
        }
        let names: Vec<PathBuf> = match named {
            Some(name) => vec![name.to_owned()],
            None => NAMES.iter().map(PathBuf::from).collect(),
        };
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

/// The version that a file's name ends with, if any.
fn version_of(path: &Path) -> Option<String> {
    let (_, version) = path.file_name()?.to_str()?.split_once(".so.")?;
    version.starts_with(|first: char| first.is_ascii_digit()).then(|| version.to_owned())
}

impl LoadError {
    /// What is wrong, for a person.
    pub fn what(&self) -> String {
        match self {
            LoadError::NotLoaded { tried, words } => {
                let tried: Vec<_> = tried.iter().map(|name| name.display().to_string()).collect();
                format!("the RocksDB library is missing (tried {}; {words})", tried.join(", "))
            }
            LoadError::NoSymbol { library, symbol } => {
                format!("{} has no function {symbol}: it is not a RocksDB that can be used here", library.display())
            }
            LoadError::Another { loaded } => {
                format!("this process has loaded {}, and two RocksDB libraries cannot share one", loaded.display())
            }
        }
    }

    /// What to do about it.
    pub fn remedy(&self) -> String {
        match self {
            LoadError::Another { .. } => "run each engine in a process of its own".to_owned(),
            _ => format!("install it with `{INSTALL}`, or name another with `library = \"/path/to/librocksdb.so\"`"),
        }
    }

    /// As a failure to open.
    pub fn into_engine_error(self) -> EngineError {
        EngineError::failed("dlopen", format!("{}; {}", self.what(), self.remedy()))
    }
}

/// What is here, for `rumba engines`.
pub fn availability(named: Option<&Path>) -> Availability {
    match Library::load(named) {
        Ok(library) => {
            let mut version = library.version();
            if Options::new(&library).built_with_assertions() {
                version = Some(format!("{} (built with assertions)", version.as_deref().unwrap_or("unknown")));
            }
            Availability::here(version, library.path.display().to_string())
        }
        // What can be known of it without loading it beside the other.
        Err(LoadError::Another { .. }) if named.is_some_and(Path::is_file) => {
            let path = named.and_then(|name| name.canonicalize().ok()).unwrap_or_default();
            Availability::here(version_of(&path), path.display().to_string())
        }
        Err(error) => {
            let source = named.map_or_else(|| NAMES[0].to_owned(), |name| name.display().to_string());
            Availability::lacking(source, error.what(), INSTALL)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_is_read_from_the_real_file_name() {
        assert_eq!(version_of(Path::new("/usr/lib/librocksdb.so.7.8.3")), Some("7.8.3".into()));
        assert_eq!(version_of(Path::new("/opt/librocksdb.so")), None);
    }
}
