//! The PostgreSQL releases that rumba can install.

use rumba_engine_api::server::Catalogue;
use rumba_server_kit::dsn::Form;
use rumba_server_kit::install::{Release, Releases};
use rumba_server_kit::selected::ServerFamily;

use crate::dsn;
use crate::software::Software;

/// All releases, the default one first.
pub static RELEASES: Releases<Software> = Releases::new(include_str!("releases.toml"));

/// The PostgreSQL servers that rumba can install.
pub fn catalogue() -> impl Catalogue {
    &RELEASES
}

impl ServerFamily for Software {
    const DSN: Form = dsn::FORM;
    const EXAMPLES: &'static str =
        "a base directory (/usr/lib/postgresql/16) or a DSN (postgresql://user@host/database)";
    const BASE: &'static str = "name the directory that holds bin/postgres";

    fn releases() -> &'static Releases<Self> {
        &RELEASES
    }

    /// An installed release is preferred to the default one.
    fn usual() -> Option<&'static Release> {
        let here = RELEASES.all().iter().find(|release| release.software::<Self>().is_some());
        here.or(RELEASES.all().first())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_of_releases_is_sound() {
        assert_eq!(RELEASES.check(), Ok(()));
        assert_eq!(RELEASES.all()[0].name, "postgresql@15");
    }
}
