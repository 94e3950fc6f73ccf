//! A script's options as settings of the experiment, each by its own name: `tables = 4`.

use std::path::Path;

use crate::cli::options::{self, Group, OptionInfo};
use crate::cli::{OptionSet, Refusal};
use rumba_engine_api::setting::{Kind, SettingError, SettingInfo, Settings, Value};
use rumba_engine_api::units::parse_bytes;

use super::SETTINGS;
use super::validated_script::{OPTIONS_OF_A_SCRIPT, is_bundled, loaded, no_script, refused, script_of, unread, words};
use crate::options::declare;

/// sysbench options that a script's events may depend on; the experiment sets all others.
const TAKEN: [&str; 6] = [
    "mysql_ignore_errors",
    "pgsql_ignore_errors",
    "sqlite_ignore_errors",
    "luajit_cmd",
    "validate",
    "rand_zipfian_exp",
];

/// The settings for the options of the experiment's script.
///
/// # Errors
/// A setting for which the script has no option, that the experiment sets elsewhere, or that is given twice.
pub(super) fn declared(given: &Settings) -> Result<Vec<SettingInfo<String>>, SettingError> {
    let received = ScriptOptions::from(script_of(given))?;
    let names: Vec<&str> = named(given).map(|(name, _)| name).collect();
    names.iter().try_for_each(|name| received.has(name))?;
    refuse_twice(&names, given.text("options").unwrap_or_default())?;
    let infos = received.set.iter().filter(|(key, info)| said_by(key, info).is_none() && !is_own(key));
    let infos = infos.map(|(key, info)| {
        // Dashes and underscores are the same; the name is used as written.
        let name = names.iter().find(|name| options::key(name) == key).map_or(key, |name| (*name).to_owned());
        SettingInfo { name, kind: kind(info), default: default(info), help: info.help.to_string() }
    });
    Ok(infos.collect())
}

/// A setting as an argument of sysbench's command line.
#[derive(Clone, Debug)]
pub(super) struct Word {
    /// The setting's name.
    pub(super) name: String,
    /// The value, as the option receives it.
    value: String,
}

impl Word {
    /// `--tables=4`.
    pub(super) fn argument(&self) -> String {
        format!("--{}={}", self.name, self.value)
    }
}

/// The settings for options of a script, as its command line has them.
pub(super) fn of(settings: &Settings, script: &str) -> Result<Vec<Word>, SettingError> {
    if named(settings).next().is_none() {
        return Ok(Vec::new());
    }
    let received = ScriptOptions::from(script)?;
    let word = |(name, value): (&str, &Value)| {
        received.has(name)?;
        let is_size = received.set.info(name).is_some_and(|info| info.kind == options::Kind::Size);
        let value = match value {
            Value::Bool(flag) => if *flag { "on" } else { "off" }.to_owned(),
            Value::Text(size) if is_size => {
                parse_bytes(size).map_err(|why| SettingError::new(name, why, "a size such as 64MiB"))?.to_string()
            }
            other => other.to_string(),
        };
        Ok(Word { name: name.to_owned(), value })
    };
    named(settings).map(word).collect()
}

/// Assigns a mistake on the command line to the setting that caused it.
pub(super) fn refusal(refusal: &Refusal, said: &[Word], script: &str) -> SettingError {
    let mentions = |text: &str, value: &str| text.split_whitespace().any(|word| word.trim_end_matches('.') == value);
    let word = match refusal {
        Refusal::Fatal(text) => match said.iter().find(|word| mentions(text, &word.value)) {
            Some(word) => return SettingError::new(&word.name, text, OPTIONS_OF_A_SCRIPT),
            None => None,
        },
        Refusal::InvalidOption { argument, .. } => said.iter().find(|word| word.argument() == *argument),
        Refusal::InvalidValue { option, .. } => said.iter().find(|word| options::key(&word.name) == *option),
        _ => None,
    };
    match word {
        Some(Word { name, value }) => {
            let problem = format!("the script {script} does not take `{value}`");
            SettingError::new(name, problem, OPTIONS_OF_A_SCRIPT)
        }
        None => refused(refusal),
    }
}

/// The part of the experiment that sets an option instead of the script.
pub(super) fn said_by(key: &str, info: &OptionInfo) -> Option<&'static str> {
    if matches!(info.group, Group::Script | Group::Random) || TAKEN.contains(&key) {
        return None;
    }
    Some(match key {
        "threads" | "num_threads" => "run.clients, and run.load_clients for prepare",
        "time" | "max_time" => "run.loop and run.loops",
        "warmup_time" => "run.warmup",
        "rate" | "tx_rate" => "run.rate",
        "client_driver" => "run.driver",
        "events" | "max_requests" => "run.loop: events are counted, not bounded",
        "percentile" | "histogram" | "report_interval" | "report_checkpoints" | "report_json" => {
            "`rumba report`, which has all percentiles, intervals and JSON"
        }
        _ => "the engine's own settings, or nothing: experiments provision the database and connect to it",
    })
}

