//! The tables that a statement creates, read from its text.

use std::fmt;
use std::sync::Arc;

use rumba_engine_api::error::Result;
use rumba_engine_api::sql::Dialect;

/// Receives the name of each table that a session is about to create. The statement may still fail, and the table may
/// exist already. After an error, the statement is not sent.
#[derive(Clone)]
pub struct TableObserver(Arc<BeforeCreate>);

type BeforeCreate = dyn Fn(&TableName) -> Result<()> + Send + Sync;

impl TableObserver {
    /// An observer that calls this function.
    pub fn new(before_create: impl Fn(&TableName) -> Result<()> + Send + Sync + 'static) -> Self {
        Self(Arc::new(before_create))
    }
}

impl fmt::Debug for TableObserver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TableObserver")
    }
}

/// The name of a table, as PostgreSQL stores it, or as the statement writes it for other servers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableName {
    /// The schema, if the statement names it.
    pub schema: Option<String>,
    /// The table.
    pub table: String,
}

/// Reports the tables that a statement is about to create, if there is an observer.
///
/// # Errors
/// The observer's: the statement must not be sent.
#[inline]
pub fn announce(observer: Option<&TableObserver>, sql: &[u8], dialect: Dialect) -> Result<()> {
    match observer {
        Some(observer) => created_tables(sql, dialect).iter().try_for_each(|table| (observer.0)(table)),
        None => Ok(()),
    }
}

/// The permanent tables that these statements create, in `CREATE TABLE name`. Tables that are created in another way,
/// such as `SELECT … INTO` or `RENAME TABLE`, are not found.
fn created_tables(sql: &[u8], dialect: Dialect) -> Vec<TableName> {
    // Most statements of the load path begin with other letters, and rows to insert are long.
    if !matches!(sql.trim_ascii_start().first(), Some(b'C' | b'c' | b'D' | b'd')) {
        return Vec::new();
    }
    // A semicolon within a string only yields more pieces, which rarely begin with CREATE TABLE.
    String::from_utf8_lossy(sql).split(';').filter_map(|statement| created_table(statement, dialect)).collect()
}

/// The table that a single statement creates.
fn created_table(statement: &str, dialect: Dialect) -> Option<TableName> {
    let mut rest = after_word(statement, "CREATE")?;
    if let Some(after) = after_word(rest, "OR") {
        rest = after_word(after, "REPLACE")?;
    }
    rest = after_word(rest, "UNLOGGED").unwrap_or(rest);
    rest = after_word(rest, "TABLE")?;
    if let Some(after) = after_word(rest, "IF") {
        rest = after_word(after_word(after, "NOT")?, "EXISTS")?;
    }
    let (first, rest) = name(rest, dialect)?;
    match rest.trim_ascii_start().strip_prefix('.') {
        Some(rest) => Some(TableName { schema: Some(first), table: name(rest, dialect)?.0 }),
        None => Some(TableName { schema: None, table: first }),
    }
}

/// The text after this word, if it begins with it, in any case.
fn after_word<'a>(text: &'a str, word: &str) -> Option<&'a str> {
    let (first, rest) = text.trim_ascii_start().split_at_checked(word.len())?;
    let ends = rest.chars().next().is_none_or(|next| !is_part(next));
    (first.eq_ignore_ascii_case(word) && ends).then_some(rest)
}

/// The name at the start of a text, and the text after it.
fn name(text: &str, dialect: Dialect) -> Option<(String, &str)> {
    let text = text.trim_ascii_start();
    // A server refuses the statement if this character does not quote names in its dialect and SQL mode.
    let Some(quote) = text.chars().next().filter(|first| matches!(first, '`' | '"')) else {
        let end = text.find(|character: char| !is_part(character)).unwrap_or(text.len());
        let (name, rest) = text.split_at(end);
        let stored = if dialect == Dialect::PostgreSql { name.to_ascii_lowercase() } else { name.to_owned() };
        return (end > 0).then_some((stored, rest));
    };
    let mut name = String::new();
    let mut rest = &text[1..];
    loop {
        let (part, after) = rest.split_once(quote)?;
        name.push_str(part);
        // A doubled quote is a part of the name.
        match after.strip_prefix(quote) {
            Some(more) => rest = more,
            None => return Some((name, after)),
        }
        name.push(quote);
    }
}

fn is_part(character: char) -> bool {
    character.is_alphanumeric() || matches!(character, '_' | '$')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(table: &str) -> TableName {
        TableName { schema: None, table: table.to_owned() }
    }

    fn within(schema: &str, name: &str) -> TableName {
        TableName { schema: Some(schema.to_owned()), ..table(name) }
    }

    #[test]
    fn created_tables_are_read_as_the_dialect_writes_and_stores_them() {
        let (pg, my) = (Dialect::PostgreSql, Dialect::MySql);
        for (dialects, sql, expected) in [
            (&[pg][..], "CREATE TABLE NodeTable (id int)", vec![table("nodetable")]),
            (&[pg], "\n  create unlogged table if not exists sbtest1(id int)", vec![table("sbtest1")]),
            (&[pg], "CREATE TABLE linktable_0 PARTITION OF linktable", vec![table("linktable_0")]),
            (&[pg], "CREATE TABLE \"My \"\"t\"\"\" (id int)", vec![table("My \"t\"")]),
            (&[pg], "CREATE TABLE s2.\"T\" AS SELECT 1", vec![within("s2", "T")]),
            (&[pg], "CREATE TABLE \"t", vec![]),
            (&[my], "CREATE TABLE NodeTable (id int)", vec![table("NodeTable")]),
            (&[my], "create table if not exists sbtest1(id int) /*! ENGINE = innodb */", vec![table("sbtest1")]),
            (&[my], "CREATE OR REPLACE TABLE t SELECT 1 AS id", vec![table("t")]),
            (&[my], "CREATE TABLE `my ``t``` (id int)", vec![table("my `t`")]),
            (&[my], "CREATE TABLE s2.`T` LIKE t", vec![within("s2", "T")]),
            (&[my], "CREATE TABLE `s2` . t (id int)", vec![within("s2", "t")]),
            (&[my], "CREATE TABLE \"t\" (id int)", vec![table("t")]),
            (&[my], "CREATE TABLE `t", vec![]),
            (
                &[pg, my],
                "DROP TABLE IF EXISTS a; CREATE TABLE a (id int); CREATE TABLE b ()",
                vec![table("a"), table("b")],
            ),
            (&[pg, my], "CREATE TEMPORARY TABLE t (id int)", vec![]),
            (&[pg, my], "CREATE INDEX i ON t (id)", vec![]),
            (&[pg, my], "CREATE TABLESPACE t", vec![]),
            (&[pg, my], "CREATE TABLE", vec![]),
            (&[pg, my], "INSERT INTO t VALUES (1); CREATE TABLE late (id int)", vec![]),
            (&[pg, my], "", vec![]),
        ] {
            for &dialect in dialects {
                assert_eq!(created_tables(sql.as_bytes(), dialect), expected, "{sql}");
            }
        }
    }
}
