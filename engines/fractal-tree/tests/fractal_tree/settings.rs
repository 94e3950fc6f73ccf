//! Requested settings take effect.

use rumba_engine_api::engine::Durability;
use rumba_engine_api::setting::Value;
use rumba_engine_fractal_tree::LIBRARY;

use crate::{Database, config};

fn in_force(settings: &[(&str, Value)]) -> Vec<(String, String)> {
    Database::open(&config(Durability::NoSync, settings)).instance.effective_settings()
}

#[test]
#[needs(ExternalLibrary(LIBRARY))]
fn every_setting_is_read_back_from_the_library() {
    let text = |text: &str| Value::Text(text.to_owned());
    let requested = [
        ("pagesize", text("1MiB"), "1048576"),
        ("readpagesize", text("64KiB"), "65536"),
        ("fanout", Value::Int(8), "8"),
        ("checkpointing_period", Value::Int(7), "7"),
        ("cleaner_period", Value::Int(3), "3"),
        ("cleaner_iterations", Value::Int(2), "2"),
        ("enable_partial_eviction", Value::Bool(false), "false"),
        ("lock_timeout", Value::Int(77), "77"),
        ("lk_max_memory", text("3MiB"), "3145728"),
        ("lg_max", text("2MiB"), "2097152"),
    ];
    let settings: Vec<(&str, Value)> = requested.iter().map(|(name, value, _)| (*name, value.clone())).collect();
    let found = in_force(&settings);
    for (name, _, right) in requested {
        assert!(found.contains(&(name.to_owned(), right.to_owned())), "{name}: {found:?}");
    }
    assert!(found.contains(&("cachesize".to_owned(), (32 << 20).to_string())), "{found:?}");
}

#[test]
#[needs(ExternalLibrary(LIBRARY))]
fn the_defaults_are_those_that_are_listed() {
    let found = in_force(&[]);
    for (name, right) in [
        ("pagesize", "4194304"),
        ("readpagesize", "131072"),
        ("fanout", "16"),
        ("checkpointing_period", "60"),
        ("cleaner_period", "1"),
        ("cleaner_iterations", "5"),
        ("lock_timeout", "1000"),
    ] {
        assert!(found.contains(&(name.to_owned(), right.to_owned())), "{name}: {found:?}");
    }
}
