//! An experiment's settings, checked against their script.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::cli::command_line::{self, CommandLine, Unknown};
use crate::cli::options::{OptionInfo, Source};
use crate::cli::{OptionSet, Refusal, Settings as General, version};
use crate::remedy::Ignored;
use rumba_engine_api::setting::{SettingError, Settings};
use sha2::{Digest as _, Sha256};

use super::named::{self, Word};
use super::sessions::Sessions;
use crate::bundled::SCRIPTS;
use crate::failure::Function;
use crate::host::Host;
use crate::interpreter::{Fill, Interpreter};
use crate::options;
use crate::random::{Shapes, Unique};
use crate::setup::{Events, Measures, Script, Setup};

pub(super) const OPTIONS_OF_A_SCRIPT: &str = "`rumba sysbench SCRIPT help` lists a script's options";

/// A script with its options, checked.
#[derive(Clone, Debug)]
pub(super) struct ValidatedScript {
    line: CommandLine,
    pub(super) options: OptionSet,
    general: General,
    data_bytes: Option<u64>,
    /// The digest of a user's script, because files may change while their names stay; `None` for a bundled script.
    pub(super) text: Option<String>,
    /// How its tables are made.
    pub(super) prepare: Prepare,
    /// The operations and counters that it declares.
    pub(super) measures: Measures,
}

/// How a script fills the database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Prepare {
    pub(super) fill: Fill,
    /// Each thread does its part.
    pub(super) is_parallel: bool,
}

impl ValidatedScript {
    /// Reads the settings, and loads the script to find its options.
    pub(super) fn read(settings: &Settings) -> Result<Self, SettingError> {
        let script = script_of(settings);
        if !is_bundled(script) && !Path::new(script).is_file() {
            return Err(no_script(script));
        }
        let named = named::of(settings, script)?;
        let refused = |refusal: &Refusal| named::refusal(refusal, &named, script);
        let words = words(settings.text("options").unwrap_or_default())?;
        // If an option occurs twice, the last one counts: a test of a suite adds its options at the end of `options`.
        let words = named.iter().map(Word::argument).chain(words);
        let argv = std::iter::once("sysbench".to_owned()).chain(words).chain([script.to_owned(), "run".to_owned()]);
        let line = command_line::parse(argv).map_err(|refusal| refused(&refusal))?;
        let mut set = OptionSet::general();
        let mut read = |path: &str| std::fs::read_to_string(path);
        let applied = line.apply(&mut set, &mut read);
        // Before the script's own options, because some may have the same names. Mistakes are reported below.
        let general = General::read(&mut set.clone());
        let setup = Arc::new(shared(&line, &set, "run", 0, None).map_err(|refusal| refused(&refusal))?);
        let main = Interpreter::new(&setup, 0, Arc::default()).map_err(unread)?;
        options::declare(&main, &mut set).map_err(unread)?;
        let declared = main.declared().map_err(unread)?;
        let unknown = if declared.is_empty() { Unknown::Keep } else { Unknown::Refuse };
        let resolved =
            applied.unresolved.resolve(&mut set, unknown, &mut read, &mut |given| options::takes(&main, given));
        resolved.map_err(|refusal| refused(&refusal))?;
        set.iter().try_for_each(|(key, info)| refuse_what_the_experiment_says(&set, &key, info))?;
        let (general, _) = general.map_err(|refusal| refused(&refusal))?;
        Ignored::check(&set.for_rumba()).map_err(|refusal| refused(&refusal))?;
        if !main.has("event") {
            return Err(unread(format!("cannot find the event() function in {script}")));
        }
        let command = main.command("prepare").map_err(unread)?;
        let prepare = match command {
            Some(command) => Prepare { fill: Fill::Command, is_parallel: command.is_parallel },
            None => Prepare { fill: Fill::Function, is_parallel: false },
        };
        let required = main.required().map_err(unread)?;
        let text = text_of(script, &required);
        let measures = main.measures().map_err(unread)?;
        let data_bytes = settings.bytes("data");
        let requested = Self { line, options: set, general, data_bytes, text, prepare, measures };
        if is_bundled(script) {
            // This checks the values of the options, and connects to nothing.
            let setup =
                shared(&requested.line, &requested.options, "run", 0, None).map_err(|refusal| refused(&refusal))?;
            let looked = main.adopt(&Arc::new(setup)).and_then(|()| main.call(Function::Init));
            looked.map_err(|error| {
                SettingError::new("options", error.to_string(), "change the options, or the script")
            })?;
        }
        Ok(requested)
    }

    /// The script's name in the experiment.
    pub(super) fn script(&self) -> &str {
        self.line.test.as_deref().unwrap_or_default()
    }

    /// The options as they were given.
    pub(super) fn given(&self) -> String {
        self.line.options.iter().map(|given| given.argument.as_str()).collect::<Vec<_>>().join(" ")
    }

