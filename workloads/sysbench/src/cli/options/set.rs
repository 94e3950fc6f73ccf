//! Declared options and their values.

use std::collections::HashMap;

use super::value::{OptionValue, double, flag, int, numbers, size_bytes};
use super::{
    BEFORE_1_1, DATABASE, DRIVERS, GENERAL, Group, Kind, LOG_OPERATIONS, LOG_TEXT, OptionInfo, RANDOM, RUMBA, SQLITE,
    key,
};
use crate::cli::refusal::Refusal;

/// The source of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// It is the default.
    Default,
    /// The command line.
    CommandLine,
    /// A file of `--config-file`.
    ConfigFile,
    /// A script, or rumba in its place.
    Script,
}

/// Why a value is not taken.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SetError {
    /// The option is not declared.
    #[error("no option has this name")]
    Unknown,
    /// A flag is on or off.
    #[error("a flag is on, true or 1, or off, false or 0")]
    NotAFlag,
}

/// A line of a file of options.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigEntry {
    /// As it is written there.
    pub name: String,
    /// The values, separated by commas and blanks.
    pub values: Vec<String>,
    /// Counted from 1.
    pub line: usize,
}

/// A line of an option file for an undeclared option.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Unclaimed {
    path: String,
    entry: ConfigEntry,
}

#[derive(Clone, Debug)]
struct Entry {
    info: OptionInfo,
    values: Vec<String>,
    source: Source,
}

/// Options in the order of their declaration, each with its value. In all names, `-` and `_` are the same.
#[derive(Clone, Debug, Default)]
pub struct OptionSet {
    entries: Vec<Entry>,
    places: HashMap<String, usize>,
    unclaimed: Vec<Unclaimed>,
}

impl OptionSet {
    /// The options known before any test or script is loaded: general options, and those of databases and their
    /// drivers.
    pub fn general() -> Self {
        let mut set = Self::default();
        let common = [LOG_TEXT, LOG_OPERATIONS, DATABASE, RANDOM, GENERAL, RUMBA, BEFORE_1_1];
        for info in common.into_iter().chain(DRIVERS.iter().map(|driver| driver.options)).flatten() {
            set.put(info.clone());
        }
        set
    }

    /// Declares an option with its default. A value given for its name before, on the command line or in a file, stays.
    /// sysbench forgets it if a script declares an option that a file or sysbench itself has.
    ///
    /// # Errors
    /// The default of a flag is neither on nor off.
    pub fn declare(&mut self, info: OptionInfo) -> Result<(), SetError> {
        let is_sound = info.kind != Kind::Flag || info.default.is_none() || flag(info.default.as_deref()).is_some();
        if !is_sound {
            return Err(SetError::NotAFlag);
        }
        let wanted = info.key();
        let before = self.find(&wanted).filter(|entry| entry.source != Source::Default).cloned();
        let at = self.put(info);
        if let Some(before) = before {
            self.entries[at].take(before.text().as_deref(), before.source);
        }
        let waiting = std::mem::take(&mut self.unclaimed);
        let (claimed, left): (Vec<_>, Vec<_>) = waiting.into_iter().partition(|line| key(&line.entry.name) == wanted);
        self.unclaimed = left;
        // If a name occurs several times, the last line counts, as for names known before the file was read.
        for Unclaimed { entry, .. } in claimed {
            self.entries[at].take_words(entry.values, Source::ConfigFile);
        }
        Ok(())
    }

    /// The options as rumba reads its own. A script may declare an option under a name that only rumba has, because
    /// sysbench does not reserve it. It is then the script's alone, and rumba's has its default here.
    pub fn for_rumba(&self) -> Self {
        let mut set = self.clone();
        for info in RUMBA.iter().chain(SQLITE) {
            if set.info(&info.name).is_some_and(|found| found.group == Group::Script) {
                set.put(info.clone());
            }
        }
        set
    }

    /// Adds a row that is known to be valid, with its default.
    fn put(&mut self, info: OptionInfo) -> usize {
        let next = self.entries.len();
        let at = *self.places.entry(info.key()).or_insert(next);
        let default = info.default.clone();
        let mut entry = Entry { info, values: Vec::new(), source: Source::Default };
        // For sysbench, a flag without a default is on, like one given without a value.
        entry.take(default.as_deref(), Source::Default);
        if at == next {
            self.entries.push(entry);
        } else {
            self.entries[at] = entry;
        }
        at
    }

