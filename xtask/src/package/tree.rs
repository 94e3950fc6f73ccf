//! The tree of installed files: `bin` and `share`, as below `/usr` or in an unpacked tarball.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::{licences, read, run, write};

/// The maximum size of a stripped binary.
const BINARY_BYTES: u64 = 25_000_000;

/// The path of each shell's completions, below `share`.
const COMPLETIONS: [(&str, &str); 3] = [
    ("bash", "bash-completion/completions/rumba"),
    ("zsh", "zsh/site-functions/_rumba"),
    ("fish", "fish/vendor_completions.d/rumba.fish"),
];

pub struct Tree {
    dir: PathBuf,
}

impl Tree {
    /// Makes the tree of a binary, replacing an earlier one.
    ///
    /// # Errors
    /// A missing file or a failed step; a binary that is too large.
    pub fn make(root: &Path, binary: &Path, dir: &Path) -> Result<Self, String> {
        if !binary.is_file() {
            return Err(format!("there is no {}: cargo build --release -p rumba, or name one", binary.display()));
        }
        if dir.exists() {
            fs::remove_dir_all(dir).map_err(|error| format!("{}: {error}", dir.display()))?;
        }
        let tree = Self { dir: dir.to_owned() };
        let program = tree.strip(binary)?;
        let share = dir.join("share");
        run(Command::new(&program).arg("man").arg(share.join("man/man1")), "this is rumba's to do")?;
        for (shell, place) in COMPLETIONS {
            let script = run(Command::new(&program).args(["completions", shell]), "this is rumba's to do")?;
            write(&share.join(place), &script)?;
        }
        let doc = share.join("doc/rumba");
        for name in ["LICENSE.md", "LICENSE-MIT", "LICENSE-APACHE"] {
            write(&doc.join(name), &read(&root.join(name))?)?;
        }
        write(&doc.join("THIRD-PARTY.txt"), licences::of(root)?.as_bytes())?;
        for entry in fs::read_dir(root.join("experiments")).map_err(|error| format!("experiments: {error}"))?.flatten()
        {
            write(&doc.join("experiments").join(entry.file_name()), &read(&entry.path())?)?;
        }
        Ok(tree)
    }

    /// Copies the binary without its debug information.
    fn strip(&self, binary: &Path) -> Result<PathBuf, String> {
        let program = self.dir.join("bin/rumba");
        write(&program, &[])?;
        run(Command::new("strip").arg("-o").arg(&program).arg(binary), "it comes with binutils")?;
        let bytes = fs::metadata(&program).map_err(|error| error.to_string())?.len();
        println!("package: the binary has {bytes} bytes");
        if bytes > BINARY_BYTES {
            return Err(format!("the stripped binary has {bytes} bytes, which is more than {BINARY_BYTES}"));
        }
        Ok(program)
    }

    pub fn path(&self) -> &Path {
        &self.dir
    }

    /// A tree that is there already.
    #[cfg(test)]
    pub fn at(dir: &Path) -> Self {
        Self { dir: dir.to_owned() }
    }

    /// The files of the tree, relative to it, sorted by name.
    ///
    /// # Errors
    /// A directory that cannot be read.
    pub fn files(&self) -> Result<Vec<PathBuf>, String> {
        let mut files = Vec::new();
        list(&self.dir, Path::new(""), &mut files).map_err(|error| format!("{}: {error}", self.dir.display()))?;
        files.sort();
        Ok(files)
    }
}

fn list(dir: &Path, below: &Path, files: &mut Vec<PathBuf>) -> std::io::Result<()> {
    for entry in fs::read_dir(dir.join(below))? {
        let entry = entry?;
        let path = below.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            list(dir, &path, files)?;
        } else {
            files.push(path);
        }
    }
    Ok(())
}
