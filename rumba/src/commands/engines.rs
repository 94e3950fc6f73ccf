//! `rumba engines`: what can run here, `rumba engines install` for servers and libraries, and `rumba engines build` for a
//! server that no package has.

use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use rumba_engine_api::engine::{Availability, BuildSelector, Engine, ExternalLibrary, Form};
use rumba_engine_api::error::EngineError;
use rumba_engine_api::server::ServerInfo;
use rumba_lab::registry::Registry;
use rustix::process::{Pid, Signal};
use serde_json::json;

use super::Output;
use crate::cli::{EnginesArgs, EnginesCommand, ListArgs};
use crate::problem::Problem;

/// Lists the engines, or the settings of one; or installs or builds a server or a library.
pub fn run(args: &EnginesArgs, registry: &Registry) -> super::Result {
    match &args.command {
        Some(EnginesCommand::Install { server }) => install(server, registry),
        Some(EnginesCommand::Build { engine }) => build(engine, registry),
        None => list(&args.list, registry),
    }
}

fn list(args: &ListArgs, registry: &Registry) -> super::Result {
    let servers: Vec<ServerInfo> = registry.catalogues.iter().flat_map(|catalogue| catalogue.list()).collect();
    if let Some(name) = &args.name {
        let engine = registry.engine(name).ok_or_else(|| {
            Problem::mistake(format!("unknown engine `{name}`"), Registry::suggest(name, &registry.engine_names()))
        })?;
        return one(engine, &servers, args.json);
    }
    if args.json {
        let engines = registry.engines.iter().map(|engine| as_json(engine.as_ref(), &servers));
        return Ok(Output::json(&engines.collect()));
    }
    for engine in &registry.engines {
        say!("{:<12} {}", engine.info().name, engine.info().about);
        show_releases(engine.as_ref(), &servers);
    }
    say!("\n`rumba engines NAME` lists the settings of one.");
    Ok(Output::default())
}

fn is_server(engine: &dyn Engine) -> bool {
    engine.info().form == Form::Server
}

/// The releases of the catalogue that have an engine: servers, or libraries.
fn of<'a>(engine: &dyn Engine, servers: &'a [ServerInfo]) -> Vec<&'a ServerInfo> {
    servers.iter().filter(|server| has(server, engine)).collect()
}

fn has(server: &ServerInfo, engine: &dyn Engine) -> bool {
    server.engines.iter().any(|name| name == engine.info().name)
}

/// Prints an engine's releases: for a server engine, those of the server; otherwise the default library and its
/// releases.
fn show_releases(engine: &dyn Engine, servers: &[ServerInfo]) {
    let having = of(engine, servers);
    if having.is_empty() || !is_server(engine) {
        say!("{:<12} {}", "", line(&engine.availability(BuildSelector::default())));
    }
    for server in having {
        say!("{:<12} {:<19} {}", "", server.name, line(&server.availability));
    }
}

fn line(here: &Availability) -> String {
    match (&here.missing, here.version.as_deref()) {
        (None, Some(version)) => format!("{version}, {}", here.source),
        (None, None) => format!("unknown version, {}", here.source),
        (Some(missing), _) => format!("MISSING: {}; install it: {}", missing.what, missing.install),
    }
}

fn as_json(engine: &dyn Engine, servers: &[ServerInfo]) -> serde_json::Value {
    let here = engine.availability(BuildSelector::default());
    let mut value = json!({
        "name": engine.info().name,
        "about": engine.info().about,
        "version": here.version,
        "source": here.source,
        "missing": here.missing,
        "compressions": engine.info().compressions,
        "settings": engine.info().settings.iter().map(super::setting_json).collect::<Vec<_>>(),
    });
    let releases = of(engine, servers);
    if is_server(engine) || !releases.is_empty() {
        let releases = releases.into_iter().map(|server| {
            json!({
                "name": server.name,
                "version": server.availability.version,
                "source": server.availability.source,
                "missing": server.availability.missing,
                "install": server.install,
            })
        });
        value[if is_server(engine) { "servers" } else { "libraries" }] = releases.collect();
    }
    value
}

