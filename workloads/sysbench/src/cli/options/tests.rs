use super::*;

/// Name, form and default of every option of upstream's `--help`, main branch: opt_help.t, help_drv_mysql.t and
/// help_drv_pgsql.t. `-` means no default, `[]` an empty one.
const OF_1_1: &str = "
threads=N 1
events=N 0
time=N 10
warmup-time=N 0
forced-shutdown=STRING off
thread-stack-size=SIZE 64K
thread-init-timeout=N 30
rate=N 0
report-interval=N 0
report-checkpoints=[LIST,...] []
debug[=on|off] off
validate[=on|off] off
help[=on|off] off
version[=on|off] off
config-file=FILENAME -
luajit-cmd=STRING -
rand-type=STRING uniform
rand-seed=N 0
rand-pareto-h=N 0.2
rand-zipfian-exp=N 0.8
verbosity=N 3
percentile=N 95
histogram[=on|off] off
db-driver=STRING mysql
db-ps-mode=STRING auto
db-debug[=on|off] off
mysql-host=[LIST,...] localhost
mysql-port=[LIST,...] 3306
mysql-socket=[LIST,...] -
mysql-user=STRING sbtest
mysql-password=STRING []
mysql-db=STRING sbtest
mysql-ssl=STRING disabled
mysql-ssl-key=STRING -
mysql-ssl-ca=STRING -
mysql-ssl-cert=STRING -
mysql-ssl-cipher=STRING []
mysql-compression[=on|off] off
mysql-compression-algorithms=STRING zlib
mysql-debug[=on|off] off
mysql-ignore-errors=[LIST,...] 1213,1020,1205
mysql-dry-run[=on|off] off
pgsql-host=STRING localhost
pgsql-port=N 5432
pgsql-user=STRING sbtest
pgsql-password=STRING []
pgsql-db=STRING sbtest
pgsql-sslmode=STRING prefer
";

/// Names and defaults of the built-in tests' help: test_cpu.t and the others; of `fileio`, its source.
const OF_TESTS: [(&str, &str); 5] = [
    ("cpu", "cpu-max-prime=N 10000"),
    (
        "memory",
        "memory-block-size=SIZE 1K
memory-total-size=SIZE 100G
memory-scope=STRING global
memory-hugetlb[=on|off] off
memory-oper=STRING write
memory-access-mode=STRING seq",
    ),
    ("threads", "thread-yields=N 1000\nthread-locks=N 8"),
    ("mutex", "mutex-num=N 4096\nmutex-locks=N 50000\nmutex-loops=N 10000"),
    (
        "fileio",
        "file-num=N 128
file-block-size=N 16384
file-total-size=SIZE 2G
file-test-mode=STRING -
file-io-mode=STRING sync
file-async-backlog=N 128
file-extra-flags=[LIST,...] []
file-fsync-freq=N 100
file-fsync-all[=on|off] off
file-fsync-end[=on|off] on
file-fsync-mode=STRING fsync
file-merged-requests=N 0
file-rw-ratio=N 1.5",
    ),
];

/// A row as it is written above.
fn row(info: &OptionInfo) -> String {
    let form = if info.kind == Kind::Numbers { "=N" } else { info.kind.form() };
    let default = match info.default.as_deref() {
        None => "-",
        Some("") => "[]",
        Some(text) => text,
    };
    format!("{}{form} {default}", info.name)
}

fn name(row: &str) -> &str {
    let end = row.find(['=', '[']).unwrap();
    &row[..end]
}

fn rows(text: &str) -> Vec<&str> {
    text.lines().filter(|line| !line.is_empty()).collect()
}

#[test]
fn every_option_of_upstreams_help_is_known_with_its_default() {
    let set = OptionSet::general();
    for expected in rows(OF_1_1) {
        let info = set.info(name(expected)).unwrap_or_else(|| panic!("{expected} is unknown"));
        assert_eq!(row(info), expected);
    }
}

#[test]
fn every_option_of_the_built_in_tests_is_known_with_its_default() {
    for (test, expected) in OF_TESTS {
        let all: Vec<String> = BuiltIn::find(test).unwrap().options.iter().map(row).collect();
        assert_eq!(all, rows(expected));
    }
    assert!(BuiltIn::find("oltp_read_only").is_none());
}

