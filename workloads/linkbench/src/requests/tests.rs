//! The operations that a client draws, with fixed seeds.

use super::*;
use crate::graph::{VisitLink, VisitNode, Written};
use crate::tally::{Sums, Tallies};
use rumba_engine_api::error::EngineError;
use rumba_engine_api::setting::Value;
use rumba_engine_api::worker::block_on;

const THERE: Written = Written { there: true, growth: None };
const NEW: Written = Written { there: false, growth: None };

/// The failure of an added link.
#[derive(Default)]
enum Trouble {
    #[default]
    None,
    Conflict,
    Error,
    CutOff,
    Silence,
}

/// Records lists, and answers each with as many links as requested.
#[derive(Default)]
struct Recorder {
    lists: Vec<ListQuery>,
    payloads: Vec<usize>,
    times: Vec<u64>,
    trouble: Trouble,
}

impl GraphStore for Recorder {
    async fn add_node(&mut self, node: &Node<'_>) -> Result<u64> {
        self.payloads.push(node.data.len());
        Ok(1)
    }

    async fn get_node(&mut self, _: u64, _: VisitNode<'_>) -> Result<bool> {
        Ok(true)
    }

    async fn update_node(&mut self, node: &Node<'_>) -> Result<Written> {
        self.payloads.push(node.data.len());
        Ok(THERE)
    }

    async fn delete_node(&mut self, _: u64) -> Result<Written> {
        Ok(THERE)
    }

    async fn add_link(&mut self, link: &Link<'_>) -> Result<Written> {
        self.times.push(link.time);
        match self.trouble {
            Trouble::None => Ok(NEW),
            Trouble::Conflict => Err(EngineError::conflict("busy")),
            Trouble::Error => Err(EngineError::failed("commit", "gone")),
            Trouble::CutOff => Err(EngineError::CutOff("server gone")),
            Trouble::Silence => std::future::pending().await,
        }
    }

    async fn update_link(&mut self, _: &Link<'_>) -> Result<Written> {
        Ok(THERE)
    }

    async fn delete_link(&mut self, _: LinkKey, _: u64) -> Result<bool> {
        Ok(true)
    }

    async fn count_links(&mut self, _: u64, _: u64) -> Result<i64> {
        Ok(1)
    }

    async fn get_links(&mut self, _: u64, _: u64, id2s: &[u64], _: VisitLink<'_>) -> Result<u64> {
        Ok(id2s.len() as u64)
    }

    async fn get_links_list(&mut self, query: &ListQuery, visit: VisitLink<'_>) -> Result<u64> {
        self.lists.push(*query);
        let ListQuery { id1, link_type, to_time, limit, .. } = *query;
        let newest = to_time.min(LOADED_AT_MS);
        for id2 in 0..limit {
            let key = LinkKey { link_type, id1, id2 };
            visit(&Link { key, visible: true, version: 0, time: newest - id2 - 1, data: &[] });
        }
        Ok(limit)
    }
}

fn client(pairs: &[(&str, &str)], at: u32) -> Requests<Recorder> {
    client_of(&Tallies::new(0.0), pairs, at)
}

fn client_of(tallies: &Tallies, pairs: &[(&str, &str)], at: u32) -> Requests<Recorder> {
    let value = |text: &str| text.parse().map_or_else(|_| Value::Text(text.to_owned()), Value::Int);
    let config = Config::new(&pairs.iter().map(|(key, text)| (*key, value(text))).collect()).unwrap();
    let at = ClientAddress { host: 0, driver: 0, client: at, clients: 2 };
    let writer = Writer::new(Recorder::default(), tallies.open());
    Requests::new(writer, &config, Arc::new(Graph::new(&config)), at, 12)
}

#[test]
fn the_mix_is_the_published_one() {
    const DRAWS: usize = 500_000;
    for profile in ["2011", "2017"] {
        let mut client = client(&[("profile", profile)], 0);
        let mut counts = [0u64; 10];
        (0..DRAWS).for_each(|_| counts[client.draw().unwrap()] += 1);
        let percents =
            if profile == "2011" { crate::profile::PROFILE_2011.mix } else { crate::profile::PROFILE_2017.mix };
        let chi: f64 = percents
            .iter()
            .zip(counts)
            .map(|(percent, count)| (percent / 100.0 * DRAWS as f64, count as f64))
            .map(|(expected, count)| (count - expected).powi(2) / expected)
            .sum();
        // Nine degrees of freedom: chi-square exceeds 27.9 once in a thousand times.
        assert!(chi < 27.9, "{profile}: {chi} {counts:?}");
    }
}

#[test]
fn history_continues_below_the_oldest_shown_link() {
    let mut client = client(&[("list_limit", "3"), ("getlinklist_history", "30")], 0);
    for _ in 0..20_000 {
        client.draw();
        block_on(client.perform()).unwrap();
    }
    let lists = &client.writer.graph.lists;
    let history: Vec<&ListQuery> = lists.iter().filter(|query| query.offset == 1).collect();
    let share = history.len() as f64 / lists.len() as f64;
    assert!((share - 0.3).abs() < 0.03, "{share}");
    // Every answer ends 3 ms before its start, and the next one begins there.
    assert!(history.iter().all(|query| (LOADED_AT_MS - query.to_time).is_multiple_of(3)));
    assert!(history.iter().any(|query| query.to_time == LOADED_AT_MS - 6), "some list was gone on with twice");
    assert!(lists.iter().filter(|query| query.offset == 0).all(|query| query.to_time == i64::MAX as u64));
}

#[test]
fn new_rows_are_newer_and_have_the_published_size() {
    let mut client = client(&[], 0);
    for _ in 0..100_000 {
        client.draw();
        block_on(client.perform()).unwrap();
    }
    assert!(client.writer.graph.times.windows(2).all(|pair| LOADED_AT_MS < pair[0] && pair[0] < pair[1]));
    let sizes = &mut client.writer.graph.payloads;
    sizes.sort_unstable();
    let median = sizes[sizes.len() / 2];
    assert!((155..182).contains(&median), "{median} of {}", sizes.len());
}

#[test]
fn request_streams_differ_by_client_and_are_repeatable() {
    let stream = |at| {
        let mut client = client(&[], at);
        (0..1000).map(|_| (client.draw(), client.drawn.id1)).collect::<Vec<_>>()
    };
    assert_eq!(stream(0), stream(0));
    assert_ne!(stream(0), stream(1));
}

/// The sums after one add_link that ends in this trouble.
fn sums_after(trouble: Trouble) -> Sums {
    let tallies = Tallies::new(0.0);
    let mut client = client_of(&tallies, &[("max_retries", "2")], 0);
    client.writer.graph.trouble = trouble;
    while client.draw() != Some(Kind::AddLink as OpKind) {}
    {
        let perform = std::pin::pin!(client.perform());
        // As for a stopped client: an operation that has not ended is dropped.
        let _ = perform.poll(&mut std::task::Context::from_waker(std::task::Waker::noop()));
    }
    tallies.sums()
}

#[test]
fn failed_and_unfinished_operations_are_in_doubt() {
    let of = |trouble| {
        let sums = sums_after(trouble);
        (sums.links_added, sums.link_adds_in_doubt, sums.node_adds_in_doubt)
    };
    assert_eq!(of(Trouble::None), (1, 0, 0));
    assert_eq!(of(Trouble::Conflict), (0, 0, 0));
    assert_eq!(of(Trouble::Error), (0, 1, 0));
    assert_eq!(of(Trouble::CutOff), (0, 1, 0));
    assert_eq!(of(Trouble::Silence), (0, 1, 0));
}
