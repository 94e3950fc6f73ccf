//! The common settings that decide how engines compare (cache and durability), and how an engine's own settings
//! override them.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::setting::{SettingError, Settings};

/// Durability of a commit, the weakest level first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Durability {
    /// No log: a crash of the process may lose or damage data.
    None,
    /// Logged in the memory of the process, and written to the log's file in the background within about a second. A
    /// crash of the process may lose the last commits, but damages nothing.
    Buffered,
    /// Written to the kernel at commit, not synced: a crash of the process loses nothing, a crash of the host may.
    #[default]
    NoSync,
    /// Synced to the device at commit.
    Sync,
}

impl Durability {
    /// Every level, by the name an experiment uses.
    pub const NAMES: [(&'static str, Durability); 4] = [
        ("none", Durability::None),
        ("buffered", Durability::Buffered),
        ("no-sync", Durability::NoSync),
        ("sync", Durability::Sync),
    ];

    /// The name an experiment uses.
    pub fn name(self) -> &'static str {
        match self {
            Durability::None => "none",
            Durability::Buffered => "buffered",
            Durability::NoSync => "no-sync",
            Durability::Sync => "sync",
        }
    }

    /// Whether a crash of the process, with the host still up, loses no acknowledged commit.
    pub fn survives_process_crash(self) -> bool {
        self >= Durability::NoSync
    }

    /// Refuses the level `buffered` for an engine without a buffer of commits: `why` completes "there is no `buffered`:
    /// ".
    ///
    /// # Errors
    /// The level is `buffered`.
    pub fn refuse_buffered(self, engine: &str, why: &str) -> Result<(), SettingError> {
        if self != Durability::Buffered {
            return Ok(());
        }
        let problem = format!("{engine} has no `buffered`: {why}");
        Err(SettingError::new(
            "durability",
            problem,
            "set durability = \"no-sync\", the next stronger level, or \"none\"",
        ))
    }
}

/// An engine's own setting that overrides a common one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Own_{T}")]
pub struct Own<T> {
    /// Its name as written in the experiment: `innodb_buffer_pool_size`.
    pub setting: String,
    /// The equivalent value of the common setting; absent where there is no equivalent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<T>,
}

impl<T> Own<T> {
    /// An engine setting with this name and this equivalent value.
    pub fn new(setting: impl Into<String>, value: Option<T>) -> Self {
        Self { setting: setting.into(), value }
    }
}

/// The common settings that an engine's own settings override.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct OverriddenSettings {
    /// Overrides `cache`, in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache: Option<Own<u64>>,
    /// Overrides `durability`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub durability: Option<Own<Durability>>,
}

impl OverriddenSettings {
    /// Whether there is no override.
    pub fn is_none(&self) -> bool {
        *self == Self::default()
    }
}

/// A common setting in its effective form.
#[derive(Clone, Debug)]
pub struct Given<T> {
    /// Its value; `None` if it is unknown, or if the engine's own setting has no equivalent in the common setting.
    pub value: Option<T>,
    /// The same in words, which is used to compare engines: `64.0 MiB`, `cache_size = -2000`, `not known`.
    pub reported: String,
    /// The engine's own setting that defines it, if any.
    pub by: Option<String>,
}

impl<T: Copy> Given<T> {
    /// The effective setting: `own`, which names one of `settings`, or else the experiment's common value. Pass `None`
    /// for `all` if the engine does not receive the common value.
    pub fn of(own: Option<&Own<T>>, all: Option<T>, settings: &Settings, show: impl Fn(T) -> String) -> Self {
        let (value, by) = (own.map_or(all, |own| own.value), own.map(|own| own.setting.clone()));
        let reported = match (value, &by) {
            (Some(value), _) => show(value),
            (None, Some(setting)) => {
                let written = settings.get(setting).map(ToString::to_string);
                format!("{setting} = {}", written.unwrap_or_default())
            }
            (None, None) => "not known".to_owned(),
        };
        Self { value, reported, by }
    }
}

impl<T> Given<T> {
    /// Whether the value is known, as a common setting or as the engine's own.
    pub fn is_known(&self) -> bool {
        self.value.is_some() || self.by.is_some()
    }
}

/// Equal if the same value is in force, even if different settings define it.
impl<T: PartialEq> PartialEq for Given<T> {
    fn eq(&self, other: &Self) -> bool {
        self.value == other.value && self.reported == other.reported
    }
}

/// With the engine's own setting that defines it, if any: `1.00 GiB (innodb_buffer_pool_size)`.
impl<T> fmt::Display for Given<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.by {
            Some(setting) if self.value.is_some() => write!(f, "{} ({setting})", self.reported),
            _ => f.write_str(&self.reported),
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::setting::Value;

    use super::*;

    fn given(own: Option<&Own<u64>>, all: Option<u64>) -> Given<u64> {
        let settings = Settings::from([("pool", Value::Text("per session".to_owned()))]);
        Given::of(own, all, &settings, |bytes| format!("{bytes} B"))
    }

    #[test]
    fn levels_are_ordered_by_what_survives() {
        let [none, buffered, no_sync, sync] = Durability::NAMES.map(|(_, level)| level);
        assert!(none < buffered && buffered < no_sync && no_sync < sync);
        let survives = [none, buffered, no_sync, sync].map(Durability::survives_process_crash);
        assert_eq!(survives, [false, false, true, true]);
        assert!(no_sync.refuse_buffered("tree", "it writes at once").is_ok());
        let error = buffered.refuse_buffered("tree", "it writes at once").unwrap_err();
        assert_eq!(error.key, "durability");
        assert_eq!(error.problem, "tree has no `buffered`: it writes at once");
    }

    #[test]
    fn engine_setting_overrides_common_setting() {
        let (own, all) = (given(Some(&Own::new("pool", Some(7))), Some(5)), given(None, Some(5)));
        assert_eq!((own.value, own.to_string()), (Some(7), "7 B (pool)".to_owned()));
        assert_eq!((all.value, all.to_string()), (Some(5), "5 B".to_owned()));
        assert_ne!(own, all);
        assert_eq!(own, given(None, Some(7)), "either setting gives the same size");
    }

    #[test]
    fn unconvertible_setting_prints_as_written_and_equals_no_value() {
        let other = given(Some(&Own::new("pool", None)), Some(5));
        assert_eq!((other.value, other.to_string()), (None, "pool = per session".to_owned()));
        assert!(other.is_known() && other != given(None, Some(5)));
        let no_user = given(None, None);
        assert_eq!(no_user.to_string(), "not known");
        assert!(!no_user.is_known() && no_user != other);
    }
}
