//! Installs servers from Debian packages, unpacked with all dependencies into a separate directory. apt finds,
//! downloads and verifies them (the archive's signature, every package's checksum). It uses a separate configuration
//! and state, so the system's apt is neither used nor changed.

use std::env;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use rumba_engine_api::error::{EngineError, Result};
use rumba_engine_api::units::show_bytes;
use serde::Deserialize;

use super::failed;
use crate::command::{output_of, progress_of};

/// The unpacked tree within a server's directory.
pub const TREE: &str = "tree";
const KEYRING: &str = "/usr/share/keyrings/debian-archive-keyring.gpg";
/// The variable that names the archive if the system's sources do not.
pub const MIRROR: &str = "RUMBA_DEBIAN_MIRROR";

/// Packages of a Debian suite.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Packages {
    suite: String,
    packages: Vec<String>,
    /// The base suite for an incomplete suite such as `experimental`.
    base: Option<Base>,
}

/// The suite that another one extends.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Base {
    suite: String,
    /// The source package to take from the extending suite; all others come from this one.
    source: String,
}

impl Packages {
    /// The origin, for people.
    pub fn origin(&self) -> String {
        format!("Debian {}", self.suite)
    }

    /// Downloads, verifies and unpacks the packages and all their dependencies.
    pub fn fetch(&self, draft: &Path, say: &mut dyn FnMut(&str)) -> Result<()> {
        let apt = Apt::new(&draft.join("apt"), &self.suite, self.base.as_ref(), "deb")?;
        apt.update(say)?;
        self.download(&apt, say)?;
        say("signature and checksums verified by apt; unpacking");
        let archives = apt.archives().map_err(|error| failed(&apt.root, &error))?;
        unpack(&archives, draft)?;
        fs::remove_dir_all(&apt.root).map_err(|error| failed(&apt.root, &error))
    }

    fn download(&self, apt: &Apt, say: &mut dyn FnMut(&str)) -> Result<()> {
        let mut listing = apt.command("apt-get");
        let listed = output_of(listing.args(["--yes", "--print-uris", "install"]).args(&self.packages), "install")?;
        let sizes: Vec<u64> = listed.lines().filter_map(size_listed).collect();
        let bytes: u64 = sizes.iter().sum();
        let what = self.packages.join(", ");
        say(&format!(
            "downloading {what} and its dependencies: {} packages, {}",
            sizes.len(),
            show_bytes(bytes as f64)
        ));
        let mut download = apt.command("apt-get");
        download.args(["--yes", "--download-only", "install"]).args(&self.packages);
        let mut count = 0;
        progress_of(&mut download, "install", &mut |line| {
            count += usize::from(line.starts_with("Get:"));
            if line.starts_with("Get:") && count.is_multiple_of(PACKAGES_PER_LINE) {
                say(&format!("{count} of {} packages", sizes.len()));
            }
        })?;
        Ok(())
    }
}

/// Unpacks packages into the draft's tree, and lists them in the file `packages`.
pub fn unpack(archives: &[PathBuf], draft: &Path) -> Result<()> {
    let tree = draft.join(TREE);
    fs::create_dir(&tree).map_err(|error| failed(&tree, &error))?;
    let mut names = Vec::new();
    for archive in archives {
        output_of(Command::new("dpkg-deb").arg("--extract").arg(archive).arg(&tree), "install")?;
        names.extend(archive.file_name().map(|name| name.to_string_lossy().into_owned()));
    }
    names.sort();
    let list = draft.join("packages");
    fs::write(&list, names.join("\n") + "\n").map_err(|error| failed(&list, &error))?;
    // A server does not need documentation.
    for superfluous in ["usr/share/doc", "usr/share/man", "usr/share/locale"] {
        let _ = fs::remove_dir_all(tree.join(superfluous));
    }
    Ok(())
}

/// The number of packages downloaded between two progress lines.
const PACKAGES_PER_LINE: usize = 10;

/// Parses the size in a line of `'address' file size checksum`.
fn size_listed(line: &str) -> Option<u64> {
    line.strip_prefix('\'')?.split_whitespace().nth(2)?.parse().ok()
}

/// apt with a separate root.
pub struct Apt {
    root: PathBuf,
    suite: String,
}

