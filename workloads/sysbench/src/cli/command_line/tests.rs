use super::*;
use crate::cli::options::OptionInfo;

fn parse_words(words: &str) -> Result<CommandLine, Refusal> {
    parse(std::iter::once("sysbench").chain(words.split(' ').filter(|word| !word.is_empty())).map(str::to_owned))
}

fn no_file(_: &str) -> io::Result<String> {
    Err(io::Error::from_raw_os_error(2))
}

/// Both steps, with a script that declares `bool_opt` and `opt2`.
fn resolve(words: &str, unknown: Unknown) -> Result<OptionSet, Refusal> {
    resolve_requesting(words, unknown, &mut |_| Ok(true))
}

/// The same, with a script that checks values.
fn resolve_requesting(
    words: &str,
    unknown: Unknown,
    takes: &mut dyn FnMut(&Given) -> Result<bool, Refusal>,
) -> Result<OptionSet, Refusal> {
    let mut read = |path: &str| match path {
        "few.cnf" => Ok("opt2=few\n".to_owned()),
        _ => no_file(path),
    };
    let mut set = OptionSet::general();
    let applied = parse_words(words)?.apply(&mut set, &mut read);
    set.declare(OptionInfo::of_script("bool_opt", "", Kind::Flag, Some("off"))).unwrap();
    set.declare(OptionInfo::of_script("opt2", "", Kind::Text, None)).unwrap();
    applied.unresolved.resolve(&mut set, unknown, &mut read, takes)?;
    Ok(set)
}

fn refusal(words: &str) -> String {
    resolve(words, Unknown::Refuse).unwrap_err().to_string()
}

#[test]
fn test_and_command_stand_anywhere() {
    for words in [
        "--threads=4 oltp.lua --time=5 run --debug",
        "oltp.lua run --threads=4 --time=5 --debug",
        "--threads=4 --time=5 --debug oltp.lua run",
    ] {
        let line = parse_words(words).unwrap();
        assert_eq!((line.test.as_deref(), line.command.as_deref()), (Some("oltp.lua"), Some("run")));
        let mut set = OptionSet::general();
        let applied = line.apply(&mut set, &mut no_file);
        assert_eq!((set.int("threads"), set.int("time"), set.flag("debug")), (Ok(4), Ok(5), true));
        assert_eq!(applied.unresolved, Unresolved::default());
        assert_eq!(line.argv.len(), 6);
        assert_eq!(line.argv[0], "sysbench");
    }
}

#[test]
fn a_script_without_a_name_is_on_standard_input() {
    for (words, reads) in [("", true), ("--events=1", true), ("-", true), ("- prepare", true), ("run", false)] {
        assert_eq!(parse_words(words).unwrap().reads_stdin(), reads, "{words:?}");
    }
    // A single dash does not make an option: sysbench looks for a test of this name.
    assert_eq!(parse_words("-x run").unwrap().test.as_deref(), Some("-x"));
}

/// From cmdline.t.
#[test]
fn a_third_word_is_refused() {
    assert_eq!(parse_words("foo bar baz").unwrap_err().to_string(), "Unrecognized command line argument: baz");
}

/// From cmdline.t.
#[test]
fn unknown_options_are_refused_by_name() {
    assert_eq!(refusal("--non-existing-option=3 cmdline.lua prepare"), "invalid option: --non-existing-option=3");
    assert_eq!(refusal("fileio --invalid-option prepare"), "invalid option: --invalid-option");
    assert_eq!(refusal("cmdline.lua --bool-opt=5 prepare"), "invalid option: --bool-opt=5");
    assert_eq!(refusal("cmdline.lua --bool-opt=foo prepare"), "invalid option: --bool-opt=foo");
    assert_eq!(refusal("cmdline.lua --debug=maybe prepare"), "invalid option: --debug=maybe");
    assert_eq!(refusal("cmdline.lua -- prepare"), "invalid option: --");
    assert_eq!(refusal("cmdline.lua --bool-op prepare"), "invalid option: --bool-op\ndid you mean --bool_opt?");
}

