//! The published distributions, by fixed seeds.

use super::*;
use crate::profile::Existing;
use rand::SeedableRng;
use rumba_engine_api::setting::Value;

fn config(pairs: &[(&str, &str)]) -> Config {
    let value = |text: &str| text.parse().map_or_else(|_| Value::Text(text.to_owned()), Value::Int);
    Config::new(&pairs.iter().map(|(key, text)| (*key, value(text))).collect()).unwrap()
}

const BILLION: (&str, &str) = ("maxid1", "1000000001");

fn links_per_id(config: &Config) -> f64 {
    Graph::new(config).totals().0 as f64 / config.ids as f64
}

#[test]
fn as_many_links_are_loaded_per_id_as_published() {
    let loaded = links_per_id(&config(&[("profile", "2011"), BILLION, ("degree_cap", "none")]));
    assert!((4.37..4.41).contains(&loaded), "2011: {loaded}");
    let loaded = links_per_id(&config(&[BILLION, ("degree_cap", "none")]));
    assert!((4.585..4.595).contains(&loaded), "2017: {loaded}");
    // The automatic cap changes nothing at the published size.
    assert_eq!(loaded, links_per_id(&config(&[BILLION])));
}

#[test]
fn uncapped_small_graph_has_one_giant_node() {
    let small = config(&[("maxid1", "100001"), ("degree_cap", "none")]);
    let graph = Graph::new(&small);
    // As loaded by the original: 4.60 million links, 4.18 million of them on one node.
    let links = graph.totals().0 as f64;
    assert!((links / 4.60e6 - 1.0).abs() < 0.005, "{links}");
    assert_eq!(graph.largest(), 4_181_356);
    let capped = Graph::new(&config(&[("maxid1", "100001")]));
    assert_eq!(capped.largest(), 418);
    assert!((3.1..3.3).contains(&(capped.totals().0 as f64 / 1e5)));
}

#[test]
fn totals_and_long_lists_match_a_count_by_id() {
    for profile in ["2011", "2017"] {
        for types in ["1", "2", "3"] {
            let config = config(&[("profile", profile), ("maxid1", "20000"), ("link_type_count", types)]);
            let graph = Graph::new(&config);
            let each = |id| (0..config.link_types).map(move |nth| (id, nth));
            let all: Vec<u64> =
                (config.first..config.end()).flat_map(each).map(|(id, nth)| graph.links(id, nth)).collect();
            let counts = all.iter().filter(|&&links| links > 0).count() as u64;
            assert_eq!(graph.totals(), (all.iter().sum(), counts), "{profile}, {types} types");
            let full = all.iter().filter(|&&links| links >= 20).count() as u64;
            assert_eq!(graph.lists(20), (all.iter().max().copied().unwrap(), full), "{profile}, {types} types");
            assert!(full > 0);
        }
    }
}

#[test]
fn the_published_shares_of_ids_have_no_or_one_link() {
    let share = |profile: &str, links: u64| {
        let config = config(&[("profile", profile), ("maxid1", "100001")]);
        let graph = Graph::new(&config);
        let has = |id: &u64| graph.links(*id, 0) + graph.links(*id, 1) == links;
        (config.first..config.end()).filter(has).count() as f64 / 1e5
    };
    assert!((share("2011", 0) - 0.4533).abs() < 0.001);
    assert!((share("2011", 1) - 0.3213).abs() < 0.001);
    // In 2017 an id of degree one, two or three has one link of each type.
    assert!((share("2017", 2) - 0.9444).abs() < 0.001);
    assert_eq!(share("2017", 0), 0.0);
}

#[test]
fn multigets_request_the_published_number_of_ids() {
    // The mean is 1 / 0.382 from one on. From two on it is one more, by 1 + ceil(ln(1 - r) / ln(1 - p)).
    for (least, expected) in [("1", 2.618), ("2", 3.618)] {
        let config = config(&[("link_multiget_dist_min", least)]);
        let choice = Choice::new(&config);
        let mut random = Random::seed_from_u64(4);
        let sizes: Vec<u64> = (0..200_000).map(|_| choice.multiget_size(&mut random)).collect();
        let mean = sizes.iter().sum::<u64>() as f64 / sizes.len() as f64;
        // The deviation of the mean is 0.0046.
        assert!((mean - expected).abs() < 0.02, "{mean}");
        let least: u64 = least.parse().unwrap();
        assert!(sizes.iter().all(|size| (least..=128).contains(size)));
        let of_least = sizes.iter().filter(|&&size| size == least).count() as f64 / sizes.len() as f64;
        assert!((of_least - 0.382).abs() < 0.005, "{of_least}");
        assert!((Choice::mean_multiget(&config) - expected).abs() < 0.001);
    }
}

