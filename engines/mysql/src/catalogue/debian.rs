//! Servers out of Debian's packages, unpacked with all they need into a
//! directory of their own. apt does the finding, the fetching and the verifying
//! (the archive's signature, every package's checksum), with a configuration and
//! a state of its own, so that the system is neither asked for anything nor changed.

use std::env;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use rumba_core::engine::EngineError;
use rumba_core::units::show_bytes;
use serde::Deserialize;

use super::output_of;

/// The unpacked tree within a server's place.
pub const TREE: &str = "tree";
const KEYRING: &str = "/usr/share/keyrings/debian-archive-keyring.gpg";
/// Names the archive where the system's own sources do not.
const MIRROR: &str = "RUMBA_DEBIAN_MIRROR";

/// Packages of one of Debian's suites.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Packages {
    suite: String,
    packages: Vec<String>,
}

impl Packages {
    /// Where it comes from, for people.
    pub fn origin(&self) -> String {
        format!("Debian {}", self.suite)
    }

    /// Fetches, verifies and unpacks the packages and all they depend on.
    pub fn fetch(&self, draft: &Path, say: &mut dyn FnMut(&str)) -> Result<(), EngineError> {
        let apt = Apt::new(&draft.join("apt"), &self.suite)?;
        say(&format!("fetching the list of packages of {}", self.origin()));
        output_of(apt.command("apt-get").arg("update"), "install")?;
        say(&format!("downloading {} and what they need", self.packages.join(", ")));
        let mut download = apt.command("apt-get");
        output_of(download.args(["--yes", "--download-only", "install"]).args(&self.packages), "install")?;
        let archives = apt.archives().map_err(failed)?;
        let bytes: u64 = archives.iter().filter_map(|file| file.metadata().ok()).map(|meta| meta.len()).sum();
        say(&format!(
            "{} packages, {}, signature and checksums verified by apt",
            archives.len(),
            show_bytes(bytes as f64)
        ));
        say("unpacking");
        let tree = draft.join(TREE);
        fs::create_dir(&tree).map_err(failed)?;
        let mut names = Vec::new();
        for archive in &archives {
            output_of(Command::new("dpkg-deb").arg("--extract").arg(archive).arg(&tree), "install")?;
            names.extend(archive.file_name().map(|name| name.to_string_lossy().into_owned()));
        }
        names.sort();
        fs::write(draft.join("packages"), names.join("\n") + "\n").map_err(failed)?;
        // Documents are of no use to a server, and apt's files have done their work.
        for superfluous in ["usr/share/doc", "usr/share/man", "usr/share/locale"] {
            let _ = fs::remove_dir_all(tree.join(superfluous));
        }
        fs::remove_dir_all(draft.join("apt")).map_err(failed)
    }
}

fn failed(error: io::Error) -> EngineError {
    EngineError::failed("install", error.to_string())
}

/// apt with a root of its own.
struct Apt {
    root: PathBuf,
}

impl Apt {
    fn new(root: &Path, suite: &str) -> Result<Self, EngineError> {
        if !Path::new(KEYRING).exists() {
            let message = format!(
                "{KEYRING} is missing, without which Debian's signatures cannot be verified; \
                 install it: apt-get install debian-archive-keyring"
            );
            return Err(EngineError::failed("install", message));
        }
        let mirror = mirror()?;
        for directory in ["state/lists/partial", "cache/archives/partial", "etc"] {
            fs::create_dir_all(root.join(directory)).map_err(failed)?;
        }
        // Nothing is installed as far as this apt knows, so it fetches everything that is needed.
        fs::write(root.join("state/status"), "").map_err(failed)?;
        let source = format!("Types: deb\nURIs: {mirror}\nSuites: {suite}\nComponents: main\nSigned-By: {KEYRING}\n");
        fs::write(root.join("etc/debian.sources"), source).map_err(failed)?;
        fs::write(root.join("apt.conf"), configuration(root)?).map_err(failed)?;
        Ok(Self { root: root.to_owned() })
    }

    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command
            .env("APT_CONFIG", self.root.join("apt.conf"))
            .env("LC_ALL", "C")
            .env("DEBIAN_FRONTEND", "noninteractive");
        command
    }

    fn archives(&self) -> io::Result<Vec<PathBuf>> {
        let entries = fs::read_dir(self.root.join("cache/archives"))?;
        let mut archives: Vec<PathBuf> = entries.map(|entry| Ok(entry?.path())).collect::<io::Result<_>>()?;
        archives.retain(|path| path.extension().is_some_and(|extension| extension == "deb"));
        archives.sort();
        Ok(archives)
    }
}