struct ScriptOptions {
    script: String,
    set: OptionSet,
    /// Whether it declares any.
    declares: bool,
}

impl ScriptOptions {
    fn from(script: &str) -> Result<Self, SettingError> {
        if !is_bundled(script) && !Path::new(script).is_file() {
            return Err(no_script(script));
        }
        let mut set = OptionSet::general();
        declare(&loaded(script, &set)?, &mut set).map_err(unread)?;
        let declares = set.iter().any(|(_, info)| info.group == Group::Script);
        Ok(Self { script: script.to_owned(), set, declares })
    }

    /// Refuses a name that is not a setting.
    fn has(&self, name: &str) -> Result<(), SettingError> {
        let script = &self.script;
        match self.set.info(name) {
            Some(info) => match said_by(&options::key(name), info) {
                None => Ok(()),
                Some(instead) => Err(not_a_scripts_to_say(name, &info.name, instead)),
            },
            None if self.declares => Err(SettingError::new(
                name,
                format!("the script {script} has no option of this name"),
                self.nearest(name),
            )),
            None => {
                let problem = format!("the script {script} declares no options, so it has none of this name");
                Err(SettingError::new(
                    name,
                    problem,
                    format!("for a script that takes it all the same: options = \"--{name}=…\""),
                ))
            }
        }
    }

    fn nearest(&self, name: &str) -> String {
        let own = SETTINGS.iter().map(|info| info.name.to_owned());
        let usable = self.set.iter().filter(|(key, info)| said_by(key, info).is_none()).map(|(key, _)| key);
        let known: Vec<String> = own.chain(usable).collect();
        if let Some(near) = rumba_engine_api::nearest(name, known.iter().map(String::as_str)) {
            return format!("did you mean `{near}`?");
        }
        let scripts = self.set.iter().filter(|(_, info)| info.group == Group::Script).map(|(key, _)| key);
        format!("it has: {}", scripts.collect::<Vec<_>>().join(", "))
    }
}

/// The error for an option that the experiment sets: the number of clients, their duration and the target.
pub(super) fn not_a_scripts_to_say(setting: &str, option: &str, instead: &str) -> SettingError {
    SettingError::new(setting, format!("--{option} is not a script's to say"), format!("use {instead}"))
}

/// The settings that are options of the script.
fn named(settings: &Settings) -> impl Iterator<Item = (&str, &Value)> {
    settings.0.iter().map(|(name, value)| (name.as_str(), value)).filter(|(name, _)| !is_own(name))
}

/// Whether a setting is the workload's own, independent of a script's options.
fn is_own(name: &str) -> bool {
    SETTINGS.iter().any(|info| info.name == name)
}

/// One option, one place where it is said.
fn refuse_twice(names: &[&str], options: &str) -> Result<(), SettingError> {
    // Mistakes in the options are reported where they are read.
    let words = words(options).unwrap_or_default();
    let said = |name: &str| {
        let word = words.iter().find(|word| {
            options::key(word.trim_start_matches('-').split('=').next().unwrap_or_default()) == options::key(name)
        });
        word.map(|word| format!("`{word}` of options"))
    };
    for (at, name) in names.iter().enumerate() {
        let before = names[..at].iter().find(|before| options::key(before) == options::key(name));
        let before = before.map(|before| format!("`{before}`")).or_else(|| said(name));
        if let Some(before) = before {
            let problem = format!("{before} already sets the same option");
            return Err(SettingError::new(*name, problem, "keep one of them"));
        }
    }
    Ok(())
}

fn kind(info: &OptionInfo) -> Kind {
    match info.kind {
        options::Kind::Flag => Kind::Bool,
        options::Kind::Int => Kind::Int(i32::MIN.into(), i32::MAX.into()),
        options::Kind::Size => Kind::Bytes,
        options::Kind::Double => Kind::Float(f64::NEG_INFINITY, f64::INFINITY),
        _ => Kind::Text,
    }
}

fn default(info: &OptionInfo) -> String {
    match (info.kind, info.default.as_deref()) {
        // For sysbench, a flag without a default is on.
        (options::Kind::Flag, None | Some("on" | "true" | "1")) => "true".to_owned(),
        (options::Kind::Flag, _) => "false".to_owned(),
        (_, None | Some("")) => "none".to_owned(),
        (_, Some(default)) => default.to_owned(),
    }
}