    /// The tables of a bundled script.
    pub(super) fn tables(&self) -> Option<Tables> {
        if !is_bundled(self.script()) || self.script() == "bulk_insert" {
            return None;
        }
        let number = |name| self.options.double(name).max(0.0) as u64;
        let has_k_index = self.options.flag("create-secondary");
        let is_numbered = self.options.flag("auto-inc");
        // Its ids are random then, and its tables begin empty, as in sysbench.
        let is_empty = self.script() == "oltp_insert" && !is_numbered;
        let rows = if is_empty { 0 } else { number("table-size") };
        Some(Tables { tables: number("tables"), rows, has_k_index, is_numbered })
    }

    /// Whether the statements of an event form a transaction, according to the bundled scripts.
    pub(super) fn is_transactional(&self) -> bool {
        !self.options.flag("skip-trx")
    }

    /// About how many bytes `prepare` writes.
    pub(super) fn data_bytes(&self) -> u64 {
        self.data_bytes.or_else(|| self.tables().map(|tables| tables.bytes())).unwrap_or(0)
    }

    /// The shared setup of a phase's interpreters.
    pub(super) fn setup(&self, phase: Phase<'_>) -> Result<Setup, Refusal> {
        let Phase { command, clients, seed, sessions, table_options } = phase;
        let mut set = self.options.clone();
        let known = |_| Refusal::Fatal("an option of sysbench's is not known to itself".to_owned());
        set.set("threads", Some(&clients.to_string()), Source::CommandLine).map_err(known)?;
        for (name, value) in of_tables(table_options) {
            if set.source(name) == Some(Source::Default) {
                set.set(name, Some(&value), Source::Default).map_err(known)?;
            }
        }
        let shared = shared(&self.line, &set, command, seed, Some(sessions))?;
        Ok(Setup { shapes: self.general.random.shapes, measures: self.measures.clone(), ..shared })
    }
}

/// The script that fills the tables; without a suite it is also the one that runs.
pub(super) fn script_of(settings: &Settings) -> &str {
    settings.text("script").unwrap_or(match settings.text("suite") {
        Some("micro") => "micro",
        _ => "oltp_read_write",
    })
}

/// Refuses a missing script and a bundled one, because those speak SQL.
pub(super) fn own_script(settings: &Settings) -> Result<(), SettingError> {
    match settings.text("script") {
        None => Err(SettingError::new("script", "the workload needs a script", "set script = \"FILE.lua\"")),
        Some(name) if is_bundled(name) => {
            let problem = format!("the bundled script `{name}` speaks SQL");
            Err(SettingError::new("script", problem, "use the workload sysbench, or name a file"))
        }
        Some(_) => Ok(()),
    }
}

/// The tests that a script declares: the option that chooses one, and its values.
pub(super) fn suite_of(script: &str) -> Result<Option<(String, Vec<String>)>, SettingError> {
    loaded(script, &OptionSet::general())?.suite().map_err(unread)
}

pub(super) fn loaded(script: &str, set: &OptionSet) -> Result<Interpreter, SettingError> {
    let line = CommandLine { test: Some(script.to_owned()), ..CommandLine::default() };
    let setup = shared(&line, set, "run", 0, None).map_err(|refusal| refused(&refusal))?;
    Interpreter::new(&Arc::new(setup), 0, Arc::default()).map_err(unread)
}

/// The shared facts of a phase's clients.
pub(super) struct Phase<'a> {
    pub(super) command: &'a str,
    pub(super) clients: u32,
    pub(super) seed: u64,
    pub(super) sessions: Arc<Sessions>,
    /// The options at the end of a table's definition, on this engine.
    pub(super) table_options: &'a str,
}

/// The bundled scripts' tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Tables {
    pub(super) tables: u64,
    /// The number of rows in each table.
    pub(super) rows: u64,
    pub(super) has_k_index: bool,
    /// The server gives rows their id.
    pub(super) is_numbered: bool,
}

impl Tables {
    const ID_BYTES: u64 = 4;
    /// id, k, c and pad.
    const ROW_BYTES: u64 = Self::ID_BYTES + 4 + 119 + 59;
    /// k and id.
    const ENTRY_BYTES: u64 = 4 + Self::ID_BYTES;

    /// A row and its entry in the index.
    pub(super) fn row_bytes(&self) -> u64 {
        Self::ROW_BYTES + if self.has_k_index { Self::ENTRY_BYTES } else { 0 }
    }

    /// The bytes of all tables after `prepare`.
    pub(super) fn bytes(&self) -> u64 {
        self.tables * self.rows * self.row_bytes()
    }

