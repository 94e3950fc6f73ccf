//! Checks whether an engine's sessions support LinkBench. The same random operations run against an adapter and an
//! in-memory oracle, and every answer and the final content are compared.

use std::fmt::Debug;

use rand::SeedableRng;
use rumba_engine_api::engine::Session;
use rumba_engine_api::error::{EngineError, Result};
use rumba_workload_kit::conformance::{documents, kv, same, sql};
use rumba_workload_kit::ledger::RowCount;
use rumba_workload_kit::{Random, below};

use crate::document_graph::{self, DocumentGraph, DocumentLoader};
use crate::graph::{
    GraphLoad, GraphScan, GraphStore, IndexKey, IndexRange, LINK_TYPE, Link, LinkCount, LinkKey, ListQuery,
    MULTIGET_MAX, NODE_TYPE, Node, Written,
};
use crate::kv_graph::KvGraph;
use crate::node_ids::{NextNodeId, NodeIds};
use crate::oracle::{Oracle, OracleLink, OracleNode};
use crate::profile::WriteStyle;
use crate::sql_graph::{SqlGraph, SqlLoader};
use crate::sql_text::{self, Tables};
use crate::verify::{Expected, verify};
use rumba_engine_api::worker::block_on;

/// Loaded node ids are 1..IDS. They are few, so that operations collide.
const IDS: u64 = 40;
/// Link types in use.
const TYPES: u64 = 3;
/// Link times are below this. They are few, so that several links share one.
const TIMES: u64 = 30;

/// Runs `steps` random operations of `seed` over sessions from `open`. The sessions must all belong to one new, empty
/// instance that was opened with [`crate::spaces`]; `open` is called more than once.
///
/// # Errors
/// A description of the first answer or row that differs from the oracle's.
pub fn conformance(open: &mut dyn FnMut() -> Session, seed: u64, steps: usize) -> Result<(), String> {
    let wrong = |error: EngineError| format!("seed {seed}: {error}");
    match open() {
        Session::Kv(session) => {
            let next = NextNodeId::new(IDS);
            let graph = |session| KvGraph::new(session, NodeIds::new(next.clone(), 0), false);
            let oracle = load(graph(session), seed)?;
            let graphs = [open(), open()].map(|session| kv(session).map(graph));
            run(graphs.into_iter().collect::<Result<_, _>>()?, oracle, seed, steps)
        }
        Session::Sql(mut session) => {
            let text = sql_text::text(session.dialect()).map_err(wrong)?;
            let options = session.table_options().to_owned();
            // Every second seed partitions the links, if the engine has partitions.
            let partitions = 4 * (seed % 2);
            for table in (text.schema)(Tables { table_options: &options, partitions, next_node: IDS }) {
                session.run(&table).map_err(wrong)?;
            }
            let oracle = load(SqlLoader::new(session).map_err(wrong)?, seed)?;
            let mut graphs = Vec::new();
            for style in [WriteStyle::Upsert, WriteStyle::InsertOrUpdate] {
                let all = [&text.mix(style), sql_text::SCANS].concat();
                graphs.push(SqlGraph::new(sql(open())?, style, &all).map_err(wrong)?);
            }
            run(graphs, oracle, seed, steps)
        }
        Session::Document(mut session) => {
            for collection in document_graph::collections() {
                session.run(collection.get()).map_err(wrong)?;
            }
            let oracle = load(DocumentLoader::new(session), seed)?;
            let next = NextNodeId::new(IDS);
            let graph = |session| DocumentGraph::new(session, NodeIds::new(next.clone(), 0));
            let graphs = [open(), open()].map(|session| documents(session).map(graph));
            run(graphs.into_iter().collect::<Result<_, _>>()?, oracle, seed, steps)
        }
    }
}

