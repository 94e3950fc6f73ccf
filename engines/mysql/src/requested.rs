//! The experiment's request to a server.

use rumba_engine_api::engine::EngineConfig;
use rumba_engine_api::setting::SettingError;

use crate::capability::Capabilities;
use crate::counters::Kind;
use crate::options::Options;

/// The experiment's request to a server.
#[derive(Clone, Copy, Debug)]
pub struct RequestedEngine<'a> {
    /// The experiment's configuration.
    pub config: &'a EngineConfig,
    /// The parsed settings of `config`.
    pub options: &'a Options,
    /// The engine's name in the server, if one is set.
    pub storage: Option<&'a str>,
    /// The server's capabilities.
    pub server: &'a Capabilities,
}

impl RequestedEngine<'_> {
    /// The prefix of the engine's variables, which may be omitted: `innodb`.
    fn prefix(&self) -> &'static str {
        prefix(&self.storage.map_or(Kind::InnoDb, Kind::of))
    }

    /// The experiment's variables, by the server's names and in its syntax.
    ///
    /// # Errors
    /// A variable that the server does not know, or a value it refuses.
    pub fn variables(&self) -> Result<Vec<(String, String)>, SettingError> {
        let variables = self.options.variables.iter();
        variables
            .map(|(name, value)| {
                let name = self.server.resolve(name, self.prefix())?;
                let value = self.server.value(&name, value)?;
                Ok((name, value))
            })
            .collect()
    }

    /// The storage engine.
    ///
    /// # Errors
    /// The server does not have it.
    pub fn kind(&self) -> Result<Kind, SettingError> {
        let own = match self.storage {
            Some(storage) => self.server.engine("engine", storage)?,
            // A table without an ENGINE clause uses the default engine, which is the first.
            None => self.server.engines.first().map_or("InnoDB", String::as_str),
        };
        Ok(Kind::of(own))
    }
}

/// The prefix that an experiment may omit from an engine's variables: `innodb`.
pub fn prefix(kind: &Kind) -> &'static str {
    match kind {
        Kind::RocksDb => "rocksdb",
        Kind::TokuDb => "tokudb",
        Kind::Other(name) if name.eq_ignore_ascii_case("aria") => "aria",
        _ => "innodb",
    }
}
