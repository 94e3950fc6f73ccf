//! Every drawing function of scripts, under all of its names, follows its law in sysbench.

use std::sync::Arc;

use rumba_workload_sysbench::Interpreter;
use rumba_workload_sysbench::random::{Distribution, Shapes};
use rumba_workload_sysbench::setup::Setup;

use super::Run;
use super::laws::{self, Fit, Law, Verdict};

const DRAWS: u32 = 400_000;
/// A range that does not begin at 1, shifted so that its first number is 1.
const RANGE: &str = "(7, 106) - 6";
const NUMBERS: usize = 100;

/// The counts that a script leaves in its global `counts`.
fn counted(script: &str, shapes: Shapes) -> Vec<f64> {
    let run = Run::new();
    let setup = Setup { shapes, ..Arc::into_inner(run.setup(script)).unwrap() };
    let interpreter = Interpreter::new(&Arc::new(setup), 3, Arc::default());
    interpreter.unwrap_or_else(|error| panic!("{script}: {error}")).lua().globals().get("counts").unwrap()
}

/// The counts of the classes that a Lua expression draws, the first of them 1.
fn counts(draw: &str, classes: usize, shapes: Shapes) -> Vec<f64> {
    let script = format!(
        "local byte, turn = ffi.new('char[1]'), 0
        local function in_turns(classes) turn = turn % classes + 1 return turn end
        local statement = sysbench.sql.driver():connect():prepare('SELECT ?')
        local parameter = statement:bind_create(sysbench.sql.type.VARCHAR, 1)
        counts = {{}}
        for class = 1, {classes} do counts[class] = 0 end
        for _ = 1, {DRAWS} do
            local class = {draw}
            counts[class] = counts[class] + 1
        end"
    );
    counted(&script, shapes)
}

fn fit(draw: &str, law: &[f64], shapes: Shapes) -> Fit {
    laws::fit(&counts(draw, law.len(), shapes), law)
}

fn fits(draw: &str, law: &[f64], shapes: Shapes) {
    all_fit(&[draw], law, shapes);
}

/// The first follows the law. The others are its other names: with one seed all of them draw the same.
fn all_fit(draws: &[&str], law: &[f64], shapes: Shapes) {
    let first = counts(draws[0], law.len(), shapes);
    let fit = laws::fit(&first, law);
    assert_eq!(fit.verdict, Verdict::Fits, "{}, {shapes:?}: {fit:?}", draws[0]);
    for draw in &draws[1..] {
        assert_eq!(counts(draw, law.len(), shapes), first, "{draw}, {shapes:?}: it is {} by another name", draws[0]);
    }
}

/// The law of a distribution with default options.
fn law_of(distribution: Distribution) -> Law {
    match distribution {
        Distribution::Uniform => laws::uniform(NUMBERS),
        Distribution::Gaussian => laws::gaussian(NUMBERS, 12),
        Distribution::Special => laws::special(NUMBERS, 12, 1.0, 75.0),
        Distribution::Pareto => laws::pareto(NUMBERS, 0.2),
        Distribution::Zipfian => laws::zipfian(NUMBERS, 0.8),
    }
}

#[test]
fn every_random_function_follows_its_distribution() {
    for (name, distribution) in Distribution::NAMES {
        let law = law_of(distribution);
        let mut names = vec![format!("sysbench.rand.{name}"), format!("ffi.C.sb_rand_{name}")];
        // Before 1.0 there was none.
        if distribution != Distribution::Zipfian {
            names.push(format!("sb_rand_{name}"));
        }
        names.extend(["sysbench.rand.default", "ffi.C.sb_rand_default", "sb_rand"].map(str::to_owned));
        let draws: Vec<String> = names.iter().map(|name| format!("{name}{RANGE}")).collect();
        let draws: Vec<&str> = draws.iter().map(String::as_str).collect();
        all_fit(&draws, &law, Shapes { default: distribution, ..Shapes::default() });
    }
}

#[test]
fn options_shape_the_laws_as_they_do_in_sysbench() {
    let shapes = Shapes::default();
    let draw = |name: &str| format!("sysbench.rand.{name}{RANGE}");
    for iterations in [1, 3] {
        fits(&draw("gaussian"), &laws::gaussian(NUMBERS, iterations), Shapes { iterations, ..shapes });
    }
    let special = Shapes { iterations: 5, special_pct: 10.0, special_res: 40.0, ..shapes };
    fits(&draw("special"), &laws::special(NUMBERS, 5, 10.0, 40.0), special);
    fits(&draw("pareto"), &laws::pareto(NUMBERS, 0.35), Shapes { pareto_h: 0.35, ..shapes });
    for exponent in [0.0, 1.0, 1.3] {
        let zipfian = Shapes { zipfian_exponent: exponent, ..shapes };
        fits(&draw("zipfian"), &laws::zipfian(NUMBERS, exponent), zipfian);
    }
    // In a range of few numbers, the last has hardly any draw of the bell, and with `special` none.
    fits("sysbench.rand.special(7, 11) - 6", &laws::special(5, 12, 1.0, 75.0), shapes);
    fits("sysbench.rand.gaussian(7, 11) - 6", &laws::gaussian(5, 12), shapes);
}

