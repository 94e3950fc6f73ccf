//! The five questions, the required answers, and the description of a miss.

use std::fmt;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;

/// A question to answer after each case.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Question {
    /// The user's view of the fault.
    Seen,
    /// The exit code.
    Exit,
    /// The results that were kept.
    Kept,
    /// The leftovers.
    Left,
    /// Whether the next run works.
    Next,
}

impl fmt::Display for Question {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Question::Seen => "what the user saw",
            Question::Exit => "the exit code",
            Question::Kept => "what was kept",
            Question::Left => "what was left",
            Question::Next => "whether the next run works",
        })
    }
}

/// An answer that is not as it must be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Miss {
    /// To which question.
    pub question: Question,
    /// The required answer and the actual one.
    pub what: String,
}

impl Miss {
    /// A miss.
    pub fn new(question: Question, what: impl Into<String>) -> Self {
        Self { question, what: what.into() }
    }
}

impl fmt::Display for Miss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.question, self.what)
    }
}

/// How a process ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// With this code.
    Code(i32),
    /// By this signal.
    Signal(i32),
}

impl Exit {
    /// How a process ended.
    pub fn of(status: ExitStatus) -> Option<Self> {
        status.code().map(Exit::Code).or_else(|| status.signal().map(Exit::Signal))
    }
}

impl fmt::Display for Exit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Exit::Code(code) => write!(f, "exit code {code}"),
            Exit::Signal(signal) => write!(f, "signal {signal}"),
        }
    }
}

/// The results that must be kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequiredResults {
    /// Everything planned: every phase, and each loop with its planned length or a mark if it deviates.
    All,
    /// Everything planned, and the trial is marked as suspended.
    Marked,
    /// Every phase that was reported as ended, and every interval that was written; at most one later measured interval
    /// is missing. The trial has one of these states.
    Until(&'static [&'static str]),
    /// No phase of a trial, because no trial ran.
    Nothing,
    /// The results were lost with their directory.
    Gone,
    /// Everything if the run ended well, and no phase if it was refused.
    AllOrNothing,
}

/// The leftovers that are allowed after the run has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AllowedLeftovers {
    /// No process, data directory, mount, loop device, control group or entry of the ledger stays, and a server of the
    /// user is unchanged.
    Nothing,
    /// No process. `rumba doctor` finds every other leftover; `doctor --clean` or the next run removes all of them.
    Listed,
    /// The same, but the owner of a leftover is unknown: `rumba doctor` names it, and its user removes it.
    Named,
}

/// The behaviour of the next run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// It runs to its end, and leaves nothing.
    Runs,
    /// It completes once its user has fixed the cause, for example by freeing space or restarting the server.
    RunsOnceMended,
}

/// The answers to the five questions.
#[derive(Clone, Copy, Debug)]
pub struct Answers {
    /// The words that the user sees, in rumba's output or later in that of `report` and `doctor`: at least one word of
    /// each group.
    pub seen: &'static [&'static [&'static str]],
    /// The allowed exits of rumba.
    pub exit: &'static [Exit],
    /// The results that are kept.
    pub kept: RequiredResults,
    /// The leftovers.
    pub left: AllowedLeftovers,
    /// The behaviour of the next run.
    pub next: Next,
}

impl Answers {
    /// Whether the user saw the required words.
    pub fn judge_seen(&self, said: &str) -> Vec<Miss> {
        let lacking = self.seen.iter().filter(|group| !group.iter().any(|words| says(said, words)));
        let miss = |group: &&[&str]| {
            let words = group.iter().map(|words| format!("`{words}`")).collect::<Vec<_>>().join(" or ");
            Miss::new(Question::Seen, format!("nothing says {words}"))
        };
        lacking.map(miss).collect()
    }

    /// Whether rumba ended as it must.
    pub fn judge_exit(&self, status: Option<ExitStatus>) -> Vec<Miss> {
        let ways = self.exit.iter().map(ToString::to_string).collect::<Vec<_>>().join(" or ");
        match status.and_then(Exit::of) {
            Some(exit) if self.exit.contains(&exit) => Vec::new(),
            Some(exit) => vec![Miss::new(Question::Exit, format!("{exit} instead of {ways}"))],
            None => vec![Miss::new(Question::Exit, format!("it did not end, instead of {ways}"))],
        }
    }
}

/// Whether a text contains these words, even if a long line was broken and framed.
pub fn says(text: &str, words: &str) -> bool {
    let squeezed = |text: &str| text.chars().filter(|c| !c.is_whitespace() && *c != '│').collect::<String>();
    squeezed(text).contains(&squeezed(words))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ANSWERS: Answers = Answers {
        seen: &[&["full", "no room"], &["FAILED"]],
        exit: &[Exit::Code(1), Exit::Signal(9)],
        kept: RequiredResults::Nothing,
        left: AllowedLeftovers::Nothing,
        next: Next::Runs,
    };

    #[test]
    fn each_group_needs_one_matching_answer() {
        assert!(ANSWERS.judge_seen("FAILED in load: the device is full").is_empty());
        assert!(ANSWERS.judge_seen("FAILED: there is\n  │ no\n  │ room").is_empty());
        let misses = ANSWERS.judge_seen("there is no room");
        assert_eq!(misses, [Miss::new(Question::Seen, "nothing says `FAILED`")]);
        assert_eq!(ANSWERS.judge_seen("").len(), 2);
    }

    #[test]
    fn each_end_is_one_of_the_named_ones() {
        // As in wait(2): the code in the second byte, the signal in the first.
        let ended = |raw| ANSWERS.judge_exit(Some(ExitStatus::from_raw(raw)));
        assert!(ended(1 << 8).is_empty() && ended(9).is_empty());
        assert_eq!(ended(0)[0].what, "exit code 0 instead of exit code 1 or signal 9");
        assert_eq!(ANSWERS.judge_exit(None)[0].question, Question::Exit);
    }
}
