//! Help texts. Sections and columns are sysbench's, because scripts parse them; the explanations are rumba's own.

use crate::cli::options::{
    BEFORE_1_1, BUILT_IN, DATABASE, DRIVERS, GENERAL, LOG_OPERATIONS, LOG_TEXT, OptionInfo, RANDOM, RUMBA,
};

/// The output of `--help`. `program` is the command that the user types: `sysbench`, or `rumba sysbench`.
///
/// Sections that sysbench does not have come between the drivers and the tests, where its own text depends on how it
/// was built.
pub fn general(program: &str) -> String {
    let drivers: String = DRIVERS.iter().map(|driver| format!("  {} - {}\n", driver.name, driver.title)).collect();
    let of_drivers = DRIVERS.iter().map(|driver| test(driver.name, driver.options));
    let tests: String = BUILT_IN.iter().map(|test| format!("  {} - {}\n", test.name, test.title)).collect();
    [
        format!("Usage:\n  {program} [options]... [testname] [command]\n\n"),
        "Commands implemented by most tests: prepare run cleanup help\n\n".to_owned(),
        section("General options:", &[GENERAL]),
        section("Pseudo-Random Numbers Generator options:", &[RANDOM]),
        section("Log options:", &[LOG_TEXT, LOG_OPERATIONS]),
        section("General database options:\n", &[DATABASE]),
        format!("\nCompiled-in database drivers:\n{drivers}\n"),
        of_drivers.collect(),
        section("Options that rumba adds:", &[RUMBA]),
        section("Options of sysbench 1.0:", &[BEFORE_1_1]),
        format!("Compiled-in tests:\n{tests}\n"),
        format!("See '{program} <testname> help' for a list of options for each test.\n\n"),
    ]
    .concat()
}

/// The output of `help` for a test: `name` is that of a built-in one, or of a script without its folder.
pub fn test<'a>(name: &str, options: impl IntoIterator<Item = &'a OptionInfo>) -> String {
    format!("{name} options:\n{}", table(options))
}

/// Options in two columns, in their given order, and an empty line, which scripts get through
/// `sysbench.cmdline.print_test_options`. A script's options come sorted by name, because Lua tables have no order.
pub fn table<'a>(options: impl IntoIterator<Item = &'a OptionInfo>) -> String {
    let rows: Vec<&OptionInfo> = options.into_iter().collect();
    let width = |row: &OptionInfo| row.name.chars().count() + row.kind.form().len();
    let widest = rows.iter().map(|row| width(row)).max().unwrap_or(0);
    let mut text = String::new();
    for row in rows {
        let default = row.default.as_deref().map_or_else(String::new, |default| format!(" [{default}]"));
        let gap = widest + 1 - width(row);
        text += &format!("  --{}{}{}{}{default}\n", row.name, row.kind.form(), " ".repeat(gap), row.help);
    }
    text + "\n"
}

fn section(title: &str, tables: &[&[OptionInfo]]) -> String {
    format!("{title}\n{}", tables.iter().map(|rows| table(*rows)).collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::options::Kind;

    /// From opt_help.t, without the explanations and without the text between drivers and tests.
    #[test]
    fn sections_are_in_sysbenchs_order() {
        let text = general("sysbench");
        let heads: Vec<&str> = text.lines().filter(|line| !line.starts_with("  --")).collect();
        let expected = [
            "Usage:",
            "  sysbench [options]... [testname] [command]",
            "",
            "Commands implemented by most tests: prepare run cleanup help",
            "",
            "General options:",
            "",
            "Pseudo-Random Numbers Generator options:",
            "",
            "Log options:",
            "",
            "",
            "General database options:",
            "",
            "",
            "",
            "Compiled-in database drivers:",
            "  mysql - MySQL driver",
            "  pgsql - PostgreSQL driver",
        ];
        assert_eq!(heads[..expected.len()], expected);
        let tail = "Compiled-in tests:
  fileio - File I/O test
  cpu - CPU performance test
  memory - Memory functions speed test
  threads - Threads subsystem performance test
  mutex - Mutex performance test

See 'sysbench <testname> help' for a list of options for each test.

";
        assert!(text.ends_with(tail), "{text}");
    }

    /// Names, forms and defaults of cmdline.t, where a script has every kind.
    #[test]
    fn options_of_a_script_are_in_two_columns() {
        let row =
            |name: &str, kind, default| OptionInfo::of_script(name, &format!("{name} description"), kind, default);
        let options = [
            row("bool_opt1", Kind::Flag, Some("off")),
            row("bool_opt3", Kind::Flag, None),
            OptionInfo::of_script("dash-opt", "dash-opt desc", Kind::Text, Some("dash-opt val")),
            row("float_opt1", Kind::Double, Some("3.14")),
            row("int_opt2", Kind::Int, None),
            row("list_opt1", Kind::List, Some("foo,bar")),
            row("str_opt1", Kind::Text, None),
        ];
        let expected = "  --bool_opt1[=on|off]   bool_opt1 description [off]
  --bool_opt3[=on|off]   bool_opt3 description
  --dash-opt=STRING      dash-opt desc [dash-opt val]
  --float_opt1=N         float_opt1 description [3.14]
  --int_opt2=N           int_opt2 description
  --list_opt1=[LIST,...] list_opt1 description [foo,bar]
  --str_opt1=STRING      str_opt1 description

";
        assert_eq!(table(&options), expected);
    }
}
