//! The MongoDB releases that rumba can install.

use rumba_engine_api::engine::Availability;
use rumba_engine_api::error::EngineError;
use rumba_engine_api::server::{Catalogue, ServerInfo};
use rumba_server_kit::install::Releases;

use crate::software::Software;

/// All releases, the default one first.
pub static RELEASES: Releases<Software> = Releases::new(include_str!("releases.toml"));

/// The MongoDB servers.
#[derive(Clone, Copy, Debug, Default)]
pub struct Servers;

impl Catalogue for Servers {
    fn list(&self) -> Vec<ServerInfo> {
        RELEASES.list()
    }

    fn install(&self, name: &str, say: &mut dyn FnMut(&str)) -> Result<Availability, EngineError> {
        RELEASES.install(name, say)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_of_releases_is_sound() {
        assert_eq!(RELEASES.check(), Ok(()));
        assert_eq!(RELEASES.all()[0].name, "mongodb@6.0");
    }
}
