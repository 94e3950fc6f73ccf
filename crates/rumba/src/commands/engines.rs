//! `rumba engines`.

use std::process::ExitCode;

use rumba_core::engine::{Asked, Engine};
use rumba_lab::registry::Registry;
use serde_json::json;

use crate::cli::ListArgs;
use crate::problem::Problem;

/// Lists the engines, or the settings of one.
pub fn run(args: &ListArgs, registry: &Registry) -> super::Result {
    if let Some(name) = &args.name {
        let engine = registry.engine(name).ok_or_else(|| {
            Problem::mistake(format!("there is no engine `{name}`"), Registry::suggest(name, &registry.engine_names()))
        })?;
        return one(engine, args.json);
    }
    if args.json {
        return super::print_json(&registry.engines.iter().map(|engine| as_json(engine.as_ref())).collect());
    }
    for engine in &registry.engines {
        say!("{:<12} {}", engine.name(), engine.about());
        let here = engine.availability(Asked::default());
        match (&here.missing, here.version.as_deref().unwrap_or("version not told")) {
            (None, version) => say!("{:<12} {version}, {}", "", here.source),
            (Some(missing), _) => say!("{:<12} MISSING: {}; install it: {}", "", missing.what, missing.install),
        }
    }
    say!("\n`rumba engines NAME` lists the settings of one.");
    Ok(ExitCode::SUCCESS)
}

fn as_json(engine: &dyn Engine) -> serde_json::Value {
    let here = engine.availability(Asked::default());
    json!({
        "name": engine.name(),
        "about": engine.about(),
        "version": here.version,
        "source": here.source,
        "missing": here.missing,
        "compressions": engine.compressions(),
        "settings": engine.settings().iter().map(super::setting_json).collect::<Vec<_>>(),
    })
}

fn one(engine: &dyn Engine, json: bool) -> super::Result {
    if json {
        return super::print_json(&as_json(engine));
    }
    say!("{}: {}\n", engine.name(), engine.about());
    say!("Common settings ([common] or [[engine]]):");
    say!("  cache                        the database's own cache, a size [default: 64MiB]");
    say!("  durability                   what a commit promises [none | no-sync | sync; default: no-sync]");
    say!("  compression                  {}", engine.compressions().join(" | "));
    say!("\nIts own settings ([[engine]] settings.NAME, or --set {}.NAME=VALUE):", engine.name());
    for info in engine.settings() {
        say!("{}", super::setting_line(info));
    }
    Ok(ExitCode::SUCCESS)
}