/// Loads some rows, and builds the index after them; returns the oracle with the same rows.
fn load(mut graph: impl GraphLoad, seed: u64) -> Result<Oracle, String> {
    let (mut oracle, mut random) = (Oracle::default(), Random::seed_from_u64(seed));
    for id in 1..IDS {
        let data = payload(&mut random);
        let node = Node { id, node_type: NODE_TYPE, version: 1, time: 7, data: &data };
        graph.stage_node(&node);
        oracle.put_node(&node);
    }
    for link_type in LINK_TYPE..LINK_TYPE + TYPES {
        for id1 in (1..IDS).step_by(2) {
            let mut count = LinkCount { id1, link_type, ..LinkCount::default() };
            for id2 in id1..id1 + below(&mut random, 6) {
                let (data, time) = (link_payload(&mut random), below(&mut random, TIMES));
                let link = Link { key: LinkKey { link_type, id1, id2 }, visible: true, version: 0, time, data: &data };
                graph.stage_link(&link);
                oracle.put_link(&link);
                count = LinkCount { count: count.count + 1, time: count.time.max(time), ..count };
            }
            graph.stage_count(&count);
            oracle.counts.insert((id1, link_type), count);
        }
    }
    let wrong = |error: EngineError| format!("seed {seed}, load: {error}");
    block_on(graph.load_staged()).map_err(wrong)?;
    graph.clear_staged();
    build(&mut graph).map_err(wrong)?;
    Ok(oracle)
}

/// Builds the index in small steps.
fn build(graph: &mut impl GraphLoad) -> Result<()> {
    let to = LinkKey { link_type: LINK_TYPE + TYPES, id1: 0, id2: 0 };
    let mut from = Some(LinkKey { link_type: LINK_TYPE, id1: 0, id2: 0 });
    while let Some(next) = from {
        from = block_on(graph.build_index(IndexRange { from: next, to }, 7))?.next;
    }
    graph.clear_staged();
    Ok(())
}

/// Any bytes, none, or sometimes more than a page.
fn payload(random: &mut Random) -> Vec<u8> {
    payload_of(random, 5000)
}

/// A link's payload is at most 255 bytes in the published schema.
fn link_payload(random: &mut Random) -> Vec<u8> {
    payload_of(random, 255)
}

fn payload_of(random: &mut Random, most: u64) -> Vec<u8> {
    let length = if below(random, 50) == 0 { most } else { below(random, 40) };
    // Any byte except zero, which LinkBench never writes and PostgreSQL's text does not accept.
    (0..length).map(|_| 1 + below(random, 255) as u8).collect()
}

/// One random operation.
#[derive(Clone, Debug)]
enum Step {
    AddNode(Vec<u8>),
    GetNode(u64),
    UpdateNode(u64, Vec<u8>),
    DeleteNode(u64),
    AddLink(LinkKey, bool, u64, Vec<u8>),
    UpdateLink(LinkKey, bool, u64, Vec<u8>),
    DeleteLink(LinkKey, u64),
    CountLinks(u64, u64),
    GetLinks(u64, u64, Vec<u64>),
    GetLinksList(ListQuery),
}

fn draw(random: &mut Random, newest_node: u64) -> Step {
    let id = 1 + below(random, newest_node + 2);
    let id1 = below(random, IDS);
    let link_type = LINK_TYPE + below(random, TYPES);
    let key = LinkKey { link_type, id1, id2: id1 + below(random, 8) };
    let time = below(random, TIMES);
    // Most writes show their link; a few hide it.
    let visible = below(random, 8) > 0;
    match below(random, 10) {
        0 => Step::AddNode(payload(random)),
        1 => Step::GetNode(id),
        2 => Step::UpdateNode(id, payload(random)),
        3 => Step::DeleteNode(id),
        4 => Step::AddLink(key, visible, time, link_payload(random)),
        5 => Step::UpdateLink(key, visible, time, link_payload(random)),
        6 => Step::DeleteLink(key, time),
        7 => Step::CountLinks(id1, link_type),
        8 => {
            let many = below(random, 20) == 0;
            let wanted = if many { MULTIGET_MAX as u64 } else { 1 + below(random, 12) };
            let keep = 1 + below(random, 2);
            let id2s = (id1..id1 + wanted).filter(|id2| (id2 * 7) % (keep + 1) < 2).collect();
            Step::GetLinks(id1, link_type, id2s)
        }
        _ => {
            let from_time = if below(random, 2) == 0 { 0 } else { below(random, TIMES) };
            let to_time = if below(random, 2) == 0 { i64::MAX as u64 } else { below(random, TIMES) };
            let (offset, limit) = (below(random, 3), 1 + below(random, 6));
            Step::GetLinksList(ListQuery { id1, link_type, from_time, to_time, offset, limit })
        }
    }
}

