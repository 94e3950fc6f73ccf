//! The server's configuration.

use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

/// The address to listen on, which is always local to this host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Listen {
    /// A Unix socket at this path.
    Socket(PathBuf),
    /// A port of 127.0.0.1; 0 lets the system choose.
    Port(u16),
}

/// The server's protocol.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Protocol {
    /// MySQL's.
    #[default]
    MySql,
    /// PostgreSQL's.
    PostgreSql,
    /// MongoDB's.
    MongoDb,
}

impl FromStr for Protocol {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "mysql" => Ok(Protocol::MySql),
            "postgresql" => Ok(Protocol::PostgreSql),
            "mongodb" => Ok(Protocol::MongoDb),
            other => Err(format!("unknown protocol `{other}`; expected mysql, postgresql or mongodb")),
        }
    }
}

/// The contents of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ColumnKind {
    /// A BIGINT: the row's number, from 1.
    Int,
    /// A CHAR of [`Config::row_bytes`] characters.
    Text,
}

/// A column of the fixed result set; written as `name`, `name:int` or `name:text`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    /// Its name.
    pub name: String,
    /// The contents of the column.
    pub kind: ColumnKind,
}

impl FromStr for Column {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (name, kind) = text.split_once(':').unwrap_or((text, "text"));
        let kind = match kind {
            "int" => ColumnKind::Int,
            "text" => ColumnKind::Text,
            other => return Err(format!("unknown kind of column `{other}`; write NAME, NAME:text or NAME:int")),
        };
        if name.is_empty() || name.len() > 64 {
            return Err(format!("a column's name has 1 to 64 bytes, `{name}` has {}", name.len()));
        }
        Ok(Self { name: name.to_owned(), kind })
    }
}

/// The server's configuration.
#[derive(Clone, Debug)]
pub struct Config {
    /// The address to listen on.
    pub listen: Listen,
    /// The protocol.
    pub protocol: Protocol,
    /// The delay from a command's arrival to its answer; without it, answers are immediate.
    pub delay: Option<Duration>,
    /// The number of rows in a result set.
    pub rows: u32,
    /// The number of characters in a text column; sysbench's `c` has 119.
    pub row_bytes: u32,
    /// The columns of a result set.
    pub columns: Vec<Column>,
    /// The number of threads, each with its share of the connections.
    pub threads: usize,
}

impl Config {
    /// A server that answers a SELECT as sysbench's table would: one row with one column `c`.
    pub fn new(listen: Listen) -> Self {
        // Leave the other half of the cores for the client under test.
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        Self {
            listen,
            protocol: Protocol::default(),
            delay: None,
            rows: 1,
            row_bytes: 119,
            columns: vec![Column { name: "c".into(), kind: ColumnKind::Text }],
            threads: (cores / 2).max(1),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_written_as_name_and_kind() {
        assert_eq!("id:int".parse(), Ok(Column { name: "id".into(), kind: ColumnKind::Int }));
        assert_eq!("c".parse(), Ok(Column { name: "c".into(), kind: ColumnKind::Text }));
        assert!("id:float".parse::<Column>().unwrap_err().contains("NAME:int"));
        assert!(":int".parse::<Column>().is_err());
    }
}