    /// The bytes that the script may not send itself.
    pub(super) fn bytes_by_server(&self) -> u64 {
        let ids = if self.is_numbered { Self::ID_BYTES } else { 0 };
        let entries = if self.has_k_index { Self::ENTRY_BYTES } else { 0 };
        self.tables * self.rows * (ids + entries)
    }
}

/// The setup of interpreters, except for what a phase adds.
fn shared(
    line: &CommandLine,
    set: &OptionSet,
    command: &str,
    seed: u64,
    sessions: Option<Arc<Sessions>>,
) -> Result<Setup, Refusal> {
    let host: Arc<dyn Host> = sessions.unwrap_or_else(|| Arc::new(Sessions::none()));
    Ok(Setup {
        script: Script::Named(line.test.clone().unwrap_or_default()),
        options: options::values(set)?,
        argv: line.argv.clone(),
        command: Some(command.to_owned()),
        version: version::SYSBENCH.to_owned(),
        luajit_command: set.text("luajit-cmd").map(str::to_owned),
        is_quiet: true,
        measures: Measures::default(),
        host,
        seed,
        shapes: Shapes::default(),
        unique: Unique::new(seed),
        events: Events::at_most(0),
    })
}

pub(super) fn is_bundled(script: &str) -> bool {
    SCRIPTS.iter().any(|(name, _)| *name == script)
}

pub(super) fn no_script(script: &str) -> SettingError {
    let names = SCRIPTS.iter().map(|(name, _)| *name).filter(|name| *name != "oltp_common");
    let remedy = match rumba_engine_api::nearest(script, names.clone()) {
        Some(name) => format!("did you mean `{name}`?"),
        None => format!("the path of a file, or one of {}", names.collect::<Vec<_>>().join(", ")),
    };
    SettingError::new("script", format!("`{script}` is neither a bundled script nor a file"), remedy)
}

pub(super) fn words(options: &str) -> Result<Vec<String>, SettingError> {
    let words = shlex::split(options).ok_or_else(|| {
        SettingError::new("options", "a quotation mark is the only one of its kind", "close it, or escape it by \\")
    })?;
    match words.iter().find(|word| !word.starts_with("--")) {
        None => Ok(words),
        Some(word) => {
            let problem = format!("`{word}` is no option");
            Err(SettingError::new("options", problem, "write --name=value; the script is named by `script`"))
        }
    }
}

/// The error for a script that cannot be read, with its own message.
pub(super) fn unread(error: impl ToString) -> SettingError {
    SettingError::new("script", error.to_string(), "mend the script, or name another")
}

pub(super) fn refused(refusal: &Refusal) -> SettingError {
    let words = refusal.to_string();
    let words = words.trim_start_matches("FATAL: ").to_owned();
    SettingError::new("options", words, OPTIONS_OF_A_SCRIPT)
}

fn refuse_what_the_experiment_says(set: &OptionSet, key: &str, info: &OptionInfo) -> Result<(), SettingError> {
    match named::said_by(key, info) {
        Some(instead) if set.source(key) == Some(Source::CommandLine) => {
            Err(named::not_a_scripts_to_say("options", &info.name, instead))
        }
        _ => Ok(()),
    }
}

