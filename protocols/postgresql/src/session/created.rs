//! The tables that a statement creates, read from its text.

use std::fmt::Debug;

use rumba_engine_api::error::EngineError;

/// Receives the names of the tables that a session is about to create.
pub trait TableObserver: Debug + Send + Sync {
    /// A statement that creates this table will be sent. It may still fail, and the table may exist already.
    ///
    /// # Errors
    /// The statement must not be sent.
    fn before_create(&self, table: &TableName) -> Result<(), EngineError>;
}

/// The name of a table, as the server stores it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableName {
    /// The schema, if the statement names it.
    pub schema: Option<String>,
    /// The table.
    pub table: String,
}

/// The permanent tables that these statements create, in `CREATE TABLE name`. Tables that are created in another way,
/// such as `SELECT … INTO`, are not found.
pub(super) fn created_tables(sql: &[u8]) -> Vec<TableName> {
    // Statements of the load path begin with other letters, and rows to insert are long.
    if !matches!(sql.trim_ascii_start().first(), Some(b'C' | b'c' | b'D' | b'd')) {
        return Vec::new();
    }
    // A semicolon within a string only yields more pieces, which rarely begin with CREATE TABLE.
    String::from_utf8_lossy(sql).split(';').filter_map(created_table).collect()
}

/// The table that a single statement creates.
fn created_table(statement: &str) -> Option<TableName> {
    let mut rest = after_word(statement, "CREATE")?;
    if let Some(after) = after_word(rest, "UNLOGGED") {
        rest = after;
    }
    rest = after_word(rest, "TABLE")?;
    if let Some(after) = after_word(rest, "IF") {
        rest = after_word(after_word(after, "NOT")?, "EXISTS")?;
    }
    let (first, rest) = name(rest.trim_ascii_start())?;
    let Some(rest) = rest.strip_prefix('.') else { return Some(TableName { schema: None, table: first }) };
    Some(TableName { schema: Some(first), table: name(rest)?.0 })
}

/// The text after this word, if it begins with it, in any case.
fn after_word<'a>(text: &'a str, word: &str) -> Option<&'a str> {
    let text = text.trim_ascii_start();
    let (first, rest) = text.split_at_checked(word.len())?;
    let ends = rest.chars().next().is_none_or(|next| !is_part(next));
    (first.eq_ignore_ascii_case(word) && ends).then_some(rest)
}

/// The name at the start of a text, as the server stores it, and the text after it.
fn name(text: &str) -> Option<(String, &str)> {
    let Some(quoted) = text.strip_prefix('"') else {
        let end = text.find(|character: char| !is_part(character)).unwrap_or(text.len());
        return (end > 0).then(|| (text[..end].to_ascii_lowercase(), &text[end..]));
    };
    let mut stored = String::new();
    let mut rest = quoted;
    loop {
        let (part, after) = rest.split_once('"')?;
        stored.push_str(part);
        // A doubled quote is a part of the name.
        match after.strip_prefix('"') {
            Some(more) => rest = more,
            None => return Some((stored, after)),
        }
        stored.push('"');
    }
}

fn is_part(character: char) -> bool {
    character.is_alphanumeric() || matches!(character, '_' | '$')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn created_tables_are_read_as_the_server_stores_them() {
        let table = |table: &str| TableName { schema: None, table: table.to_owned() };
        let within = |schema: &str, name: &str| TableName { schema: Some(schema.to_owned()), ..table(name) };
        for (sql, expected) in [
            ("CREATE TABLE NodeTable (id int)", vec![table("nodetable")]),
            ("\n  create unlogged table if not exists sbtest1(id int)", vec![table("sbtest1")]),
            ("CREATE TABLE linktable_0 PARTITION OF linktable", vec![table("linktable_0")]),
            ("CREATE TABLE \"My \"\"t\"\"\" (id int)", vec![table("My \"t\"")]),
            ("CREATE TABLE s2.\"T\" AS SELECT 1", vec![within("s2", "T")]),
            ("DROP TABLE IF EXISTS a; CREATE TABLE a (id int); CREATE TABLE b ()", vec![table("a"), table("b")]),
            ("CREATE TEMPORARY TABLE t (id int)", vec![]),
            ("CREATE INDEX i ON t (id)", vec![]),
            ("CREATE TABLESPACE t", vec![]),
            ("CREATE TABLE", vec![]),
            ("CREATE TABLE \"t", vec![]),
            ("INSERT INTO t VALUES (1); CREATE TABLE late ()", vec![]),
            ("", vec![]),
        ] {
            assert_eq!(created_tables(sql.as_bytes()), expected, "{sql}");
        }
    }
}
