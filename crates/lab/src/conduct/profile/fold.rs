//! Folds the output of `perf script` into stacks: `thread;outermost;…;innermost COUNT`, one line each.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{self, BufRead};

/// The longest function name, characters. Longer names are templates that are not readable anyway.
const LONGEST: usize = 160;
/// The number of stacks that are kept, the most frequent; the others are `(rest)`.
const MOST: usize = 4000;

/// Folds the output of perf: for each sample the thread's name, its frames with the innermost first, and an empty line.
pub fn fold(from: impl BufRead) -> io::Result<BTreeMap<String, u64>> {
    let mut stacks: BTreeMap<String, u64> = BTreeMap::new();
    let mut thread = None;
    let mut frames: Vec<String> = Vec::new();
    for line in from.split(b'\n') {
        let line = line?;
        let line = String::from_utf8_lossy(&line);
        if line.trim().is_empty() {
            end(&mut thread, &mut frames, &mut stacks);
        } else if line.starts_with(char::is_whitespace) {
            frames.push(frame(line.trim()));
        } else {
            end(&mut thread, &mut frames, &mut stacks);
            thread = Some(clean(line.trim()));
        }
    }
    end(&mut thread, &mut frames, &mut stacks);
    Ok(commonest(stacks))
}

/// Ends a sample.
fn end(thread: &mut Option<String>, frames: &mut Vec<String>, stacks: &mut BTreeMap<String, u64>) {
    let Some(thread) = thread.take() else { return frames.clear() };
    // Adjacent unknown frames become one.
    frames.dedup_by(|one, other| one == other && one == UNKNOWN);
    let stack = std::iter::once(thread).chain(frames.drain(..).rev()).collect::<Vec<_>>().join(";");
    *stacks.entry(stack).or_default() += 1;
}

const UNKNOWN: &str = "[unknown]";

/// The name in `7b24e hash_search`.
fn frame(line: &str) -> String {
    line.split_once(' ').map_or_else(|| UNKNOWN.to_owned(), |(_, name)| clean(name.trim()))
}

fn clean(name: &str) -> String {
    // `::h0123456789abcdef` of a Rust name says nothing, and is another in every build.
    let name = match name.rsplit_once("::h") {
        Some((name, hash)) if hash.len() == 16 && hash.bytes().all(|byte| byte.is_ascii_hexdigit()) => name,
        _ => name,
    };
    name.chars().take(LONGEST).map(|c| if c == ';' || c.is_control() { ':' } else { c }).collect()
}

fn commonest(stacks: BTreeMap<String, u64>) -> BTreeMap<String, u64> {
    if stacks.len() <= MOST {
        return stacks;
    }
    let mut all: Vec<(String, u64)> = stacks.into_iter().collect();
    all.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let rest: u64 = all.drain(MOST..).map(|(_, count)| count).sum();
    all.into_iter().chain([("(rest)".to_owned(), rest)]).collect()
}

/// The stacks as a file has them.
pub fn text(stacks: &BTreeMap<String, u64>) -> String {
    stacks.iter().fold(String::new(), |mut text, (stack, count)| {
        // Writing into a String cannot fail.
        let _ = writeln!(text, "{stack} {count}");
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_become_stacks_from_the_outermost_frame() {
        let printed = "mysqld \n\t    7b24e [unknown]\n\t    4fb60 [unknown]\n\t  50601 std::map<int, a; b>::find\n\t 31770 main\n\n\
                       mysqld \n\t    7b24e [unknown]\n\t  50601 std::map<int, a; b>::find\n\t 31770 main\n\n\
                       rumba\n\t   1 core::ops::call::h0123456789abcdef\n\nidle \n\n";
        let stacks = fold(printed.as_bytes()).unwrap();
        assert_eq!(
            text(&stacks),
            "idle 1\nmysqld;main;std::map<int, a: b>::find;[unknown] 2\nrumba;core::ops::call 1\n"
        );
    }

    #[test]
    fn what_is_cut_off_or_no_text_is_read_as_far_as_it_goes() {
        assert_eq!(text(&fold(&b"\t 1 lost\n\nworker\n\t 2 f\xff\n"[..]).unwrap()), "worker;f\u{fffd} 1\n");
    }

    #[test]
    fn of_too_many_stacks_the_commonest_stay_and_none_is_lost() {
        let stacks: BTreeMap<String, u64> = (0..MOST as u64 + 100).map(|n| (format!("{n:05}"), n + 1)).collect();
        let (all, kept) = (stacks.values().sum::<u64>(), commonest(stacks));
        assert_eq!((kept.len(), kept.values().sum::<u64>()), (MOST + 1, all));
        assert_eq!(kept["(rest)"], (1..=100).sum::<u64>());
    }
}
