use std::collections::BTreeMap;

use rand::SeedableRng;
use rumba_engine_api::setting::Value;

use super::*;
use crate::keys::scattered;
use crate::requests::hottest;
use crate::zipf::zeta;

const DRAWS: u32 = 400_000;

fn choice(pairs: &[(&str, Value)], inserted: u64) -> Choice {
    let config = Config::new(&pairs.iter().cloned().collect()).unwrap();
    let there = Arc::new(Inserted::new(config.records));
    (0..inserted).for_each(|_| there.end(there.claim()));
    Choice::new(&config, there)
}

fn of(name: &str, records: i64) -> Vec<(&str, Value)> {
    vec![("requestdistribution", Value::Text(name.to_owned())), ("recordcount", Value::Int(records))]
}

fn counts(choice: &mut Choice) -> BTreeMap<u64, u32> {
    let mut random = Random::seed_from_u64(11);
    let mut counts = BTreeMap::new();
    (0..DRAWS).for_each(|_| *counts.entry(choice.record(&mut random)).or_default() += 1);
    counts
}

/// The chi-square statistic against expected shares, over classes of which each is expected some times.
fn statistic(counts: &BTreeMap<u64, u32>, expected: &BTreeMap<u64, f64>) -> f64 {
    assert!(counts.keys().all(|number| expected.contains_key(number)));
    let one = |(number, expected): (&u64, &f64)| {
        let (seen, expected) = (f64::from(*counts.get(number).unwrap_or(&0)), expected * f64::from(DRAWS));
        (seen - expected).powi(2) / expected
    };
    expected.iter().map(one).sum()
}

/// Whether a share of the draws is as expected; it exceeds four deviations once in 16,000 times.
fn is_share(seen: u32, expected: f64) {
    let deviation = (expected * (1.0 - expected) / f64::from(DRAWS)).sqrt();
    let seen = f64::from(seen) / f64::from(DRAWS);
    assert!((seen - expected).abs() <= 4.0 * deviation, "{seen}, {expected} expected, deviation {deviation}");
}

#[test]
fn uniform_requests_go_to_all_loaded_records_alike() {
    let counts = counts(&mut choice(&of("uniform", 100), 50));
    let expected = (0..100).map(|number| (number, 0.01)).collect();
    // With 99 degrees of freedom, the statistic exceeds 149 once in a thousand times.
    assert!(statistic(&counts, &expected) < 149.0);
}

/// The share of each record is the sum of the shares of the ranks that are scattered to it. Those of the first million
/// ranks are added one by one. The others are so many that all records share them equally.
#[test]
fn zipfian_request_ranks_follow_the_law_and_are_scattered() {
    const RECORDS: u64 = 1000;
    // YCSB scatters over one more number, which does not exist and is drawn again.
    const NUMBERS: u64 = RECORDS + 1;
    const KNOWN: u64 = 1_000_000;
    let counts = counts(&mut choice(&of("zipfian", RECORDS as i64), 0));
    let zipf = Zipf::scrambled();
    let mut expected: BTreeMap<u64, f64> = (0..NUMBERS).map(|number| (number, 0.0)).collect();
    let mut rest = 1.0;
    for rank in 0..KNOWN {
        let share = zipf.share_of(rank);
        *expected.get_mut(&(scattered(rank) % NUMBERS)).unwrap() += share;
        rest -= share;
    }
    expected.values_mut().for_each(|share| *share += rest / NUMBERS as f64);
    let again = expected.remove(&RECORDS).unwrap();
    expected.values_mut().for_each(|share| *share /= 1.0 - again);
    // With 999 degrees of freedom, the statistic exceeds 1143 once in a thousand times.
    let statistic = statistic(&counts, &expected);
    assert!(statistic < 1143.0, "{statistic}");
    // The hottest record has the share of the law, for any number of records.
    let hottest = f64::from(counts[&(scattered(0) % NUMBERS)]) / f64::from(DRAWS);
    assert!(hottest > 1.0 / crate::zipf::SCRAMBLED_ZETA, "{hottest}");
}

/// The records watched for lost updates are the most requested ones, for a million records as well as for few.
#[test]
fn the_hottest_records_are_those_that_are_drawn_most_often() {
    const RECORDS: u64 = 1_000_000;
    let counts = counts(&mut choice(&of("zipfian", RECORDS as i64), 0));
    let hot: std::collections::BTreeSet<u64> = hottest(Requests::Zipfian { range: RECORDS }, 128).collect();
    let zipf = Zipf::scrambled();
    let law: f64 = (0..128).map(|rank| zipf.share_of(rank)).sum();
    let seen: u32 = hot.iter().filter_map(|number| counts.get(number)).sum();
    let seen = f64::from(seen) / f64::from(DRAWS);
    assert!(law > 0.15 && (seen - law).abs() < 0.01, "{seen}, {law} by the law");
}

