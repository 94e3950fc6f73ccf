//! The pictures of a page. The page draws them itself, in a headless browser, as its buttons PNG and SVG do.

use std::fs::{self, File};
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rumba_engine_api::printable::shown;
use rumba_engine_api::units::counted;
use rumba_lab::store;
use rumba_lab::trial::child::stop_signals;
use rustix::process::{Pid, Signal, kill_process_group, test_kill_process_group};
use signal_hook::iterator::Signals;
use tempfile::TempDir;

use crate::problem::Problem;
use crate::progress::notify;

/// Names a browser that is not on the path.
const VARIABLE: &str = "RUMBA_BROWSER";
/// The first is preferred, because it draws no windows.
const BROWSERS: [&str; 5] =
    ["chromium-headless-shell", "chromium", "chromium-browser", "google-chrome", "google-chrome-stable"];
/// How often a page is drawn at most.
const DRAWN_AT_MOST: u32 = 4;
/// The most time for all pictures of a page.
const LIMIT: Duration = Duration::from_secs(120);
const POLL: Duration = Duration::from_millis(20);
/// The most time until killed processes have ended.
const REAPED_WITHIN: Duration = Duration::from_secs(1);
/// How often a directory is removed again while the last processes of a browser end.
const ATTEMPTS: u32 = 50;

/// Writes all pictures of a page: those of each kind to its directory.
pub fn write(html: &str, wanted: &[(&str, &Path)]) -> Result<(), Problem> {
    if wanted.is_empty() {
        return Ok(());
    }
    let browser = browser(std::env::var_os(VARIABLE).map(PathBuf::from))?;
    let kinds: Vec<&str> = wanted.iter().map(|(kind, _)| *kind).collect();
    let drawn = || match draw(&browser, html, &kinds.join(","), LIMIT) {
        Ok(document) => pictures(&document).map(Ok),
        Err(problem) => Some(Err(problem)),
    };
    // The browser's virtual time goes on while images are decoded. On a busy host it may pass before the page is drawn.
    let pictures = (0..DRAWN_AT_MOST).find_map(|_| drawn()).unwrap_or_else(|| {
        let message = format!("{} ended {DRAWN_AT_MOST} times without the pictures of the page", shown(&browser));
        Err(Problem::failure(message, "save them with the page's buttons (--html FILE), or update the browser"))
    })?;
    for (kind, directory) in wanted {
        let of_kind = || pictures.iter().filter(|picture| picture.name.ends_with(&format!(".{kind}")));
        fs::create_dir_all(directory).map_err(|error| not_written(directory, &error))?;
        for picture in of_kind() {
            let file = directory.join(&picture.name);
            store::replace_plain(&file, &picture.bytes).map_err(|error| not_written(&file, &error))?;
        }
        notify(&format!("{}: {}", counted(of_kind().count(), "picture"), shown(directory)));
    }
    Ok(())
}

fn not_written(path: &Path, error: &io::Error) -> Problem {
    Problem::failure(format!("{} cannot be written: {error}", shown(path)), "name another directory")
}

