//! Expands a list in an engine's settings into one engine for each value.

use rumba_engine_api::setting::Value;

use super::error::{SpecError, hidden};
use super::node::{Node, Table, Tree};

/// The most engines that one entry makes: the product of five lists of ten values each would fill the memory.
const MOST: usize = 1000;

/// A key that has a list, by its path in the engine's table (`settings.page_size`), and one of its values.
pub type Differs = (String, String);

/// One engine of the lists' product: its differences from the others, and its single-valued table.
pub struct Variant {
    /// The values that differ from the other engines, in the order of their keys.
    pub differs: Vec<Differs>,
    /// The engine's table, every list replaced by one of its values.
    pub table: Table,
}

/// Expands all lists of an engine's table, `settings` included.
///
/// # Errors
/// An empty list, or a list of something other than single values.
pub fn expand(table: &Table) -> Result<Vec<Variant>, SpecError> {
    let mut variants = vec![Variant { differs: Vec::new(), table: Table::new() }];
    for (key, node) in table {
        let choices = match &node.tree {
            // `settings`, and the groups in it: `settings.log.file_max` is a table in a table.
            Tree::Table(settings) => {
                let below = |(inner, value): Differs| (format!("{key}.{inner}"), value);
                let choice = |variant: Variant| {
                    let differs = variant.differs.into_iter().map(below).collect();
                    (differs, Node { tree: Tree::Table(variant.table), ..node.clone() })
                };
                expand(settings)?.into_iter().map(choice).collect()
            }
            Tree::List(nodes) => choices_of(key, node, nodes)?,
            _ => vec![(Vec::new(), node.clone())],
        };
        if variants.len().saturating_mul(choices.len()) > MOST {
            return Err(SpecError::new(
                &node.key_origin,
                format!("its lists make more than {MOST} engines of one"),
                "take values out of them, or make several experiments",
            ));
        }
        variants = product(variants, key, &choices);
    }
    Ok(variants)
}

/// A value of a key, and the differences of the engine that has it.
type Choice = (Vec<Differs>, Node);

fn choices_of(key: &str, list: &Node, nodes: &[Node]) -> Result<Vec<Choice>, SpecError> {
    if nodes.is_empty() {
        return Err(SpecError::new(
            &list.origin,
            format!("{key} is an empty list"),
            "give it a value, or leave it out",
        ));
    }
    let distinguishes = nodes.len() > 1;
    nodes
        .iter()
        .map(|node| match &node.tree {
            Tree::Scalar(value) => {
                let differs = if distinguishes { vec![(key.to_owned(), shown(value))] } else { Vec::new() };
                // Each value gets the place of the list's key.
                Ok((differs, Node { key_origin: list.key_origin.clone(), ..node.clone() }))
            }
            _ => Err(SpecError::new(&node.origin, format!("{key} holds {}", node.kind()), "list single values")),
        })
        .collect()
}

fn product(variants: Vec<Variant>, key: &str, choices: &[Choice]) -> Vec<Variant> {
    let mut all = Vec::with_capacity(variants.len() * choices.len());
    for variant in &variants {
        for (differs, node) in choices {
            let mut table = variant.table.clone();
            table.insert(key.to_owned(), node.clone());
            all.push(Variant { differs: [variant.differs.as_slice(), differs].concat(), table });
        }
    }
    all
}

/// A value as shown in a name; a DSN of an existing server without its password.
fn shown(value: &Value) -> String {
    hidden(&value.to_string())
}
