//! Lists the damaged lines of a file as text, in bounded memory.

use std::fmt;

/// The number of runs of lines that are named.
const NAMED_RUNS: usize = 8;

/// Ascending line numbers: `lines 3, 7 to 9`.
#[derive(Default)]
pub(super) struct Damaged {
    /// The first and the last line of each named run.
    runs: Vec<(usize, usize)>,
    lines: usize,
    last: usize,
    /// Whether the current run is named.
    is_named: bool,
}

impl Damaged {
    pub fn add(&mut self, line: usize) {
        let goes_on = self.lines > 0 && self.last + 1 == line;
        (self.lines, self.last) = (self.lines + 1, line);
        if !goes_on {
            self.is_named = self.runs.len() < NAMED_RUNS;
            if self.is_named {
                self.runs.push((line, line));
            }
        } else if self.is_named
            && let Some(run) = self.runs.last_mut()
        {
            run.1 = line;
        }
    }

    /// Whether there are no lines.
    pub fn is_empty(&self) -> bool {
        self.lines == 0
    }
}

impl fmt::Display for Damaged {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.lines == 1 { "line" } else { "lines" })?;
        for (place, (first, last)) in self.runs.iter().enumerate() {
            let before = if place == 0 { " " } else { ", " };
            match first == last {
                true => write!(f, "{before}{first}")?,
                false => write!(f, "{before}{first} to {last}")?,
            }
        }
        let named: usize = self.runs.iter().map(|(first, last)| last - first + 1).sum();
        match self.lines - named {
            0 => Ok(()),
            rest => write!(f, " and {rest} more"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_are_named_and_from_the_ninth_on_counted() {
        let words = |lines: &mut dyn Iterator<Item = usize>| {
            let mut damaged = Damaged::default();
            lines.for_each(|line| damaged.add(line));
            damaged.to_string()
        };
        assert_eq!(words(&mut [3].into_iter()), "line 3");
        assert_eq!(words(&mut [2, 4, 5, 6].into_iter()), "lines 2, 4 to 6");
        let many = words(&mut (1..=10).map(|line| 2 * line).chain([21]));
        assert_eq!(many, "lines 2, 4, 6, 8, 10, 12, 14, 16 and 3 more");
    }
}
