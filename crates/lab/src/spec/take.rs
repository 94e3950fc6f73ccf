//! Takes typed values out of a table, each mistake at its place.

use std::collections::BTreeMap;

use rumba_engine_api::setting::{SettingError, Settings, Value};
use rumba_engine_api::units::{parse_bytes, parse_duration};

use super::error::SpecError;
use super::node::{Node, Table, Tree};
use crate::registry::Registry;

/// Refuses an unknown key, and suggests the nearest known one.
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

pub fn scalar<'a>(key: &str, node: &'a Node) -> Result<&'a Value, SpecError> {
    match &node.tree {
        Tree::Scalar(value) => Ok(value),
        Tree::List(_) => {
            Err(SpecError::new(&node.origin, format!("{key} takes one value, not a list"), "keep one of the values"))
        }
        Tree::Table(_) => Err(wrong(key, node, "a single value")),
    }
}

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

/// The value of a key among those with a name, or the default.
pub fn one_of<T: Copy>(table: &Table, key: &str, names: &[(&'static str, T)], default: T) -> Result<T, SpecError> {
    let Some(node) = table.get(key) else { return Ok(default) };
    let text = text(key, node)?;
    let known: Vec<&str> = names.iter().map(|(name, _)| *name).collect();
    names.iter().find(|(name, _)| *name == text).map(|(_, value)| *value).ok_or_else(|| {
        SpecError::new(&node.origin, format!("{key} `{text}` is not known"), Registry::suggest(text, &known))
    })
}

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

/// A size in bytes: a number, or a fraction or multiple of the workload's data (`"data/8"`, `"data*3"`), rounded up to
/// whole MiB.
pub fn bytes(key: &str, node: &Node, data_bytes: u64) -> Result<u64, SpecError> {
    let value = scalar(key, node)?;
    match value {
        Value::Int(number) if *number > 0 => Ok(*number as u64),
        Value::Text(text) => match text.trim().strip_prefix("data") {
            Some(factor) => of_data(factor, data_bytes).ok_or_else(|| wrong(key, node, &sizes(key))),
            None => parse_bytes(text).map_err(|why| {
                SpecError::new(&node.origin, format!("{key}: {why}"), format!("{key} takes {}", sizes(key)))
            }),
        },
        _ => Err(wrong(key, node, &sizes(key))),
    }
}

/// The valid forms of a size; a cache may also be derived.
fn sizes(key: &str) -> String {
    let auto = if key == "cache" { ", or \"auto\"" } else { "" };
    format!("{SIZE}{auto}")
}

const SIZE: &str = "a size such as \"64MiB\", or one that grows with the data such as \"data/8\" or \"data*3\"";

fn of_data(factor: &str, data_bytes: u64) -> Option<u64> {
    const MIB: f64 = (1 << 20) as f64;
    let factor = factor.trim();
    let number = |text: &str| text.trim().parse::<f64>().ok().filter(|number| *number > 0.0 && number.is_finite());
    let bytes = match (factor.strip_prefix('/'), factor.strip_prefix('*')) {
        (Some(divisor), _) => data_bytes as f64 / number(divisor)?,
        (_, Some(multiple)) => data_bytes as f64 * number(multiple)?,
        _ if factor.is_empty() => data_bytes as f64,
        _ => return None,
    };
    Some(((bytes / MIB).ceil() * MIB) as u64)
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

pub fn number(key: &str, node: &Node) -> Result<f64, SpecError> {
    match scalar(key, node)? {
        Value::Int(number) => Ok(*number as f64),
        Value::Float(number) => Ok(*number),
        _ => Err(wrong(key, node, "a number")),
    }
}

/// A required key; the error shows an example of it.
pub fn required<'a>(table: &'a Table, key: &str, within: &Node, example: &str) -> Result<&'a Node, SpecError> {
    table.get(key).ok_or_else(|| {
        SpecError::new(&within.origin, format!("`{key}` is missing"), format!("add for example: {example}"))
    })
}

/// The settings of an engine or a workload.
pub fn settings(table: &Table) -> Result<Settings, SpecError> {
    let mut settings = BTreeMap::new();
    for (key, node) in table {
        match &node.tree {
            // `log.file_max = 1` in TOML is a table; its leaves are dotted names.
            Tree::Table(inner) => {
                for (rest, value) in self::settings(inner)?.0 {
                    settings.insert(format!("{key}.{rest}"), value);
                }
            }
            _ => {
                settings.insert(key.clone(), scalar(key, node)?.clone());
            }
        }
    }
    Ok(Settings(settings))
}

/// Puts an engine's or workload's error at the place of the setting.
pub fn at_setting(error: SettingError, table: &Table, fallback: &Node) -> SpecError {
    let mut place = None;
    let mut tables = vec![table];
    let (first, rest) = error.key.split_once('.').unwrap_or((&error.key, ""));
    if let Some(Tree::Table(settings)) = table.get("settings").map(|node| &node.tree) {
        tables.push(settings);
    }
    for table in tables {
        place = place.or_else(|| table.get(&error.key)).or_else(|| table.get(first));
        if let Some(Tree::Table(inner)) = table.get(first).map(|node| &node.tree) {
            place = inner.get(rest).or(place);
        }
    }
    let origin = place.map_or(&fallback.origin, |node| if error.is_unknown { &node.key_origin } else { &node.origin });
    SpecError::new(origin, format!("{}: {}", error.key, error.problem), error.remedy)
}
