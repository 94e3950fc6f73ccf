//! The experiment as run, written back as TOML with the command line merged in.

use rumba_engine_api::setting::Value;
use toml_edit::{Array, ArrayOfTables, DocumentMut, Item, Table as TomlTable};

use super::node::{Node, Table, Tree};

/// Writes the tree as TOML text.
pub fn write(root: &Node) -> String {
    let mut document = DocumentMut::new();
    if let Tree::Table(table) = &root.tree {
        *document.as_table_mut() = to_table(table);
        document.as_table_mut().set_implicit(true);
    }
    document.to_string()
}

fn to_table(table: &Table) -> TomlTable {
    let mut toml = TomlTable::new();
    // Single values before tables: a key after a sub-table's header would belong to that table.
    let (scalars, rest): (Vec<_>, Vec<_>) = table.iter().partition(|(_, node)| !holds_tables(node));
    for (key, node) in scalars.into_iter().chain(rest) {
        toml.insert(key, to_item(node));
    }
    toml
}

fn holds_tables(node: &Node) -> bool {
    match &node.tree {
        Tree::Table(_) => true,
        Tree::List(nodes) => nodes.iter().any(holds_tables),
        Tree::Scalar(_) => false,
    }
}

fn to_item(node: &Node) -> Item {
    match &node.tree {
        Tree::Scalar(value) => Item::Value(to_value(value)),
        Tree::Table(table) => Item::Table(to_table(table)),
        Tree::List(nodes) if holds_tables(node) => {
            let mut tables = ArrayOfTables::new();
            for node in nodes {
                if let Tree::Table(table) = &node.tree {
                    tables.push(to_table(table));
                }
            }
            Item::ArrayOfTables(tables)
        }
        Tree::List(nodes) => Item::Value(to_array(nodes).into()),
    }
}

/// A list of values, or of lists of them.
fn to_array(nodes: &[Node]) -> Array {
    let mut array = Array::new();
    for node in nodes {
        match &node.tree {
            Tree::Scalar(value) => array.push(to_value(value)),
            Tree::List(nodes) => array.push(to_array(nodes)),
            Tree::Table(_) => {}
        }
    }
    array
}

fn to_value(value: &Value) -> toml_edit::Value {
    match value {
        Value::Bool(value) => (*value).into(),
        Value::Int(value) => (*value).into(),
        Value::Float(value) => (*value).into(),
        Value::Text(value) => value.as_str().into(),
    }
}
