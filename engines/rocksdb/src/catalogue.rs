//! The RocksDB releases that rumba installs, and the paths of their libraries.

use std::fs;
use std::path::{Path, PathBuf};

use rumba_engine_api::server::Catalogue;
use rumba_server_kit::install::{Release, Releases, Software, Summary};
use rumba_server_kit::version::Version;

use crate::library::version_of;

/// All releases, the default one first.
static RELEASES: Releases<Installed> = Releases::new(include_str!("releases.toml"));

/// The RocksDB libraries that rumba can install.
pub fn catalogue() -> impl Catalogue {
    &RELEASES
}

struct Installed {
    path: PathBuf,
    version: Version,
    text: String,
}

impl Software for Installed {
    fn at(base: &Path) -> Result<Self, String> {
        let missing = || format!("{} holds no library of RocksDB", base.display());
        let mut files = fs::read_dir(base).map_err(|_| missing())?.filter_map(|entry| Some(entry.ok()?.path()));
        let (path, text) = files.find_map(|path| version_of(&path).map(|text| (path, text))).ok_or_else(missing)?;
        let version = Version::find(&text).ok_or_else(missing)?;
        Ok(Self { path, version, text })
    }

    fn in_tree(tree: &Path) -> Result<Self, String> {
        Self::at(tree)
    }

    fn summary(&self) -> Summary {
        Summary {
            name: format!("RocksDB {}", self.text),
            version: self.version,
            version_text: self.text.clone(),
            program: self.path.clone(),
        }
    }

    fn holds(&self, engine: &str) -> bool {
        engine == "rocksdb"
    }
}

/// The release used if none is named.
pub fn default_release() -> Option<&'static Release> {
    RELEASES.all().first()
}

/// The library of a release, if installed.
pub fn installed(release: &Release) -> Option<PathBuf> {
    release.software::<Installed>().map(|software| software.path)
}

/// The release that `library` names, such as `rocksdb@10.4`; `None` for a library's path or soname.
///
/// # Errors
/// A name that is not in the catalogue.
pub fn named(library: &Path) -> Result<Option<&'static Release>, String> {
    match library.to_str().filter(|name| name.contains('@') && !name.contains('/')) {
        Some(name) => RELEASES.find(name).map(Some).ok_or_else(|| RELEASES.unknown(name)),
        None => Ok(None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_of_releases_is_sound() {
        assert_eq!(RELEASES.check(), Ok(()));
        assert_eq!(default_release().map(|release| release.name.as_str()), Some("rocksdb@10.4"));
    }

    #[test]
    fn a_release_is_named_by_its_name_and_a_library_by_its_path() {
        let name =
            |library: &str| named(Path::new(library)).map(|release| release.map(|release| release.name.as_str()));
        assert_eq!(name("rocksdb@8.11"), Ok(Some("rocksdb@8.11")));
        assert_eq!(name("librocksdb.so.7.8"), Ok(None));
        assert_eq!(name("/opt/rocksdb@8/librocksdb.so"), Ok(None));
        assert!(name("rocksdb@10.5").is_err_and(|words| words.contains("did you mean `rocksdb@10.4`")));
    }
}
