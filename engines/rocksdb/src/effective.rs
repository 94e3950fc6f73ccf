//! Reads the effective settings from RocksDB's newest OPTIONS file, and compares them with the requested ones.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::names::Group;

/// One section of an OPTIONS file.
struct Section {
    group: Group,
    /// The column family; empty for the database's section.
    family: String,
    values: BTreeMap<String, String>,
}

/// The effective settings.
pub struct Effective {
    sections: Vec<Section>,
    /// The version that RocksDB reports.
    pub version: Option<String>,
}

impl Effective {
    /// Reads the newest OPTIONS file of a data directory; `families` are those of the key spaces.
    ///
    /// # Errors
    /// A message that says what could not be read.
    pub fn read(dir: &Path, families: &[String]) -> Result<Self, String> {
        let path = newest_options_file(dir)?;
        let text = std::fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        let mut effective = Self::parse(&text);
        // Without key spaces, RocksDB's mandatory empty family represents them.
        let wanted = |family: &String| families.contains(family) || families.is_empty();
        effective.sections.retain(|section| section.group == Group::Database || wanted(&section.family));
        Ok(effective)
    }

    fn parse(text: &str) -> Self {
        let mut sections = Vec::new();
        let mut version = None;
        // The lines before the first relevant section describe the file itself.
        let mut known = false;
        for line in text.lines().map(str::trim) {
            if let Some(header) = line.strip_prefix('[') {
                let section = section_of(header);
                known = section.is_some();
                sections.extend(section);
            } else if let Some((name, value)) = line.split_once('=') {
                match sections.last_mut() {
                    Some(Section { values, .. }) if known => drop(values.insert(name.to_owned(), value.to_owned())),
                    _ if name == "rocksdb_version" => version = Some(value.to_owned()),
                    _ => {}
                }
            }
        }
        Self { sections, version }
    }

    /// Every setting: by its plain name if all key spaces agree, else as `name[family]`.
    pub fn list(&self) -> Vec<(String, String)> {
        let mut list = Vec::new();
        for group in [Group::Database, Group::Family, Group::Table] {
            let sections: Vec<_> = self.sections.iter().filter(|section| section.group == group).collect();
            let Some((first, rest)) = sections.split_first() else { continue };
            for (name, value) in &first.values {
                if rest.iter().all(|section| section.values.get(name) == Some(value)) {
                    list.push((name.clone(), value.clone()));
                } else {
                    list.extend(sections.iter().filter_map(|section| {
                        Some((format!("{name}[{}]", section.family), section.values.get(name)?.clone()))
                    }));
                }
            }
        }
        list
    }

    /// The value of a setting in the first section of its group.
    pub fn get(&self, group: Group, name: &str) -> Option<&str> {
        self.sections.iter().find(|section| section.group == group)?.values.get(name).map(String::as_str)
    }

    /// Requested settings that did not take effect, one sentence each.
    pub fn differences(&self, requested: &BTreeMap<(Group, String), String>) -> Vec<String> {
        let mut differences = Vec::new();
        for ((group, name), value) in requested {
            let mut found = false;
            // `plan` assumes the family for a name that only the library knows, but it may belong to the database.
            let home = |section: &&Section| section.group == *group || section.values.contains_key(name);
            for section in self.sections.iter().filter(home) {
                match section.values.get(name) {
                    Some(effective) if agrees(value, effective) => found = true,
                    Some(effective) => {
                        found = true;
                        differences.push(format!("{name}: requested {value}, but RocksDB runs with {effective}"));
                        break;
                    }
                    None => {}
                }
            }
            if !found {
                differences.push(format!("{name}: requested {value}; RocksDB accepted it and does not report it"));
            }
        }
        differences
    }
}

/// The options section that a header opens, if any: `DBOptions]`, `CFOptions "name"]`, `TableOptions/BlockBasedTable
/// "name"]`.
fn section_of(header: &str) -> Option<Section> {
    let header = header.trim_end_matches(']');
    let (kind, family) = header.split_once(' ').unwrap_or((header, ""));
    let group = match kind {
        "DBOptions" => Group::Database,
        "CFOptions" => Group::Family,
        "TableOptions/BlockBasedTable" => Group::Table,
        _ => return None,
    };
    Some(Section { group, family: family.trim_matches('"').to_owned(), values: BTreeMap::new() })
}

/// RocksDB's newest file: `OPTIONS-` with the highest number.
fn newest_options_file(dir: &Path) -> Result<PathBuf, String> {
    let files = std::fs::read_dir(dir).map_err(|error| format!("{}: {error}", dir.display()))?;
    files
        .filter_map(|file| {
            let path = file.ok()?.path();
            let number: u64 = path.file_name()?.to_str()?.strip_prefix("OPTIONS-")?.parse().ok()?;
            Some((number, path))
        })
        .max()
        .map(|(_, path)| path)
        .ok_or_else(|| format!("{}: RocksDB wrote no OPTIONS file", dir.display()))
}

/// Whether the effective value equals the requested one. Numbers and switches are compared by value, names such as
/// `kZSTD` literally, and the fields of `{a=b}` one by one. Objects have several spellings (`fixed:8` is reported as
/// `rocksdb.FixedPrefix.8`), so only a missing object counts as a difference.
fn agrees(requested: &str, effective: &str) -> bool {
    let (requested, effective) = (requested.trim(), effective.trim());
    if requested == effective {
        return true;
    }
    if let (Ok(requested), Ok(effective)) = (requested.parse::<f64>(), effective.parse::<f64>()) {
        return requested == effective;
    }
    if let (Some(requested), Some(effective)) = (fields(requested), fields(effective)) {
        return requested.iter().all(|(name, value)| effective.get(name).is_some_and(|other| agrees(value, other)));
    }
    let is_enum = |text: &str| {
        text.split(':').all(|part| part.len() > 1 && part.starts_with('k') && part.as_bytes()[1].is_ascii_uppercase())
    };
    let scalar = |text: &str| matches!(text, "true" | "false") || text.parse::<f64>().is_ok() || is_enum(text);
    if scalar(requested) && scalar(effective) {
        return false;
    }
    (requested == "nullptr") == (effective == "nullptr")
}

/// Parses the fields of `{a=b;c=d}`, one level deep.
fn fields(text: &str) -> Option<BTreeMap<&str, &str>> {
    let inner = text.strip_prefix('{')?.strip_suffix('}')?;
    Some(inner.split(';').filter_map(|field| field.split_once('=')).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_compared_by_meaning() {
        assert!(agrees("10", "10.000000"));
        assert!(agrees("{level=3}", "{enabled=false;level=3;}"));
        assert!(!agrees("{level=3}", "{enabled=false;level=4;}"));
        assert!(!agrees("kZSTD", "kLZ4Compression"));
        assert!(!agrees("kNoCompression:kZSTD", "kNoCompression:kNoCompression"));
        assert!(agrees("fixed:8", "rocksdb.FixedPrefix.8"));
        assert!(!agrees("nonsense:3", "nullptr"));
        assert!(!agrees("true", "false"));
    }
}
