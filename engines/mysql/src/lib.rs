//! InnoDB, MyRocks and other engines of MySQL and MariaDB servers.
#![deny(missing_docs)]
