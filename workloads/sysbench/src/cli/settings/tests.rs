use super::*;
use crate::cli::command_line;
use crate::cli::command_line::Unknown;
use crate::cli::options::{Kind, OptionInfo};

fn read(arguments: &str) -> Result<(Settings, Vec<String>), Refusal> {
    let argv = std::iter::once("sysbench").chain(arguments.split_whitespace()).map(str::to_owned);
    let line = command_line::parse(argv).unwrap();
    let mut options = OptionSet::general();
    let mut no_file = |_: &str| -> std::io::Result<String> { unreachable!("no file is named") };
    let applied = line.apply(&mut options, &mut no_file);
    applied.unresolved.resolve(&mut options, Unknown::Refuse, &mut no_file, &mut |_| Ok(true)).unwrap();
    let (mut settings, warnings) = Settings::read(&mut options)?;
    settings.read_own(&options)?;
    Ok((settings, warnings))
}

fn settings(arguments: &str) -> Settings {
    read(arguments).unwrap().0
}

fn refusal(arguments: &str) -> String {
    read(arguments).unwrap_err().to_string()
}

const fn s(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

#[test]
fn fleet_has_hosts_and_the_address_of_this_one() {
    let place = |text: &str| settings(&format!("--threads=8 --fleet={text}")).fleet.unwrap();
    assert_eq!(place("3@n1"), FleetAddress { hosts: 3, address: "n1".to_owned(), port: 7331 });
    assert_eq!(place("8@10.0.0.1:99"), FleetAddress { hosts: 8, address: "10.0.0.1".to_owned(), port: 99 });
    assert_eq!(place("2@fd00::1").address, "fd00::1");
    for wrong in ["3", "3@", "0@n1", "@n1", "3@n1:x", "9@n1", "2@n1 --events=1"] {
        assert!(refusal(&format!("--threads=8 --fleet={wrong}")).contains("--fleet"), "{wrong}");
    }
}

#[test]
fn all_general_options_are_read() {
    let requested = settings(
        "--threads=8 --events=100 --time=60 --warmup_time=5 --rate=40 --report-interval=1 --report-checkpoints=20,10 \
         --debug --validate --percentile=50,99.9 --histogram --latency-max=600 --report-json=out.json \
         --report-layout=1.1 --client-driver=loops --rand-type=special --rand-seed=7 --luajit-cmd=off",
    );
    assert_eq!((requested.threads, requested.events, requested.time), (8, Some(100), Some(s(60))));
    assert_eq!((requested.warmup, requested.rate_per_s, requested.report_interval), (s(5), Some(40), Some(s(1))));
    assert_eq!(requested.checkpoints, [s(10), s(20)]);
    assert_eq!((requested.debug, requested.validate, requested.verbosity), (true, true, Rank::Debug));
    assert_eq!((requested.percentiles.as_slice(), requested.histogram), ([50.0, 99.9].as_slice(), true));
    assert_eq!((requested.latency_max_ms, requested.layout), (600_000.0, Layout::V1_1));
    assert_eq!(requested.report_json, Some(PathBuf::from("out.json")));
    assert_eq!(requested.client_driver, ClientDriver::Loops);
    assert_eq!((requested.random.shapes.default, requested.random.seed), (Distribution::Special, Some(7)));
    assert_eq!(requested.luajit_command.as_deref(), Some("off"));
}

/// The output of 1.0.20; the first and warmup-time are from opt_warmup_time.t, with an empty line after.
#[test]
fn values_that_cannot_be_are_refused_in_sysbenchs_words() {
    for (arguments, words) in [
        ("--threads=0", "FATAL: Invalid value for --threads: 0.\n"),
        ("--threads=", "FATAL: Invalid value for --threads: 0.\n"),
        ("--threads=-1", "FATAL: Invalid value for --threads: -1.\n"),
        ("--threads=abc", "Invalid value for the 'threads' option: 'abc'"),
        ("--report-interval=2x", "Invalid value for the 'report_interval' option: '2x'"),
        ("--warmup-time=-1", "FATAL: Invalid value for --warmup-time: -1.\n"),
        ("--forced-shutdown=x", "FATAL: Invalid value for --forced-shutdown: 'x'"),
        ("--thread-stack-size=0", "FATAL: Invalid value for thread-stack-size: 0.\n"),
        ("--rand-type=foo", "FATAL: Invalid random numbers distribution: foo."),
        ("--rand-zipfian-exp=-1", "FATAL: --rand-zipfian-exp must be >= 0"),
        ("--report-checkpoints=1,x", "FATAL: Invalid value for --report-checkpoints: 'x'"),
        ("--verbosity=7", "Invalid value for verbosity: 7"),
        ("--verbosity=-1", "Invalid value for verbosity: 255"),
        ("--percentile=101", "FATAL: Invalid value for --percentile: 101"),
        ("--percentile=-1", "FATAL: Invalid value for --percentile: -1"),
        ("--percentile=95,0", "FATAL: Invalid value for --percentile: 0"),
        ("--percentile=x", "Invalid value for the 'percentile' option: 'x'"),
        ("--percentile=0 --histogram", "FATAL: --histogram cannot be used with --percentile=0"),
        ("--latency-max=10", "FATAL: Invalid value for --latency-max: 10; it is 100 or more"),
        ("--report-layout=2", "FATAL: Invalid value for --report-layout: '2'; it is 1.0 or 1.1"),
        ("--client-driver=x", "FATAL: Invalid value for --client-driver: 'x'; it is auto, threads or loops"),
        ("--time=-1", "FATAL: Invalid value for --time: -1."),
    ] {
        assert_eq!(refusal(arguments), words, "{arguments}");
    }
}

/// A script's option `report_json`, a flag, once made rumba write a file named `on`.
#[test]
fn script_option_named_like_one_of_rumba_is_the_scripts() {
    let mut options = OptionSet::general();
    for (name, value) in [("report-json", "on"), ("report-layout", "wide"), ("latency-max", "x"), ("sqlite-db", "own")]
    {
        options.set(name, Some(value), Source::CommandLine).unwrap();
    }
    let (mut settings, _) = Settings::read(&mut options).unwrap();
    for (name, kind) in [("report_json", Kind::Flag), ("report_layout", Kind::Text), ("latency_max", Kind::Text)] {
        assert!(settings.read_own(&options).is_err(), "{name}: rumba's own values are invalid");
        options.declare(OptionInfo::of_script(name, "its own", kind, None)).unwrap();
    }
    settings.read_own(&options).unwrap();
    assert_eq!((settings.report_json, settings.layout), (None, Layout::V1_0));
    assert_eq!(settings.latency_max_ms, LATENCY_MAX_MS);
    assert_eq!((options.flag("report_json"), options.text("report_layout")), (true, Some("wide")));
    assert_eq!(options.for_rumba().text("sqlite-db"), Some("own"), "no script has declared it");
}

#[test]
fn too_many_checkpoints() {
    let all = vec!["1"; 257].join(",");
    assert_eq!(
        refusal(&format!("--report-checkpoints={all}")),
        "FATAL: Too many checkpoints in --report-checkpoints (up to 256 can be defined)"
    );
    let most = vec!["1"; 256].join(",");
    assert_eq!(settings(&format!("--report-checkpoints={most}")).checkpoints.len(), 256);
}

#[test]
fn names_of_1_0_count_and_are_warned_of() {
    let argv = "--num-threads=4 --threads=2 --max-time=30 --max-requests=7 --tx-rate=9";
    let (settings, warnings) = read(argv).unwrap();
    assert_eq!((settings.threads, settings.time), (4, Some(s(30))));
    assert_eq!((settings.events, settings.rate_per_s), (Some(7), Some(9)));
    assert_eq!(
        warnings,
        [
            "--num-threads is deprecated, use --threads instead",
            "--max-requests is deprecated, use --events instead",
            "--max-time is deprecated, use --time instead",
            "--tx-rate is deprecated, use --rate instead",
        ]
    );
    // Values without effect cause no warning.
    let (settings, warnings) = read("--num-threads=1 --threads=2 --max-time=0 --max-requests=0").unwrap();
    assert_eq!((settings.threads, settings.time), (2, Some(s(10))));
    assert_eq!(warnings, Vec::<String>::new());
}

#[test]
fn a_test_without_limits_is_warned_of() {
    let (settings, warnings) = read("--time=0").unwrap();
    assert_eq!((settings.time, settings.events), (None, None));
    assert_eq!(warnings, ["Both event and time limits are disabled, running an endless test"]);
    assert_eq!(read("--time=0 --events=1").unwrap().1, Vec::<String>::new());
}

#[test]
fn forced_shutdown_follows_the_time_limit() {
    let forced = |arguments: &str| settings(arguments).forced_shutdown;
    assert_eq!(forced("--time=100 --forced-shutdown"), Some(s(5)));
    assert_eq!(forced("--time=100 --forced-shutdown=7"), Some(s(7)));
    assert_eq!(forced("--time=100 --forced-shutdown=10%"), Some(s(10)));
    // The limit has the warm-up in it.
    assert_eq!(forced("--time=100 --warmup-time=100 --forced-shutdown=10%"), Some(s(20)));
    assert_eq!(forced("--time=100 --forced-shutdown=OFF"), None);
    // Without a time limit there is no forced shutdown, and sysbench does not check the value.
    assert_eq!(forced("--time=0 --events=1 --forced-shutdown=x"), None);
}

#[test]
fn percentiles_can_be_none() {
    assert_eq!(settings("--percentile=0").percentiles, Vec::<f64>::new());
    assert_eq!(settings("--percentile=").percentiles, Vec::<f64>::new());
    assert_eq!(settings("--percentile=99").percentiles, [99.0]);
}