#[test]
fn numbers_without_a_range_and_texts_are_uniform() {
    for (draws, classes) in [
        (
            &[
                "math.floor(sysbench.rand.uniform_double() * 100) + 1",
                "math.floor(ffi.C.sb_rand_uniform_double() * 100) + 1",
            ][..],
            100,
        ),
        (
            &[
                "tonumber(sysbench.rand.uniform_uint64() / 2ULL^57) + 1",
                "tonumber(ffi.C.sb_rand_uniform_uint64() / 2ULL^57) + 1",
            ],
            128,
        ),
        (&["tonumber(sysbench.rand.uniform_uint64() % 128ULL) + 1", "sb_rnd() % 128 + 1"], 128),
        (&["math.floor(sb_rnd() / 2^25) + 1"], 128),
        (
            &[
                "math.floor(sysbench.rand.unique() / 2^25) + 1",
                "math.floor(ffi.C.sb_rand_unique() / 2^25) + 1",
                "math.floor(sb_rand_uniq() / 2^25) + 1",
            ],
            128,
        ),
        (&["math.floor(sb_rand_uniq(0, 2147483647) / 2^24) + 1"], 128),
        (&["sysbench.rand.string('#'):byte() - 47", "sb_rand_str('#'):byte() - 47"], 10),
        (
            &[
                "sysbench.rand.string('@'):byte() - 96",
                "sb_rand_str('x@'):byte(2) - 96",
                "ffi.C.sb_rand_str('@', byte) or byte[0] - 96",
                "parameter:set_rand_str('@') or parameter.buffer[0] - 96",
            ],
            26,
        ),
        (&["#sysbench.rand.varstring(3, 12) - 2"], 10),
        (&["sysbench.rand.varstring(1, 1):byte() - 47", "ffi.C.sb_rand_varstr(byte, 1, 1) and byte[0] - 47"], 75),
    ] {
        all_fit(draws, &laws::uniform(classes), Shapes::default());
    }
}

/// With a table of more than 2^32 rows, only a part of it was once read.
#[test]
fn ranges_beyond_32_bits_are_whole_or_refused() {
    let script = "
        local last = 34000000000
        for _, name in ipairs { 'default', 'uniform', 'gaussian', 'special', 'pareto', 'zipfian' } do
            for _, draw in ipairs { sysbench.rand[name], ffi.C['sb_rand_' .. name] } do
                local least, most = last, 1
                for _ = 1, 20000 do
                    local n = draw(1, last)
                    assert(n >= 1 and n <= last and n % 1 == 0, name .. ' ' .. n)
                    least, most = math.min(least, n), math.max(most, n)
                end
                assert(most > 3 * 2^32 and least < most / 2, name .. ' ' .. most)
            end
        end
        assert(sysbench.rand.uniform(last, last) == last)
        assert(sysbench.rand.uniform(last / 3, last) % 1 == 0, 'select_random_ranges divides the table')
        for _, draw in ipairs { sysbench.rand.uniform, sb_rand_uniq } do
            local done, why = pcall(draw, 1, 2^60)
            assert(not done and (why:find('9007199254740992') or why:find('4294967295')), tostring(why))
        end";
    Run::new().load(script).unwrap();
}

/// They are drawn directly into the rows, so no script sees them before the database has them.
#[test]
fn texts_of_rows_that_are_loaded_are_drawn_as_all_others() {
    const ROWS: u32 = 80_000;
    let into = |fill: &str| {
        let script = format!(
            "local con = sysbench.sql.driver():connect()
            con:query('CREATE TABLE drawn (letter CHAR(1))')
            con:load_rows_init('drawn', 'letter')
            for _ = 1, {ROWS} do {fill} end
            con:load_rows_done()
            counts = {{}}
            local rs = con:query('SELECT count(*) FROM drawn GROUP BY letter ORDER BY letter')
            for class = 1, rs.nrows do counts[class] = tonumber(rs:fetch_row()[1]) end"
        );
        counted(&script, Shapes::default())
    };
    let drawn = into("con:load_rows_string('@')");
    let fit = laws::fit(&drawn, &laws::uniform(26));
    assert_eq!(fit.verdict, Verdict::Fits, "{fit:?}");
    assert_eq!(drawn, into("con:load_rows_text(sysbench.rand.string('@'))"));
}

/// Each differs only slightly from a law above, as an implementation mistake would make it.
#[test]
fn samples_of_another_distribution_are_detected() {
    let shapes = Shapes::default();
    let drawn = |name: &str| format!("sysbench.rand.{name}{RANGE}");
    let uniform = || laws::uniform(NUMBERS);
    for (draw, law, shapes) in [
        (drawn("gaussian"), law_of(Distribution::Gaussian), Shapes { iterations: 11, ..shapes }),
        (drawn("special"), law_of(Distribution::Special), Shapes { iterations: 11, ..shapes }),
        (drawn("special"), law_of(Distribution::Special), Shapes { special_pct: 2.0, ..shapes }),
        (drawn("special"), law_of(Distribution::Special), Shapes { special_res: 74.0, ..shapes }),
        (drawn("pareto"), law_of(Distribution::Pareto), Shapes { pareto_h: 0.21, ..shapes }),
        (drawn("zipfian"), law_of(Distribution::Zipfian), Shapes { zipfian_exponent: 0.82, ..shapes }),
        ("sysbench.rand.uniform(7, 105) - 6".to_owned(), uniform(), shapes),
        ("math.floor(sysbench.rand.uniform_double()^1.02 * 100) + 1".to_owned(), uniform(), shapes),
        ("math.min(sysbench.rand.string('@'):byte() - 96, 25)".to_owned(), laws::uniform(26), shapes),
        ("#sysbench.rand.varstring(3, 11) - 2".to_owned(), laws::uniform(10), shapes),
    ] {
        let fit = fit(&draw, &law, shapes);
        assert_eq!(fit.verdict, Verdict::TooFar, "{draw}, {shapes:?}: {fit:?}");
    }
    // They are taken in turn: all equally often, and not drawn.
    let fit = fit("in_turns(100)", &uniform(), shapes);
    assert_eq!(fit.verdict, Verdict::TooNear, "{fit:?}");
}
