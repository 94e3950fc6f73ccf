//! How lines are logged: by rank, with a prefix, and not twice in a row.

/// The importance of a line, from lines that are always printed to lines printed with `--debug`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Rank {
    /// The end.
    Fatal,
    /// Something that has to be done.
    Alert,
    /// Something that is likely not meant.
    Warning,
    /// Reports. This is sysbench's default verbosity.
    Notice,
    /// Information.
    Info,
    /// Step-by-step details.
    Debug,
}

impl Rank {
    /// By the number of `--verbosity`.
    pub fn of(verbosity: u8) -> Option<Self> {
        [Rank::Fatal, Rank::Alert, Rank::Warning, Rank::Notice, Rank::Info, Rank::Debug]
            .get(usize::from(verbosity))
            .copied()
    }

    /// The beginning of a line.
    pub fn prefix(self) -> &'static str {
        match self {
            Rank::Fatal => "FATAL: ",
            Rank::Alert => "ALERT: ",
            Rank::Warning => "WARNING: ",
            Rank::Notice | Rank::Info => "",
            Rank::Debug => "DEBUG: ",
        }
    }
}

/// The printed lines, so that repeats are not printed again.
#[derive(Clone, Debug)]
pub struct Log {
    verbosity: Rank,
    last: String,
    repeats: u32,
}

impl Log {
    /// Prints all lines of at least this importance.
    pub fn new(verbosity: Rank) -> Self {
        Self { verbosity, last: String::new(), repeats: 0 }
    }

    /// Whether lines of this importance are printed.
    pub fn reports(&self, rank: Rank) -> bool {
        rank <= self.verbosity
    }

    /// The text to print for a message, line end included. It is empty if the message is not important enough, or
    /// repeats the last one. Equal errors of a thousand threads are therefore one line, and their number.
    pub fn line(&mut self, rank: Rank, text: &str) -> String {
        if !self.reports(rank) {
            return String::new();
        }
        if text == self.last && !text.is_empty() {
            self.repeats += 1;
            return String::new();
        }
        let repeated = self.repeated();
        text.clone_into(&mut self.last);
        format!("{repeated}{}{text}\n", rank.prefix())
    }

    /// The text to print for a report, whose lines are never repeats. sysbench takes the empty line between two reports
    /// for a repeat, and says so.
    pub fn report(&mut self, text: &str) -> String {
        if !self.reports(Rank::Notice) {
            return String::new();
        }
        let repeated = self.repeated();
        self.last.clear();
        format!("{repeated}{text}")
    }

    fn repeated(&mut self) -> String {
        match std::mem::take(&mut self.repeats) {
            0 => String::new(),
            times => format!("(last message repeated {times} times)\n"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_below_the_verbosity_are_not_printed() {
        let mut log = Log::new(Rank::Warning);
        assert_eq!(log.line(Rank::Notice, "done"), "");
        assert_eq!(log.report("Throughput:\n"), "");
        assert_eq!(log.line(Rank::Warning, "hm"), "WARNING: hm\n");
        assert_eq!(log.line(Rank::Fatal, "no"), "FATAL: no\n");
        assert!(log.reports(Rank::Warning) && !log.reports(Rank::Notice));
        assert_eq!(Rank::of(3), Some(Rank::Notice));
        assert_eq!(Rank::of(6), None);
    }

    #[test]
    fn repeated_lines_are_counted() {
        let mut log = Log::new(Rank::Debug);
        assert_eq!(log.line(Rank::Alert, "lost"), "ALERT: lost\n");
        assert_eq!(log.line(Rank::Alert, "lost"), "");
        assert_eq!(log.line(Rank::Alert, "lost"), "");
        assert_eq!(log.line(Rank::Debug, "next"), "(last message repeated 2 times)\nDEBUG: next\n");
        assert_eq!(log.report("\n"), "\n");
        assert_eq!(log.report("\n"), "\n");
    }
}