    /// Sets a value, as `--name=value` does. Without a value, as `--name`, a flag is on, and other options have no
    /// value.
    ///
    /// # Errors
    /// The name is unknown, or the value is not valid for a flag. As in sysbench, numbers are checked when they are
    /// read.
    pub fn set(&mut self, name: &str, value: Option<&str>, source: Source) -> Result<(), SetError> {
        let entry = self.find_mut(name).ok_or(SetError::Unknown)?;
        if entry.take(value, source) { Ok(()) } else { Err(SetError::NotAFlag) }
    }

    /// Sets a value, as a script does by `sysbench.opt.name = value`.
    ///
    /// # Errors
    /// The name is unknown.
    pub fn assign(&mut self, name: &str, value: OptionValue) -> Result<(), SetError> {
        let entry = self.find_mut(name).ok_or(SetError::Unknown)?;
        entry.source = Source::Script;
        entry.values = match value {
            OptionValue::Flag(true) => vec!["on".to_owned()],
            OptionValue::Flag(false) | OptionValue::Nothing => Vec::new(),
            OptionValue::Number(number) => vec![number.to_string()],
            OptionValue::Text(text) if text.is_empty() => Vec::new(),
            OptionValue::Text(text) => vec![text],
            OptionValue::List(texts) => texts,
        };
        Ok(())
    }

    /// Applies the options of an option file. Undeclared ones wait for their declaration.
    pub fn take_config(&mut self, path: &str, entries: Vec<ConfigEntry>) {
        for entry in entries {
            match self.find_mut(&entry.name) {
                Some(known) => known.take_words(entry.values, Source::ConfigFile),
                None => self.unclaimed.push(Unclaimed { path: path.to_owned(), entry }),
            }
        }
    }

    /// The undeclared options in option files, as warnings in 1.0's words, each with its position and the name that may
    /// have been meant.
    pub fn unclaimed_words(&self) -> Vec<String> {
        let words = |Unclaimed { path, entry: ConfigEntry { name, line, .. } }: &Unclaimed| {
            let meant = self.nearest(name).map_or_else(String::new, |near| format!("; did you mean {near}?"));
            let warning = format!("Global option '{name}' will not be exported, because the type is unknown");
            format!("{warning}: line {line} of {path}{meant}")
        };
        self.unclaimed.iter().map(words).collect()
    }

    /// The definition of an option.
    pub fn info(&self, name: &str) -> Option<&OptionInfo> {
        self.find(name).map(|entry| &entry.info)
    }

    /// The source of an option's value; `None` if it is not declared.
    pub fn source(&self, name: &str) -> Option<Source> {
        self.find(name).map(|entry| entry.source)
    }

    /// All options, in the order of their declaration, each with its key in `sysbench.opt`.
    pub fn iter(&self) -> impl Iterator<Item = (String, &OptionInfo)> {
        self.entries.iter().map(|entry| (entry.info.key(), &entry.info))
    }

    /// Whether a flag is on; off if it is not declared.
    pub fn flag(&self, name: &str) -> bool {
        self.find(name).is_some_and(|entry| !entry.values.is_empty())
    }

    /// A whole number; 0 without a value.
    ///
    /// # Errors
    /// The value is not a whole number of 32 bits.
    pub fn int(&self, name: &str) -> Result<i32, Refusal> {
        self.text(name).map_or(Ok(0), |text| int(text).ok_or_else(|| invalid(name, text)))
    }

    /// A size in bytes; 0 without a value, and for a text that is not a size.
    pub fn size_bytes(&self, name: &str) -> u64 {
        self.text(name).map_or(0, size_bytes)
    }

    /// A floating-point number; 0 without a value, and for a text that is not a number.
    pub fn double(&self, name: &str) -> f64 {
        self.list(name).last().map_or(0.0, |text| double(text))
    }

    /// A text; none without a value.
    pub fn text(&self, name: &str) -> Option<&str> {
        self.list(name).first().map(String::as_str)
    }

