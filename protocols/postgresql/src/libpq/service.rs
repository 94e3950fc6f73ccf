//! Service files: `[name]`, then lines of `keyword=value`.

use std::collections::BTreeMap;
use std::path::PathBuf;

use super::{SETTINGS, UNSUPPORTED};
use crate::PgError;

/// Keywords that change nothing here: timeouts and buffers of the connection, and methods that this client does not
/// have.
const WITHOUT_EFFECT: [&str; 12] = [
    "connect_timeout",
    "keepalives",
    "keepalives_idle",
    "keepalives_interval",
    "keepalives_count",
    "tcp_user_timeout",
    "krbsrvname",
    "gsslib",
    "gssdelegation",
    "sslcompression",
    "sslsni",
    "sslpassword",
];

/// The settings of a service, from the first file that defines it.
///
/// # Errors
/// No file defines it; a line of it that cannot be followed.
pub fn find(name: &str, files: &[PathBuf]) -> Result<BTreeMap<String, String>, PgError> {
    for file in files {
        let Ok(text) = std::fs::read_to_string(file) else { continue };
        let found = settings(&text, name)
            .map_err(|problem| PgError::Unable(format!("service {name} in {}: {problem}", file.display())))?;
        if let Some(settings) = found {
            return Ok(settings);
        }
    }
    let files: Vec<String> = files.iter().map(|file| file.display().to_string()).collect();
    Err(PgError::Unable(format!(
        "PGSERVICE names the service {name}, which none of these files defines: {}; define it there, name another file \
         in PGSERVICEFILE, or unset PGSERVICE",
        files.join(", ")
    )))
}

/// The settings of a service in a file's text, if it defines the service.
fn settings(text: &str, name: &str) -> Result<Option<BTreeMap<String, String>>, String> {
    let mut found: Option<BTreeMap<String, String>> = None;
    for (line, number) in text.lines().map(str::trim).zip(1..) {
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        if let Some(section) = line.strip_prefix('[') {
            if found.is_some() {
                break;
            }
            let is_this = section.split_once(']').is_some_and(|(section, _)| section == name);
            found = is_this.then(BTreeMap::new);
        } else if let Some(settings) = &mut found {
            let (keyword, value) = line
                .split_once('=')
                .ok_or_else(|| format!("line {number} is not `keyword=value`, the only form that rumba supports"))?;
            let keyword = keyword.trim();
            let is_known = SETTINGS.iter().any(|(known, _)| *known == keyword)
                || UNSUPPORTED.iter().any(|(known, ..)| *known == keyword);
            if !is_known && !WITHOUT_EFFECT.contains(&keyword) {
                return Err(format!("line {number}: rumba does not support `{keyword}`; leave it out"));
            }
            // As for libpq, the first of several lines counts.
            settings.entry(keyword.to_owned()).or_insert_with(|| value.to_owned());
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_service_has_the_lines_below_its_name() {
        let text = "# mine\n[other]\nhost=a\nnonsense\n\n[lab]\n host=b\nport=5433\nport=1\noptions=-c a=b\n[end]\nx";
        let lab = settings(text, "lab").unwrap().unwrap();
        let pairs: Vec<(&str, &str)> = lab.iter().map(|(keyword, value)| (keyword.as_str(), value.as_str())).collect();
        assert_eq!(pairs, [("host", "b"), ("options", "-c a=b"), ("port", "5433")]);
        assert_eq!(settings(text, "none"), Ok(None));
    }

    #[test]
    fn a_service_that_cannot_be_followed_names_its_line() {
        for (line, words) in [("ldap://x", "line 2"), ("replication=on", "`replication`")] {
            let problem = settings(&format!("[lab]\n{line}\n"), "lab").unwrap_err();
            assert!(problem.contains(words), "{problem}");
        }
        let error = find("lab", &["/no/such/file".into()]).unwrap_err().to_string();
        assert!(error.contains("/no/such/file") && error.contains("PGSERVICEFILE"), "{error}");
    }
}
