//! The table and its statements in SQL, as in YCSB's JDBC binding.

use rumba_engine_api::sql::Dialect;
use rumba_workload_kit::marked;

use crate::store::Wanted;

pub const TABLE: &str = "usertable";
const KEY: &str = "YCSB_KEY";

/// The columns, the key first.
pub fn columns(fields: usize) -> Vec<String> {
    std::iter::once(KEY.to_owned()).chain((0..fields).map(field)).collect()
}

fn field(number: usize) -> String {
    format!("FIELD{number}")
}

/// The definition of the table, with the session's table options at its end.
pub fn create(fields: usize, options: &str) -> String {
    let fields: String = (0..fields).map(|number| format!(", {} TEXT", field(number))).collect();
    format!("CREATE TABLE {TABLE} ({KEY} VARCHAR(255) NOT NULL PRIMARY KEY{fields}) {options}")
}

/// A record's wanted fields; if all are wanted, the key comes first.
pub fn read(wanted: Wanted, dialect: Dialect) -> String {
    marked(&format!("SELECT {} FROM {TABLE} WHERE {KEY} = ?", selected(wanted)), dialect)
}

/// The wanted fields of records from a key on.
pub fn scan(wanted: Wanted, dialect: Dialect) -> String {
    marked(&format!("SELECT {} FROM {TABLE} WHERE {KEY} >= ? ORDER BY {KEY} LIMIT ?", selected(wanted)), dialect)
}

/// Whole records behind a key.
pub fn page(dialect: Dialect) -> String {
    marked(&format!("SELECT * FROM {TABLE} WHERE {KEY} > ? ORDER BY {KEY} LIMIT ?"), dialect)
}

/// New content of some fields, then the key.
pub fn update(wanted: Wanted, fields: usize, dialect: Dialect) -> String {
    let changed = match wanted {
        Wanted::All => 0..fields,
        Wanted::One(number) => number..number + 1,
    };
    let set: Vec<String> = changed.map(|number| format!("{} = ?", field(number))).collect();
    marked(&format!("UPDATE {TABLE} SET {} WHERE {KEY} = ?", set.join(", ")), dialect)
}

/// A new record: the key, then all fields.
pub fn insert(fields: usize, dialect: Dialect) -> String {
    let marks = vec!["?"; fields + 1].join(", ");
    marked(&format!("INSERT INTO {TABLE} ({}) VALUES ({marks})", columns(fields).join(", ")), dialect)
}

fn selected(wanted: Wanted) -> String {
    match wanted {
        Wanted::All => "*".to_owned(),
        Wanted::One(number) => field(number),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_are_those_of_ycsb_in_each_dialect() {
        assert_eq!(
            create(2, "ENGINE=InnoDB"),
            "CREATE TABLE usertable (YCSB_KEY VARCHAR(255) NOT NULL PRIMARY KEY, FIELD0 TEXT, FIELD1 TEXT) ENGINE=InnoDB"
        );
        assert_eq!(read(Wanted::All, Dialect::MySql), "SELECT * FROM usertable WHERE YCSB_KEY = ?");
        assert_eq!(
            scan(Wanted::One(3), Dialect::PostgreSql),
            "SELECT FIELD3 FROM usertable WHERE YCSB_KEY >= $1 ORDER BY YCSB_KEY LIMIT $2"
        );
        assert_eq!(
            update(Wanted::All, 2, Dialect::PostgreSql),
            "UPDATE usertable SET FIELD0 = $1, FIELD1 = $2 WHERE YCSB_KEY = $3"
        );
        assert_eq!(update(Wanted::One(1), 2, Dialect::Sqlite), "UPDATE usertable SET FIELD1 = ? WHERE YCSB_KEY = ?");
        assert_eq!(insert(2, Dialect::MySql), "INSERT INTO usertable (YCSB_KEY, FIELD0, FIELD1) VALUES (?, ?, ?)");
    }
}
