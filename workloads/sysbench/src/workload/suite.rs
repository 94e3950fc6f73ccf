//! Suites: several tests over one load.

use std::collections::BTreeMap;
use std::path::Path;

use rumba_engine_api::setting::{SettingError, Settings, Value};
use rumba_engine_api::workload::Test;

use super::validated_script::{is_bundled, script_of, suite_of};

/// The tests of the published runs over sysbench's tables, in their order: most writing tests come before the reading
/// ones, along with reads over the loaded tables. Each has its script and its additional options.
const CLASSIC: [(&str, &str, &str); 16] = [
    ("read-only-10", "oltp_read_only", "--range-size=10"),
    ("read-only-100", "oltp_read_only", "--range-size=100"),
    ("read-only-1000", "oltp_read_only", "--range-size=1000"),
    ("read-only-10000", "oltp_read_only", "--range-size=10000"),
    ("point-query", "oltp_point_select", ""),
    ("select", "oltp_point_select", ""),
    ("update-index", "oltp_update_index", ""),
    ("update-nonindex", "oltp_update_non_index", ""),
    ("read-write", "oltp_read_write", "--range-size=100"),
    ("read-only-10-post", "oltp_read_only", "--range-size=10"),
    ("read-only-100-post", "oltp_read_only", "--range-size=100"),
    ("read-only-1000-post", "oltp_read_only", "--range-size=1000"),
    ("read-only-10000-post", "oltp_read_only", "--range-size=10000"),
    ("point-query-post", "oltp_point_select", ""),
    ("select-post", "oltp_point_select", ""),
    ("insert", "oltp_insert", ""),
];

/// Tests over tables that were written to. Like all tests, each starts from a copy of the load; its clients write
/// before their first event. They write a number of events instead of for a time, so that all engines read equal
/// tables, also the slow ones.
const POST: &str = "-post";
const WRITES_BEFORE: &str = "writes_before";
/// With three rows written in each event, this is about a quarter of all rows, and a row of every page.
const WRITES_BEFORE_PERCENT: u32 = 10;

const MICRO: &str = "micro";

/// The tests that `suite` names; none without it.
pub(super) fn tests(settings: &Settings) -> Result<Vec<Test>, SettingError> {
    let Some(suite) = settings.text("suite") else { return Ok(Vec::new()) };
    let script = script_of(settings);
    match suite {
        "classic" => Ok(CLASSIC.iter().map(|&(name, script, more)| test(settings, name, script, more)).collect()),
        MICRO => all_of(settings, MICRO),
        "all" => all_of(settings, script),
        names => names.split(',').map(|name| named(settings, script, name.trim())).collect(),
    }
}

fn all_of(settings: &Settings, script: &str) -> Result<Vec<Test>, SettingError> {
    let Some((option, names)) = suite_of(script)? else { return Err(without_tests(script)) };
    Ok(names.iter().map(|name| test(settings, name, script, &format!("--{option}={name}"))).collect())
}

/// A test of the classic suite, one that the script declares, or of `micro`, or a script.
fn named(settings: &Settings, script: &str, name: &str) -> Result<Test, SettingError> {
    if let Some((name, script, more)) = CLASSIC.iter().find(|(known, ..)| *known == name) {
        return Ok(test(settings, name, script, more));
    }
    let mut known: Vec<String> = CLASSIC.iter().map(|(name, ..)| (*name).to_owned()).collect();
    for script in [script, MICRO] {
        let Some((option, names)) = suite_of(script)? else { continue };
        if names.iter().any(|known| known == name) {
            return Ok(test(settings, name, script, &format!("--{option}={name}")));
        }
        known.extend(names);
    }
    if is_bundled(name) || Path::new(name).is_file() {
        // The name that follows an engine's name and a slash.
        let short = Path::new(name).file_stem().map_or(name.into(), |stem| stem.to_string_lossy());
        return Ok(test(settings, &short, name, ""));
    }
    let remedy = match rumba_engine_api::nearest(name, known.iter().map(String::as_str)) {
        Some(near) => format!("did you mean `{near}`?"),
        None => "classic, micro, all, or names of their tests, of bundled scripts or of files".to_owned(),
    };
    Err(SettingError::new("suite", format!("unknown test `{name}`"), remedy))
}

