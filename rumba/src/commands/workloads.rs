//! `rumba workloads`.

use rumba_lab::registry::Registry;
use serde_json::json;

use super::Output;
use crate::cli::ListArgs;
use crate::problem::Problem;

/// Lists the workloads, or the settings of one.
pub fn run(args: &ListArgs, registry: &Registry) -> super::Result {
    if let Some(name) = &args.name {
        return one(name, args.json, registry);
    }
    if args.json {
        let workloads = registry.workloads.iter().map(|workload| {
            json!({
                "name": workload.name(),
                "about": workload.about(),
                "settings": workload.settings().iter().map(super::setting_json).collect::<Vec<_>>(),
            })
        });
        return Ok(Output::json(&workloads.collect()));
    }
    for workload in &registry.workloads {
        say!("{:<12} {}", workload.name(), workload.about());
    }
    say!("\n`rumba workloads NAME` lists the settings of one.");
    Ok(Output::default())
}

fn one(name: &str, json: bool, registry: &Registry) -> super::Result {
    let workload = registry.workload(name).ok_or_else(|| {
        Problem::mistake(format!("unknown workload `{name}`"), Registry::suggest(name, &registry.workload_names()))
    })?;
    // A workload without its usual script has no settings to declare.
    let declared = workload.declared(&rumba_engine_api::setting::Settings::default()).unwrap_or_default();
    if json {
        let settings: Vec<_> = workload.settings().iter().map(super::setting_json).collect();
        let declared: Vec<_> = declared.iter().map(|info| super::setting_json(&info.borrowed())).collect();
        let about = workload.about();
        let workload = json!({ "name": name, "about": about, "settings": settings, "declared": declared });
        return Ok(Output::json(&workload));
    }
    say!("{name}: {}\n\nSettings ([workload.{name}], or --set NAME=VALUE):", workload.about());
    for info in workload.settings() {
        say!("{}", super::setting_line(info));
    }
    if !declared.is_empty() {
        say!("\nSettings that these make known, here with their defaults:");
    }
    for info in &declared {
        say!("{}", super::setting_line(&info.borrowed()));
    }
    let bound = workload.bind(&rumba_engine_api::setting::Settings::default());
    if let Ok(bound) = bound {
        say!("\nOperations:");
        for op in bound.ops().iter() {
            let short = op.short.as_ref().map_or("", |short| &short.name);
            let limit = op.limit.as_ref().map(|limit| format!("{}% within {} s", limit.percent, limit.seconds));
            let rate = op.rate.as_ref().map(|rate| format!("a minute: {}", rate.name));
            let reported: Vec<String> = limit.into_iter().chain(rate).collect();
            say!("{}", format!("  {:<24} {short:<4} {}", op.name, reported.join(", ")).trim_end());
        }
    }
    Ok(Output::default())
}
