//! Builds a server from Debian's packages and one part, such as an engine's plugin, that rumba compiles from Debian's
//! source because no package has it.
//!
//! The downloads stay in rumba's cache, because Debian removes old releases from its mirrors. An interrupted build
//! continues from the files that it has compiled.

use std::collections::BTreeMap;
use std::env;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use rumba_engine_api::error::{EngineError, Result};
use rumba_engine_api::units::show_bytes;
use rustix::fs::{FlockOperation, flock};
use rustix::process::Signal;
use serde::Deserialize;

use super::debian::{self, Apt, TREE};
use super::{digest, failed, require_checksum, untar};
use crate::cache;
use crate::command::output_of;
use crate::failure::{full_or_failed, last_lines};
use crate::process::dies_with_us;

/// How a server is built.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Compiled {
    /// The engine that the build adds, and its name in `rumba engines build`.
    pub engine: String,
    /// Debian's release.
    suite: String,
    /// The processor architecture that the source supports, by Rust's name.
    architecture: String,
    /// The source package with its version, as apt takes it.
    source: String,
    /// The SHA-256 of every file, by its name in Debian's archive: the source's `.orig.tar.gz` and the packages.
    files: BTreeMap<String, String>,
    /// Bytes of these files.
    download_bytes: u64,
    /// Bytes that the source and the compiled files take until the build ends.
    build_bytes: u64,
    /// Bytes of the installed server.
    server_bytes: u64,
    /// Processor time of the build in seconds.
    cpu_s: u64,
    /// The Debian package of each program on the path, or file, that the build needs.
    needs: BTreeMap<String, String>,
    /// Patterns of paths that the build does not need, so they are not unpacked.
    without: Vec<String>,
    /// Corrections of the source.
    #[serde(default)]
    fixes: Vec<Fix>,
    /// The commands, run in an empty directory next to the directory `source`.
    commands: Vec<Vec<String>>,
    /// The compiled file, within that directory.
    product: String,
    /// The directory in the server's tree that it belongs in.
    place: String,
}

/// A correction of a source file.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Fix {
    file: String,
    /// A text that occurs once.
    from: String,
    to: String,
}

const CALL: &str = "build";

impl Compiled {
    /// The origin, for people.
    pub fn origin(&self) -> String {
        format!("Debian {}'s source", self.suite)
    }

    /// Builds the server in `draft`. `sources` keeps the downloads and, until [`finish`], the compiled files.
    pub fn build(&self, sources: &Path, draft: &Path, say: &mut dyn FnMut(&str)) -> Result<()> {
        self.require_host()?;
        cache::make_private(sources).map_err(|error| failed(sources, &error))?;
        let _only = lock(sources)?;
        say(&format!(
            "compiling takes about {} s of processor time. {} of downloads stay in {}; the build needs {} more there \
             until it ends, and the server {}",
            self.cpu_s,
            show_bytes(self.download_bytes as f64),
            sources.display(),
            show_bytes(self.build_bytes as f64),
            show_bytes(self.server_bytes as f64)
        ));
        self.fetch(sources, &draft.join("apt"), say)?;
        let packages = self.files.keys().filter(|name| name.ends_with(".deb")).map(|name| sources.join(name));
        debian::unpack(&packages.collect::<Vec<_>>(), draft)?;
        let product = self.compile(sources, say)?;
        let place = draft.join(TREE).join(&self.place);
        let file = place.join(product.file_name().unwrap_or_default());
        fs::create_dir_all(&place).and_then(|()| fs::copy(&product, &file)).map_err(|error| failed(&file, &error))?;
        Ok(())
    }

    fn require_host(&self) -> Result<()> {
        if env::consts::ARCH != self.architecture {
            let message =
                format!("{} compiles on {} only, not on {}", self.engine, self.architecture, env::consts::ARCH);
            return Err(EngineError::failed(CALL, message));
        }
        let is_here = |name: &str| match name.starts_with('/') {
            true => Path::new(name).exists(),
            false => {
                env::var_os("PATH").is_some_and(|path| env::split_paths(&path).any(|dir| dir.join(name).is_file()))
            }
        };
        let missing: Vec<_> = self.needs.iter().filter(|(name, _)| !is_here(name)).collect();
        if missing.is_empty() {
            return Ok(());
        }
        let names: Vec<&str> = missing.iter().map(|(name, _)| name.as_str()).collect();
        let packages: Vec<&str> = missing.iter().map(|(_, package)| package.as_str()).collect();
        let message = format!(
            "the build needs {}, which this host lacks; install them: apt-get install {}",
            names.join(", "),
            packages.join(" ")
        );
        Err(EngineError::failed(CALL, message))
    }