/// The browser that is named, or else the first on the path.
fn browser(named: Option<PathBuf>) -> Result<PathBuf, Problem> {
    if let Some(named) = named {
        let message = || format!("{VARIABLE} names {}, which is no file", shown(&named));
        let remedy = "name the program of Chromium or Chrome, or unset the variable";
        return if named.is_file() { Ok(named) } else { Err(Problem::mistake(message(), remedy)) };
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let there = BROWSERS.iter().flat_map(|name| std::env::split_paths(&path).map(move |place| place.join(name)));
    // A relative entry would depend on the current directory.
    there.filter(|file| file.is_absolute()).find(|file| file.is_file()).ok_or_else(|| {
        Problem::mistake(
            "--png and --svg draw the page in Chromium, which is not installed",
            format!(
                "apt-get install chromium-headless-shell, name another one in {VARIABLE}, or save pictures with the \
                 page's buttons (--html FILE)"
            ),
        )
    })
}

/// The document that the browser makes of the page. Everything that the browser writes is below one directory, which is
/// removed.
fn draw(browser: &Path, html: &str, kinds: &str, limit: Duration) -> Result<String, Problem> {
    let failed = |error: io::Error| {
        Problem::failure(
            format!("{}: {error}", shown(browser)),
            "check that the browser runs, and that TMPDIR has room",
        )
    };
    let place = tempfile::Builder::new().prefix("rumba-pictures-").tempdir().map_err(failed)?;
    let mut signals = Signals::new(stop_signals()).map_err(failed)?;
    let ended = run(browser, html, kinds, place.path(), limit, &mut signals);
    let document = fs::read_to_string(place.path().join("document")).unwrap_or_default();
    let said = fs::read_to_string(place.path().join("said")).unwrap_or_default();
    remove(place);
    match ended.map_err(failed)? {
        Ended::Exited(status) if status.success() => Ok(document),
        Ended::Exited(status) => {
            let last = said.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or("it printed nothing");
            let remedy = format!("run it yourself to see why, or name another browser in {VARIABLE}");
            Err(Problem::failure(format!("{}: {status}: {last}", shown(browser)), remedy))
        }
        Ended::TooSlow => {
            let message = format!("{} did not draw the page within {} s", shown(browser), limit.as_secs());
            Err(Problem::failure(message, "try it while the host is idle, or save pictures with the page's buttons"))
        }
        Ended::Stopped(signal) => {
            // It returns only for a signal that it does not know.
            let _ = signal_hook::low_level::emulate_default_handler(signal);
            Err(Problem::failure("interrupted", "run it again"))
        }
    }
}

enum Ended {
    Exited(ExitStatus),
    TooSlow,
    /// rumba received this signal.
    Stopped(i32),
}

/// Runs the browser until it ends, and at most for this time. Afterwards none of its processes is left.
fn run(
    browser: &Path,
    html: &str,
    kinds: &str,
    place: &Path,
    limit: Duration,
    signals: &mut Signals,
) -> io::Result<Ended> {
    let page = place.join("page.html");
    fs::write(&page, html)?;
    let mut command = Command::new(browser);
    command.args(["--headless", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars"]);
    command.args(["--no-first-run", "--disable-extensions", "--disable-breakpad", "--disable-background-networking"]);
    command.args(["--disable-component-update", "--window-size=1280,1600", "--virtual-time-budget=30000"]);
    command.arg(format!("--user-data-dir={}", place.join("profile").display()));
    // Chromium refuses to run as root with its sandbox. The page is rumba's own, and loads nothing.
    if rustix::process::geteuid().is_root() {
        command.arg("--no-sandbox");
    }
    command.arg("--dump-dom").arg(format!("file://{}#pictures={kinds}", in_address(&page)));
    command.env("HOME", place).env_remove("XDG_CONFIG_HOME").env_remove("XDG_CACHE_HOME");
    command
        .stdin(Stdio::null())
        .stdout(File::create(place.join("document"))?)
        .stderr(File::create(place.join("said"))?);
    // The browser has several processes, which end together as a group.
    let mut child = command.process_group(0).spawn()?;
    let ended = wait(&mut child, limit, signals);
    let group = Pid::from_child(&child);
    let _ = kill_process_group(group, Signal::KILL);
    let _ = child.wait();
    // Killed processes end a little later. Those that no parent reaps stay in the group.
    let end = Instant::now() + REAPED_WITHIN;
    while test_kill_process_group(group).is_ok() && Instant::now() < end {
        std::thread::sleep(POLL);
    }
    ended
}

fn wait(child: &mut Child, limit: Duration, signals: &mut Signals) -> io::Result<Ended> {
    let end = Instant::now() + limit;
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Ended::Exited(status));
        }
        if let Some(signal) = signals.pending().next() {
            return Ok(Ended::Stopped(signal));
        }
        if Instant::now() >= end {
            return Ok(Ended::TooSlow);
        }
        std::thread::sleep(POLL);
    }
}

/// Removes the directory. Killed processes can still create files in it for a moment.
fn remove(place: TempDir) {
    let path = place.keep();
    for _ in 0..ATTEMPTS {
        match fs::remove_dir_all(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => std::thread::sleep(POLL),
            _ => return,
        }
    }
    notify(&format!("{} is left: remove it", shown(&path)));
}

