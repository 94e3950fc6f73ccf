//! Versions of servers.

use serde::{Deserialize, Serialize};

/// A server's version.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Version(pub u16, pub u16, pub u16);

impl Version {
    /// Reads the first dotted number of a text: `10.11.14-MariaDB` is 10.11.14.
    pub fn find(text: &str) -> Option<Self> {
        text.split(|c: char| !c.is_ascii_digit() && c != '.').filter(|word| word.contains('.')).find_map(|word| {
            let mut parts = word.split('.').map(str::parse);
            let mut next = || parts.next()?.ok();
            Some(Version(next()?, next()?, next().unwrap_or(0)))
        })
    }
}

impl std::fmt::Display for Version {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{}.{}", self.0, self.1, self.2)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_found_in_what_servers_say_of_themselves() {
        assert_eq!(Version::find("10.11.14-MariaDB-0+deb12u2"), Some(Version(10, 11, 14)));
        assert_eq!(Version::find("9.7.4"), Some(Version(9, 7, 4)));
        assert_eq!(Version::find("5.6"), Some(Version(5, 6, 0)));
        assert_eq!(Version::find("Percona 8"), None);
        assert!(Version(10, 11, 2) > Version(10, 6, 20));
    }
}