/// An operation's answer, with every row it visited.
#[derive(Debug, Default, PartialEq)]
struct StepOutcome {
    answer: String,
    /// The logical bytes by which a write grew the graph, if the store reports them.
    growth: Option<i64>,
    nodes: Vec<(u64, OracleNode)>,
    links: Vec<(LinkKey, OracleLink)>,
}

fn own_node(node: &Node<'_>) -> (u64, OracleNode) {
    let Node { id, node_type, version, time, data } = *node;
    (id, OracleNode { node_type, version, time, data: data.to_vec() })
}

fn own_link(link: &Link<'_>) -> (LinkKey, OracleLink) {
    let Link { key, visible, version, time, data } = *link;
    (key, OracleLink { visible, version, time, data: data.to_vec() })
}

fn apply(graph: &mut impl GraphStore, step: &Step) -> Result<StepOutcome> {
    let mut reported = StepOutcome::default();
    let StepOutcome { growth, nodes, links, .. } = &mut reported;
    let said = |answer: &dyn Debug| format!("{answer:?}");
    let mut wrote = |written: Written| {
        *growth = written.growth;
        said(&written.there)
    };
    let link = |key, visible, time, data| Link { key, visible, version: 3, time, data };
    let node = |id, version, data| Node { id, node_type: NODE_TYPE, version, time: 9, data };
    reported.answer = match step {
        Step::AddNode(data) => said(&block_on(graph.add_node(&node(0, 1, data)))?),
        Step::GetNode(id) => said(&block_on(graph.get_node(*id, &mut |node| nodes.push(own_node(node))))?),
        Step::UpdateNode(id, data) => wrote(block_on(graph.update_node(&node(*id, 2, data)))?),
        Step::DeleteNode(id) => wrote(block_on(graph.delete_node(*id))?),
        Step::AddLink(key, visible, time, data) => wrote(block_on(graph.add_link(&link(*key, *visible, *time, data)))?),
        Step::UpdateLink(key, visible, time, data) => {
            wrote(block_on(graph.update_link(&link(*key, *visible, *time, data)))?)
        }
        Step::DeleteLink(key, time) => said(&block_on(graph.delete_link(*key, *time))?),
        Step::CountLinks(id1, link_type) => said(&block_on(graph.count_links(*id1, *link_type))?),
        Step::GetLinks(id1, link_type, id2s) => {
            let rows = block_on(graph.get_links(*id1, *link_type, id2s, &mut |link| links.push(own_link(link))))?;
            // A multiget has no order.
            links.sort_by_key(|link| link.0);
            said(&rows)
        }
        Step::GetLinksList(query) => {
            said(&block_on(graph.get_links_list(query, &mut |link| links.push(own_link(link))))?)
        }
    };
    Ok(reported)
}

