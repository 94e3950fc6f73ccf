//! Queries about the server itself: SELECT without FROM, SHOW, EXPLAIN. Drivers and people send them at the start, so
//! their cost does not matter.

use crate::mysql::VERSION;
use crate::mysql::resultset::{Described, Value};
use crate::mysql::variables::{Asker, variable, variables_like};
use crate::sql::{find_word, first_word, has_word, is_name, skip_blank, strings};

/// An answer made for one query.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Table {
    /// Its columns.
    pub columns: Vec<Described>,
    /// Its rows.
    pub rows: Vec<Vec<Value>>,
}

/// The reply to a query.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    /// A specific answer.
    Table(Table),
    /// An unknown query: the fixed result set.
    Fixed,
    /// There is no variable of this name.
    NoVariable(String),
}

/// Answers a statement of the kind [`crate::sql::Statement::Requesting`].
pub fn reply(text: &[u8], asker: &Asker<'_>) -> Reply {
    let (word, rest) = first_word(skip_blank(text));
    if word.eq_ignore_ascii_case(b"select") {
        return select(&String::from_utf8_lossy(rest), asker);
    }
    Reply::Table(if word.eq_ignore_ascii_case(b"show") { show(rest, asker) } else { table(&["Result"], Vec::new()) })
}

fn table(names: &[&str], rows: Vec<Vec<Value>>) -> Table {
    Table { columns: names.iter().map(|name| Described::text(*name)).collect(), rows }
}

fn text(text: &str) -> Value {
    Value::Text(text.to_owned())
}

fn show(rest: &[u8], asker: &Asker<'_>) -> Table {
    let about = |word: &str| has_word(rest, word.as_bytes());
    if about("variables") {
        let rows = variables_like(&strings(rest), asker).into_iter().map(Vec::from).collect();
        return table(&["Variable_name", "Value"], rows);
    }
    if about("status") {
        return table(&["Variable_name", "Value"], Vec::new());
    }
    if about("warnings") || about("errors") {
        return table(&["Level", "Code", "Message"], Vec::new());
    }
    if about("databases") || about("schemas") {
        return table(&["Database"], vec![vec![text(asker.database.unwrap_or("test"))]]);
    }
    if about("engines") {
        let row = ["NULL", "DEFAULT", "Gives fixed answers", "NO", "NO", "NO"].map(text).to_vec();
        return table(&["Engine", "Support", "Comment", "Transactions", "XA", "Savepoints"], vec![row]);
    }
    if about("collation") {
        let row = ["utf8mb4_general_ci", "utf8mb4", "45", "Yes", "Yes", "1"].map(text).to_vec();
        return table(&["Collation", "Charset", "Id", "Default", "Compiled", "Sortlen"], vec![row]);
    }
    table(&[if about("tables") { "Tables" } else { "Result" }], Vec::new())
}

/// Answers a SELECT whose expressions are all known here; otherwise the fixed result set.
fn select(list: &str, asker: &Asker<'_>) -> Reply {
    let list = list.trim().trim_end_matches(';');
    let before_limit = find_word(list.as_bytes(), b"limit").map_or(list.len(), |rest| list.len() - rest.len() - 5);
    let Some(list) = list.get(..before_limit) else { return Reply::Fixed };
    let (mut columns, mut row) = (Vec::new(), Vec::new());
    for item in items(list) {
        let (expression, alias) = with_alias(item.trim());
        match value(expression, asker) {
            Known::Value(value) => {
                columns.push(Described { name: alias.to_owned(), kind: value.kind() });
                row.push(value);
            }
            Known::NoVariable(name) => return Reply::NoVariable(name),
            Known::Not => return Reply::Fixed,
        }
    }
    Reply::Table(Table { columns, rows: vec![row] })
}

