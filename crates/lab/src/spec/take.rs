//! Takes typed values out of a table, each mistake at its place.

use rumba_core::setting::Value;
use rumba_core::units::{parse_bytes, parse_duration};

use super::error::SpecError;
use super::node::{Node, Table, Tree};
use crate::registry::Registry;

/// Refuses a key that is not known, with the nearest that is.
pub fn only(table: &Table, whose: &str, known: &[&'static str]) -> Result<(), SpecError> {
    for (key, node) in table {
        if !known.contains(&key.as_str()) {
            return Err(SpecError::new(
                &node.key_origin,
                format!("{whose} has no key `{key}`"),
                Registry::suggest(key, known),
            ));
        }
    }
    Ok(())
}

/// The single value of a node.
pub fn scalar<'a>(key: &str, node: &'a Node) -> Result<&'a Value, SpecError> {
    match &node.tree {
        Tree::Scalar(value) => Ok(value),
        Tree::List(_) => {
            Err(SpecError::new(&node.origin, format!("{key} takes one value, not a list"), "keep one of the values"))
        }
        Tree::Table(_) => Err(wrong(key, node, "a single value")),
    }
}

/// A text.
pub fn text<'a>(key: &str, node: &'a Node) -> Result<&'a str, SpecError> {
    match scalar(key, node)? {
        Value::Text(text) => Ok(text),
        _ => Err(wrong(key, node, "a text in quotes")),
    }
}

/// A truth value.
pub fn bool(key: &str, node: &Node) -> Result<bool, SpecError> {
    match scalar(key, node)? {
        Value::Bool(value) => Ok(*value),
        _ => Err(wrong(key, node, "true or false")),
    }
}

/// A whole number between two bounds, inclusive.
pub fn int(key: &str, node: &Node, low: i64, high: i64) -> Result<i64, SpecError> {
    match scalar(key, node)? {
        Value::Int(number) if (low..=high).contains(number) => Ok(*number),
        _ => Err(wrong(key, node, &format!("a whole number from {low} to {high}"))),
    }
}

/// A positive number.
pub fn positive(key: &str, node: &Node) -> Result<f64, SpecError> {
    let number = match scalar(key, node)? {
        Value::Int(number) => *number as f64,
        Value::Float(number) => *number,
        _ => 0.0,
    };
    if number > 0.0 { Ok(number) } else { Err(wrong(key, node, "a number above zero")) }
}

/// A duration, in seconds.
pub fn seconds(key: &str, node: &Node) -> Result<f64, SpecError> {
    match scalar(key, node)? {
        Value::Text(text) => {
            let duration = parse_duration(text).map_err(|why| {
                SpecError::new(&node.origin, format!("{key}: {why}"), "write a number and its unit, as in \"30s\"")
            })?;
            Ok(duration.as_secs_f64())
        }
        Value::Int(number) => Err(SpecError::new(
            &node.origin,
            format!("{key}: {number} has no unit"),
            format!("write \"{number}s\" for seconds or \"{number}m\" for minutes"),
        )),
        _ => Err(wrong(key, node, "a duration such as \"30s\"")),
    }
}

/// A size in bytes.
pub fn bytes(key: &str, node: &Node) -> Result<u64, SpecError> {
    match scalar(key, node)? {
        Value::Int(number) if *number > 0 => Ok(*number as u64),
        Value::Text(text) => parse_bytes(text).map_err(|why| {
            SpecError::new(&node.origin, format!("{key}: {why}"), "write a number and its unit, as in \"64MiB\"")
        }),
        _ => Err(wrong(key, node, "a size such as \"64MiB\"")),
    }
}

/// One value or a list of them.
pub fn list(node: &Node) -> Vec<&Node> {
    match &node.tree {
        Tree::List(nodes) => nodes.iter().collect(),
        _ => vec![node],
    }
}

fn wrong(key: &str, node: &Node, expected: &str) -> SpecError {
    let found = match &node.tree {
        Tree::Scalar(value) => format!("`{value}`"),
        _ => node.kind().to_owned(),
    };
    SpecError::new(&node.origin, format!("{key} is {found}"), format!("{key} takes {expected}"))
}

/// A number.
pub fn number(key: &str, node: &Node) -> Result<f64, SpecError> {
    match scalar(key, node)? {
        Value::Int(number) => Ok(*number as f64),
        Value::Float(number) => Ok(*number),
        _ => Err(wrong(key, node, "a number")),
    }
}
