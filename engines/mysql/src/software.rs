//! Finds a server's programs and files.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use rumba_server_kit::cache::stamp;
use rumba_server_kit::install::Summary;
use rumba_server_kit::loader::{Loader, library_directories};
use rumba_server_kit::version::{self, Version};
use serde::{Deserialize, Serialize};

/// The server's brand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Brand {
    /// MariaDB.
    #[serde(rename = "mariadb")]
    MariaDb,
    /// MySQL and servers built from it (Percona Server).
    #[serde(rename = "mysql")]
    MySql,
}

impl Brand {
    /// The brand's usual spelling.
    pub fn name(self) -> &'static str {
        match self {
            Brand::MariaDb => "MariaDB",
            Brand::MySql => "MySQL",
        }
    }
}

/// A server's software.
#[derive(Clone, Debug)]
pub struct Software {
    /// The server's brand.
    pub brand: Brand,
    /// Its version.
    pub version: Version,
    /// The version as the server prints it: `10.11.14-MariaDB-0+deb12u2`.
    pub version_text: String,
    /// The server's program.
    pub program: PathBuf,
    /// The base directory.
    pub base: PathBuf,
    /// The directory of its error messages by language.
    pub messages: PathBuf,
    /// The directory of its character sets.
    pub charsets: PathBuf,
    /// The directories that may contain its own SQL files.
    pub shares: Vec<PathBuf>,
    /// The directory of its plugins, if it has one.
    pub plugins: Option<PathBuf>,
    /// An allocator to preload.
    pub allocator: Option<PathBuf>,
    loader: Option<Loader>,
}

const PROGRAMS: [&str; 7] =
    ["bin/mariadbd", "sbin/mariadbd", "libexec/mariadbd", "bin/mysqld", "sbin/mysqld", "libexec/mysqld", "mysqld"];
const SHARES: [&str; 4] = ["share/mysql", "share/mariadb", "share", "share/mysql-8.0"];
const PLUGINS: [&str; 7] = [
    "lib/mysql/plugin",
    "lib/plugin",
    "lib64/mysql/plugin",
    "lib/mariadb/plugin",
    "lib64/mariadb/plugin",
    "lib64/plugin",
    "lib/mariadb19/plugin",
];

impl rumba_server_kit::install::Software for Software {
    fn at(base: &Path) -> Result<Self, String> {
        let mut software = Self::look(base, None)?;
        software.allocator = software.wants_allocator().then(system_allocator).flatten();
        Ok(software)
    }

    fn in_tree(tree: &Path) -> Result<Self, String> {
        let mut software = Self::look(&tree.join("usr"), Loader::of(tree))?;
        if software.wants_allocator() {
            let files = library_directories(tree).into_iter().map(|dir| dir.join(ALLOCATOR));
            software.allocator = files.into_iter().find(|file| file.exists());
        }
        Ok(software)
    }

    fn summary(&self) -> Summary {
        Summary {
            name: format!("{} {}", self.brand.name(), self.version_text),
            version: self.version,
            version_text: self.version_text.clone(),
            program: self.program.clone(),
        }
    }

    /// The plugins of engines and of their compression.
    fn adjacent(&self) -> Vec<PathBuf> {
        let is_loaded = |name: &str| {
            name.strip_suffix(".so").is_some_and(|name| name.starts_with("ha_") || name.starts_with("provider_"))
        };
        let all = self.plugins.iter().filter_map(|dir| fs::read_dir(dir).ok()).flatten().flatten();
        let mut all: Vec<PathBuf> =
            all.filter(|entry| entry.file_name().to_str().is_some_and(is_loaded)).map(|entry| entry.path()).collect();
        all.sort();
        all
    }

    /// Whether an engine is present, as far as plugins show it.
    fn holds(&self, engine: &str) -> bool {
        match engine {
            "myrocks" => self.has_plugin("ha_rocksdb"),
            "tokudb" => self.has_plugin("ha_tokudb"),
            _ => true,
        }
    }
}

impl Software {
    fn look(base: &Path, loader: Option<Loader>) -> Result<Self, String> {
        let there = |names: &[&str]| names.iter().map(|name| base.join(name)).filter(|path| path.exists()).collect();
        let programs: Vec<PathBuf> = there(&PROGRAMS);
        let program = programs.into_iter().next().ok_or_else(|| {
            let base = base.display();
            format!("{base} holds no server: mysqld and mariadbd are neither in it nor in its bin, sbin or libexec")
        })?;
        let shares: Vec<PathBuf> = there(&SHARES);
        let having = |what: &str| shares.iter().find(|share| share.join(what).exists()).cloned();
        let messages = having("english/errmsg.sys").ok_or_else(|| {
            let what = "holds no share directory with english/errmsg.sys, without which its server does not start";
            format!("{} {what}", base.display())
        })?;
        let charsets = having("charsets/Index.xml").unwrap_or_else(|| messages.clone()).join("charsets");
        let plugins: Vec<PathBuf> = there(&PLUGINS);
        let mut software = Self {
            brand: Brand::MySql,
            version: Version(0, 0, 0),
            version_text: String::new(),
            program,
            base: base.to_owned(),
            messages,
            charsets,
            shares,
            plugins: plugins.into_iter().next(),
            allocator: None,
            loader,
        };
        software.request_version()?;
        Ok(software)
    }

