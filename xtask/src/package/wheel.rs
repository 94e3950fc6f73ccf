//! A wheel, so that `pip install` puts the program into a project's environment. It is a zip with the tree below the
//! name that pip copies from, and with three files that describe it (PEP 427).

use std::fmt::Write as _;
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sha2::{Digest, Sha256};
use zip::ZipWriter;
use zip::write::SimpleFileOptions;

use super::tree::Tree;
use super::{VERSION, read};

/// The texts of the licences, which a wheel has next to its metadata.
const LICENCES: [&str; 4] = ["LICENSE.md", "LICENSE-MIT", "LICENSE-APACHE", "THIRD-PARTY.txt"];

/// Makes the wheel of a tree.
///
/// # Errors
/// A file that cannot be read or written.
pub fn make(tree: &Tree, place: &Path) -> Result<PathBuf, String> {
    let program = read(&tree.path().join("bin/rumba"))?;
    let (major, minor) = newest_glibc(&program).ok_or("the binary names no version of the C library")?;
    let tag = format!("py3-none-manylinux_{major}_{minor}_{}", std::env::consts::ARCH);
    let path = place.join(format!("rumba-{VERSION}-{tag}.whl"));
    let failed = |error: &dyn std::fmt::Display| format!("{}: {error}", path.display());
    let file = File::create(&path).map_err(|error| failed(&error))?;
    let wheel = Wheel { zip: ZipWriter::new(file), record: String::new() };
    wheel.fill(tree, &program, &tag).map_err(|error| failed(&error))?;
    Ok(path)
}

struct Wheel {
    zip: ZipWriter<File>,
    record: String,
}

impl Wheel {
    fn fill(mut self, tree: &Tree, program: &[u8], tag: &str) -> Result<(), String> {
        let (info, data) = (format!("rumba-{VERSION}.dist-info"), format!("rumba-{VERSION}.data"));
        self.put(&format!("{data}/scripts/rumba"), program, 0o755)?;
        for path in tree.files()?.into_iter().filter(|path| path.starts_with("share")) {
            self.put(&format!("{data}/data/{}", path.display()), &read(&tree.path().join(&path))?, 0o644)?;
        }
        for name in LICENCES {
            let text = read(&tree.path().join("share/doc/rumba").join(name))?;
            self.put(&format!("{info}/licenses/{name}"), &text, 0o644)?;
        }
        self.put(&format!("{info}/METADATA"), metadata().as_bytes(), 0o644)?;
        let reported = format!("Wheel-Version: 1.0\nGenerator: rumba xtask\nRoot-Is-Purelib: false\nTag: {tag}\n");
        self.put(&format!("{info}/WHEEL"), reported.as_bytes(), 0o644)?;
        // The list cannot contain its own hash.
        let record = format!("{info}/RECORD");
        let list = format!("{}{record},,\n", self.record);
        self.put(&record, list.as_bytes(), 0o644)?;
        self.zip.finish().map(drop).map_err(|error| error.to_string())
    }

    fn put(&mut self, name: &str, bytes: &[u8], mode: u32) -> Result<(), String> {
        let options = SimpleFileOptions::default().unix_permissions(mode);
        self.zip.start_file(name, options).map_err(|error| error.to_string())?;
        self.zip.write_all(bytes).map_err(|error| error.to_string())?;
        let digest = URL_SAFE_NO_PAD.encode(Sha256::digest(bytes));
        let _ = writeln!(self.record, "{name},sha256={digest},{}", bytes.len());
        Ok(())
    }
}

fn metadata() -> String {
    let mut text = format!(
        "Metadata-Version: 2.4\nName: rumba\nVersion: {VERSION}\nSummary: The storage-engine lab: which engine serves \
         your workload with the least hardware, and how you know\nLicense-Expression: MIT OR Apache-2.0\n"
    );
    LICENCES.iter().for_each(|name| text += &format!("License-File: {name}\n"));
    text
}

/// The newest version of the GNU C library that a program requires: `GLIBC_2.34` among its strings.
fn newest_glibc(program: &[u8]) -> Option<(u32, u32)> {
    const MARK: &[u8] = b"GLIBC_";
    let marks = program.windows(MARK.len()).enumerate().filter(|(_, window)| *window == MARK);
    let version = |at: usize| {
        let rest = &program[at + MARK.len()..];
        let text = rest.split(|byte| !byte.is_ascii_digit() && *byte != b'.').next()?;
        let mut numbers = std::str::from_utf8(text).ok()?.split('.');
        Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
    };
    marks.filter_map(|(at, _)| version(at)).max()
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;

    #[test]
    fn newest_required_glibc_sets_the_wheel_platform() {
        let program = b"\0GLIBC_2.9\0GLIBC_2.17\0GLIBC_2.3.4\0GLIBC_PRIVATE\0";
        assert_eq!(newest_glibc(program), Some((2, 17)));
        assert_eq!(newest_glibc(b"static"), None);
    }

    #[test]
    fn wheel_lists_file_digests_and_program_is_executable() {
        let dir = tempfile::tempdir().expect("a directory");
        let tree = dir.path().join("tree");
        super::super::write(&tree.join("bin/rumba"), b"\x7fELF GLIBC_2.34\0").expect("written");
        for name in LICENCES {
            super::super::write(&tree.join("share/doc/rumba").join(name), name.as_bytes()).expect("written");
        }
        let wheel = make(&Tree::at(&tree), dir.path()).expect("a wheel");
        assert!(wheel.display().to_string().contains("manylinux_2_34_"), "{wheel:?}");
        let mut zip = zip::ZipArchive::new(File::open(wheel).expect("there")).expect("a zip");
        let mut record = String::new();
        let name = format!("rumba-{VERSION}.dist-info/RECORD");
        zip.by_name(&name).expect("a record").read_to_string(&mut record).expect("text");
        assert_eq!(record.lines().count(), zip.len());
        for line in record.lines().filter(|line| !line.starts_with(&name)) {
            let (file, reported) = line.split_once(",sha256=").expect("a digest");
            let mut bytes = Vec::new();
            let mut entry = zip.by_name(file).expect("it is there");
            entry.read_to_end(&mut bytes).expect("it can be read");
            assert_eq!(reported, format!("{},{}", URL_SAFE_NO_PAD.encode(Sha256::digest(&bytes)), bytes.len()));
            assert_eq!(entry.unix_mode().unwrap_or(0) & 0o111 != 0, file.ends_with("scripts/rumba"), "{file}");
        }
    }
}
