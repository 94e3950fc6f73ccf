//! The tables that a statement creates, read from its text.

/// The name of a table, as the statement writes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableName {
    /// The schema, if the statement names it.
    pub schema: Option<String>,
    /// The table.
    pub table: String,
}

/// The permanent tables that these statements create, in `CREATE TABLE name`. Tables that get their name in another
/// way, such as `RENAME TABLE`, are not found.
pub fn created_tables(sql: &[u8]) -> Vec<TableName> {
    // Statements of the load path begin with other words, so they take no memory here.
    let start = sql.trim_ascii_start();
    let begins = |word: &[u8]| start.get(..word.len()).is_some_and(|first| first.eq_ignore_ascii_case(word));
    if !begins(b"CREATE") && !begins(b"DROP") {
        return Vec::new();
    }
    // A semicolon within a string only yields more pieces, which rarely begin with CREATE TABLE.
    String::from_utf8_lossy(sql).split(';').filter_map(created_table).collect()
}

/// The table that a single statement creates.
fn created_table(statement: &str) -> Option<TableName> {
    let mut rest = after_word(statement, "CREATE")?;
    if let Some(after) = after_word(rest, "OR") {
        rest = after_word(after, "REPLACE")?;
    }
    rest = after_word(rest, "TABLE")?;
    if let Some(after) = after_word(rest, "IF") {
        rest = after_word(after_word(after, "NOT")?, "EXISTS")?;
    }
    let (first, rest) = name(rest)?;
    match rest.trim_ascii_start().strip_prefix('.') {
        Some(rest) => Some(TableName { schema: Some(first), table: name(rest)?.0 }),
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
fn name(text: &str) -> Option<(String, &str)> {
    let text = text.trim_ascii_start();
    // Double quotes are for names with the SQL mode ANSI_QUOTES; otherwise the server refuses the statement.
    let Some(quote) = text.chars().next().filter(|first| matches!(first, '`' | '"')) else {
        let end = text.find(|character: char| !is_part(character)).unwrap_or(text.len());
        return (end > 0).then(|| (text[..end].to_owned(), &text[end..]));
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

    #[test]
    fn created_tables_are_read_from_the_statement() {
        let table = |table: &str| TableName { schema: None, table: table.to_owned() };
        let within = |schema: &str, name: &str| TableName { schema: Some(schema.to_owned()), ..table(name) };
        for (sql, expected) in [
            ("CREATE TABLE NodeTable (id int)", vec![table("NodeTable")]),
            ("\n  create table if not exists sbtest1(id int) /*! ENGINE = innodb */", vec![table("sbtest1")]),
            ("CREATE OR REPLACE TABLE t SELECT 1 AS id", vec![table("t")]),
            ("CREATE TABLE `my ``t``` (id int)", vec![table("my `t`")]),
            ("CREATE TABLE s2.`T` LIKE t", vec![within("s2", "T")]),
            ("CREATE TABLE `s2` . t (id int)", vec![within("s2", "t")]),
            ("CREATE TABLE \"t\" (id int)", vec![table("t")]),
            ("DROP TABLE IF EXISTS a; CREATE TABLE a (id int); CREATE TABLE b (id int)", vec![table("a"), table("b")]),
            ("CREATE TEMPORARY TABLE t (id int)", vec![]),
            ("CREATE INDEX i ON t (id)", vec![]),
            ("CREATE VIEW v AS SELECT 1", vec![]),
            ("CREATE TABLESPACE t", vec![]),
            ("CREATE TABLE", vec![]),
            ("CREATE TABLE `t", vec![]),
            ("INSERT INTO t VALUES (1); CREATE TABLE late (id int)", vec![]),
            ("", vec![]),
        ] {
            assert_eq!(created_tables(sql.as_bytes()), expected, "{sql}");
        }
    }
}