/// The options at the end of a table's definition, as options of the bundled scripts.
fn of_tables(table_options: &str) -> Vec<(&'static str, String)> {
    let (engines, rest): (Vec<&str>, Vec<&str>) =
        table_options.split_whitespace().partition(|word| word.to_ascii_uppercase().starts_with("ENGINE="));
    let engine = engines.iter().filter_map(|word| word.split_once('=')).map(|(_, name)| name.to_owned());
    let mut found: Vec<(&'static str, String)> = engine.map(|name| ("mysql_storage_engine", name)).collect();
    if !rest.is_empty() {
        found.push(("create_table_options", rest.join(" ")));
    }
    found
}

/// A short digest of a script's text and of the modules that it has required.
fn text_of(script: &str, required: &[PathBuf]) -> Option<String> {
    let mut digest = Sha256::new();
    let mut bytes = 0;
    for file in std::iter::once(Path::new(script)).chain(required.iter().map(PathBuf::as_path)) {
        let text = std::fs::read(file).ok()?;
        bytes += text.len();
        digest.update(&text);
    }
    let modules = match required.len() {
        0 => String::new(),
        1 => " with a module".to_owned(),
        count => format!(" with {count} modules"),
    };
    let digest: String = digest.finalize().iter().take(8).map(|byte| format!("{byte:02x}")).collect();
    Some(format!("{bytes} bytes{modules}, SHA-256 {digest}…"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rumba_engine_api::setting::{Kind, Value};

    fn requested(given: &[(&str, &str)]) -> Result<ValidatedScript, SettingError> {
        let value = |(name, value): &(&str, &str)| ((*name).to_owned(), Value::Text((*value).to_owned()));
        ValidatedScript::read(&Settings(given.iter().map(value).collect()))
    }

    fn error(given: &[(&str, &str)]) -> String {
        let error = requested(given).unwrap_err();
        format!("{error}; {}", error.remedy)
    }

    #[test]
    fn options_are_the_scripts_and_of_random_numbers() {
        let requested = requested(&[("options", "--tables=3 --table-size=100 --rand-type='uniform'")]).unwrap();
        assert_eq!(requested.script(), "oltp_read_write");
        assert_eq!(requested.prepare, Prepare { fill: Fill::Command, is_parallel: true });
        assert_eq!(requested.tables().map(|tables| (tables.tables, tables.rows)), Some((3, 100)));
        assert_eq!(requested.data_bytes(), 300 * (186 + 8));
        assert_eq!(requested.given(), "--tables=3 --table-size=100 --rand-type=uniform");
    }

    fn settings(given: &[(&str, Value)]) -> Settings {
        given.iter().cloned().collect()
    }

    #[test]
    fn a_scripts_options_are_settings_by_their_names() {
        let given = [("table-size", Value::Int(100)), ("tables", Value::Int(3)), ("auto_inc", Value::Bool(false))];
        let infos = named::declared(&settings(&given)).unwrap();
        let info = |name: &str| infos.iter().find(|info| info.name == name).unwrap();
        assert_eq!(info("table-size").default, "10000");
        assert_eq!((info("auto_inc").kind, info("auto_inc").default.as_str()), (Kind::Bool, "true"));
        assert!(infos.iter().all(|info| info.name != "table_size" && info.name != "threads"));
        let requested = ValidatedScript::read(&settings(&given)).unwrap();
        assert_eq!(requested.given(), "--auto_inc=off --table-size=100 --tables=3");
        assert_eq!(
            requested.tables().map(|tables| (tables.tables, tables.rows, tables.is_numbered)),
            Some((3, 100, false))
        );
        // The options of a suite's test come after them.
        let more = [("range_size", Value::Int(5)), ("options", Value::Text("--range-size=7".to_owned()))];
        assert_eq!(ValidatedScript::read(&settings(&more)).unwrap().options.int("range_size"), Ok(7));
    }

    #[test]
    fn unknown_script_option_is_refused_with_the_nearest_name() {
        let refused = |name: &str, value: Value| {
            let error = named::declared(&settings(&[(name, value)])).unwrap_err();
            format!("{error}; {}", error.remedy)
        };
        let words = refused("tabels", Value::Int(3));
        assert_eq!(words, "tabels: the script oltp_read_write has no option of this name; did you mean `tables`?");
        assert!(refused("scirpt", Value::Int(3)).contains("did you mean `script`?"));
        assert!(refused("threads", Value::Int(3)).contains("use run.clients"));
        assert!(error(&[("rand_type", "flat")]).starts_with("rand_type: Invalid random numbers distribution: flat"));
        let both = [("tables", Value::Int(3)), ("options", Value::Text("--tables=4".to_owned()))];
        assert!(named::declared(&settings(&both)).unwrap_err().problem.contains("`--tables=4` of options"));
        let twice = [("table-size", Value::Int(3)), ("table_size", Value::Int(4))];
        assert!(named::declared(&settings(&twice)).unwrap_err().problem.contains("`table-size` already sets the same"));
    }

    #[test]
    fn options_that_the_experiment_sets_are_refused() {
        assert!(error(&[("options", "--threads=4")]).contains("use run.clients"));
        assert!(error(&[("options", "--time=4")]).contains("run.loop"));
        assert!(error(&[("options", "--mysql-host=db")]).contains("the engine's own settings"));
        assert!(error(&[("options", "--tabels=4")]).contains("--tabels=4"));
        assert!(error(&[("options", "tables=4")]).contains("is no option"));
        assert!(error(&[("options", "--tables='4")]).contains("quotation mark"));
        assert!(error(&[("options", "--rand-type=flat")]).contains("distribution: flat"));
    }

    #[test]
    fn missing_script_is_refused_with_the_available_ones() {
        assert!(error(&[("script", "oltp_readwrite")]).contains("did you mean `oltp_read_write`?"));
        assert!(error(&[("script", "nothing/of/the/kind.lua")]).contains("bulk_insert, micro, oltp_delete"));
        assert!(error(&[("script", "oltp_common")]).contains("event"));
    }

    #[test]
    fn a_tables_engine_and_the_rest_of_its_options_go_to_the_script() {
        let options = of_tables("ENGINE=ROCKSDB DEFAULT CHARSET=latin1");
        let expected = [("mysql_storage_engine", "ROCKSDB"), ("create_table_options", "DEFAULT CHARSET=latin1")];
        assert_eq!(options, expected.map(|(name, value)| (name, value.to_owned())));
        assert_eq!(of_tables(""), []);
    }
}