fn one(engine: &dyn Engine, servers: &[ServerInfo], json: bool) -> super::Result {
    if json {
        return Ok(Output::json(&as_json(engine, servers)));
    }
    say!("{}: {}\n", engine.info().name, engine.info().about);
    if let Some(ExternalLibrary { variable, page }) = engine.info().brought {
        say!("Its library is brought by you: {page} says how it is made.");
        say!("{variable} names it, or [[engine]] library in an experiment.\n");
    }
    if is_server(engine) {
        say!("Servers ([[engine]] server = NAME, a base directory, or a DSN without its password):");
        show_releases(engine, servers);
        say!("");
    } else if !of(engine, servers).is_empty() {
        say!("Libraries ([[engine]] library = NAME, or the path of one), the default first:");
        show_releases(engine, servers);
        say!("");
    }
    say!("Common settings ([common] or [[engine]]):");
    let cache = match (engine.info().has_cache, engine.info().keeps_data) {
        (true, _) => "the database's own cache, a size [default: 64MiB]",
        (false, true) => "nothing: it has no cache and uses the page cache, which limits.memory bounds",
        (false, false) => "nothing: it stores no data",
    };
    say!("  cache                        {cache}");
    say!(
        "  durability                   what a commit guarantees [none | buffered | no-sync | sync; default: \
          no-sync]"
    );
    say!("  compression                  {}", engine.info().compressions.join(" | "));
    say!("\nIts own settings ([[engine]] settings.NAME, or --set {}.NAME=VALUE):", engine.info().name);
    for info in engine.info().settings {
        say!("{}", super::setting_line(info));
    }
    if is_server(engine) {
        say!("and every variable of the server, by its own name.");
    }
    Ok(Output::default())
}

fn install(name: &str, registry: &Registry) -> super::Result {
    fetch(registry, "release", name, |server| Some(&server.name))
}

/// The command that builds the server of an engine, before the engine's name.
const BUILD: &str = "rumba engines build ";

fn build(engine: &str, registry: &Registry) -> super::Result {
    fetch(registry, "engine to build", engine, |server| server.install.strip_prefix(BUILD))
}

/// Installs the release that `called` gives this name.
fn fetch(registry: &Registry, what: &str, name: &str, called: impl Fn(&ServerInfo) -> Option<&str>) -> super::Result {
    let known = registry.catalogues.iter().find_map(|catalogue| {
        let server = catalogue.list().into_iter().find(|server| called(server) == Some(name))?;
        Some((catalogue, server))
    });
    let Some((catalogue, server)) = known else {
        let all: Vec<ServerInfo> = registry.catalogues.iter().flat_map(|catalogue| catalogue.list()).collect();
        let names: Vec<&str> = all.iter().filter_map(&called).collect();
        let remedy = match rumba_engine_api::nearest(name, names.iter().copied()) {
            Some(nearest) => format!("did you mean `{nearest}`?"),
            None => format!("known are: {}", names.join(", ")),
        };
        return Err(Problem::mistake(format!("unknown {what} `{name}`"), remedy));
    };
    let name = &server.name;
    let is_built = server.install.starts_with(BUILD);
    let interrupted = end_children_when_interrupted()?;
    let mut say = |what: &str| say!("{name}: {what}");
    match catalogue.install(name, &mut say) {
        Ok(_) => Ok(Output::default()),
        Err(_) if interrupted.load(Relaxed) => {
            let more = if is_built { "; the same command continues" } else { "" };
            say!("{name}: interrupted; nothing was installed{more}");
            Ok(ExitCode::from(super::run::INTERRUPTED).into())
        }
        Err(error @ EngineError::DiskFull(_)) => Err(Problem::failure(
            error.to_string(),
            "nothing was installed: free some space, or set RUMBA_CACHE to a directory on a larger volume",
        )),
        Err(error) if is_built => Err(Problem::failure(
            error.to_string(),
            "nothing was installed: remove the cause, then run the same command again; it continues",
        )),
        Err(error) => Err(Problem::failure(
            error.to_string(),
            "nothing was installed: check the network and the tool it is installed with (apt-get, dpkg-deb, npm, pip \
             or mvn), then try again",
        )),
    }
}

/// Makes an interrupt end the processes that the install has started instead of rumba itself.
/// The install then fails, and so removes its partial server.
fn end_children_when_interrupted() -> Result<Arc<AtomicBool>, Problem> {
    let interrupted = Arc::new(AtomicBool::new(false));
    let flag = interrupted.clone();
    let mut signals = super::signals()?;
    std::thread::spawn(move || {
        for _ in signals.forever() {
            flag.store(true, Relaxed);
            children().into_iter().filter_map(Pid::from_raw).for_each(|pid| {
                // The process may have ended already.
                let _ = rustix::process::kill_process(pid, Signal::TERM);
            });
        }
    });
    Ok(interrupted)
}

/// The processes that this one has started.
fn children() -> Vec<i32> {
    let threads = std::fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
    let listed = threads.filter_map(|thread| std::fs::read_to_string(thread.path().join("children")).ok());
    listed.flat_map(|list| list.split_whitespace().filter_map(|pid| pid.parse().ok()).collect::<Vec<_>>()).collect()
}