#[test]
fn a_multiget_names_each_id_once_and_in_order() {
    for profile in ["2011", "2017"] {
        // Long multigets of ids with few links.
        let config = config(&[("profile", profile), ("maxid1", "50")]);
        let choice = Choice { multiget: Geometric::new(0.02).ok(), ..Choice::new(&config) };
        let graph = Graph::new(&config);
        let (mut random, mut id2s) = (Random::seed_from_u64(4), Vec::new());
        for _ in 0..10_000 {
            let id1 = choice.reads.id(&mut random);
            choice.id2s(&graph, id1, LINK_TYPE, Existing::GET, &mut random, &mut id2s);
            assert!(!id2s.is_empty() && id2s.len() <= MULTIGET_MAX);
            assert!(id2s.windows(2).all(|pair| pair[0] < pair[1]), "{id2s:?}");
        }
    }
}

/// The share of operations whose link was loaded.
fn loaded_share(profile: &str, existing: f64, least_links: u64) -> f64 {
    let config = config(&[("profile", profile), ("maxid1", "1000001")]);
    let (choice, graph) = (Choice::new(&config), Graph::new(&config));
    let mut random = Random::seed_from_u64(8);
    let (mut loaded, mut all) = (0, 0);
    while all < 50_000 {
        let id1 = choice.writes.id(&mut random);
        let links = graph.links(id1, 0);
        if links >= least_links {
            let id2 = choice.id2(&graph, id1, LINK_TYPE, existing, &mut random);
            loaded += u64::from((id1..id1 + links).contains(&id2));
            all += 1;
        }
    }
    loaded as f64 / all as f64
}

#[test]
fn profile_2017_operations_hit_loaded_links_at_their_rate() {
    for existing in [Existing::GET, Existing::UPDATE, Existing::DELETE, Existing::ADD] {
        let share = loaded_share("2017", existing, 0);
        assert!((share - existing).abs() < 0.01, "{existing}: {share}");
    }
}

#[test]
fn in_2011_only_ids_with_many_links_find_them_that_often() {
    // With one link an update's range is two ids wide: half of the updates add.
    let share = loaded_share("2011", Existing::UPDATE, 1);
    assert!((0.5..0.8).contains(&share), "{share}");
    let share = loaded_share("2011", Existing::UPDATE, 30);
    assert!((share - 0.9).abs() < 0.02, "{share}");
    let share = loaded_share("2011", Existing::ADD, 1);
    assert!((share - 0.05).abs() < 0.01, "{share}");
}

/// The mean number of links of the ids that are read.
fn links_of_reads(blend: &str) -> f64 {
    let config = config(&[("maxid1", "1000001"), ("read_uncorr_blend", blend)]);
    let (choice, graph) = (Choice::new(&config), Graph::new(&config));
    let mut random = Random::seed_from_u64(2);
    let links = (0..200_000).map(|_| graph.links(choice.reads.id(&mut random), 0));
    links.sum::<u64>() as f64 / 200_000.0
}

#[test]
fn link_reads_are_blended_of_correlated_and_uncorrelated_ones() {
    let (correlated, uncorrelated) = (links_of_reads("0"), links_of_reads("100"));
    assert!(correlated > 20.0 * uncorrelated, "{correlated} {uncorrelated}");
    let expected = 0.1 * correlated + 0.9 * uncorrelated;
    let blended = links_of_reads("90");
    assert!((blended / expected - 1.0).abs() < 0.1, "{blended} {expected}");
}

/// The mean number of links of the lists (an id and a type) that are written.
fn links_of_writes(settings: &[(&str, Value)]) -> f64 {
    let ids = ("maxid1", Value::Int(1_200_001));
    let config = Config::new(&settings.iter().cloned().chain([ids]).collect()).unwrap();
    let (choice, graph) = (Choice::new(&config), Graph::new(&config));
    let mut random = Random::seed_from_u64(2);
    let links = (0..200_000).map(|_| graph.links(choice.writes.id(&mut random), 0));
    links.sum::<u64>() as f64 / 200_000.0
}

/// Both originals read the settings for uncorrelated writes under the names of those for reads.
#[test]
fn link_writes_follow_the_configuration_or_the_original() {
    let configured = links_of_writes(&[]);
    let drawn = links_of_writes(&[("write_shape", Value::Float(0.8)), ("write_uncorr_blend", Value::Float(99.5))]);
    // By the laws 12.9 and 3.6; the deviations of these means are 0.34 and 0.15.
    assert!((11.2..14.6).contains(&configured), "{configured}");
    assert!((2.9..4.4).contains(&drawn), "{drawn}");
}

#[test]
fn deletes_are_uniform_so_that_the_hottest_nodes_live_on() {
    let config = config(&[("maxid1", "1001")]);
    let choice = Choice::new(&config);
    let mut random = Random::seed_from_u64(6);
    let mut counts = [0u32; 1000];
    (0..100_000).for_each(|_| counts[(choice.node_deletes.id(&mut random) - 1) as usize] += 1);
    let chi: f64 = counts.iter().map(|&count| (f64::from(count) - 100.0).powi(2) / 100.0).sum();
    // 999 degrees of freedom, as in the tests of Zipf's law.
    assert!(chi < 1150.0, "{chi}");
}
