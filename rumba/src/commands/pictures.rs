//! `rumba report --svg DIR`, `--png DIR`: the pictures of the page, made by a browser without a window.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use rumba_engine_api::printable::shown;
use rumba_engine_api::units::counted;
use rumba_report::{Picture, PicturesAs};

use crate::problem::Problem;
use crate::progress::notify;

/// The programs that can make pictures, in order of preference: the first has no windows, and starts fastest.
const BROWSERS: [&str; 5] = ["chromium-headless-shell", "chromium", "chromium-browser", "google-chrome", "chrome"];

/// Writes each picture of the page into the directory.
pub fn write(html: &str, format: PicturesAs, directory: &Path) -> Result<(), Problem> {
    let browser = browser().ok_or_else(|| {
        Problem::failure(
            "no browser here can draw the pictures",
            "install one, for example `apt-get install chromium-headless-shell`; or write the page with --html and save \
             its pictures in a browser",
        )
    })?;
    let cannot_write = |error: &std::io::Error| {
        let message = format!("the pictures cannot be written to {}: {error}", shown(directory));
        Problem::failure(message, "name a directory that you can write to")
    };
    std::fs::create_dir_all(directory).map_err(|error| cannot_write(&error))?;
    let pictures = drawn(&browser, html, format, directory)?;
    for (name, content) in &pictures {
        std::fs::write(directory.join(name), content).map_err(|error| cannot_write(&error))?;
    }
    notify(&format!("{}: {}", counted(pictures.len(), "picture"), shown(directory)));
    Ok(())
}

fn browser() -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    let find = |name: &&str| std::env::split_paths(&path).map(|place| place.join(name)).find(|file| file.is_file());
    BROWSERS.iter().find_map(find)
}

/// Opens the page in the browser, and reads the pictures from the document that its scripts leave.
fn drawn(browser: &Path, html: &str, format: PicturesAs, directory: &Path) -> Result<Vec<Picture>, Problem> {
    let failed = |why: &str| {
        Problem::failure(
            format!("{} made no pictures: {why}", shown(browser)),
            "write the page with --html and save its pictures in a browser",
        )
    };
    let place = directory.canonicalize().map_err(|error| failed(&error.to_string()))?.join(".page");
    std::fs::create_dir_all(&place).map_err(|error| failed(&error.to_string()))?;
    let page = place.join("page.html");
    let output = std::fs::write(&page, html).and_then(|()| {
        // The browser's own time: it ends when the page has nothing more to do, not after so many seconds.
        Command::new(browser)
            .args(["--headless", "--no-sandbox", "--disable-gpu", "--window-size=1280,900", "--dump-dom"])
            .arg("--virtual-time-budget=60000")
            .arg(format!("--user-data-dir={}", place.display()))
            .arg(format!("file://{}{}", page.display(), format.fragment()))
            .stdin(Stdio::null())
            .output()
    });
    // The page and the browser's own files are of no further use.
    let _ = std::fs::remove_dir_all(&place);
    let output = output.map_err(|error| failed(&error.to_string()))?;
    let pictures = format.read(&String::from_utf8_lossy(&output.stdout));
    pictures.filter(|pictures| !pictures.is_empty()).ok_or_else(|| failed(&format!("it ended with {}", output.status)))
}