/// Splits a list at commas outside of quotes and parentheses.
fn items(list: &str) -> Vec<&str> {
    let (mut depth, mut quote, mut start, mut items) = (0i32, None, 0, Vec::new());
    for (at, letter) in list.char_indices() {
        match (quote, letter) {
            (Some(open), _) if letter == open => quote = None,
            (Some(_), _) => {}
            (None, '\'' | '"' | '`') => quote = Some(letter),
            (None, '(') => depth += 1,
            (None, ')') => depth -= 1,
            (None, ',') if depth == 0 => {
                items.push(&list[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    items.push(&list[start..]);
    items
}

/// An expression and the name of its column, which by default is the expression.
fn with_alias(item: &str) -> (&str, &str) {
    let Some((expression, alias)) = item.rsplit_once(char::is_whitespace) else { return (item, item) };
    let bare = alias.trim_matches(['`', '\'', '"']);
    if bare.is_empty() || !bare.bytes().all(is_name) {
        return (item, item);
    }
    let expression = expression.trim_end();
    let without_as = expression.rsplit_once(char::is_whitespace).filter(|(_, word)| word.eq_ignore_ascii_case("as"));
    (without_as.map_or(expression, |(expression, _)| expression.trim_end()), bare)
}

enum Known {
    Value(Value),
    NoVariable(String),
    Not,
}

fn value(expression: &str, asker: &Asker<'_>) -> Known {
    if let Some(name) = expression.strip_prefix("@@") {
        let name = name.rsplit('.').next().unwrap_or(name).trim_matches('`');
        return variable(name, asker).map_or_else(|| Known::NoVariable(name.to_owned()), Known::Value);
    }
    if let Ok(number) = expression.parse() {
        return Known::Value(Value::Int(number));
    }
    if let [quote @ (b'\'' | b'"'), inner @ .., end] = expression.as_bytes()
        && quote == end
        && !inner.contains(quote)
    {
        return Known::Value(text(&expression[1..expression.len() - 1]));
    }
    let lower: String = expression.to_ascii_lowercase().split_whitespace().collect();
    Known::Value(match lower.as_str() {
        "null" => Value::Null,
        "version()" => text(VERSION),
        "connection_id()" => Value::Int(i64::from(asker.id)),
        "database()" | "schema()" => asker.database.map_or(Value::Null, text),
        "user()" | "current_user()" | "current_user" | "session_user()" => text("anybody@localhost"),
        "last_insert_id()" | "row_count()" => Value::Int(0),
        _ => return Known::Not,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mysql::packet::status;

    const ASKER: Asker<'_> = Asker { id: 7, status: status::AUTOCOMMIT, database: Some("sbtest") };

    fn row(sql: &str) -> (Vec<String>, Vec<Value>) {
        match reply(sql.as_bytes(), &ASKER) {
            Reply::Table(table) => (table.columns.into_iter().map(|column| column.name).collect(), table.rows.concat()),
            other => panic!("{sql}: {other:?}"),
        }
    }

    #[test]
    fn initial_driver_queries_are_answered_by_name() {
        let sql = "/* driver */SELECT  @@session.auto_increment_increment AS auto_increment_increment, \
                   @@time_zone AS `time_zone`, 'a,b' x, connection_id(), database() limit 1;";
        let (names, values) = row(sql);
        assert_eq!(names, ["auto_increment_increment", "time_zone", "x", "connection_id()", "database()"]);
        assert_eq!(values, [Value::Int(1), text("SYSTEM"), text("a,b"), Value::Int(7), text("sbtest")]);
        assert_eq!(row("select @@version_comment limit 1").1.len(), 1);
        assert_eq!(row("SELECT 1").1, [Value::Int(1)]);
        assert_eq!(row("SHOW VARIABLES WHERE Variable_name = 'port' OR Variable_name = 'autocommit'").1.len(), 4);
        assert_eq!(row("show warnings").1, []);
    }

    #[test]
    fn unknown_selects_get_fixed_rows_or_an_error() {
        assert_eq!(reply(b"select 1 + 1", &ASKER), Reply::Fixed);
        assert_eq!(reply(b"select ?", &ASKER), Reply::Fixed);
        assert_eq!(reply(b"select @@nonsense", &ASKER), Reply::NoVariable("nonsense".into()));
        assert_eq!(reply(b"select", &ASKER), Reply::Fixed);
    }
}
