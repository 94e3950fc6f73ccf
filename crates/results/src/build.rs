//! The build of rumba that made a record, because the tool's version can affect the figures.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Digits of a commit's hash shown to people: enough to be unique in any repository of this size.
const SHOWN: usize = 12;

/// The sources from which a binary of rumba was built.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Build {
    /// The commit's full hash; `null` if it is not known.
    pub commit: Option<String>,
    /// When the commit was made, RFC 3339 in UTC.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub committed: Option<String>,
    /// Whether the compiled source differed from the commit.
    #[serde(default)]
    pub dirty: bool,
    /// The reason why the commit is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unknown: Option<String>,
}

impl Build {
    /// A build with an unknown commit, with the reason.
    pub fn unknown(reason: impl Into<String>) -> Self {
        Self { unknown: Some(reason.into()), ..Self::default() }
    }

    /// The abbreviated commit: `ba375a52f1c3-dirty`; `None` if it is not known.
    pub fn short(&self) -> Option<String> {
        let commit = self.commit.as_deref()?;
        let dirty = if self.dirty { "-dirty" } else { "" };
        Some(format!("{}{dirty}", commit.get(..SHOWN).unwrap_or(commit)))
    }
}

impl fmt::Display for Build {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(short) = self.short() else {
            return write!(f, "unknown: {}", self.unknown.as_deref().unwrap_or("the build does not say it"));
        };
        match &self.committed {
            Some(committed) => write!(f, "{short}, of {committed}"),
            None => f.write_str(&short),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn build_shows_short_commit_and_dirty_flag_or_unknown_reason() {
        let commit = Some("ba375a52f1c3d4e5f60718293a4b5c6d7e8f9012".to_owned());
        let clean = Build { commit, committed: Some("2024-01-01T00:00:00Z".to_owned()), ..Build::default() };
        assert_eq!(clean.to_string(), "ba375a52f1c3, of 2024-01-01T00:00:00Z");
        assert_eq!(Build { dirty: true, ..clean }.short().as_deref(), Some("ba375a52f1c3-dirty"));
        assert_eq!(Build::unknown("no repository").to_string(), "unknown: no repository");
    }
}
