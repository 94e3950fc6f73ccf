//! `rumba sysbench`, or this program under the name `sysbench`: sysbench's own command line.

mod clients;
mod dry;
mod ending;
pub mod fleet;
mod host;
mod not_found;
mod record;
mod reports;
mod run;
mod script;
mod test;

use std::io::{Read, Write};
use std::process::ExitCode;

use rumba_engine_api::worker::HostShare;
use rumba_workload_sysbench::ScriptError;
use rumba_workload_sysbench::built_in_tests::{BuiltInTest, Purpose};
use rumba_workload_sysbench::cli::command_line::{self, Available, Command, CommandLine, Given, Unknown, Unresolved};
use rumba_workload_sysbench::cli::failure::Failure;
use rumba_workload_sysbench::cli::options::BuiltIn;
use rumba_workload_sysbench::cli::refusal::Stream;
use rumba_workload_sysbench::cli::settings::SqliteSettings;
use rumba_workload_sysbench::cli::{OptionSet, Refusal, Settings, help, layout, version};
use rumba_workload_sysbench::executable;
use rumba_workload_sysbench::failure::Function;
use rumba_workload_sysbench::host::{Host, Rank};
use rumba_workload_sysbench::output::{self, print};
use rumba_workload_sysbench::remedy::Ignored;

use fleet::Part;
use run::ClientLocation;
use test::Test;

/// Prints a line on standard error, if it is open.
fn note(what: &impl std::fmt::Display) {
    let _ = writeln!(std::io::stderr(), "{what}");
}

/// The reason to stop; the message has already been printed.
pub struct Ended {
    code: u8,
    /// The signal that the program dies of.
    signal: Option<i32>,
    /// The printed message.
    words: String,
}

impl Ended {
    /// With an exit code, after this message.
    fn after(code: u8, words: impl Into<String>) -> Self {
        Self { code, signal: None, words: words.into() }
    }

    /// By a signal, of which the program dies.
    fn of_signal(signal: i32, words: impl Into<String>) -> Self {
        Self { code: 128 + signal as u8, signal: Some(signal), words: words.into() }
    }

    fn refused(refusal: &Refusal) -> Self {
        match refusal.stream() {
            Stream::Out => print(&format!("{refusal}\n")),
            Stream::Err => note(refusal),
        }
        Self::after(1, refusal.to_string())
    }

    /// Prints what went wrong in a script.
    fn script(error: &ScriptError) -> Self {
        print(&format!("FATAL: {error}\n"));
        Self::after(1, error.to_string())
    }

    /// Prints the reason that ended a run.
    fn run(failure: &Failure) -> Self {
        print(&format!("{failure}\n"));
        Self::after(failure.exit_code(), failure.to_string())
    }
}

/// The words of sysbench's command line, if this program was invoked as `sysbench` (or a link that names a report
/// layout), or with the command `sysbench`.
pub fn requested(mut argv: Vec<String>) -> Option<Vec<String>> {
    if argv.first().is_some_and(|program| layout::is_sysbench(program)) {
        return Some(argv);
    }
    (argv.get(1).is_some_and(|word| word == "sysbench")).then(|| argv.split_off(1))
}

/// Runs a command line; its first word is the program's name.
pub fn main(argv: Vec<String>) -> ExitCode {
    ending::survive_file_size_limit();
    match command_line::parse(argv).map_err(|refusal| Ended::refused(&refusal)).and_then(|line| execute(&line, None)) {
        Ok(()) => written(),
        Err(Ended { code, signal, .. }) => {
            signal.into_iter().for_each(ending::die_of);
            ExitCode::from(code)
        }
    }
}

/// Takes part in a run that another process reports.
fn take_part(argv: Vec<String>, part: &Part<'_>) -> Result<(), Ended> {
    let line = command_line::parse(argv).map_err(|refusal| Ended::refused(&refusal))?;
    execute(&line, Some(part))
}

/// Success, if all output was written. A reader that has gone (`--help | head`) has read enough.
fn written() -> ExitCode {
    match output::finish() {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
            note(&format!("standard output: {error}; send it somewhere else"));
            ExitCode::FAILURE
        }
        _ => ExitCode::SUCCESS,
    }
}

fn execute(line: &CommandLine, part: Option<&Part<'_>>) -> Result<(), Ended> {
    let mut options = OptionSet::general();
    let mut read = |path: &str| std::fs::read_to_string(path);
    let applied = line.apply(&mut options, &mut read);
    applied.notices.iter().for_each(note);
    // In sysbench's order: given both options, it prints the help.
    if options.flag("help") {
        print(&help::general("sysbench"));
        return Ok(());
    }
    if options.flag("version") {
        print(&format!("{}\n", version::line()));
        return Ok(());
    }
    let program = line.argv.first().map_or("", String::as_str);
    let environment = std::env::var_os(layout::VARIABLE).map(|name| name.to_string_lossy().into_owned());
    layout::choose(&mut options, program, environment.as_deref()).map_err(|refusal| Ended::refused(&refusal))?;
    // As in sysbench: if a script declares an option under the name of one of these, the run does not use it.
    let (mut settings, warnings) = Settings::read(&mut options).map_err(|refusal| Ended::refused(&refusal))?;
    if part.is_some() {
        // The process of `--fleet` reports.
        settings.verbosity = settings.verbosity.min(Rank::Warning);
    }
    // As in sysbench, before anything else and at any verbosity.
    warnings.iter().for_each(|warning| print(&format!("WARNING: {warning}\n")));
    if settings.verbosity >= Rank::Notice {
        print(&version::banner(script::LUA));
    }
    match line.test.as_deref().and_then(BuiltIn::find) {
        Some(built_in) => request_built_in(built_in, line, settings, options, applied.unresolved),
        None => request_script(line, settings, options, applied.unresolved, part),
    }
}

