//! Separates rumba's own settings of a server engine from those of the server.

use std::collections::BTreeMap;

use rumba_engine_api::engine::EngineConfig;
use rumba_engine_api::setting::{SettingError, SettingInfo, Settings, Value};

/// Returns rumba's `own` settings of an engine, and the server's by name. `spelled` returns a name as the server spells
/// it. `reserved` are the server's settings that rumba sets itself, each with the alternative.
///
/// # Errors
/// An invalid value of an own setting; a reserved name.
pub fn separate(
    config: &EngineConfig,
    own: &[SettingInfo],
    spelled: fn(&str) -> String,
    reserved: &[(&str, &str)],
) -> Result<(Settings, BTreeMap<String, Value>), SettingError> {
    let (mut of_rumba, mut of_server) = (Settings::default(), BTreeMap::new());
    for (key, value) in &config.settings.0 {
        let name = spelled(key);
        if own.iter().any(|info| info.name == name) {
            of_rumba.0.insert(name, value.clone());
            continue;
        }
        if let Some((_, remedy)) = reserved.iter().find(|(reserved, _)| *reserved == name) {
            return Err(SettingError::new(key, "rumba sets this itself", *remedy));
        }
        of_server.insert(name, value.clone());
    }
    let of_rumba = of_rumba.as_described(own);
    of_rumba.check(&config.engine, own)?;
    Ok((of_rumba, of_server))
}
