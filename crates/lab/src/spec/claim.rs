//! `[[claim]]`: what an experiment asserts about its own results.

use rumba_results::claim::Claim;

use super::error::{Origin, SpecError};
use super::node::{self, Node, Table, Tree, list_at};
use super::take;
use rumba_statistics::claims::{Missing, Mistake, Scope, check, why_never_decided};

const CLAIM_KEYS: &[&str] = &["text", "source", "holds", "measure", "published"];

/// The claims of an experiment as it was run. An unreadable experiment has none: it was checked before it ran.
pub fn claims_of(experiment: &str) -> Vec<Claim> {
    let Ok(root) = node::parse(experiment) else { return Vec::new() };
    let Tree::Table(table) = &root.tree else { return Vec::new() };
    list_at(table, "claim").iter().filter_map(|node| claim(node).ok()).map(|(claim, _)| claim).collect()
}

/// The publication that an experiment reproduces.
pub fn source_of(experiment: &str) -> Option<String> {
    node::parse(experiment).ok()?.get("source")?.as_text().map(str::to_owned)
}

/// An experiment as it was run, without its claims.
pub fn without_claims(experiment: &str) -> String {
    let Ok(mut root) = node::parse(experiment) else { return experiment.to_owned() };
    if let Tree::Table(table) = &mut root.tree {
        table.remove("claim");
    }
    super::build_text::write(&root)
}

/// The claims of an experiment.
#[derive(Default)]
pub struct Claims<'a> {
    pub kept: Vec<(&'a Node, Claim)>,
    /// The texts of claims that cannot be judged.
    pub left_out: Vec<String>,
}

/// Reads the claims and checks every name in them against the experiment. A claim that needs a part which is missing and
/// `excused` cannot be judged.
///
/// # Errors
/// The first mistake, at its place in the expression.
pub fn claims<'a>(
    table: &'a Table,
    scope: &Scope,
    excused: &dyn Fn(&Missing) -> bool,
) -> Result<Claims<'a>, SpecError> {
    if let Some(node) = table.get("claim").filter(|node| !matches!(node.tree, Tree::List(_))) {
        return Err(SpecError::new(&node.origin, "claim is a single table", "write [[claim]] with two brackets"));
    }
    let mut claims = Claims::default();
    for node in list_at(table, "claim") {
        let (claim, expressions) = claim(node)?;
        let wrong = expressions.iter().find_map(|(node, text, wants_truth)| {
            check(text, *wants_truth, scope).err().map(|mistake| (*node, mistake))
        });
        match wrong {
            Some((_, Mistake { missing: Some(missing), .. })) if excused(&missing) => claims.left_out.push(claim.text),
            Some((node, mistake)) => return Err(at(node, mistake)),
            None => claims.kept.push((node, claim)),
        }
    }
    Ok(claims)
}

/// The first claim that this number of repeats can never decide, at its place.
pub fn never_decided(claims: &[(&Node, Claim)], scope: &Scope, repeats: u32) -> Option<SpecError> {
    claims.iter().find_map(|(node, claim)| {
        let mistake = why_never_decided(&claim.holds, scope, repeats)?;
        Some(at(node.get("holds").unwrap_or(node), mistake))
    })
}

/// The engines with their numbers of clients that claims may name.
pub fn scope(engines: &[String], clients: &[u32]) -> Scope {
    let mut scope = Scope::default();
    for engine in engines {
        clients.iter().for_each(|&clients| scope.add(engine, clients));
    }
    scope
}

/// An expression: its place, its text, whether it must be an inequality.
type Expression<'a> = (&'a Node, &'a str, bool);

fn claim(node: &Node) -> Result<(Claim, Vec<Expression<'_>>), SpecError> {
    let table = node.table("claim")?;
    take::only(table, "a [[claim]]", CLAIM_KEYS)?;
    let text = |key: &str| table.get(key).map(|node| take::text(key, node).map(|text| (node, text))).transpose();
    let needed = |key: &str, example: &str| {
        text(key)?.ok_or_else(|| {
            SpecError::new(&node.origin, format!("a claim has no `{key}`"), format!("add for example: {example}"))
        })
    };
    let (_, sentence) = needed("text", "text = \"a B-tree writes more per operation\"")?;
    let (at, holds) = needed("holds", "holds = 'wkb_per_op(\"a\") >= 4 * wkb_per_op(\"b\")'")?;
    let measure = text("measure")?;
    let claim = Claim {
        text: sentence.to_owned(),
        source: text("source")?.map(|(_, source)| source.to_owned()),
        holds: holds.to_owned(),
        measure: measure.map(|(_, measure)| measure.to_owned()),
        published: table.get("published").map(|node| take::number("published", node)).transpose()?,
    };
    let expressions = [Some((at, holds, true)), measure.map(|(node, measure)| (node, measure, false))];
    Ok((claim, expressions.into_iter().flatten().collect()))
}

/// Puts a mistake at its place within the expression: the text begins after its quote.
fn at(node: &Node, mistake: Mistake) -> SpecError {
    let origin = match &node.origin {
        Origin::File(range) => {
            let start = (range.start + 1 + mistake.offset).min(range.end.saturating_sub(1));
            Origin::File(start..range.end)
        }
        other => other.clone(),
    };
    SpecError::new(&origin, mistake.problem, mistake.remedy)
}