    /// Downloads the files unless they are here, and verifies them in either case.
    fn fetch(&self, sources: &Path, apt: &Path, say: &mut dyn FnMut(&str)) -> Result<()> {
        let is_here =
            |(name, sha256): (&String, &String)| digest(&sources.join(name)).is_ok_and(|found| found == *sha256);
        if self.files.iter().all(is_here) {
            say("the downloads are here, and their checksums are those of the catalogue");
            return Ok(());
        }
        let apt = Apt::new(apt, &self.suite, None, "deb deb-src")?;
        apt.update(say)?;
        say(&format!("downloading {} and {} packages", self.source, self.packages().len()));
        let fetched =
            output_of(apt.command("apt-get").arg("download").args(self.packages()).current_dir(sources), CALL)
                .and_then(|_| {
                    let arguments = ["source", "--download-only", "--tar-only", &self.source];
                    output_of(apt.command("apt-get").args(arguments).current_dir(sources), CALL)
                });
        fetched.map_err(|error| {
            error.followed_by(&format!(
                "; if Debian has removed {} from this mirror, name an archive of old releases in {}",
                self.suite,
                debian::MIRROR
            ))
        })?;
        for (name, sha256) in &self.files {
            let file = sources.join(name);
            let found = digest(&file).map_err(|error| failed(&file, &error))?;
            require_checksum(&found, sha256, name).inspect_err(|_| {
                // Otherwise the next build would not download it again.
                let _ = fs::remove_file(&file);
            })?;
        }
        say("signature verified by apt, and the checksums are those of the catalogue");
        fs::remove_dir_all(apt.root()).map_err(|error| failed(apt.root(), &error))
    }

    /// The packages with their versions as apt takes them, from the names of their files: `NAME_VERSION_ARCH.deb`.
    fn packages(&self) -> Vec<String> {
        let package = |file: &String| {
            let mut parts = file.strip_suffix(".deb")?.split('_');
            Some(format!("{}={}", parts.next()?, parts.next()?.replace("%3a", ":")))
        };
        self.files.keys().filter_map(package).collect()
    }

    /// Unpacks, corrects and compiles the source, as far as an earlier build has not done it.
    fn compile(&self, sources: &Path, say: &mut dyn FnMut(&str)) -> Result<PathBuf> {
        let work = sources.join(WORK);
        let (stamp, log) = (work.join("stamp"), sources.join(LOG));
        // cmake's configuration is valid for this directory only.
        let recipe = format!("{}\n{self:?}", work.display());
        if fs::read_to_string(&stamp).is_ok_and(|made_by| made_by == recipe) {
            say("continuing the interrupted build");
        } else {
            say("unpacking the source");
            let unpacked = finish(sources).and_then(|()| fs::write(&log, ""));
            unpacked.map_err(|error| failed(sources, &error))?;
            self.unpack_source(sources, &work)?;
            fs::write(&stamp, recipe).map_err(|error| failed(&stamp, &error))?;
        }
        let directory = work.join("build");
        for command in &self.commands {
            say(&command.join(" "));
            run(command, &directory, &log, say)?;
        }
        Ok(directory.join(&self.product))
    }

    fn unpack_source(&self, sources: &Path, work: &Path) -> Result<()> {
        let source = work.join("source");
        for directory in [&source, &work.join("build")] {
            fs::create_dir_all(directory).map_err(|error| failed(directory, &error))?;
        }
        let exclude: Vec<String> = self.without.iter().map(|pattern| format!("--exclude={pattern}")).collect();
        let mut options = vec!["--strip-components=1"];
        options.extend(exclude.iter().map(String::as_str));
        for archive in self.files.keys().filter(|name| name.ends_with(".tar.gz")) {
            untar(&sources.join(archive), &source, &options)?;
        }
        self.fixes.iter().try_for_each(|fix| fix.apply(&source))
    }
}