#[test]
fn zipfian_requests_reach_new_records_but_no_missing_ones() {
    let inserts = [("profile", Value::Text("e".to_owned())), ("recordcount", Value::Int(1000))];
    let none = counts(&mut choice(&inserts, 0));
    assert_eq!(none.keys().next_back(), Some(&999));
    let some = counts(&mut choice(&inserts, 50));
    assert_eq!(some.keys().next_back(), Some(&1049));
    // Twice the inserts of a thousand operations are expected, and no more.
    let all = counts(&mut choice(&inserts, 500));
    assert_eq!(all.keys().next_back(), Some(&1100));
}

#[test]
fn latest_requests_follow_the_age_of_records() {
    let counts = counts(&mut choice(&of("latest", 10_000), 40));
    assert_eq!(counts.keys().next_back(), Some(&10_039));
    let sum = zeta(10_040);
    is_share(counts[&10_039], 1.0 / sum);
    is_share(counts[&10_038], 0.5_f64.powf(crate::zipf::CONSTANT) / sum);
    let newest: u32 = counts.range(10_040 - 1000..).map(|(_, count)| count).sum();
    let seen = f64::from(newest) / f64::from(DRAWS);
    assert!((seen - zeta(1000) / sum).abs() < 0.01, "{seen}, {} by the law", zeta(1000) / sum);
}

#[test]
fn a_hot_spot_has_its_share_of_requests() {
    let counts = counts(&mut choice(&of("hotspot", 1000), 0));
    is_share(counts.range(..200).map(|(_, count)| count).sum(), 0.8);
    let hot = (0..200).map(|number| (number, 0.8 / 200.0));
    let expected = hot.chain((200..1000).map(|number| (number, 0.2 / 800.0))).collect();
    // With 999 degrees of freedom, the statistic exceeds 1143 once in a thousand times.
    assert!(statistic(&counts, &expected) < 1143.0);
    for (fraction, first, last) in [(0.0, 0, 999), (1.0, 0, 999)] {
        let mut pairs = of("hotspot", 1000);
        pairs.push(("hotspotdatafraction", Value::Float(fraction)));
        let counts = self::counts(&mut choice(&pairs, 0));
        assert_eq!((counts.keys().next(), counts.keys().next_back()), (Some(&first), Some(&last)), "{fraction}");
    }
}

#[test]
fn sequential_requests_take_turns_among_the_clients_that_work() {
    let config = Config::new(&of("sequential", 8).into_iter().collect()).unwrap();
    let there = Arc::new(Inserted::new(config.records));
    let [mut one, mut two] = [(); 2].map(|()| Choice::new(&config, there.clone()));
    let mut random = Random::seed_from_u64(1);
    let drawn: Vec<u64> =
        (0..10).map(|turn| if turn % 3 == 0 { &mut two } else { &mut one }.record(&mut random)).collect();
    assert_eq!(drawn, [0, 1, 2, 3, 4, 5, 6, 7, 0, 1]);
}

#[test]
fn exponential_requests_have_their_percentile_among_the_newest() {
    let mut pairs = of("exponential", 7000);
    pairs.push(("exponential_frac", Value::Float(1.0 / 7.0)));
    let counts = counts(&mut choice(&pairs, 0));
    // An age beyond the first record is drawn again: e^(-7 * ln 20) of all, a part in 10^9.
    is_share(counts.range(6000..).map(|(_, count)| count).sum(), 0.95);
}

#[test]
fn scan_lengths_are_uniform_or_mostly_short() {
    let lengths = |distribution: &str| {
        let choice = choice(
            &[
                ("profile", Value::Text("e".to_owned())),
                ("scanlengthdistribution", Value::Text(distribution.to_owned())),
            ],
            0,
        );
        let mut random = Random::seed_from_u64(3);
        let mut counts: BTreeMap<u64, u32> = BTreeMap::new();
        (0..DRAWS).for_each(|_| *counts.entry(choice.scan_length(&mut random)).or_default() += 1);
        counts
    };
    let expected = (1..=100).map(|length| (length, 0.01)).collect();
    assert!(statistic(&lengths("uniform"), &expected) < 149.0);
    let zipfian = lengths("zipfian");
    assert_eq!((zipfian.keys().next(), zipfian.keys().next_back()), (Some(&1), Some(&100)));
    is_share(zipfian[&1], 1.0 / zeta(100));
}
