//! Files must not name a machine: neither a registry's host nor a path that exists on one developer's disk.

use super::{Finding, Text};

/// Hosts in a package manager's configuration, which a mirror replaces elsewhere. Concatenated, so that this file does
/// not report itself.
const REGISTRY_HOSTS: [&str; 9] = [
    concat!("registry.", "npmjs.org"),
    concat!("registry.", "yarnpkg.com"),
    concat!("index.", "crates.io"),
    concat!("static.", "crates.io"),
    concat!("pypi", ".org"),
    concat!("files.", "pythonhosted.org"),
    concat!("proxy.", "golang.org"),
    concat!("deb.", "debian.org"),
    concat!("artifact", "registry"),
];

/// Directories of one machine. `/home` is not among them: it is a mount point everywhere.
const MACHINE_PATHS: [&str; 3] = [concat!("/wo", "rk/"), concat!("/ro", "ot/"), concat!("/Us", "ers/")];

/// The one registry of Rust's lock file.
const CRATES_IO_INDEX: &str = "registry+https://github.com/rust-lang/crates.io-index";

/// Hosts and paths in any text.
pub fn check(file: &Text) -> Vec<Finding> {
    let lines = file.content.lines().enumerate();
    lines.filter_map(|(index, line)| Some(file.finding(index + 1, trace(file, line)?))).collect()
}

fn trace(file: &Text, line: &str) -> Option<String> {
    if let Some(host) = REGISTRY_HOSTS.into_iter().find(|&host| line.contains(host)) {
        return Some(format!("names the registry host {host}; leave the choice to the package manager"));
    }
    if let Some(path) = MACHINE_PATHS.into_iter().find(|&path| starts_a_path(line, path)) {
        return Some(format!("names a path of one machine, {path}…"));
    }
    let is_lock = file.path.ends_with("Cargo.lock");
    (is_lock && line.contains("registry+") && !line.contains(CRATES_IO_INDEX))
        .then(|| "locks a crate to another registry than crates.io".to_owned())
}

/// Whether an absolute path begins here, rather than continues: in `docs/work/` none begins.
fn starts_a_path(line: &str, path: &str) -> bool {
    line.match_indices(path).any(|(at, _)| {
        !line[..at]
            .ends_with(|c: char| c.is_alphanumeric() || matches!(c, '.' | '_' | '-' | '*' | '}' | ')' | '~' | '/'))
    })
}
