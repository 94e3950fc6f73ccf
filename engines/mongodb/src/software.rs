//! Finds a server's programs.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use rumba_server_kit::install::{self, Summary};
use rumba_server_kit::loader::Loader;
use rumba_server_kit::version::{Version, reported};

use crate::brand::Brand;

/// A server's software.
#[derive(Clone, Debug)]
pub struct Software {
    /// The server's vendor.
    pub brand: Brand,
    /// Its program.
    pub program: PathBuf,
    /// The version, if the program reports one: `7.0.5`.
    pub version: Option<String>,
    loader: Option<Loader>,
}

/// The directory of the program in the tree of an installed release.
const IN_TREE: &str = "fiftyone/db/bin";

impl install::Software for Software {
    fn at(base: &Path) -> Result<Self, String> {
        Self::at(Brand::MongoDb, base)
    }

    fn in_tree(tree: &Path) -> Result<Self, String> {
        Self::of(Brand::MongoDb, tree.join(IN_TREE).join("mongod"), Loader::of(tree))
    }

    fn summary(&self) -> Summary {
        let version_text = self.version.clone().unwrap_or_default();
        Summary {
            name: format!("{} {version_text}", self.brand.name()),
            version: Version::find(&version_text).unwrap_or(Version(0, 0, 0)),
            version_text,
            program: self.program.clone(),
        }
    }

    fn holds(&self, engine: &str) -> bool {
        engine == "mongodb"
    }
}

/// Places for the program below a base directory.
const PLACES: [&str; 3] = ["bin", ".", "target/release"];

impl Software {
    /// Finds the server in a base directory, or takes the path of the program itself.
    ///
    /// # Errors
    /// The missing file.
    pub fn at(brand: Brand, base: &Path) -> Result<Self, String> {
        let named = |path: &Path| {
            let name = path.file_name().and_then(|name| name.to_str());
            path.is_file() && name.is_some_and(|name| brand.programs().contains(&name))
        };
        if named(base) {
            return Self::of(brand, base.to_owned(), None);
        }
        let all = PLACES.iter().flat_map(|place| brand.programs().iter().map(move |name| base.join(place).join(name)));
        match all.into_iter().find(|path| named(path)) {
            Some(program) => Self::of(brand, program, None),
            None => {
                let programs = brand.programs().join(" or ");
                Err(format!("{} holds no server: there is no {programs} in it, nor in its bin", base.display()))
            }
        }
    }

    /// Finds the server on the path.
    pub fn on_path(brand: Brand) -> Option<Self> {
        let path = std::env::var_os("PATH")?;
        let mut places = std::env::split_paths(&path);
        places.find_map(|place| {
            let mut programs = brand.programs().iter().map(|name| place.join(name));
            programs.find(|program| program.is_file()).and_then(|program| Self::of(brand, program, None).ok())
        })
    }

    fn of(brand: Brand, program: PathBuf, loader: Option<Loader>) -> Result<Self, String> {
        let mut software = Self { brand, program, version: None, loader };
        // SecantusDB's programs report a version only when running, and that is MongoDB's.
        if brand == Brand::MongoDb {
            software.version = Some(software.request_version()?);
        }
        Ok(software)
    }

    /// Software that need not exist, for tests.
    #[cfg(test)]
    pub fn unchecked(brand: Brand, program: PathBuf) -> Self {
        Self { brand, program, version: None, loader: None }
    }

    /// A command that runs the server's program, with its own loader if it has one.
    pub fn command(&self) -> Command {
        match &self.loader {
            Some(loader) => loader.command(&self.program),
            None => Command::new(&self.program),
        }
    }

    /// Parses the output of `--version`, which begins with `db version v7.0.5`.
    fn request_version(&self) -> Result<String, String> {
        let wrong = |cause: &str| format!("{} does not report its version: {}", self.program.display(), cause.trim());
        let output = reported(&self.program, self.command().arg("--version").stdin(Stdio::null()));
        let output = output.map_err(|error| wrong(&error.to_string()))?;
        let text = String::from_utf8_lossy(&output.stdout);
        version_in(&text).ok_or_else(|| wrong(&format!("{text} {}", String::from_utf8_lossy(&output.stderr))))
    }

    /// The server's name, version and program for the record.
    pub fn described(&self) -> String {
        let version = self.version.as_deref().map(|version| format!(" {version}")).unwrap_or_default();
        format!("{}{version} from {}", self.brand.name(), self.program.display())
    }
}

fn version_in(text: &str) -> Option<String> {
    let line = text.lines().next()?.trim();
    line.strip_prefix("db version v").map(|version| version.trim_end_matches(',').to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn server_is_found_by_program_and_identified_by_version() {
        let dir = tempfile::tempdir().unwrap();
        let error = Software::at(Brand::MongoDb, dir.path()).unwrap_err();
        assert!(error.contains("no mongod in it"), "{error}");
        let bin = dir.path().join("bin");
        std::fs::create_dir(&bin).unwrap();
        let program = bin.join("secantusd-py");
        std::fs::write(&program, "").unwrap();
        let found = Software::at(Brand::SecantusDb, dir.path()).unwrap();
        assert_eq!((found.program.as_path(), found.version.as_deref()), (program.as_path(), None));
        assert_eq!(Software::at(Brand::SecantusDb, &program).unwrap().program, found.program);
        assert_eq!(version_in("db version v4.0.28\ngit version: x\n").as_deref(), Some("4.0.28"));
        assert_eq!(version_in("mongos"), None);
    }
}
