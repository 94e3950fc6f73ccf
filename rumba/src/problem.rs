//! A problem as shown to a person: what failed, where, and what to do next.

use std::io::Write as _;
use std::process::ExitCode;

use miette::{Diagnostic, LabeledSpan, NamedSource, Report, Severity, SourceCode};
use rumba_engine_api::printable::{printable, printable_in_place};
use rumba_lab::conduct::profile::NoProfile;
use rumba_lab::limits::LimitError;
use rumba_lab::prepare::Refusal;
use rumba_lab::provision::ProvisionError;
use rumba_lab::runner::RunError;
use rumba_lab::spec::{Origin, SpecError, without_passwords};
use rumba_lab::store::{ClaimError, ReadError};

/// A mistake of the command or the experiment.
pub const MISTAKE: u8 = 2;
/// A checked claim does not hold, or a condition of `--fail-if` holds.
pub const REFUTED: u8 = 3;
/// A trial, its data or the machine failed, a trial was suspended while it measured, or a search found no rate.
pub const FAILURE: u8 = 1;

/// A problem that ends the command.
#[derive(Debug)]
pub struct Problem {
    message: String,
    remedy: Option<String>,
    /// Boxed, because few problems have a position in a file.
    source: Option<Box<(NamedSource<String>, LabeledSpan)>>,
    exit: u8,
}

impl Problem {
    pub fn mistake(message: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { message: message.into(), remedy: Some(remedy.into()), source: None, exit: MISTAKE }
    }

    /// A mistake at a position in a text from the command line.
    pub fn in_text(
        name: &str,
        text: &str,
        offset: usize,
        message: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        let start = offset.min(text.len());
        let span = LabeledSpan::new_with_span(Some("here".to_owned()), start..text.len());
        let source = Some(Box::new((named(name, text), span)));
        Self { source, ..Self::mistake(format!("{name}: {}", message.into()), remedy) }
    }

    /// Something that failed.
    pub fn failure(message: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { message: message.into(), remedy: Some(remedy.into()), source: None, exit: FAILURE }
    }

    /// Prints the problem and gives the exit code.
    pub fn report(mut self) -> ExitCode {
        let exit = ExitCode::from(self.exit);
        // The words may come from a user's file or from a server.
        self.message = printable(&self.message).into_owned();
        self.remedy = self.remedy.map(|remedy| printable(&remedy).into_owned());
        // The exit code still reports the problem if standard error cannot be written.
        let _ = writeln!(std::io::stderr(), "{:?}", Report::new(self));
        exit
    }
}

/// A text to point into, without terminal control sequences.
fn named(name: &str, text: &str) -> NamedSource<String> {
    NamedSource::new(printable(name), printable_in_place(text).into_owned())
}

impl From<ProvisionError> for Problem {
    fn from(error: ProvisionError) -> Self {
        // These errors already contain their remedy.
        Self { message: error.to_string(), remedy: None, source: None, exit: MISTAKE }
    }
}

impl From<LimitError> for Problem {
    fn from(error: LimitError) -> Self {
        // These errors already contain their remedy.
        Self { message: error.to_string(), remedy: None, source: None, exit: MISTAKE }
    }
}

impl From<Refusal> for Problem {
    fn from(refusal: Refusal) -> Self {
        let message = refusal.to_string();
        match refusal {
            Refusal::Spec(error) => error.into(),
            Refusal::Limit(error) => error.into(),
            Refusal::Provision(error) => error.into(),
            Refusal::Unenforceable { remedy, .. } => Self::mistake(message, remedy),
            Refusal::NoRoom { remedy, .. } => Self::mistake(message, remedy),
        }
    }
}

impl From<ClaimError> for Problem {
    fn from(error: ClaimError) -> Self {
        let remedy = match &error {
            ClaimError::Taken { .. } => "choose another --out, or wait until it has ended",
            ClaimError::Used { .. } => "choose another --out, or remove it yourself",
            ClaimError::NoRoom { .. } => "make room there, or choose another --out",
            ClaimError::Dangling { .. } => "create its target, remove it, or choose another --out",
            ClaimError::Unshowable { .. } => "choose another --out, of characters that can be seen",
            ClaimError::Io { .. } | ClaimError::Read(_) => "choose another --out",
        };
        Self::mistake(error.to_string(), remedy)
    }
}

impl From<ReadError> for Problem {
    fn from(error: ReadError) -> Self {
        let remedy = match error {
            ReadError::NoResults { .. } => "name a directory that `rumba run` has written",
            ReadError::Format { .. } => "read it with the version of rumba that wrote it (see experiment.json)",
            ReadError::Unreadable { .. } => "the file is damaged; the trials' own records may still be read",
        };
        Self::mistake(error.to_string(), remedy)
    }
}

impl From<NoProfile> for Problem {
    fn from(error: NoProfile) -> Self {
        let remedy = match error {
            NoProfile::Missing => {
                "install it: apt-get install linux-perf (Debian), linux-tools-common (Ubuntu), perf (Fedora)"
            }
            NoProfile::Refused { .. } => {
                "let users sample their own processes, `sysctl kernel.perf_event_paranoid=2`, or run as root"
            }
            NoProfile::Io(_) => "leave out --profile, or report this",
        };
        Self::mistake(error.to_string(), remedy)
    }
}

impl From<RunError> for Problem {
    fn from(error: RunError) -> Self {
        match error {
            RunError::Refusal(refusal) => refusal.into(),
            RunError::Spec(error) => error.into(),
            RunError::Claim(error) => error.into(),
            RunError::Read(error) => error.into(),
            RunError::Provision(error) => error.into(),
            RunError::Profile(error) => error.into(),
            RunError::Mistake { problem, remedy } => Self::mistake(problem, remedy),
            RunError::Failure { problem, remedy } => Self::failure(problem, remedy),
        }
    }
}

impl From<SpecError> for Problem {
    fn from(error: SpecError) -> Self {
        let mut message = error.to_string();
        if let Some(place) = error.place() {
            message = format!("{place}: {message}");
        }
        let source = match (&error.origin, &error.file) {
            (Origin::File(range), Some((name, text))) => {
                let span = LabeledSpan::new_with_span(Some("here".to_owned()), range.clone());
                Some(Box::new((named(name, &without_passwords(text)).with_language("TOML"), span)))
            }
            _ => None,
        };
        Self { message, remedy: Some(error.remedy), source, exit: MISTAKE }
    }
}

impl std::fmt::Display for Problem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Problem {}

impl Diagnostic for Problem {
    fn severity(&self) -> Option<Severity> {
        Some(Severity::Error)
    }

    fn help<'a>(&'a self) -> Option<Box<dyn std::fmt::Display + 'a>> {
        self.remedy.as_ref().map(|remedy| Box::new(remedy) as Box<dyn std::fmt::Display>)
    }

    fn source_code(&self) -> Option<&dyn SourceCode> {
        self.source.as_ref().map(|source| &source.0 as &dyn SourceCode)
    }

    fn labels(&self) -> Option<Box<dyn Iterator<Item = LabeledSpan> + '_>> {
        let (_, span) = self.source.as_deref()?;
        Some(Box::new(std::iter::once(span.clone())))
    }
}