#[test]
fn the_last_of_a_name_counts_and_values_may_have_an_equals_sign() {
    let set = resolve("--time=1 --opt2=a=b --time=2", Unknown::Refuse).unwrap();
    assert_eq!((set.int("time"), set.text("opt2")), (Ok(2), Some("a=b")));
}

#[test]
fn script_can_change_its_own_option_values() {
    let mut requested = Vec::new();
    let mut all = |given: &Given| {
        requested.push(given.argument.clone());
        Ok(true)
    };
    resolve_requesting("--threads=2 --bool-opt --opt2=a=b --opt2=", Unknown::Refuse, &mut all).unwrap();
    assert_eq!(requested, ["--bool-opt", "--opt2=a=b", "--opt2="]);
    let mut no_few = |given: &Given| Ok(given.name != "opt2" || given.value.as_deref() != Some("few"));
    let mut refusal = |words: &str| resolve_requesting(words, Unknown::Refuse, &mut no_few).unwrap_err().to_string();
    assert_eq!(refusal("--opt2=few --unknown"), "invalid option: --opt2=few");
    assert_eq!(refusal("--config-file=few.cnf --opt2=many"), "invalid option: --opt2=few");
    let mut fails = |_: &Given| Err(Refusal::Fatal("x.lua:1: no".to_owned()));
    let failure = resolve_requesting("--opt2=x", Unknown::Refuse, &mut fails).unwrap_err();
    assert_eq!(failure.to_string(), "FATAL: x.lua:1: no");
}

#[test]
fn help_and_version_are_known_before_anything_is_refused() {
    let mut set = OptionSet::general();
    let applied = parse_words("--unknown --help foo").unwrap().apply(&mut set, &mut no_file);
    assert!(set.flag("help"));
    assert_eq!(applied.unresolved.options.len(), 1);
}

#[test]
fn options_that_1_0_keeps_as_text() {
    let set = resolve("--oltp-table-size=100 --mysql_table_engine=x", Unknown::Keep).unwrap();
    assert_eq!((set.text("oltp_table_size"), set.text("mysql-table-engine")), (Some("100"), Some("x")));
    assert_eq!(resolve("--bool-opt=5", Unknown::Keep).unwrap_err().to_string(), "invalid option: --bool-opt=5");
}

#[test]
fn a_test_may_be_named_by_an_option_as_before_1_0() {
    for words in ["--test=oltp.lua --threads=2 run", "run --test=oltp.lua --threads=2"] {
        let line = parse_words(words).unwrap();
        assert_eq!((line.test.as_deref(), line.command.as_deref()), (Some("oltp.lua"), Some("run")), "{words}");
        assert_eq!(line.notices, [Notice::TestOption]);
        assert_eq!(line.options.len(), 1);
    }
    // With a test and a command it is an option like any other, which the script may have.
    let line = parse_words("script.lua --test=x run").unwrap();
    assert_eq!((line.test.as_deref(), line.options.len()), (Some("script.lua"), 1));
    assert_eq!(line.notices, []);
}

#[test]
fn a_file_of_options_counts_where_it_stands() {
    let mut read = |path: &str| match path {
        "x.cnf" => Ok("threads=4\ntime=5\ntable_size=9\nevents='\n".to_owned()),
        _ => no_file(path),
    };
    let mut set = OptionSet::general();
    let line = parse_words("--threads=1 --config-file=x.cnf --time=7 oltp.lua run").unwrap();
    let applied = line.apply(&mut set, &mut read);
    assert_eq!((set.int("threads"), set.int("time")), (Ok(4), Ok(7)));
    assert_eq!(applied.notices, [Notice::UnterminatedQuote { line: 4 }]);
    assert_eq!(applied.notices[0].to_string(), "unexpected EOL on line 4");
    assert_eq!(set.unclaimed_words().len(), 1);

    let applied = parse_words("--config-file=y.cnf").unwrap().apply(&mut set, &mut read);
    assert_eq!(applied.notices[0].to_string(), "y.cnf: No such file or directory");
    let applied = parse_words("--config-file").unwrap().apply(&mut set, &mut read);
    assert_eq!(applied.notices, []);
}
