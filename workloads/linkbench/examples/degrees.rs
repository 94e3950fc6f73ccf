//! Makes a degree table of `data/` from a published `Distribution.dat`:
//! `cargo run --example degrees -- "where it is from" < Distribution.dat > data/degrees-2017.txt`
//!
//! It keeps every point up to 256 links per id. Above that it merges neighbours within one percent of each other into
//! their mean, so that the mean degree stays and the table fits the first-level cache. The largest degree is not
//! changed.

use std::io::Read;

const EXACT_UP_TO: f64 = 256.0;
const MERGE_WITHIN: f64 = 1.01;

struct Group {
    first: f64,
    links: f64,
    percent: f64,
    upto: f64,
}

fn main() -> std::io::Result<()> {
    let source = std::env::args().nth(1).unwrap_or_default();
    let mut text = String::new();
    std::io::stdin().read_to_string(&mut text)?;
    let numbers: Vec<f64> = text.split_whitespace().skip(1).map_while(|word| word.parse().ok()).collect();
    let points: Vec<(f64, f64)> = numbers.chunks_exact(2).map(|pair| (pair[0], pair[1])).collect();
    let largest = points.last().map_or(0.0, |point| point.0);

    let mut groups: Vec<Group> = Vec::new();
    let mut before = 0.0;
    for (links, upto) in points {
        let percent = upto - before;
        before = upto;
        match groups.last_mut() {
            Some(group) if links > EXACT_UP_TO && links < group.first * MERGE_WITHIN && links < largest => {
                group.links += links * percent;
                group.percent += percent;
                group.upto = upto;
            }
            _ => groups.push(Group { first: links, links: links * percent, percent, upto }),
        }
    }
    println!("# Out-degree of the ids: links, percent of ids with at most so many.");
    println!("# Source: {source}");
    println!("# Points above {EXACT_UP_TO} links that lie within 1% of each other are merged into their mean.");
    for group in groups {
        println!("{} {}", (group.links / group.percent).round(), group.upto);
    }
    Ok(())
}