#[test]
fn names_are_unique_and_rows_not_empty() {
    let set = OptionSet::general();
    let mut keys: Vec<String> = set.iter().map(|(key, _)| key).collect();
    let all = [LOG_TEXT, LOG_OPERATIONS, DATABASE, RANDOM, GENERAL, RUMBA, BEFORE_1_1, MYSQL, PGSQL, SQLITE];
    assert_eq!(keys.len(), all.iter().map(|rows| rows.len()).sum::<usize>());
    keys.sort_unstable();
    keys.dedup();
    assert_eq!(keys.len(), set.iter().count());
    for (_, info) in set.iter() {
        assert!(!info.help.is_empty() && !info.help.contains('\n'), "{}", info.name);
    }
}

fn given(set: &mut OptionSet, name: &str, value: Option<&str>) {
    set.set(name, value, Source::CommandLine).unwrap();
}

#[test]
fn dashes_and_underscores_are_the_same() {
    let mut set = OptionSet::general();
    given(&mut set, "thread_stack-size", Some("1M"));
    assert_eq!(set.size_bytes("thread-stack-size"), 1 << 20);
    assert_eq!(set.size_bytes("thread_stack_size"), 1 << 20);
    assert_eq!(set.info("thread_stack_size").unwrap().key(), "thread_stack_size");
}

#[test]
fn values_are_read_by_their_kind() {
    let mut set = OptionSet::general();
    assert_eq!((set.flag("debug"), set.int("time"), set.double("rand-pareto-h")), (false, Ok(10), 0.2));
    assert_eq!(
        (set.text("luajit-cmd"), set.text("mysql-db"), set.text("mysql-password")),
        (None, Some("sbtest"), None)
    );
    assert_eq!(set.list("mysql-ignore-errors"), ["1213", "1020", "1205"]);
    assert_eq!(set.numbers("percentile"), Ok(vec![95.0]));
    given(&mut set, "debug", None);
    given(&mut set, "time", None);
    given(&mut set, "mysql-host", Some("a,,b,"));
    given(&mut set, "mysql-db", Some(""));
    assert_eq!((set.flag("debug"), set.int("time")), (true, Ok(0)));
    assert_eq!(set.list("mysql-host"), ["a", "b"]);
    assert_eq!(set.text("mysql-db"), None);
    assert_eq!(set.set("debug", Some("maybe"), Source::CommandLine), Err(SetError::NotAFlag));
    assert!(set.flag("debug"), "what is not taken changes nothing");
    assert_eq!(set.set("nothing", None, Source::CommandLine), Err(SetError::Unknown));
    assert_eq!((set.flag("nothing"), set.int("nothing"), set.text("nothing")), (false, Ok(0), None));
}

/// The output of cmdline.t for `sysbench.opt`.
#[test]
fn scripts_see_values_of_their_own_types() {
    let mut set = OptionSet::general();
    for (name, kind, default) in [
        ("str_opt1", Kind::Text, None),
        ("str_opt2", Kind::Text, Some("opt2")),
        ("bool_opt1", Kind::Flag, Some("off")),
        ("bool_opt2", Kind::Flag, Some("on")),
        ("bool_opt3", Kind::Flag, None),
        ("int_opt2", Kind::Int, None),
        ("float_opt1", Kind::Double, Some("0.25")),
        ("list_opt1", Kind::List, Some("foo,bar")),
        ("list_opt2", Kind::List, None),
        ("dash-opt", Kind::Text, Some("dash-opt val")),
        ("size", Kind::Size, Some("64K")),
    ] {
        set.declare(OptionInfo::of_script(name, "", kind, default)).unwrap();
    }
    let text = |text: &str| Ok(OptionValue::Text(text.to_owned()));
    let list = |texts: &[&str]| Ok(OptionValue::List(texts.iter().map(|text| (*text).to_owned()).collect()));
    assert_eq!(set.value("str_opt1"), text(""));
    assert_eq!(set.value("str_opt2"), text("opt2"));
    assert_eq!(set.value("bool_opt1"), Ok(OptionValue::Flag(false)));
    assert_eq!(set.value("bool_opt2"), Ok(OptionValue::Flag(true)));
    assert_eq!(set.value("bool_opt3"), Ok(OptionValue::Flag(true)));
    assert_eq!(set.value("int_opt2"), Ok(OptionValue::Number(0.0)));
    assert_eq!(set.value("float_opt1"), Ok(OptionValue::Number(0.25)));
    assert_eq!(set.value("list_opt1"), list(&["foo", "bar"]));
    assert_eq!(set.value("list_opt2"), list(&[]));
    assert_eq!(set.value("dash_opt"), text("dash-opt val"));
    assert_eq!(set.value("size"), Ok(OptionValue::Number(65_536.0)));
    // A script prints it with %u.
    given(&mut set, "percentile", Some("99,50"));
    assert_eq!(set.value("percentile"), Ok(OptionValue::Number(99.0)));
    assert_eq!(set.value("config-file"), Ok(OptionValue::Nothing));
    given(&mut set, "threads", Some("many"));
    let refusal = set.value("threads").unwrap_err();
    assert_eq!(refusal.to_string(), "Invalid value for the 'threads' option: 'many'");
}

