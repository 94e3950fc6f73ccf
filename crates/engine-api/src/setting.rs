//! Settings of engines and workloads, by name.

use std::collections::BTreeMap;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::error::EngineError;
use crate::units::{parse_bytes, parse_duration};

/// One value as written in an experiment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Value {
    /// `true` or `false`.
    Bool(bool),
    /// A whole number.
    Int(i64),
    /// A floating-point number.
    Float(f64),
    /// Any other value: sizes, durations, names.
    Text(String),
}

impl std::fmt::Display for Value {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Value::Bool(value) => write!(f, "{value}"),
            Value::Int(value) => write!(f, "{value}"),
            Value::Float(value) => write!(f, "{value}"),
            Value::Text(value) => f.write_str(value),
        }
    }
}

/// The type of a setting.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Kind {
    /// `true` or `false`.
    Bool,
    /// A whole number between two bounds, inclusive.
    Int(i64, i64),
    /// A number between two bounds, inclusive.
    Float(f64, f64),
    /// A size, see [`crate::units::parse_bytes`].
    Bytes,
    /// A duration, see [`crate::units::parse_duration`].
    Duration,
    /// One of these words.
    Choice(&'static [&'static str]),
    /// Any text; a number is taken as its digits ([`Settings::as_described`]).
    Text,
}

/// The description of one setting, shown by `rumba engines` and `rumba workloads`. Its texts are static, or each a
/// `String` if they are known only at run time, as for the options that a script declares.
#[derive(Clone, Copy, Debug)]
pub struct SettingInfo<Text = &'static str> {
    /// Its name, as spelt in the engine's or the workload's own documentation.
    pub name: Text,
    /// Its type.
    pub kind: Kind,
    /// Its default as a person would write it; a description if it depends on other settings.
    pub default: Text,
    /// One line of help, with the unit.
    pub help: Text,
}

/// The description of a setting with static texts.
pub const fn info(name: &'static str, kind: Kind, default: &'static str, help: &'static str) -> SettingInfo {
    SettingInfo { name, kind, default, help }
}

/// A setting that cannot be accepted: its name, the reason, and the remedy.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, thiserror::Error)]
#[error("{key}: {problem}")]
pub struct SettingError {
    /// The setting's name as written.
    pub key: String,
    /// The fault, without the name and without a full stop: `` `65` does not fit ``.
    pub problem: String,
    /// The remedy.
    pub remedy: String,
    /// Whether the name is unknown, so that the fault is not in the value.
    #[serde(default)]
    pub is_unknown: bool,
}

impl From<SettingError> for EngineError {
    fn from(error: SettingError) -> Self {
        EngineError::failed("configuration", format!("{error}; {}", error.remedy))
    }
}

impl SettingError {
    /// An error about `key`.
    pub fn new(key: impl Into<String>, problem: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { key: key.into(), problem: problem.into(), remedy: remedy.into(), is_unknown: false }
    }

    /// The error for an unknown name, with the nearest known one.
    pub fn unknown<'a>(key: &str, whose: &str, known: impl IntoIterator<Item = &'a str> + Clone) -> Self {
        let remedy = match known.clone().into_iter().next() {
            Some(_) => crate::instead(key, known),
            None => format!("{whose} has no settings"),
        };
        Self { is_unknown: true, ..Self::new(key, format!("{whose} has no such setting"), remedy) }
    }
}

/// Settings by name, as given; checked against [`SettingInfo`]s before use.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct Settings(pub BTreeMap<String, Value>);

impl<Name: Into<String>> FromIterator<(Name, Value)> for Settings {
    fn from_iter<I: IntoIterator<Item = (Name, Value)>>(named: I) -> Self {
        Self(named.into_iter().map(|(name, value)| (name.into(), value)).collect())
    }
}

impl<Name: Into<String>, const N: usize> From<[(Name, Value); N]> for Settings {
    fn from(named: [(Name, Value); N]) -> Self {
        named.into_iter().collect()
    }
}

impl Settings {
    /// Checks every setting against the list: an unknown name, a value of the
    /// wrong kind or out of bounds is an error.
    ///
    /// # Errors
    /// The first offending setting.
    pub fn check<T: AsRef<str>>(&self, whose: &str, infos: &[SettingInfo<T>]) -> Result<(), SettingError> {
        for (key, value) in &self.0 {
            let info = infos
                .iter()
                .find(|info| info.name.as_ref() == key)
                .ok_or_else(|| SettingError::unknown(key, whose, infos.iter().map(|info| info.name.as_ref())))?;
            info.check(value)?;
        }
        Ok(())
    }

    /// Turns numbers into text if the setting is a text or a word, so that `profile = 2017` works as expected.
    #[must_use]
    pub fn as_described<T: AsRef<str>>(mut self, infos: &[SettingInfo<T>]) -> Self {
        for info in infos.iter().filter(|info| matches!(info.kind, Kind::Text | Kind::Choice(_))) {
            if let Some(value @ (Value::Int(_) | Value::Float(_))) = self.0.get_mut(info.name.as_ref()) {
                *value = Value::Text(value.to_string());
            }
        }
        self
    }

    /// These settings, with the defaults of all others, unless a default is only a description. The defaults are
    /// therefore defined only in the list.
    #[must_use]
    pub fn with_defaults(&self, infos: &[SettingInfo]) -> Self {
        let mut whole = self.clone();
        for info in infos.iter().filter(|info| self.get(info.name).is_none()) {
            whole.0.extend(info.default_value().map(|value| (info.name.to_owned(), value)));
        }
        whole
    }

    /// The value as given, if it was given.
    pub fn get(&self, key: &str) -> Option<&Value> {
        self.0.get(key)
    }

