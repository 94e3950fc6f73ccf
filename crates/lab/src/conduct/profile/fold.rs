//! Folds the output of `perf script` into stacks: `thread;outermost;…;innermost COUNT`, one line each.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::io::{self, BufRead};

/// The longest function name, characters. Longer names are templates that are not readable anyway.
const LONGEST: usize = 160;
/// The number of stacks that are kept, the most frequent; the others are `(rest)`.
const MOST: usize = 4000;

/// Samples by their stacks, and those with unnamed functions.
#[derive(Debug, Default)]
pub struct Folded {
    /// The number of samples of each stack.
    pub stacks: BTreeMap<String, u64>,
    pub samples: u64,
    /// The number of samples with a function that has no name, by the file of the function.
    pub unnamed: BTreeMap<String, u64>,
}

/// Folds the output of perf: for each sample the thread's name, its frames with the innermost first, and an empty line.
pub fn fold(from: impl BufRead) -> io::Result<Folded> {
    let mut folded = Folded::default();
    let mut thread = None;
    let mut frames: Vec<Frame> = Vec::new();
    for line in from.split(b'\n') {
        let line = line?;
        let line = String::from_utf8_lossy(&line);
        if line.trim().is_empty() {
            folded.add(&mut thread, &mut frames);
        } else if line.starts_with(char::is_whitespace) {
            frames.push(frame(line.trim()));
        } else {
            folded.add(&mut thread, &mut frames);
            thread = Some(clean(line.trim()));
        }
    }
    folded.add(&mut thread, &mut frames);
    folded.stacks = commonest(folded.stacks);
    Ok(folded)
}

/// A function of a stack.
#[derive(PartialEq)]
enum Frame {
    Named(String),
    /// The file that contains it, if known.
    Unnamed(Option<String>),
}

impl Folded {
    /// Ends a sample.
    fn add(&mut self, thread: &mut Option<String>, frames: &mut Vec<Frame>) {
        let Some(thread) = thread.take() else { return frames.clear() };
        let unnamed =
            frames.iter().filter_map(|frame| if let Frame::Unnamed(file) = frame { file.clone() } else { None });
        for file in unnamed.collect::<BTreeSet<String>>() {
            *self.unnamed.entry(file).or_default() += 1;
        }
        // Adjacent unnamed functions of a file become one.
        frames.dedup_by(|one, other| one == other && matches!(one, Frame::Unnamed(_)));
        let names = frames.drain(..).rev().map(|frame| match frame {
            Frame::Named(name) => name,
            Frame::Unnamed(Some(file)) => format!("[{}]", clean(file.rsplit('/').next().unwrap_or_default())),
            Frame::Unnamed(None) => UNKNOWN.to_owned(),
        });
        let stack = std::iter::once(thread).chain(names).collect::<Vec<_>>().join(";");
        *self.stacks.entry(stack).or_default() += 1;
        self.samples += 1;
    }
}

const UNKNOWN: &str = "[unknown]";

/// The function in `7b24e hash_search (/usr/bin/postgres)`.
fn frame(line: &str) -> Frame {
    let rest = line.split_once(' ').map_or("", |(_, rest)| rest.trim());
    let (name, file) = match rest.rsplit_once(" (") {
        Some((name, file)) => (name, file.strip_suffix(')')),
        None => (rest, None),
    };
    match name {
        "" | UNKNOWN => {
            Frame::Unnamed(file.filter(|file| file.starts_with('/') && !file.starts_with("//")).map(str::to_owned))
        }
        name => Frame::Named(clean(name)),
    }
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
        let stack = "\t  50601 std::map<int, a; b>::find (/usr/sbin/mysqld)\n\t 31770 main (/usr/sbin/mysqld)\n\n";
        let printed = format!(
            "mysqld \n\t    7b24e [unknown] ([unknown])\n\t    4fb60 [unknown] (//anon)\n{stack}\
             mysqld \n\t    7b24e [unknown] ([vdso])\n{stack}\
             rumba\n\t   1 core::ops::call::h0123456789abcdef (/usr/bin/rumba)\n\nidle \n\n"
        );
        let folded = fold(printed.as_bytes()).unwrap();
        assert_eq!(
            text(&folded.stacks),
            "idle 1\nmysqld;main;std::map<int, a: b>::find;[unknown] 2\nrumba;core::ops::call 1\n"
        );
        assert!(folded.unnamed.is_empty(), "no file could give them a name: {:?}", folded.unnamed);
    }

    #[test]
    fn unnamed_functions_take_the_name_of_their_file() {
        let unnamed = "\t    e17e [unknown] (/usr/bin/dash)\n";
        let libc = "\t   96131 _int_free (/usr/lib/x86_64-linux-gnu/libc.so.6)\n";
        let printed = format!("sh \n{libc}{unnamed}{unnamed}{libc}{unnamed}\nsh \n{unnamed}\nsh \n{libc}\n");
        let folded = fold(printed.as_bytes()).unwrap();
        assert_eq!(text(&folded.stacks), "sh;[dash] 1\nsh;[dash];_int_free;[dash];_int_free 1\nsh;_int_free 1\n");
        assert_eq!((folded.samples, folded.unnamed), (3, BTreeMap::from([("/usr/bin/dash".to_owned(), 2)])));
    }

    #[test]
    fn truncated_or_binary_profile_is_read_partially() {
        let folded = fold(&b"\t 1 lost\n\nworker\n\t 2 f\xff\n"[..]).unwrap();
        assert_eq!(text(&folded.stacks), "worker;f\u{fffd} 1\n");
    }

    #[test]
    fn most_frequent_stacks_stay_and_the_rest_is_summed() {
        let stacks: BTreeMap<String, u64> = (0..MOST as u64 + 100).map(|n| (format!("{n:05}"), n + 1)).collect();
        let (all, kept) = (stacks.values().sum::<u64>(), commonest(stacks));
        assert_eq!((kept.len(), kept.values().sum::<u64>()), (MOST + 1, all));
        assert_eq!(kept["(rest)"], (1..=100).sum::<u64>());
    }
}