#[test]
fn scripts_assign_values() {
    let mut set = OptionSet::general();
    set.assign("threads", OptionValue::Number(4.0)).unwrap();
    set.assign("validate", OptionValue::Flag(true)).unwrap();
    set.assign("mysql-host", OptionValue::List(vec!["a".to_owned()])).unwrap();
    assert_eq!((set.int("threads"), set.flag("validate")), (Ok(4), true));
    assert_eq!((set.list("mysql-host"), set.source("threads")), (["a".to_owned()].as_slice(), Some(Source::Script)));
    assert_eq!(set.assign("nothing", OptionValue::Nothing), Err(SetError::Unknown));
}

#[test]
fn redeclared_sysbench_option_keeps_its_given_value() {
    let mut set = OptionSet::general();
    given(&mut set, "threads", Some("8"));
    set.declare(OptionInfo::of_script("threads", "its own", Kind::Int, Some("2"))).unwrap();
    set.declare(OptionInfo::of_script("time", "its own", Kind::Int, Some("3"))).unwrap();
    assert_eq!((set.int("threads"), set.int("time")), (Ok(8), Ok(3)));
    assert_eq!(set.info("threads").unwrap().help, "its own");
    let wrong = OptionInfo::of_script("flag", "", Kind::Flag, Some("maybe"));
    assert_eq!(set.declare(wrong), Err(SetError::NotAFlag));
}

#[test]
fn config_entries_wait_for_their_declaration() {
    let mut set = OptionSet::general();
    let entry = |name: &str, values: &[&str], line| ConfigEntry {
        name: name.to_owned(),
        values: values.iter().map(|value| (*value).to_owned()).collect(),
        line,
    };
    let entries = vec![
        entry("threads", &["4"], 1),
        entry("table-size", &["100"], 2),
        entry("debug", &["off"], 3),
        entry("tabels", &["7"], 4),
    ];
    set.take_config("x.cnf", entries);
    assert_eq!((set.int("threads"), set.flag("debug")), (Ok(4), false));
    set.declare(OptionInfo::of_script("table_size", "", Kind::Int, Some("10000"))).unwrap();
    assert_eq!((set.int("table_size"), set.source("table_size")), (Ok(100), Some(Source::ConfigFile)));
    let words = "Global option 'tabels' will not be exported, because the type is unknown: line 4 of x.cnf";
    assert_eq!(set.unclaimed_words(), [words]);
    set.declare(OptionInfo::of_script("tables", "", Kind::Int, Some("1"))).unwrap();
    assert_eq!(set.unclaimed_words(), [format!("{words}; did you mean tables?")]);
}

/// Guards against a mistake: the first line of a name was used, and later lines were reported as undeclared.
#[test]
fn last_config_line_of_a_name_counts() {
    let entry = |value: &str, line| ConfigEntry { name: "tables".to_owned(), values: vec![value.to_owned()], line };
    let mut set = OptionSet::general();
    set.take_config("x.cnf", vec![entry("2", 1), entry("3", 2)]);
    set.declare(OptionInfo::of_script("tables", "", Kind::Int, Some("1"))).unwrap();
    assert_eq!(set.int("tables"), Ok(3));
    assert!(set.unclaimed_words().is_empty());
}

#[test]
fn near_names_are_offered_and_far_ones_are_not() {
    let set = OptionSet::general();
    assert_eq!(set.nearest("thread"), Some("threads"));
    assert_eq!(set.nearest("mysql_hots"), Some("mysql-host"));
    assert_eq!(set.nearest("report-intervall"), Some("report-interval"));
    // From cmdline.t: their errors are one line.
    for far in ["non-existing-option", "invalid-option", "foo", "x"] {
        assert_eq!(set.nearest(far), None, "{far}");
    }
}