fn without_tests(script: &str) -> SettingError {
    let problem = format!("{script} does not say which tests it is made of");
    SettingError::new("suite", problem, "name scripts with commas between, or set sysbench.cmdline.suite in it")
}

/// A test's settings: its script, and its options after the common ones, so that they take precedence.
fn test(settings: &Settings, name: &str, script: &str, more: &str) -> Test {
    let given = settings.text("options").unwrap_or_default();
    // The amount of writes may be set for all of them.
    let is_named = settings.0.keys().any(|name| name.replace('-', "_") == WRITES_BEFORE);
    let is_said = is_named || given.replace('-', "_").contains(WRITES_BEFORE);
    let writes = if name.ends_with(POST) && !is_said {
        format!("--{WRITES_BEFORE}={WRITES_BEFORE_PERCENT}")
    } else {
        String::new()
    };
    let options = [given, more, &writes].into_iter().filter(|text| !text.is_empty()).collect::<Vec<_>>().join(" ");
    let mut own: BTreeMap<String, Value> = settings.0.clone();
    own.remove("suite");
    own.insert("script".to_owned(), Value::Text(script.to_owned()));
    own.remove("options");
    if !options.is_empty() {
        own.insert("options".to_owned(), Value::Text(options));
    }
    Test { name: name.to_owned(), settings: Settings(own), loads: false }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn requested(given: &[(&str, &str)]) -> Result<Vec<Test>, SettingError> {
        let value = |(name, value): &(&str, &str)| ((*name).to_owned(), Value::Text((*value).to_owned()));
        tests(&Settings(given.iter().map(value).collect()))
    }

    #[test]
    fn the_classic_suite_is_in_the_published_order() {
        let tests = requested(&[("suite", "classic"), ("options", "--tables=8")]).unwrap();
        let names: Vec<&str> = tests.iter().map(|test| test.name.as_str()).collect();
        assert_eq!((names[0], names[6], names[15]), ("read-only-10", "update-index", "insert"));
        assert_eq!(tests[0].settings.text("options"), Some("--tables=8 --range-size=10"));
        assert_eq!(tests[0].settings.text("script"), Some("oltp_read_only"));
        assert_eq!(tests[0].settings.text("suite"), None);
        // The reading tests run before the writes and after them.
        let before = |name: &str| names.iter().position(|known| *known == name).unwrap();
        for read in ["read-only-100", "point-query", "select"] {
            let after = before(&format!("{read}-post"));
            assert!(before(read) < before("update-index") && after > before("read-write"), "{read}");
        }
        assert_eq!(tests[13].settings.text("options"), Some("--tables=8 --writes_before=10"));
        let said = requested(&[("suite", "point-query-post"), ("options", "--writes-before=50")]).unwrap();
        assert_eq!(said[0].settings.text("options"), Some("--writes-before=50"));
        assert_eq!(requested(&[]).unwrap(), []);
    }

    #[test]
    fn scripts_declare_their_tests() {
        let tests = requested(&[("suite", "micro")]).unwrap();
        assert!(tests.len() >= 40, "{}", tests.len());
        assert_eq!(tests[0].settings.text("options"), Some(format!("--micro_test={}", tests[0].name).as_str()));
        assert_eq!(requested(&[("script", "micro"), ("suite", "all")]).unwrap(), tests);
        assert!(requested(&[("suite", "all")]).unwrap_err().problem.contains("oltp_read_write does not say"));
    }

    #[test]
    fn tests_are_named_one_by_one_too() {
        let tests = requested(&[("suite", "point-pk, insert,oltp_delete")]).unwrap();
        let scripts: Vec<_> = tests.iter().map(|test| test.settings.text("script").unwrap()).collect();
        assert_eq!(scripts, ["micro", "oltp_insert", "oltp_delete"]);
        let error = requested(&[("suite", "point-query,point-pc")]).unwrap_err();
        assert!(error.problem.contains("`point-pc`") && error.remedy.contains("did you mean"), "{error:?}");
    }
}
