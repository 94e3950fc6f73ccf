//! Programs in a profile whose functions have no names, and where their names are to be had.

use std::process::{Command, Stdio};

use rumba_results::warning::Warning;

use super::fold::Folded;

/// The share of samples with unnamed functions of a file that is worth a warning.
const SHARE: f64 = 0.1;

/// A warning for each file with unnamed functions in more than a tenth of the samples, the most frequent first.
pub fn missing(folded: &Folded) -> Vec<Warning> {
    let share = |count: u64| count as f64 / folded.samples as f64;
    let mut files: Vec<(&String, f64)> = folded.unnamed.iter().map(|(file, count)| (file, share(*count))).collect();
    files.retain(|(_, share)| *share > SHARE);
    files.sort_by(|(_, one), (_, other)| other.total_cmp(one));
    files.into_iter().map(|(file, share)| warning(file, share, debian_package(file))).collect()
}

fn warning(file: &str, share: f64, package: Option<String>) -> Warning {
    let name = file.rsplit('/').next().unwrap_or(file);
    let remedy = match package.as_deref() {
        Some("libc6") => "install libc6-dbg, and profile again".to_owned(),
        Some(package) => format!(
            "install {package}-dbgsym from Debian's debug archive (https://wiki.debian.org/HowToGetABacktrace), and profile again"
        ),
        None => format!("use a build of {name} with debug symbols that is not stripped, and profile again"),
    };
    Warning::new(
        "missing-symbols",
        format!(
            "{:.0}% of the profile's samples have functions without names: {file} has no symbols for them",
            share * 100.0
        ),
        remedy,
    )
}

/// The Debian package that installed a file, if one did.
fn debian_package(file: &str) -> Option<String> {
    // Debian 12 moved /bin and /lib into /usr; many packages still list their files by the old names.
    [Some(file), file.strip_prefix("/usr")].into_iter().flatten().find_map(|name| {
        let output = Command::new("dpkg").args(["-S", name]).stdin(Stdio::null()).output().ok()?;
        package_in(&String::from_utf8_lossy(&output.stdout))
    })
}

/// The package in `libc6:amd64: /lib/x86_64-linux-gnu/libc.so.6`.
fn package_in(printed: &str) -> Option<String> {
    let line = printed.lines().find(|line| !line.starts_with("diversion "))?;
    let package = line.split([':', ',']).next()?;
    (!package.is_empty()).then(|| package.to_owned())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn files_without_symbols_are_reported_above_a_tenth() {
        let unnamed = [("/opt/db/bin/server", 11), ("/opt/db/lib/plugin.so", 60), ("/opt/db/lib/rare.so", 10)];
        let unnamed: BTreeMap<String, u64> =
            unnamed.into_iter().map(|(file, count)| (file.to_owned(), count)).collect();
        let warnings = missing(&Folded { samples: 100, unnamed, ..Folded::default() });
        let [plugin, server] = warnings.as_slice() else { panic!("{warnings:?}") };
        assert!(
            plugin.message.starts_with("60% of the profile's samples") && plugin.remedy.contains("plugin.so"),
            "{plugin:?}"
        );
        assert!(server.message.contains("/opt/db/bin/server") && server.remedy.contains("debug symbols"), "{server:?}");
        assert_eq!(plugin.rank(), rumba_results::warning::Rank::Note);
    }

    #[test]
    fn file_of_a_debian_package_names_its_symbols_package() {
        assert_eq!(package_in("libc6:amd64: /lib/x86_64-linux-gnu/libc.so.6\n").as_deref(), Some("libc6"));
        assert_eq!(package_in("diversion by dash from: /bin/sh\ndash: /bin/sh\n").as_deref(), Some("dash"));
        assert_eq!(package_in(""), None);
        assert!(
            warning("/usr/sbin/mariadbd", 0.4, Some("mariadb-server-core".to_owned()))
                .remedy
                .contains("mariadb-server-core-dbgsym")
        );
        assert!(warning("/lib/libc.so.6", 0.4, Some("libc6".to_owned())).remedy.contains("libc6-dbg"));
        assert_eq!(debian_package("/opt/no/such/file"), None);
    }
}