/// apt's configuration: how the system fetches (proxies and the like), and our own directories.
fn configuration(root: &Path) -> Result<String, EngineError> {
    let dump = output_of(Command::new("apt-config").arg("dump"), "install")?;
    let mut text: String =
        dump.lines().filter(|line| line.starts_with("Acquire::")).map(|line| format!("{line}\n")).collect();
    let own = [
        ("Dir::State", "state"),
        ("Dir::State::status", "state/status"),
        ("Dir::Cache", "cache"),
        ("Dir::Etc", "etc"),
        ("Dir::Etc::sourcelist", "etc/debian.sources"),
        ("Dir::Log", "log"),
    ];
    for (name, path) in own {
        text.push_str(&format!("{name} \"{}\";\n", root.join(path).display()));
    }
    for name in ["main", "parts", "sourceparts", "preferences", "preferencesparts"] {
        text.push_str(&format!("Dir::Etc::{name} \"/dev/null\";\n"));
    }
    // The user apt would become cannot enter a private directory.
    text.push_str("APT::Sandbox::User \"root\";\nDebug::NoLocking \"true\";\nAPT::Install-Recommends \"false\";\n");
    text.push_str("Acquire::Languages \"none\";\nAcquire::IndexTargets::deb::DEP-11::DefaultEnabled \"false\";\n");
    Ok(text)
}

/// The archive's address: the one that this system itself takes Debian's packages from.
fn mirror() -> Result<String, EngineError> {
    if let Some(mirror) = env::var(MIRROR).ok().filter(|mirror| !mirror.is_empty()) {
        return Ok(mirror);
    }
    let format = "$(ORIGIN)|$(LABEL)|$(REPO_URI)";
    let targets = output_of(
        Command::new("apt-get").args(["indextargets", "--format", format, "Created-By: Packages"]),
        "install",
    )?;
    main_archive(&targets).ok_or_else(|| {
        let message = format!(
            "this system's apt has no source of Debian's main archive; \
             name one in the environment variable {MIRROR}"
        );
        EngineError::failed("install", message)
    })
}

/// The main archive among lines of origin, label and address. Without its lists
/// a source tells only its address, which ends in `debian` by custom.
fn main_archive(targets: &str) -> Option<String> {
    let lines = || targets.lines().filter_map(|line| line.rsplit_once('|'));
    let told = lines().find(|(from, _)| *from == "Debian|Debian");
    let by_custom = || lines().find(|(_, address)| address.trim_end_matches('/').ends_with("/debian"));
    told.or_else(by_custom).map(|(_, address)| address.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_archive_is_not_taken_for_its_security_updates_nor_for_a_stranger() {
        let told = "Elsewhere|Elsewhere|http://a.example/node\nDebian|Debian-Security|http://b.example/debian-security\n\
                    Debian|Debian|http://c.example/debian/\n";
        assert_eq!(main_archive(told).as_deref(), Some("http://c.example/debian/"));
        let untold = "||http://b.example/debian-security\n||http://c.example/debian/";
        assert_eq!(main_archive(untold).as_deref(), Some("http://c.example/debian/"));
        assert_eq!(main_archive("||http://a.example/ubuntu"), None);
    }
}
