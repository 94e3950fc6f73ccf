//! Flame graphs: folded stacks of the repeats of an engine, as one tree.

use std::collections::BTreeMap;

use rumba_results::distinct;
use serde::Serialize;

/// A CPU profile of a trial: its engine, its number of clients, and folded stacks, `thread;outermost;…;innermost
/// COUNT`.
pub type Profile = (String, u32, String);

/// Frames with a smaller share of all samples are too narrow to see.
const LEAST_SHARE: f64 = 0.001;

/// The CPU profile of an engine, over all repeats that were sampled.
#[derive(Serialize)]
pub struct Flame<'a> {
    engine: &'a str,
    clients: u32,
    samples: u64,
    threads: Vec<Frame<'a>>,
}

/// A frame: its name, the number of samples that include it, and its callees.
#[derive(Serialize)]
struct Frame<'a>(&'a str, u64, Vec<Frame<'a>>);

#[derive(Default)]
struct Tree<'a> {
    samples: u64,
    callees: BTreeMap<&'a str, Tree<'a>>,
}

/// One flame graph for each engine with each number of clients, in the order of the input.
pub fn flames(profiles: &[Profile]) -> Vec<Flame<'_>> {
    let keys = distinct(profiles.iter().map(|(engine, clients, _)| (engine.as_str(), *clients)));
    keys.into_iter().filter_map(|(engine, clients)| flame_of(engine, clients, profiles)).collect()
}

fn flame_of<'a>(engine: &'a str, clients: u32, profiles: &'a [Profile]) -> Option<Flame<'a>> {
    let mut root = Tree::default();
    for (_, _, stacks) in profiles.iter().filter(|(name, of, _)| name == engine && *of == clients) {
        stacks.lines().for_each(|line| add(&mut root, line));
    }
    let least = root.samples as f64 * LEAST_SHARE;
    let samples = root.samples;
    (samples > 0).then(|| Flame { engine, clients, samples, threads: frames(root, least) })
}

/// Adds a folded stack; malformed lines are ignored.
fn add<'a>(root: &mut Tree<'a>, line: &'a str) {
    let Some((stack, Ok(count))) = line.rsplit_once(' ').map(|(stack, count)| (stack, count.parse::<u64>())) else {
        return;
    };
    root.samples += count;
    let mut at = root;
    for (depth, name) in stack.split(';').enumerate() {
        // Threads whose names differ only in their number do the same work.
        let name = if depth == 0 { name.trim_end_matches(|c: char| c.is_ascii_digit()) } else { name };
        at = at.callees.entry(name).or_default();
        at.samples += count;
    }
}

fn frames(tree: Tree<'_>, least: f64) -> Vec<Frame<'_>> {
    let seen = tree.callees.into_iter().filter(|(_, callee)| callee.samples as f64 >= least);
    seen.map(|(name, callee)| Frame(name, callee.samples, frames(callee, least))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flame_graph_merges_repeats_and_threads_and_drops_tiny_parts() {
        let of = |engine: &str, stacks: &str| (engine.to_owned(), 2, stacks.to_owned());
        let profiles = [
            of("a", "client 1;main;get 600\nclient 2;main;get 300\nclient 2;main 99\nrare 0\nno count\n"),
            of("b", "x 1\n"),
            of("a", "client 7;main;put 2000\nseldom;f 1\n"),
        ];
        let json = serde_json::to_value(flames(&profiles)).unwrap();
        assert_eq!(json.as_array().unwrap().len(), 2);
        let tree = serde_json::json!([["client ", 2999, [["main", 2999, [["get", 900, []], ["put", 2000, []]]]]]]);
        assert_eq!((&json[0]["samples"], &json[0]["threads"]), (&3000.into(), &tree));
    }
}