fn run<G: GraphStore + GraphScan>(
    mut graphs: Vec<G>,
    mut oracle: Oracle,
    seed: u64,
    steps: usize,
) -> Result<(), String> {
    let mut random = Random::seed_from_u64(seed ^ 0x5EED);
    let mut newest_node = IDS - 1;
    for number in 0..steps {
        let step = draw(&mut random, newest_node);
        let which = below(&mut random, graphs.len() as u64) as usize;
        let at = || format!("seed {seed}, step {number}, session {which}, {step:?}");
        let reported = apply(&mut graphs[which], &step).map_err(|error| format!("{}: {error}", at()))?;
        if let Step::AddNode(_) = step {
            // The store chooses the id; it must be a new one.
            let id: u64 = reported.answer.parse().map_err(|_| format!("{}: answered {}", at(), reported.answer))?;
            if oracle.nodes.contains_key(&id) || id == 0 {
                return Err(format!("{}: gave the id {id}, which is taken", at()));
            }
            oracle.next_id = id;
            newest_node = newest_node.max(id);
        }
        let mut right = apply(&mut oracle, &step).map_err(|error| format!("{}: {error}", at()))?;
        // A store may leave out the growth, but a reported growth must be right.
        right.growth = reported.growth.and(right.growth);
        if reported != right {
            return Err(format!("{}: answered {reported:?}, right is {right:?}", at()));
        }
    }
    let Some(graph) = graphs.first_mut() else { return Ok(()) };
    block_on(compare(graph, &oracle)).map_err(|error| format!("seed {seed}, {error}"))
}

/// Compares the content of all tables, read in small pages.
async fn compare(graph: &mut impl GraphScan, oracle: &Oracle) -> Result<(), String> {
    const PAGE: u64 = 11;
    let wrong = |error: EngineError| error.to_string();
    let mut nodes: Vec<(u64, OracleNode)> = Vec::new();
    let mut links: Vec<(LinkKey, OracleLink)> = Vec::new();
    let mut counts: Vec<LinkCount> = Vec::new();
    let mut entries: Vec<(IndexKey, OracleLink)> = Vec::new();
    loop {
        let after = nodes.last().map(|node| node.0);
        if graph.scan_nodes(after, PAGE, &mut |node| nodes.push(own_node(node))).await.map_err(wrong)? < PAGE {
            break;
        }
    }
    loop {
        let after = links.last().map(|link| link.0);
        if graph.scan_links(after, PAGE, &mut |link| links.push(own_link(link))).await.map_err(wrong)? < PAGE {
            break;
        }
    }
    loop {
        let after = counts.last().map(|count| (count.id1, count.link_type));
        if graph.scan_counts(after, PAGE, &mut |count| counts.push(*count)).await.map_err(wrong)? < PAGE {
            break;
        }
    }
    loop {
        let after = entries.last().map(|entry| entry.0);
        let mut visit = |link: &Link<'_>| entries.push((link.entry(), own_link(link).1));
        if graph.scan_index(after, PAGE, &mut visit).await.map_err(wrong)? < PAGE {
            break;
        }
    }
    same("nodes", &nodes, &oracle.nodes.iter().map(|(id, node)| (*id, node.clone())).collect::<Vec<_>>())?;
    same("links", &links, &oracle.links.iter().map(|(key, link)| (*key, link.clone())).collect::<Vec<_>>())?;
    same("counts", &counts, &oracle.counts.values().copied().collect::<Vec<_>>())?;
    let mut right: Vec<(IndexKey, OracleLink)> = oracle
        .links
        .iter()
        .map(|(&LinkKey { link_type, id1, id2 }, link)| {
            (IndexKey { id1, link_type, visible: link.visible, time: link.time, id2 }, link.clone())
        })
        .collect();
    right.sort_by_key(|entry| entry.0);
    entries.sort_by_key(|entry| entry.0);
    same("index", &entries, &right)?;
    let rows = |loaded: usize| RowCount { loaded: loaded as u64, ..RowCount::default() };
    let expected = Expected { link_types: TYPES, links: rows(oracle.links.len()), nodes: rows(oracle.nodes.len()) };
    let checks = verify(graph, &expected).await.map_err(wrong)?;
    match checks.iter().find(|check| check.wrong > 0) {
        Some(check) => Err(format!("verification: {check:?}")),
        None => Ok(()),
    }
}