impl Fix {
    fn apply(&self, source: &Path) -> Result<()> {
        let file = source.join(&self.file);
        let text = fs::read_to_string(&file).map_err(|error| failed(&file, &error))?;
        if text.matches(&self.from).count() != 1 {
            let message = format!("{} does not have `{}` once: report this", file.display(), self.from);
            return Err(EngineError::failed(CALL, message));
        }
        fs::write(&file, text.replace(&self.from, &self.to)).map_err(|error| failed(&file, &error))
    }
}

/// The directory of the unpacked source and the compiled files, and the compiler's log.
const WORK: &str = "work";
const LOG: &str = "build.log";

/// Removes the unpacked source and the compiled files.
pub fn finish(sources: &Path) -> io::Result<()> {
    match fs::remove_dir_all(sources.join(WORK)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        result => result,
    }
}

/// Keeps other builds out of a directory until it is dropped.
struct Lock(File);

impl Drop for Lock {
    /// Unlocks explicitly, because a process that another thread starts holds the file open until its exec.
    fn drop(&mut self) {
        let _ = flock(&self.0, FlockOperation::Unlock);
    }
}

fn lock(sources: &Path) -> Result<Lock> {
    let directory = File::open(sources).map_err(|error| failed(sources, &error))?;
    flock(&directory, FlockOperation::NonBlockingLockExclusive).map_err(|_| {
        let message = format!("another build uses {}; wait until it has ended", sources.display());
        EngineError::failed(CALL, message)
    })?;
    Ok(Lock(directory))
}

/// Runs a command with all processors, at a low priority. Its output goes to the log.
fn run(command: &[String], directory: &Path, log: &Path, say: &mut dyn FnMut(&str)) -> Result<()> {
    let name = command.first().map_or("", String::as_str);
    let cannot = |error: io::Error| full_or_failed(CALL, format!("{name} cannot be run: {error}"));
    let mut written = OpenOptions::new().append(true).create(true).open(log).map_err(cannot)?;
    let mut nice = Command::new("nice");
    let jobs = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    nice.args(command).current_dir(directory).env("MAKEFLAGS", format!("-j{jobs}")).env("LC_ALL", "C");
    nice.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(written.try_clone().map_err(cannot)?);
    dies_with_us(&mut nice, Signal::TERM);
    let mut child = nice.spawn().map_err(cannot)?;
    let (mut reported, mut last) = (0, [0; AGREEING]);
    if let Some(stdout) = child.stdout.take() {
        for line in BufReader::new(stdout).split(b'\n').map_while(Result::ok) {
            written.write_all(&line).and_then(|()| written.write_all(b"\n")).map_err(cannot)?;
            let Some(percent) = percent(&String::from_utf8_lossy(&line)) else { continue };
            last.rotate_left(1);
            last[AGREEING - 1] = percent;
            let tens = last.iter().min().map_or(0, |least| least / 10);
            if tens > reported {
                reported = tens;
                say(&format!("{tens}0% compiled"));
            }
        }
    }
    let status = child.wait().map_err(cannot)?;
    if status.success() {
        return Ok(());
    }
    let text = fs::read_to_string(log).unwrap_or_default();
    let errors: Vec<&str> = text.lines().filter(|line| is_error(line)).collect();
    let shown = if errors.is_empty() { last_lines(&text, 8) } else { last_lines(&errors.join("\n"), 8) };
    Err(full_or_failed(CALL, format!("{name} ended with {status}; the whole log is {}:\n{shown}", log.display())))
}

fn is_error(line: &str) -> bool {
    let lower = line.to_ascii_lowercase();
    lower.contains("error:") || lower.contains("cmake error") || lower.contains("no space left")
}

/// A percentage is reported when this many lines in sequence have reached it, because a project within the project counts
/// its own few steps to 100%.
const AGREEING: usize = 5;

/// The progress in a line of cmake's makefiles: `[ 37%] Building CXX object`.
fn percent(line: &str) -> Option<u32> {
    line.strip_prefix('[')?.split_once("%]")?.0.trim().parse().ok()
}

#[cfg(test)]
mod tests;
