//! The five questions, what the answers must be, and what a miss is.

use std::fmt;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;

/// A question that is asked after each case.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Question {
    /// What did the user see?
    Seen,
    /// What was the exit code?
    Exit,
    /// What was kept?
    Kept,
    /// What was left?
    Left,
    /// Does the next run work?
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
    /// What it must be, and what it was.
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

/// What must be kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequiredResults {
    /// All that was planned: every phase, and each loop as long as it was to be, or marked where it was not.
    All,
    /// All that was planned, and the trial is marked as suspended.
    Marked,
    /// Every phase that was told to have ended, every second that was written, and of what was measured then at most
    /// one interval is missing. The trial stands as one of these.
    Until(&'static [&'static str]),
    /// No phase of a trial: nothing was run.
    Nothing,
    /// It went with the directory that held it.
    Gone,
    /// All where the run ended well, nothing where it was refused.
    AllOrNothing,
}

/// What may be left when the run has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AllowedLeftovers {
    /// Nothing: no process, data directory, mount, loop device, control group or entry of the ledger, and a server of
    /// the user's is as it was.
    Nothing,
    /// No process. Whatever else there is, `rumba doctor` finds; `doctor --clean` or the next run removes all of it.
    Listed,
    /// The same, but nobody can tell any more whose it is: `rumba doctor` names it, and its user removes it.
    Named,
}

/// What the next run does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// It runs to its end, and leaves nothing.
    Runs,
    /// It does so once its user has put right what was wrong: made room, started the server again.
    RunsOnceMended,
}

/// The answers to the five questions.
#[derive(Clone, Copy, Debug)]
pub struct Answers {
    /// What the user sees, in what rumba prints then, or in what `report` and `doctor` say later: of each group of
    /// words one.
    pub seen: &'static [&'static [&'static str]],
    /// How rumba ends: in one of these ways.
    pub exit: &'static [Exit],
    /// What is kept.
    pub kept: RequiredResults,
    /// What is left.
    pub left: AllowedLeftovers,
    /// What the next run does.
    pub next: Next,
}

impl Answers {
    /// Whether the user saw what must be seen.
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

/// Whether a text has these words, wherever a long line of it was broken and framed.
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
    fn of_each_group_one_must_be_said() {
        assert!(ANSWERS.judge_seen("FAILED in load: the device is full").is_empty());
        assert!(ANSWERS.judge_seen("FAILED: there is\n  │ no\n  │ room").is_empty());
        let misses = ANSWERS.judge_seen("there is no room");
        assert_eq!(misses, [Miss::new(Question::Seen, "nothing says `FAILED`")]);
        assert_eq!(ANSWERS.judge_seen("").len(), 2);
    }

    #[test]
    fn each_way_to_end_is_one_of_those_that_are_named() {
        // As wait(2) has them: the code in the second byte, the signal in the first.
        let ended = |raw| ANSWERS.judge_exit(Some(ExitStatus::from_raw(raw)));
        assert!(ended(1 << 8).is_empty() && ended(9).is_empty());
        assert_eq!(ended(0)[0].what, "exit code 0 instead of exit code 1 or signal 9");
        assert_eq!(ANSWERS.judge_exit(None)[0].question, Question::Exit);
    }
}
