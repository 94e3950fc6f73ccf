//! Servers in unpacked trees with their own libraries, and mostly their own dynamic loader.

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The dynamic loader and libraries of a tree.
#[derive(Clone, Debug)]
pub struct Loader {
    /// The tree's own loader. Without one, the host's loader takes the C library of the host.
    program: Option<PathBuf>,
    libraries: Vec<PathBuf>,
}

impl Loader {
    /// The loader of a tree, if it has libraries.
    pub fn of(tree: &Path) -> Option<Self> {
        let libraries = library_directories(tree);
        let program = libraries.iter().find_map(|dir| loader_in(dir));
        (!libraries.is_empty()).then_some(Self { program, libraries })
    }

    /// A command that runs a program of the tree.
    pub fn command(&self, program: &Path) -> Command {
        let libraries: Vec<String> = self.libraries.iter().map(|dir| dir.display().to_string()).collect();
        let libraries = libraries.join(":");
        let Some(loader) = &self.program else {
            let mut command = Command::new(program);
            command.env("LD_LIBRARY_PATH", libraries);
            return command;
        };
        let mut command = Command::new(loader);
        command.arg("--library-path").arg(libraries).arg(program);
        command
    }
}

/// Wraps every program in a directory of the tree so that it runs with the tree's own loader and libraries. This is for
/// programs that start each other. The program is renamed to `NAME.bin`, and `NAME` becomes a script that finds the
/// tree relative to itself. Trees without a loader stay unchanged.
pub fn wrap_programs(tree: &Path, directory: &Path) -> io::Result<()> {
    let (Some(Loader { program: Some(loader), libraries }), Ok(below)) =
        (Loader::of(tree), directory.strip_prefix(tree))
    else {
        return Ok(());
    };
    // The path from the program's directory up to the tree.
    let up = below.iter().map(|_| "..").collect::<Vec<_>>().join("/");
    let inside =
        |path: &Path| path.strip_prefix(tree).map(|path| format!("$tree/{}", path.display())).unwrap_or_default();
    let libraries: Vec<String> = libraries.iter().map(|path| inside(path)).collect();
    let script = format!(
        "#!/bin/sh\ntree=$(dirname \"$0\")/{up}\nexec \"{}\" --argv0 \"$0\" --library-path \"{}\" \"$0.bin\" \"$@\"\n",
        inside(&loader),
        libraries.join(":")
    );
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        if !fs::symlink_metadata(&path)?.is_file() || !fs::read(&path)?.starts_with(b"\x7fELF") {
            continue;
        }
        let mut program = path.clone().into_os_string();
        program.push(".bin");
        fs::rename(&path, program)?;
        fs::write(&path, &script)?;
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755))?;
    }
    Ok(())
}

/// The directories of shared libraries in a tree of Debian packages.
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Programs that start each other, in a tree that is moved after its creation.
    #[test]
    fn program_in_tree_starts_another_with_the_trees_libraries() {
        let dir = tempfile::tempdir().unwrap();
        let tree = dir.path().join("draft");
        let (programs, libraries) = (tree.join("usr/lib/server/1/bin"), tree.join("usr/lib/x86_64-linux-gnu"));
        fs::create_dir_all(&programs).unwrap();
        fs::create_dir_all(&libraries).unwrap();
        // A script that prints its arguments replaces the loader.
        let loader = libraries.join("ld-linux-x86-64.so.2");
        rumba_testkit::process::executable(b"#!/bin/sh\necho \"$1 $2 $3 $4 $5 $6\"\n", &loader);
        fs::write(programs.join("server"), b"\x7fELF and more").unwrap();
        fs::write(programs.join("script"), "#!/bin/sh\n").unwrap();
        wrap_programs(&tree, &programs).unwrap();
        let place = dir.path().join("place");
        fs::rename(&tree, &place).unwrap();
        let program = place.join("usr/lib/server/1/bin/server");
        // Run it through `sh` instead of executing it, because a concurrent test may still hold the file open for
        // writing.
        let output = Command::new("sh").arg(&program).arg("--version").output().unwrap();
        let reported = String::from_utf8_lossy(&output.stdout).into_owned();
        let (program, up) = (program.display(), format!("{}/../../../../..", program.parent().unwrap().display()));
        let libraries = format!("{up}/usr/lib/x86_64-linux-gnu:{up}/usr/lib");
        assert_eq!(reported, format!("--argv0 {program} --library-path {libraries} {program}.bin --version\n"));
        assert_eq!(fs::read_to_string(place.join("usr/lib/server/1/bin/script")).unwrap(), "#!/bin/sh\n");
    }
}