    /// The given value as text; `None` if it was given without a value.
    pub(crate) fn given(&self, name: &str) -> Option<String> {
        self.find(name)?.text()
    }

    /// All that was given between commas.
    pub fn list(&self, name: &str) -> &[String] {
        self.find(name).map_or(&[], |entry| &entry.values)
    }

    /// Numbers between commas.
    ///
    /// # Errors
    /// One of them is not a decimal number.
    pub fn numbers(&self, name: &str) -> Result<Vec<f64>, Refusal> {
        let all = self.list(name).iter().map(|text| numbers(text).ok_or_else(|| invalid(name, text)));
        Ok(all.collect::<Result<Vec<_>, _>>()?.concat())
    }

    /// The value for scripts.
    ///
    /// # Errors
    /// It should be a number and is not.
    pub fn value(&self, name: &str) -> Result<OptionValue, Refusal> {
        let Some(entry) = self.find(name) else { return Ok(OptionValue::Nothing) };
        Ok(match entry.info.kind {
            Kind::Flag => OptionValue::Flag(self.flag(name)),
            Kind::Int => OptionValue::Number(f64::from(self.int(name)?)),
            // As in C, above 2^53 it is the nearest number that Lua can represent.
            Kind::Size => OptionValue::Number(self.size_bytes(name) as f64),
            Kind::Double => OptionValue::Number(self.double(name)),
            Kind::Numbers => OptionValue::Number(self.numbers(name)?.first().copied().unwrap_or(0.0)),
            Kind::Text | Kind::Path => OptionValue::Text(self.text(name).unwrap_or_default().to_owned()),
            Kind::List => OptionValue::List(self.list(name).to_vec()),
            Kind::File => OptionValue::Nothing,
        })
    }

    /// The declared name nearest to an undeclared one, if it is near enough to be the intended one.
    pub fn nearest(&self, name: &str) -> Option<&str> {
        let wanted = key(name);
        // One letter in four may be wrong or missing, or two swapped; more would be a guess.
        let most = wanted.len().div_ceil(4).min(3);
        let distance = |entry: &&Entry| strsim::damerau_levenshtein(&wanted, &entry.info.key());
        let nearest = self.entries.iter().min_by_key(distance)?;
        (distance(&nearest) <= most).then_some(nearest.info.name.as_ref())
    }

    fn find(&self, name: &str) -> Option<&Entry> {
        self.entries.get(*self.places.get(&key(name))?)
    }

    fn find_mut(&mut self, name: &str) -> Option<&mut Entry> {
        self.entries.get_mut(*self.places.get(&key(name))?)
    }
}

impl Entry {
    /// The given value as text; `None` if it was given without a value.
    fn text(&self) -> Option<String> {
        match self.info.kind {
            Kind::Flag if self.values.is_empty() => Some("off".to_owned()),
            _ if self.values.is_empty() => None,
            _ => Some(self.values.join(",")),
        }
    }

    /// Whether it is taken.
    fn take(&mut self, value: Option<&str>, source: Source) -> bool {
        let values = match (self.info.kind, value) {
            (Kind::Flag, _) => match flag(value) {
                Some(true) => vec!["on".to_owned()],
                Some(false) => Vec::new(),
                None => return false,
            },
            (_, None | Some("")) => Vec::new(),
            (Kind::List, Some(value)) => value.split(',').filter(|part| !part.is_empty()).map(str::to_owned).collect(),
            (_, Some(value)) => vec![value.to_owned()],
        };
        self.values = values;
        self.source = source;
        true
    }

    /// A value from an option file. A flag's word is parsed there too, whereas sysbench treats a flag set to off as on.
    fn take_words(&mut self, words: Vec<String>, source: Source) {
        self.source = source;
        self.values = match self.info.kind {
            Kind::Flag => match flag(words.first().map(String::as_str)) {
                Some(false) => Vec::new(),
                _ => vec!["on".to_owned()],
            },
            _ => words,
        };
    }
}

fn invalid(name: &str, value: &str) -> Refusal {
    Refusal::InvalidValue { option: key(name), value: value.to_owned() }
}