    /// A switch; `None` when not given. Call after [`Settings::check`].
    pub fn bool(&self, key: &str) -> Option<bool> {
        match self.0.get(key)? {
            Value::Bool(value) => Some(*value),
            _ => None,
        }
    }

    /// A whole number; `None` when not given.
    pub fn int(&self, key: &str) -> Option<i64> {
        match self.0.get(key)? {
            Value::Int(value) => Some(*value),
            _ => None,
        }
    }

    /// A number; `None` when not given.
    pub fn float(&self, key: &str) -> Option<f64> {
        match self.0.get(key)? {
            Value::Int(value) => Some(*value as f64),
            Value::Float(value) => Some(*value),
            _ => None,
        }
    }

    /// A size in bytes; `None` when not given.
    pub fn bytes(&self, key: &str) -> Option<u64> {
        match self.0.get(key)? {
            Value::Int(value) => u64::try_from(*value).ok(),
            Value::Text(text) => parse_bytes(text).ok(),
            _ => None,
        }
    }

    /// A duration; `None` when not given.
    pub fn duration(&self, key: &str) -> Option<Duration> {
        match self.0.get(key)? {
            Value::Text(text) => parse_duration(text).ok(),
            _ => None,
        }
    }

    /// A text; `None` when not given.
    pub fn text(&self, key: &str) -> Option<&str> {
        match self.0.get(key)? {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }
}

impl<Text: AsRef<str>> SettingInfo<Text> {
    /// The same with borrowed texts.
    pub fn borrowed(&self) -> SettingInfo<&str> {
        let Self { name, kind, default, help } = self;
        SettingInfo { name: name.as_ref(), kind: *kind, default: default.as_ref(), help: help.as_ref() }
    }

    /// The default as a value; `None` if it is a description, and for a text, which could be either.
    pub fn default_value(&self) -> Option<Value> {
        let default = self.default.as_ref();
        let text = || Value::Text(default.to_owned());
        let value = match self.kind {
            Kind::Bool => Value::Bool(default.parse().ok()?),
            Kind::Int(..) => Value::Int(default.parse().ok()?),
            Kind::Float(..) => Value::Float(default.parse().ok()?),
            Kind::Bytes | Kind::Duration | Kind::Choice(_) => text(),
            Kind::Text => return None,
        };
        self.check(&value).ok().map(|()| value)
    }

    /// Checks one value against this setting's kind.
    pub fn check(&self, value: &Value) -> Result<(), SettingError> {
        let name = self.name.as_ref();
        let wrong = |expected: String| {
            Err(SettingError::new(name, format!("`{value}` does not fit"), format!("expected {expected}")))
        };
        match (self.kind, value) {
            (Kind::Bool, Value::Bool(_)) | (Kind::Text, Value::Text(_)) => Ok(()),
            (Kind::Bool, _) => wrong("true or false".into()),
            (Kind::Int(low, high), Value::Int(number)) if (low..=high).contains(number) => Ok(()),
            (Kind::Int(low, high), _) => wrong(format!("a whole number from {low} to {high}")),
            (Kind::Float(low, high), Value::Float(number)) if (low..=high).contains(number) => Ok(()),
            (Kind::Float(low, high), Value::Int(number)) if (low..=high).contains(&(*number as f64)) => Ok(()),
            (Kind::Float(f64::NEG_INFINITY, f64::INFINITY), _) => wrong("a number".into()),
            (Kind::Float(low, high), _) => wrong(format!("a number from {low} to {high}")),
            (Kind::Bytes, Value::Int(number)) if *number >= 0 => Ok(()),
            (Kind::Bytes, Value::Text(text)) => {
                parse_bytes(text).map(drop).map_err(|why| SettingError::new(name, why, "a size such as 64MiB"))
            }
            (Kind::Bytes, _) => wrong("a size such as 64MiB".into()),
            (Kind::Duration, Value::Text(text)) => {
                parse_duration(text).map(drop).map_err(|why| SettingError::new(name, why, "a duration such as 30s"))
            }
            (Kind::Duration, _) => wrong("a duration such as \"30s\"".into()),
            (Kind::Choice(words), Value::Text(text)) if words.contains(&text.as_str()) => Ok(()),
            (Kind::Choice(words), _) => wrong(format!("one of {}", words.join(", "))),
            (Kind::Text, _) => wrong("a text in quotes".into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const INFOS: &[SettingInfo] = &[
        SettingInfo { name: "page_size", kind: Kind::Bytes, default: "4KiB", help: "" },
        SettingInfo { name: "threads", kind: Kind::Int(1, 64), default: "2", help: "" },
    ];

    fn one(key: &str, value: Value) -> Settings {
        Settings::from([(key, value)])
    }

    #[test]
    fn a_number_for_a_word_is_taken_as_the_word() {
        let infos = [SettingInfo { name: "profile", kind: Kind::Choice(&["2011", "2017"]), default: "2017", help: "" }];
        let settings = one("profile", Value::Int(2011)).as_described(&infos);
        assert_eq!(settings.text("profile"), Some("2011"));
        settings.check("linkbench", &infos).unwrap();
    }

    #[test]
    fn missing_setting_takes_its_default_unless_default_is_prose() {
        let more = [
            SettingInfo { name: "sync", kind: Kind::Choice(&["on", "off"]), default: "on, but not here", help: "" },
            SettingInfo { name: "share", kind: Kind::Float(0.0, 1.0), default: "0.25", help: "" },
        ];
        let settings = one("threads", Value::Int(7)).with_defaults(&[INFOS, &more].concat());
        assert_eq!((settings.int("threads"), settings.bytes("page_size")), (Some(7), Some(4096)));
        assert_eq!((settings.text("sync"), settings.float("share")), (None, Some(0.25)));
    }
}