/// Resolves the given values of options that are known only now, including those in option files.
fn resolve(
    unresolved: Unresolved,
    options: &mut OptionSet,
    unknown: Unknown,
    takes: &mut dyn FnMut(&Given) -> Result<bool, Refusal>,
) -> Result<(), Ended> {
    let mut read = |path: &str| std::fs::read_to_string(path);
    let resolved = unresolved.resolve(options, unknown, &mut read, takes);
    resolved.map_err(|refusal| Ended::refused(&refusal))?.iter().for_each(note);
    Ok(())
}

/// Runs the command of a script.
fn request_script(
    line: &CommandLine,
    mut settings: Settings,
    mut options: OptionSet,
    unresolved: Unresolved,
    part: Option<&Part<'_>>,
) -> Result<(), Ended> {
    let script = script::Script::load(line, &options, &settings, part.map_or(HostShare::ALL, |part| part.share))?;
    script.declare(&mut options)?;
    let unknown = if script.keeps_unknown() { Unknown::Keep } else { Unknown::Refuse };
    resolve(unresolved, &mut options, unknown, &mut |given| script.takes(given))?;
    settings.read_own(&options).map_err(|refusal| Ended::refused(&refusal))?;
    // Checked for any driver, because scripts request theirs only once threads are running.
    let own = options.for_rumba();
    SqliteSettings::read(&own).and_then(|_| Ignored::check(&own)).map_err(|refusal| Ended::refused(&refusal))?;
    let script = script.adopt(&options)?;
    options.unclaimed_words().iter().for_each(|warning| script.warn(warning));
    if !executable::is_allowed() && settings.luajit_command.as_deref() != Some("off") {
        script.warn(executable::INTERPRETED);
    }
    let Some(word) = line.command.as_deref().filter(|_| !line.reads_stdin()) else {
        // Loading was all: the script runs as it is loaded. As in sysbench, one from standard input has no commands.
        return Ok(());
    };
    let test = line.test.as_deref().unwrap_or_default();
    let available = script.available()?;
    match Command::choose(test, word, &available).map_err(|refusal| Ended::refused(&refusal))? {
        Command::Prepare => script.call(Function::Prepare),
        Command::Cleanup => script.call(Function::Cleanup),
        Command::Help if script.has("help") => script.call(Function::Help),
        Command::Help => {
            print(&help::test(command_line::short_name(test), script.options(&options)));
            Ok(())
        }
        Command::Own(own) => script.own_command(&own, &settings),
        Command::Run => {
            if part.is_some() {
                settings.report_json = None;
            }
            let location = match (part, &settings.fleet) {
                (Some(part), _) => ClientLocation::Part(part),
                (None, Some(fleet)) => ClientLocation::Hosts(fleet, &line.argv),
                (None, None) => ClientLocation::Here,
            };
            run::run(&Test::Script(&script), &settings, &options, location)
        }
    }
}

/// Runs the command of a built-in test.
fn request_built_in(
    built_in: &BuiltIn,
    line: &CommandLine,
    mut settings: Settings,
    mut options: OptionSet,
    unresolved: Unresolved,
) -> Result<(), Ended> {
    let refused = |refusal: Refusal| Ended::refused(&refusal);
    for info in built_in.options {
        options.declare(info.clone()).map_err(|error| Ended::refused(&Refusal::Fatal(error.to_string())))?;
    }
    resolve(unresolved, &mut options, Unknown::Refuse, &mut |_| Ok(true))?;
    settings.read_own(&options).map_err(|refusal| Ended::refused(&refusal))?;
    if settings.fleet.is_some() {
        let words = format!("--fleet runs scripts, and {} is a built-in test of one host", built_in.name);
        return Err(Ended::refused(&Refusal::Fatal(words)));
    }
    let settings = &settings;
    let drivers = host::Drivers::new(&options, settings.verbosity);
    options.unclaimed_words().iter().for_each(|warning| drivers.log(Rank::Warning, warning));
    let test = built_in.name;
    let required = || Ended::refused(&Refusal::CommandRequired { test: test.to_owned() });
    let word = line.command.as_deref().ok_or_else(required)?;
    let has_files = built_in.has_files;
    let available = Available { prepare: has_files, cleanup: has_files, help: true, ..Available::default() };
    let command = Command::choose(test, word, &available).map_err(refused)?;
    let purpose = if command == Command::Run { Purpose::Run } else { Purpose::Files };
    let of = |purpose| BuiltInTest::of(test, purpose, &options, settings).map_err(refused);
    let mut notify = |text: &str| drivers.report(text);
    match command {
        Command::Prepare => {
            of(purpose)?.prepare(script::seed(settings), &mut notify).map_err(|failure| drivers.failed(&failure))
        }
        Command::Cleanup => {
            of(purpose)?.cleanup(&mut notify);
            Ok(())
        }
        Command::Run => {
            let (requested, seed) = (of(purpose)?, script::seed(settings));
            run::run(
                &Test::BuiltIn { name: test, test: &requested, seed, drivers: &drivers },
                settings,
                &options,
                ClientLocation::Here,
            )
        }
        Command::Help | Command::Own(_) => {
            print(&help::test(test, built_in.options));
            Ok(())
        }
    }
}

fn standard_input() -> Vec<u8> {
    let mut text = Vec::new();
    // An unreadable standard input is not a script, and is reported as such.
    let _ = std::io::stdin().read_to_end(&mut text);
    text
}