fn in_address(path: &Path) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.~/".contains(&byte);
    let bytes = path.as_os_str().as_bytes().iter();
    bytes.map(|&byte| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") }).collect()
}

struct Picture {
    name: String,
    bytes: Vec<u8>,
}

/// The pictures in the document (see web/src/pictures.ts); `None` if it has no list, or an empty picture.
fn pictures(document: &str) -> Option<Vec<Picture>> {
    let (_, rest) = document.split_once("<pre id=\"pictures\">")?;
    let (list, _) = rest.split_once("</pre>")?;
    let picture = |line: &str| {
        let (name, content) = line.rsplit_once(' ')?;
        let bytes = STANDARD.decode(content).ok().filter(|bytes| !bytes.is_empty())?;
        Some(Picture { name: file_name(name), bytes })
    };
    list.lines().map(picture).collect()
}

/// A name of the results as the name of a file in one directory.
fn file_name(name: &str) -> String {
    let is_plain = |letter: char| letter.is_alphanumeric() || "-_.,=[]+@".contains(letter);
    let plain: String = name.chars().map(|letter| if is_plain(letter) { letter } else { '_' }).collect();
    plain.trim_start_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A browser that runs this script.
    fn script(place: &TempDir, text: &str) -> PathBuf {
        use std::os::unix::fs::PermissionsExt as _;
        let file = place.path().join("browser");
        fs::write(&file, format!("#!/bin/sh\n{text}\n")).unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
        file
    }

    #[test]
    fn names_of_results_cannot_lead_outside() {
        assert_eq!(file_name("../../a b-ladder-ops_per_s.svg"), "_.._a_b-ladder-ops_per_s.svg");
        assert_eq!(file_name("innodb[cache=1GiB]-x.png"), "innodb[cache=1GiB]-x.png");
        assert_eq!(in_address(Path::new("/tmp/a b#/ä")), "/tmp/a%20b%23/%C3%A4");
    }

    #[test]
    fn document_without_a_list_or_with_an_empty_picture_is_refused() {
        let list = |lines: &str| pictures(&format!("<html><body><pre id=\"pictures\">{lines}</pre></body></html>"));
        let found = list("a-b.svg PHN2Zy8+\na&amp;b.png iVBO").unwrap();
        assert_eq!((found[0].name.as_str(), found[0].bytes.as_slice()), ("a-b.svg", b"<svg/>".as_slice()));
        assert_eq!(found[1].name, "a_amp_b.png");
        assert!(list("").is_some_and(|none| none.is_empty()));
        assert!(pictures("<html></html>").is_none() && list("a.png ").is_none());
    }

    #[test]
    fn failing_browser_is_reported_with_its_last_line() {
        let place = tempfile::tempdir().unwrap();
        let browser = script(&place, "echo first >&2; echo 'no usable sandbox' >&2; exit 7");
        let error = format!("{:?}", draw(&browser, "", "svg", LIMIT).unwrap_err());
        assert!(error.contains("exit status: 7: no usable sandbox"), "{error}");
    }

    #[test]
    fn hanging_browser_ends_with_its_processes_and_leaves_no_file() {
        let place = tempfile::tempdir().unwrap();
        let pids = place.path().join("pids");
        let text = format!("sleep 600 & echo $! > {0}; echo \"$HOME\" >> {0}; wait", pids.display());
        let browser = script(&place, &text);
        let error = format!("{:?}", draw(&browser, "", "svg", Duration::from_secs(1)).unwrap_err());
        assert!(error.contains("did not draw the page within 1 s"), "{error}");
        let noted = fs::read_to_string(pids).unwrap();
        let (pid, home) = noted.trim().split_once('\n').unwrap();
        let state = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        assert!(state.is_empty() || state.contains(") Z"), "{state}");
        assert!(!Path::new(home).exists());
    }

    #[test]
    fn missing_browser_is_refused_with_its_remedy() {
        let error = format!("{:?}", browser(Some("/nowhere/chromium".into())).unwrap_err());
        assert!(error.contains("RUMBA_BROWSER names /nowhere/chromium, which is no file"), "{error}");
    }
}
