//! A script as an experiment's workload: `workload.sysbench`.

mod bound;
mod named;
mod sessions;
mod suite;
mod validated_script;
mod verify;

use rumba_engine_api::engine::Family;
use rumba_engine_api::setting::{Kind, SettingError, SettingInfo, Settings, info};
use rumba_engine_api::sql::Dialect;
use rumba_engine_api::workload::{Bound, Test, Workload};

use bound::{Access, ScriptBound};
use validated_script::{ValidatedScript, own_script};

const FAMILIES: &[Family] =
    &[Family::Sql(Dialect::Sqlite), Family::Sql(Dialect::MySql), Family::Sql(Dialect::PostgreSql)];

const SETTINGS: &[SettingInfo] = &[
    info(
        "script",
        Kind::Text,
        "oltp_read_write",
        "a bundled script's name, or the path of a Lua file: what `sysbench` takes as its test",
    ),
    info(
        "options",
        Kind::Text,
        "none",
        "as for sysbench: \"--tables=4 --rand-type=uniform\"; each is a setting by its name too: tables = 4",
    ),
    info(
        "suite",
        Kind::Text,
        "none: the script alone",
        "several tests over one load: classic, micro, all (what `script` declares), or names separated by commas",
    ),
    info(
        "data",
        Kind::Bytes,
        "by the tables of a bundled script, else unknown",
        "bytes of values that prepare writes, for memory limits that are shares of them",
    ),
];

/// sysbench's scripts as a workload.
pub struct Sysbench;

impl Workload for Sysbench {
    fn name(&self) -> &'static str {
        "sysbench"
    }

    fn about(&self) -> &'static str {
        "a Lua script of sysbench, bundled or your own, unchanged: its prepare is the load, its events are measured"
    }

    fn settings(&self) -> &'static [SettingInfo] {
        SETTINGS
    }

    fn families(&self) -> &'static [Family] {
        FAMILIES
    }

    fn declared(&self, given: &Settings) -> Result<Vec<SettingInfo<String>>, SettingError> {
        named::declared(given)
    }

    fn tests(&self, settings: &Settings) -> Result<Vec<Test>, SettingError> {
        suite::tests(settings)
    }

    fn bind(&self, settings: &Settings) -> Result<Box<dyn Bound>, SettingError> {
        Ok(Box::new(ScriptBound::new(ValidatedScript::read(settings)?, Access::Sql)))
    }
}

/// A script over keys and values as a workload.
pub struct Lua;

const KEY_VALUE_FAMILIES: &[Family] =
    &[Family::KeyValue, Family::Sql(Dialect::Sqlite), Family::Sql(Dialect::MySql), Family::Sql(Dialect::PostgreSql)];

const KEY_VALUE_SETTINGS: &[SettingInfo] = &[
    info("script", Kind::Text, "none: required", "the path of a Lua file"),
    SETTINGS[1],
    info(
        "data",
        Kind::Bytes,
        "unknown",
        "bytes of keys and values that prepare writes, for memory limits that are shares of them",
    ),
];

impl Workload for Lua {
    fn name(&self) -> &'static str {
        "lua"
    }

    fn about(&self) -> &'static str {
        "a Lua script of your own over keys and values, the same over every engine"
    }

    fn settings(&self) -> &'static [SettingInfo] {
        KEY_VALUE_SETTINGS
    }

    fn families(&self) -> &'static [Family] {
        KEY_VALUE_FAMILIES
    }

    /// A script may use transactions; an engine without them refuses its second write.
    fn needs_transactions(&self, _of: Family) -> bool {
        false
    }

    fn declared(&self, given: &Settings) -> Result<Vec<SettingInfo<String>>, SettingError> {
        own_script(given)?;
        named::declared(given)
    }

    fn bind(&self, settings: &Settings) -> Result<Box<dyn Bound>, SettingError> {
        own_script(settings)?;
        Ok(Box::new(ScriptBound::new(ValidatedScript::read(settings)?, Access::KeyValues)))
    }
}
