//! Requested settings take effect.

use rumba_engine_api::engine::Durability;
use rumba_engine_api::setting::Value;
use rumba_engine_fractal_tree::LIBRARY;

use crate::{config, open};

fn in_force(compression: Option<&str>, settings: &[(&str, Value)]) -> Vec<(String, String)> {
    let mut config = config(Durability::NoSync, settings);
    config.compression = compression.map(str::to_owned);
    open(&config).instance.effective_settings()
}

/// Each with its default, another value, and how the library writes that.
#[test]
#[needs(ExternalLibrary(LIBRARY))]
fn settings_and_defaults_are_read_back_from_the_library() {
    let text = |text: &str| Value::Text(text.to_owned());
    let cases = [
        ("pagesize", "4194304", text("1MiB"), "1048576"),
        ("readpagesize", "131072", text("64KiB"), "65536"),
        ("fanout", "16", Value::Int(8), "8"),
        ("checkpointing_period", "60", Value::Int(7), "7"),
        ("cleaner_period", "1", Value::Int(3), "3"),
        ("cleaner_iterations", "5", Value::Int(2), "2"),
        ("enable_partial_eviction", "", Value::Bool(false), "false"),
        ("lock_timeout", "1000", Value::Int(77), "77"),
        ("lk_max_memory", "", text("3MiB"), "3145728"),
        ("lg_max", "", text("2MiB"), "2097152"),
    ];
    let requested: Vec<(&str, Value)> = cases.iter().map(|(name, _, value, _)| (*name, value.clone())).collect();
    let (defaults, changed) = (in_force(None, &[]), in_force(Some("zlib"), &requested));
    for (name, default, _, set) in cases {
        assert!(default.is_empty() || defaults.contains(&(name.into(), default.into())), "{name}: {defaults:?}");
        assert!(changed.contains(&(name.into(), set.into())), "{name}: {changed:?}");
    }
    for (name, set) in [("cachesize", (32 << 20).to_string()), ("compression_method", "zlib".to_owned())] {
        assert!(changed.contains(&(name.into(), set)), "{name}: {changed:?}");
    }
}