    /// Parses `--version`, which prints `mariadbd  Ver 10.11.14-MariaDB-0+deb12u2 for debian-linux-gnu …`.
    fn request_version(&mut self) -> Result<(), String> {
        let wrong = |cause: &str| format!("{} does not report its version: {}", self.program.display(), cause.trim());
        let mut command = self.command();
        command.args(["--no-defaults", "--version"]).stdin(Stdio::null());
        let output = version::reported(&self.program, &mut command).map_err(|error| wrong(&error.to_string()))?;
        let text = String::from_utf8_lossy(&output.stdout);
        let mut words = text.split_whitespace().skip_while(|word| *word != "Ver").skip(1);
        let version_text = words.next().unwrap_or_default().to_owned();
        let Some(version) = Version::find(&version_text) else {
            let errors = String::from_utf8_lossy(&output.stderr);
            return Err(wrong(&format!("{} {}", text.trim(), errors.trim())));
        };
        let is_maria = version_text.to_ascii_lowercase().contains("mariadb");
        (self.version, self.brand) = (version, if is_maria { Brand::MariaDb } else { Brand::MySql });
        self.version_text = version_text;
        Ok(())
    }

    /// MariaDB is meant to run with jemalloc. MySQL includes its own allocator if it needs one.
    fn wants_allocator(&self) -> bool {
        self.brand == Brand::MariaDb || self.has_plugin("ha_rocksdb")
    }

    /// A command that runs the server's program, with its own loader if it has one.
    pub fn command(&self) -> Command {
        match &self.loader {
            Some(loader) => loader.command(&self.program),
            None => Command::new(&self.program),
        }
    }

    /// The client program: the one next to the server if the server is not the system's, else the first one on the
    /// path. A client from a package tree would also need the tree's loader.
    pub fn client(&self) -> String {
        let names: &[&str] = match self.brand {
            Brand::MariaDb => &["mariadb", "mysql"],
            Brand::MySql => &["mysql"],
        };
        let is_apart = self.loader.is_none() && self.base != Path::new("/usr");
        let adjacent = names.iter().map(|name| self.base.join("bin").join(name)).find(|path| is_apart && path.exists());
        adjacent.map_or_else(|| names[0].to_owned(), |path| path.display().to_string())
    }

    /// Options with the paths of the server's parts, because its built-in paths are valid only where it was installed.
    pub fn options(&self) -> Vec<(String, String)> {
        let mut options = vec![
            ("basedir".to_owned(), self.base.display().to_string()),
            ("lc_messages_dir".to_owned(), self.messages.display().to_string()),
            ("character_sets_dir".to_owned(), self.charsets.display().to_string()),
        ];
        if let Some(plugins) = &self.plugins {
            options.push(("plugin_dir".to_owned(), plugins.display().to_string()));
        }
        // The built-in directory need not exist here, and the server does not start without it.
        if self.brand == Brand::MySql && self.version >= Version(5, 7, 0) {
            options.push(("secure_file_priv".to_owned(), "NULL".to_owned()));
        }
        // Servers refuse to run as root unless `user=root` is set.
        if rustix::process::geteuid().is_root() {
            options.push(("user".to_owned(), "root".to_owned()));
        }
        options
    }

    /// Whether a plugin's library exists: `ha_rocksdb`.
    pub fn has_plugin(&self, name: &str) -> bool {
        self.plugins.as_ref().is_some_and(|dir| dir.join(format!("{name}.so")).exists())
    }

    /// Finds one of the server's own SQL files by any of its names.
    pub fn sql_file(&self, names: &[&str]) -> Option<PathBuf> {
        self.shares.iter().flat_map(|share| names.iter().map(|name| share.join(name))).find(|file| file.exists())
    }

    /// A text that differs between any two builds: the program's path, size and modification time, and the plugins next
    /// to it.
    pub fn build(&self) -> String {
        let plugins = rumba_server_kit::install::Software::adjacent(self);
        std::iter::once(&self.program).chain(&plugins).map(|path| stamp(path)).collect::<Vec<_>>().join("\n")
    }

    /// A short name for messages and file names: `mariadb-10.11.14`.
    pub fn short_name(&self) -> String {
        format!("{}-{}", self.brand.name().to_ascii_lowercase(), self.version)
    }
}

const ALLOCATOR: &str = "libjemalloc.so.2";

/// The system's jemalloc, where Debian, Fedora and others put it.
fn system_allocator() -> Option<PathBuf> {
    let mut dirs = library_directories(Path::new("/"));
    dirs.push("/usr/lib64".into());
    dirs.into_iter().map(|dir| dir.join(ALLOCATOR)).find(|file| file.exists())
}

#[cfg(test)]
mod tests {
    use rumba_server_kit::install::Software as _;

    use super::*;

    #[test]
    fn directory_without_a_server_names_the_missing_program() {
        let dir = tempfile::tempdir().unwrap();
        let error = Software::at(dir.path()).unwrap_err();
        assert!(error.contains("mysqld and mariadbd"), "{error}");
    }
}
