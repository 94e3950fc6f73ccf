//! The servers of this family that rumba can install.

use rumba_engine_api::server::Catalogue;
use rumba_server_kit::dsn::Form;
use rumba_server_kit::install::Releases;
use rumba_server_kit::selected::ServerFamily;

use crate::dsn;
use crate::software::Software;

/// All releases, the default one first.
pub static RELEASES: Releases<Software> = Releases::new(include_str!("releases.toml"));

/// The servers of the MySQL family that rumba can install.
pub fn catalogue() -> impl Catalogue {
    &RELEASES
}

impl ServerFamily for Software {
    const DSN: Form = dsn::FORM;
    const EXAMPLES: &'static str = "a base directory (/opt/mysql) or a DSN (mysql://user@host/schema)";
    const BASE: &'static str = "name the directory that holds bin/mysqld and share";

    fn releases() -> &'static Releases<Self> {
        &RELEASES
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_of_releases_is_sound() {
        assert_eq!(RELEASES.check(), Ok(()));
        assert_eq!(RELEASES.all()[0].name, "mariadb@10.11");
    }

    #[test]
    fn a_name_that_is_not_in_the_catalogue_gets_the_nearest() {
        let error = catalogue().install("mysql@9.6", &mut |_| {}).unwrap_err().to_string();
        assert!(error.contains("did you mean `mysql@"), "{error}");
    }
}
