//! The choice of the closing report's layout: the option, else the environment, else the program's name.
//!
//! Programs that start sysbench with a fixed command line can therefore get the layout that they parse.

use std::path::Path;

use crate::cli::options::{OptionSet, Source};
use crate::cli::refusal::Refusal;
use crate::cli::report::Layout;

/// The environment variable that names a layout.
pub const VARIABLE: &str = "SYSBENCH_REPORT_LAYOUT";
const OPTION: &str = "report-layout";
/// The program's name as sysbench; a link may add a layout, as in `sysbench-1.1`.
const SYSBENCH: &str = "sysbench";

/// Whether a program of this path is sysbench: `sysbench`, `sysbench-1.0` or `sysbench-1.1`.
pub fn is_sysbench(program: &str) -> bool {
    file_name(program) == SYSBENCH || layout_in_name(program).is_some()
}

/// Sets the layout that the environment or the program's name requests, unless an option does. As for a default, a
/// script's own option of this name is not affected.
///
/// # Errors
/// The environment names no layout.
pub fn choose(options: &mut OptionSet, program: &str, environment: Option<&str>) -> Result<(), Refusal> {
    if options.source(OPTION) != Some(Source::Default) {
        return Ok(());
    }
    let requested = match environment.filter(|name| !name.is_empty()) {
        Some(name) if Layout::named(name).is_some() => Some(name),
        Some(name) => {
            return Err(Refusal::fatal(format!("Invalid value for {VARIABLE}: '{name}'; it is 1.0 or 1.1")));
        }
        None => layout_in_name(program),
    };
    let Some(name) = requested else { return Ok(()) };
    options.set(OPTION, Some(name), Source::Default).map_err(|error| Refusal::fatal(error.to_string()))
}

/// The layout that the program's name ends with.
fn layout_in_name(program: &str) -> Option<&str> {
    let name = file_name(program).strip_prefix(SYSBENCH)?.strip_prefix('-')?;
    Layout::named(name).map(|_| name)
}

fn file_name(program: &str) -> &str {
    Path::new(program).file_name().and_then(|name| name.to_str()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(options: &mut OptionSet, program: &str, environment: Option<&str>) -> Option<String> {
        choose(options, program, environment).unwrap();
        options.text(OPTION).map(str::to_owned)
    }

    #[test]
    fn option_outranks_environment_and_environment_the_name() {
        for (program, environment, expected) in [
            ("/usr/bin/sysbench", None, "1.0"),
            ("/usr/bin/sysbench", Some(""), "1.0"),
            ("/usr/bin/sysbench", Some("1.1"), "1.1"),
            ("bin/sysbench-1.1", None, "1.1"),
            ("bin/sysbench-1.1", Some("1.0"), "1.0"),
        ] {
            let mut options = OptionSet::general();
            assert_eq!(chosen(&mut options, program, environment).as_deref(), Some(expected), "{program}");
            let mut options = OptionSet::general();
            options.set(OPTION, Some("1.0"), Source::CommandLine).unwrap();
            assert_eq!(chosen(&mut options, program, environment).as_deref(), Some("1.0"), "{program}");
        }
        let refusal = choose(&mut OptionSet::general(), "sysbench", Some("2")).unwrap_err();
        assert_eq!(refusal.to_string(), "FATAL: Invalid value for SYSBENCH_REPORT_LAYOUT: '2'; it is 1.0 or 1.1");
    }

    #[test]
    fn program_is_sysbench_by_its_name() {
        for program in ["sysbench", "/usr/bin/sysbench", "./sysbench-1.0", "sysbench-1.1"] {
            assert!(is_sysbench(program), "{program}");
        }
        for program in ["rumba", "sysbench-2", "mysysbench", "sysbench/rumba", ""] {
            assert!(!is_sysbench(program), "{program}");
        }
    }
}
