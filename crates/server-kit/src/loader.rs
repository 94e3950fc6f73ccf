//! Servers in unpacked trees that bring the libraries they were built for, and their own dynamic loader with them.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The dynamic loader and libraries of a tree.
#[derive(Clone, Debug)]
pub struct Loader {
    program: PathBuf,
    libraries: Vec<PathBuf>,
}

impl Loader {
    /// Of a tree that has one.
    pub fn of(tree: &Path) -> Option<Self> {
        let libraries = library_directories(tree);
        let program = libraries.iter().find_map(|dir| loader_in(dir))?;
        Some(Self { program, libraries })
    }

    /// A command that runs a program of the tree.
    pub fn command(&self, program: &Path) -> Command {
        let libraries: Vec<String> = self.libraries.iter().map(|dir| dir.display().to_string()).collect();
        let mut command = Command::new(&self.program);
        command.arg("--library-path").arg(libraries.join(":")).arg(program);
        command
    }
}

/// The directories of shared libraries in a tree of Debian's.
pub fn library_directories(tree: &Path) -> Vec<PathBuf> {
    let mut directories = Vec::new();
    for parent in ["usr/lib", "lib"] {
        let parent = tree.join(parent);
        let mut triplets: Vec<PathBuf> = fs::read_dir(&parent)
            .into_iter()
            .flatten()
            .flatten()
            .map(|entry| entry.path())
            .filter(|path| path.file_name().is_some_and(|name| name.to_string_lossy().ends_with("-linux-gnu")))
            .collect();
        triplets.sort();
        directories.extend(triplets);
        if parent.is_dir() {
            directories.push(parent);
        }
    }
    directories
}

fn loader_in(directory: &Path) -> Option<PathBuf> {
    fs::read_dir(directory).ok()?.flatten().map(|entry| entry.path()).find(|path| {
        path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("ld-linux")) && path.exists()
    })
}
