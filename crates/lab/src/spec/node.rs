//! The experiment's file as a tree in which every value knows its place.

use std::collections::BTreeMap;

use rumba_engine_api::setting::Value;
use toml_edit::{Document, Item, TableLike};

use super::error::{Origin, SpecError};

/// A value with its origin.
#[derive(Clone, Debug, PartialEq)]
pub struct Node {
    /// The value.
    pub tree: Tree,
    /// The place of the value.
    pub origin: Origin,
    pub key_origin: Origin,
}

/// The shape of a value.
#[derive(Clone, Debug, PartialEq)]
pub enum Tree {
    Scalar(Value),
    List(Vec<Node>),
    Table(Table),
}

/// A table's entries by key.
pub type Table = BTreeMap<String, Node>;

impl Node {
    /// A node with one place for key and value.
    pub fn at(tree: Tree, origin: Origin) -> Self {
        Self { tree, key_origin: origin.clone(), origin }
    }

    /// The type of the value, for a message.
    pub fn kind(&self) -> &'static str {
        match &self.tree {
            Tree::Scalar(Value::Bool(_)) => "a truth value",
            Tree::Scalar(Value::Int(_)) => "a whole number",
            Tree::Scalar(Value::Float(_)) => "a number",
            Tree::Scalar(Value::Text(_)) => "a text",
            Tree::List(_) => "a list",
            Tree::Table(_) => "a table",
        }
    }

    /// The entry of a key, if this is a table that has it.
    pub fn get(&self, key: &str) -> Option<&Node> {
        match &self.tree {
            Tree::Table(table) => table.get(key),
            Tree::Scalar(_) | Tree::List(_) => None,
        }
    }

    /// The text, if this is one.
    pub fn as_text(&self) -> Option<&str> {
        match &self.tree {
            Tree::Scalar(Value::Text(text)) => Some(text),
            _ => None,
        }
    }

    /// Whether an option of the command line gave this value or a part of it.
    pub fn is_from_option(&self) -> bool {
        matches!(self.origin, Origin::Option(_))
            || match &self.tree {
                Tree::Scalar(_) => false,
                Tree::List(nodes) => nodes.iter().any(Node::is_from_option),
                Tree::Table(table) => table.values().any(Node::is_from_option),
            }
    }

    /// The table, or an error that names the actual type.
    pub fn table(&self, what: &str) -> Result<&Table, SpecError> {
        match &self.tree {
            Tree::Table(table) => Ok(table),
            _ => Err(SpecError::new(
                &self.origin,
                format!("{what} is {}, but a table is needed", self.kind()),
                format!("write [{what}] on its own line and its keys below"),
            )),
        }
    }
}

/// The nodes of the list that a key has; none if it has no list.
pub fn list_at<'a>(table: &'a Table, key: &str) -> &'a [Node] {
    match table.get(key).map(|node| &node.tree) {
        Some(Tree::List(nodes)) => nodes,
        _ => &[],
    }
}

/// Parses TOML text into a tree.
///
/// # Errors
/// The parser's message, at its place.
pub fn parse(text: &str) -> Result<Node, SpecError> {
    let document = Document::parse(text.to_owned()).map_err(|error| {
        let origin = error.span().map_or(Origin::Default, Origin::File);
        SpecError::new(&origin, error.message().trim().to_owned(), "the file must be TOML 1.0")
    })?;
    let table = from_table(document.as_table())?;
    Ok(Node::at(Tree::Table(table), Origin::File(0..0)))
}

fn from_table(table: &dyn TableLike) -> Result<Table, SpecError> {
    let mut entries = Table::new();
    for (name, item) in table.iter() {
        let mut node = from_item(item)?;
        if let Some(span) = table.key(name).and_then(|key| key.span()) {
            node.key_origin = Origin::File(span);
        }
        entries.insert(name.to_owned(), node);
    }
    Ok(entries)
}

fn from_item(item: &Item) -> Result<Node, SpecError> {
    let origin = item.span().map_or(Origin::Default, Origin::File);
    let tree = match item {
        Item::Value(value) => return from_value(value),
        Item::Table(table) => Tree::Table(from_table(table)?),
        Item::ArrayOfTables(tables) => {
            let mut nodes = Vec::new();
            for table in tables {
                let origin = table.span().map_or(Origin::Default, Origin::File);
                nodes.push(Node::at(Tree::Table(from_table(table)?), origin));
            }
            Tree::List(nodes)
        }
        Item::None => Tree::Table(Table::new()),
    };
    Ok(Node::at(tree, origin))
}

/// Turns one TOML value into a node.
///
/// # Errors
/// A date, because no key accepts one.
pub fn from_value(value: &toml_edit::Value) -> Result<Node, SpecError> {
    let origin = value.span().map_or(Origin::Default, Origin::File);
    let tree = match value {
        toml_edit::Value::String(text) => Tree::Scalar(Value::Text(text.value().clone())),
        toml_edit::Value::Integer(number) => Tree::Scalar(Value::Int(*number.value())),
        toml_edit::Value::Float(number) => Tree::Scalar(Value::Float(*number.value())),
        toml_edit::Value::Boolean(truth) => Tree::Scalar(Value::Bool(*truth.value())),
        toml_edit::Value::Datetime(_) => {
            return Err(SpecError::new(&origin, "a date has no meaning in an experiment", "put it in quotes"));
        }
        toml_edit::Value::Array(values) => Tree::List(values.iter().map(from_value).collect::<Result<_, _>>()?),
        toml_edit::Value::InlineTable(table) => Tree::Table(from_table(table)?),
    };
    Ok(Node::at(tree, origin))
}