impl Apt {
    /// Configures apt for a suite. `types` are the archive types to list: `deb`, or `deb deb-src` for sources as well.
    pub fn new(root: &Path, suite: &str, base: Option<&Base>, types: &str) -> Result<Self> {
        if !Path::new(KEYRING).exists() {
            let message = format!(
                "{KEYRING} is missing, without which Debian's signatures cannot be verified; \
                 install it: apt-get install debian-archive-keyring"
            );
            return Err(EngineError::failed("install", message));
        }
        let mirror = mirror()?;
        for directory in ["state/lists/partial", "cache/archives/partial", "etc"] {
            fs::create_dir_all(root.join(directory)).map_err(|error| failed(root, &error))?;
        }
        // This apt's package database is empty, so it downloads all dependencies.
        let write = |name: &str, text: &str| fs::write(root.join(name), text).map_err(|error| failed(root, &error));
        write("state/status", "")?;
        let suites = base.map_or_else(|| suite.to_owned(), |base| format!("{} {suite}", base.suite));
        let source =
            format!("Types: {types}\nURIs: {mirror}\nSuites: {suites}\nComponents: main\nSigned-By: {KEYRING}\n");
        write("etc/debian.sources", &source)?;
        let pinned =
            base.map(|base| format!("Package: src:{}\nPin: release a={suite}\nPin-Priority: 990\n", base.source));
        write("etc/preferences", &pinned.unwrap_or_default())?;
        write("apt.conf", &configuration(root)?)?;
        Ok(Self { root: root.to_owned(), suite: suite.to_owned() })
    }

    /// Downloads and verifies the lists of packages.
    pub fn update(&self, say: &mut dyn FnMut(&str)) -> Result<()> {
        say(&format!("fetching the list of packages of Debian {}", self.suite));
        output_of(self.command("apt-get").arg("update"), "install").map(drop)
    }

    /// Its own directory, of which nothing is needed after the downloads.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// A command that runs one of apt's programs with this configuration.
    pub fn command(&self, program: &str) -> Command {
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

/// apt's configuration: the system's download options (such as proxies), with separate directories.
fn configuration(root: &Path) -> Result<String> {
    let dump = output_of(Command::new("apt-config").arg("dump"), "install")?;
    let mut text: String =
        dump.lines().filter(|line| line.starts_with("Acquire::")).map(|line| format!("{line}\n")).collect();
    let own = [
        ("Dir::State", "state"),
        ("Dir::State::status", "state/status"),
        ("Dir::Cache", "cache"),
        ("Dir::Etc", "etc"),
        ("Dir::Etc::sourcelist", "etc/debian.sources"),
        ("Dir::Etc::preferences", "etc/preferences"),
        ("Dir::Log", "log"),
    ];
    for (name, path) in own {
        text.push_str(&format!("{name} \"{}\";\n", root.join(path).display()));
    }
    for name in ["main", "parts", "sourceparts", "preferencesparts"] {
        text.push_str(&format!("Dir::Etc::{name} \"/dev/null\";\n"));
    }
    // apt's sandbox user cannot enter a private directory.
    text.push_str("APT::Sandbox::User \"root\";\nDebug::NoLocking \"true\";\nAPT::Install-Recommends \"false\";\n");
    // Otherwise a failed download of a package list would only be a warning.
    text.push_str("APT::Update::Error-Mode \"any\";\n");
    text.push_str("Acquire::Languages \"none\";\nAcquire::IndexTargets::deb::DEP-11::DefaultEnabled \"false\";\n");
    Ok(text)
}

/// The address of the archive from which this system takes its Debian packages.
fn mirror() -> Result<String> {
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

/// The main archive among lines of origin, label and address. If its package lists are missing, a source shows only its
/// address, which by convention ends in `debian`.
fn main_archive(targets: &str) -> Option<String> {
    let lines = || targets.lines().filter_map(|line| line.rsplit_once('|'));
    let reported = lines().find(|(from, _)| *from == "Debian|Debian");
    let by_custom = || lines().find(|(_, address)| address.trim_end_matches('/').ends_with("/debian"));
    reported.or_else(by_custom).map(|(_, address)| address.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_size_of_a_download_is_read_from_apts_list() {
        let line = "'http://c.example/pool/libc6_2.41-12_amd64.deb' libc6_2.41-12_amd64.deb 2846000 SHA256:0a1b";
        assert_eq!(size_listed(line), Some(2_846_000));
        assert_eq!(size_listed("Need to get 57 MB of archives."), None);
    }

    #[test]
    fn security_or_foreign_source_is_not_taken_as_main_archive() {
        let reported = "Elsewhere|Elsewhere|http://a.example/node\nDebian|Debian-Security|http://b.example/debian-security\n\
                    Debian|Debian|http://c.example/debian/\n";
        assert_eq!(main_archive(reported).as_deref(), Some("http://c.example/debian/"));
        let unreported = "||http://b.example/debian-security\n||http://c.example/debian/";
        assert_eq!(main_archive(unreported).as_deref(), Some("http://c.example/debian/"));
        assert_eq!(main_archive("||http://a.example/ubuntu"), None);
    }
}
