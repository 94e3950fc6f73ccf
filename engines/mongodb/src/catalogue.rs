//! The MongoDB releases that rumba can install.

use rumba_engine_api::server::Catalogue;
use rumba_server_kit::install::Releases;

use crate::software::Software;

/// All releases, the default one first.
pub static RELEASES: Releases<Software> = Releases::new(include_str!("releases.toml"));

/// The MongoDB servers that rumba can install.
pub fn catalogue() -> impl Catalogue {
    &RELEASES
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
