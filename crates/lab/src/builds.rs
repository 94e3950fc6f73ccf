//! The builds of a run's engines: their versions, the contents of their files, and whether the files have changed
//! since.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rumba_engine_api::engine::{Availability, EngineConfig};

use crate::registry::Registry;
use crate::spec::Experiment;

/// The builds of an experiment's engines, as they are when a run begins.
#[derive(Clone, Debug, Default)]
pub struct Builds {
    versions: BTreeMap<String, String>,
    files: BTreeMap<PathBuf, Seen>,
}

/// The state of a file when it was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Seen {
    stamp: Stamp,
    crc32: u32,
}

/// File metadata that changes with the content, so that a change is seen without reading the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stamp {
    place: (u64, u64),
    bytes: u64,
    changed: (i64, i64),
}

impl Builds {
    /// The builds of an experiment's engines, as far as they are known before the engines run. Each file is read once,
    /// however many engines use it: the tests of a suite, the variants of a setting.
    pub fn of(experiment: &Experiment, registry: &Registry) -> Self {
        let mut builds = Self::default();
        for config in &experiment.engines {
            let engine = registry.engine(&config.engine);
            let version = engine.and_then(|engine| builds.see(engine.availability((config as &EngineConfig).into())));
            if let Some(version) = version {
                builds.versions.insert(config.name.clone(), version);
            }
        }
        builds
    }

    /// The version of each engine by its name in the experiment. For an engine in a file, the checksum is included,
    /// because a rebuilt library has the same version number.
    pub fn versions(&self) -> &BTreeMap<String, String> {
        &self.versions
    }

    /// The first file whose content has changed since the run began.
    pub fn changed(&self) -> Option<&Path> {
        // The content may be the same after a rewrite, so the checksum decides.
        let is_as_it_was = |path: &Path, then: &Seen| {
            stamp(path).is_ok_and(|now| now == then.stamp) || checksum(path).is_ok_and(|now| now == then.crc32)
        };
        self.files.iter().find(|(path, then)| !is_as_it_was(path, then)).map(|(path, _)| path.as_path())
    }

    fn see(&mut self, engine: Availability) -> Option<String> {
        let Availability { version, source, adjacent, .. } = engine;
        let Some(own) = self.sum(Path::new(&source)) else { return version };
        let mut reported =
            format!("{} ({source}, CRC-32 {own:08x}", version.as_deref().unwrap_or("of an unknown version"));
        for path in adjacent {
            if let (Some(sum), Some(name)) = (self.sum(&path), path.file_name()) {
                reported += &format!("; {}, CRC-32 {sum:08x}", name.display());
            }
        }
        Some(reported + ")")
    }

    /// The checksum of a file; `None` where there is no file, as for a built-in engine.
    fn sum(&mut self, path: &Path) -> Option<u32> {
        if let Some(seen) = self.files.get(path) {
            return Some(seen.crc32);
        }
        let seen = Seen { stamp: stamp(path).ok()?, crc32: checksum(path).ok()? };
        self.files.insert(path.to_owned(), seen);
        Some(seen.crc32)
    }
}

fn stamp(path: &Path) -> io::Result<Stamp> {
    let file = std::fs::metadata(path)?;
    Ok(Stamp { place: (file.dev(), file.ino()), bytes: file.len(), changed: (file.ctime(), file.ctime_nsec()) })
}

/// Reads in pieces, because a server's file may have a hundred megabytes.
fn checksum(path: &Path) -> io::Result<u32> {
    let mut file = BufReader::new(File::open(path)?);
    let mut sum = crc32fast::Hasher::new();
    loop {
        let bytes = file.fill_buf()?;
        if bytes.is_empty() {
            return Ok(sum.finalize());
        }
        sum.update(bytes);
        let read = bytes.len();
        file.consume(read);
    }
}

#[cfg(test)]
mod tests {
    use std::fs::{rename, write};

    use super::*;

    #[test]
    fn rebuilt_plugin_is_a_new_build_and_rewritten_copy_is_not() {
        let dir = tempfile::tempdir().unwrap();
        let (server, plugin) = (dir.path().join("server"), dir.path().join("ha_engine.so"));
        write(&server, "server").unwrap();
        write(&plugin, "plugin").unwrap();
        let here = || {
            let here = Availability::here(Some("1.2".into()), server.display().to_string());
            Availability { adjacent: vec![plugin.clone()], ..here }
        };
        let (mut then, mut now) = (Builds::default(), Builds::default());
        let reported = then.see(here()).unwrap();
        assert!(reported.starts_with("1.2 (") && reported.contains("; ha_engine.so, CRC-32 "), "{reported}");
        write(dir.path().join("new"), "plugin").unwrap();
        rename(dir.path().join("new"), &plugin).unwrap();
        assert_eq!(then.changed(), None);
        write(&plugin, "nigulp").unwrap();
        assert_eq!(then.changed(), Some(&*plugin));
        assert_ne!(now.see(here()).unwrap(), reported);
        std::fs::remove_file(&plugin).unwrap();
        assert_eq!(then.changed(), Some(&*plugin));
    }

    #[test]
    fn built_in_engine_has_a_version_and_no_file() {
        let mut builds = Builds::default();
        assert_eq!(builds.see(Availability::built_in("3.1")).as_deref(), Some("3.1"));
        assert_eq!(builds.see(Availability::here(None, "a server")), None);
        let file = tempfile::NamedTempFile::new().unwrap();
        let unreported = builds.see(Availability::here(None, file.path().display().to_string())).unwrap();
        assert!(unreported.starts_with("of an unknown version ("), "{unreported}");
        assert_eq!(builds.changed(), None);
    }
}
