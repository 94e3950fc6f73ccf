//! The command line configures a run. A script's actions at load time, its declarations and the time of its hooks do
//! not change that.

use super::{TestDir, figure, succeeds};

/// Guards against a refusal: at load time a script once got no driver, and drew the same numbers for every seed.
#[test]
fn a_script_may_connect_and_draw_where_it_is_loaded() {
    let place = TestDir::new();
    let script = "con = sysbench.sql.driver():connect()
        first = sysbench.rand.uniform(1, 4294967294)
        function init() print('drew ' .. first) assert(sysbench.rand.uniform(1, 4294967294) ~= first) end
        function event() assert(con:query_row('SELECT ' .. sysbench.tid + 1) == tostring(sysbench.tid + 1)) end";
    std::fs::write(place.path("own.lua"), script).unwrap();
    let drew = |seed: &str| {
        let words = ["own.lua", "--db-driver=sqlite", "--threads=2", "--events=6", "--time=0", seed, "run"];
        let said = succeeds(&place, &words);
        assert_eq!(figure(&said, "read:"), 6.0, "{said}");
        figure(&said, "drew")
    };
    assert_ne!(drew("--rand-seed=1"), drew("--rand-seed=2"));
    assert_eq!(drew("--rand-seed=1"), drew("--rand-seed=1"));
}

/// The run's settings are read before its script is. Guards against a mix-up: three threads once ran, and the text
/// `off` counted as on.
#[test]
fn script_option_named_like_a_sysbench_option_is_separate() {
    let place = TestDir::new();
    let script = "sysbench.cmdline.options =
            { threads = {'How many', 3}, events = {'How many', 9}, histogram = {'Whether', 'off'} }
        function event() end
        function done() print(sysbench.opt.threads, sysbench.opt.events, sysbench.opt.histogram) end";
    std::fs::write(place.path("own.lua"), script).unwrap();
    let said = succeeds(&place, &["own.lua", "--events=4", "--histogram=off", "--time=0", "run"]);
    assert!(said.contains("Number of threads: 1\n") && !said.contains("Latency histogram"), "{said}");
    assert_eq!(figure(&said, "total number of events:"), 4.0, "{said}");
    assert!(said.ends_with("3\t4\toff\n"), "{said}");
}

/// sysbench has no `--report-json`, so a script may define it. rumba once wrote a file `on`.
#[test]
fn script_option_named_like_one_of_rumba_is_the_scripts() {
    let place = TestDir::new();
    let script = "sysbench.cmdline.options =
            { report_json = {'Whether', false}, report_layout = {'Which', 'wide'}, client_driver = {'How many', 3} }
        function event() end
        function done() print(sysbench.opt.report_json, sysbench.opt.report_layout, sysbench.opt.client_driver) end";
    std::fs::write(place.path("own.lua"), script).unwrap();
    for (given, printed) in [
        (&["--report-json=on", "--report-layout=narrow", "--client-driver=7"][..], "true\tnarrow\t7\n"),
        (&["--report-json"], "true\twide\t3\n"),
        (&[], "false\twide\t3\n"),
    ] {
        let said = succeeds(&place, &[given, &["own.lua", "--events=1", "--time=0", "run"]].concat());
        assert!(said.ends_with(printed) && said.contains("General statistics:"), "{said}");
        assert!(!place.path("on").exists(), "{given:?}");
    }
}

/// Guards against using one server only: all connections of a client once went to the same one. No server listens here.
#[test]
fn connections_take_the_servers_in_turn() {
    let place = TestDir::new();
    let script = "function prepare()
            local drv = sysbench.sql.driver()
            for _ = 1, 3 do print(select(2, pcall(drv.connect, drv))) end
        end";
    std::fs::write(place.path("own.lua"), script).unwrap();
    let said = succeeds(&place, &["own.lua", "--mysql-host=127.0.0.1", "--mysql-port=1,2", "prepare"]);
    let failed = said.lines().filter(|line| line.starts_with("connection creation failed: "));
    let ports: Vec<&str> = failed.filter_map(|line| line.split("127.0.0.1:").nth(1)?.split(':').next()).collect();
    assert_eq!(ports, ["1", "2", "1"], "{said}");
}

/// The run went on for as long.
#[test]
fn a_hook_that_takes_long_keeps_no_client_from_its_end() {
    let place = TestDir::new();
    let script = "ffi.cdef[[int usleep(unsigned int);]]
        function event() ffi.C.usleep(1000) end
        function sysbench.hooks.report_intermediate() os.execute('sleep 4') end";
    std::fs::write(place.path("own.lua"), script).unwrap();
    let said = succeeds(&place, &["own.lua", "--threads=2", "--time=2", "--report-interval=1", "run"]);
    // The hook runs until the fifth second.
    assert!((2.0..4.0).contains(&figure(&said, "total time:")), "{said}");
}
