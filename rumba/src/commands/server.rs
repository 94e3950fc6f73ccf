//! `rumba server`: managed servers for your own use.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use rumba_engine_api::access::Access;
use rumba_engine_api::engine::{EngineConfig, Form};
use rumba_engine_api::printable::shown;
use rumba_engine_api::setting::Value;
use rumba_lab::keeper::{self, Answer, KeptServer, Order, Server};
use rumba_lab::limits;
use rumba_lab::provision::{DataDir, ResourceRegistry, refuse_unshowable};
use rumba_lab::registry::Registry;
use rumba_lab::runner;
use rumba_lab::spec::{self, Overrides};
use rumba_lab::store::data_base;
use rumba_results::record::Status;
use serde_json::json;

use super::Output;
use crate::cli::{ServerArgs, ServerCommand, ServerListArgs, ServerStartArgs, ServerStopArgs};
use crate::problem::Problem;
use crate::progress::notify;

/// A longer name could become a path that no file system takes.
const LONGEST_NAME: usize = 100;

/// Starts a server, stops some or lists them.
pub fn run(args: &ServerArgs, registry: &Registry) -> super::Result {
    match &args.command {
        ServerCommand::Start(args) => start(args, registry),
        ServerCommand::Stop(args) => stop(args),
        ServerCommand::List(args) => list(args),
    }
}

/// A request to start a server.
struct ServerRequest {
    name: String,
    engine: EngineConfig,
    from: Option<PathBuf>,
}

fn start(args: &ServerStartArgs, registry: &Registry) -> super::Result {
    let directory = Path::new(&args.what);
    let requested = match directory.join("experiment.json").is_file() {
        true => kept_data(directory, args, registry)?,
        false => fresh(args, registry)?,
    };
    let name = args.name.clone().unwrap_or(requested.name);
    refuse_name(&name)?;
    let managed = ResourceRegistry::of_user()?;
    runner::clean_leftovers(&managed, &notify);
    if keeper::find(&managed)?.iter().any(|kept| kept.name == name) {
        let remedy = format!("stop it (rumba server stop {name}), or give this one another name (--name)");
        return Err(Problem::mistake(format!("a server called {name} is up"), remedy));
    }
    let place = std::path::absolute(&args.data_dir)
        .map_err(|error| Problem::mistake(format!("{}: {error}", shown(&args.data_dir)), "name a directory"))?;
    refuse_unshowable(&place)?;
    let engine = within_limits(requested.engine, &place, args.allow_unlimited)?;
    let server = order(&Order { name, engine, place, from: requested.from })?;
    if args.json {
        return Ok(Output::json(&json!(server)));
    }
    show(&server);
    Ok(Output::default())
}

/// The name is also used as a directory name.
fn refuse_name(name: &str) -> Result<(), Problem> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    if !name.is_empty() && name.len() <= LONGEST_NAME && name.chars().all(is_plain) && !name.starts_with(['.', '-']) {
        return Ok(());
    }
    let remedy = format!("use letters, digits, hyphens and points, at most {LONGEST_NAME} of them (--name)");
    Err(Problem::mistake(format!("a server cannot be called `{name}`"), remedy))
}

/// A server without data yet: an engine of its usual server, or of the named release.
fn fresh(args: &ServerStartArgs, registry: &Registry) -> Result<ServerRequest, Problem> {
    let (engine, server) = which(args, registry)?;
    let server = server.map(|release| format!("server={release}"));
    let set = server.into_iter().chain(args.set.iter().cloned()).collect();
    let overrides = Overrides { engines: vec![engine], set, ..Overrides::default() };
    // An experiment is checked as a whole and needs a workload; this workload never runs.
    let workload = registry.workload_names().into_iter().next().unwrap_or_default();
    let experiment = spec::of_workload(workload, &overrides, registry)?;
    let one = <[EngineConfig; 1]>::try_from(experiment.engines)
        .map_err(|_| Problem::mistake("these settings make several servers", "give each key one value"))?;
    let [mut engine] = one;
    refuse_unless_managed(&engine, registry)?;
    listen(&mut engine, registry);
    Ok(ServerRequest { name: engine.name.clone(), engine, from: None })
}

/// The engine, and the release if one is named.
fn which(args: &ServerStartArgs, registry: &Registry) -> Result<(String, Option<String>), Problem> {
    let what = &args.what;
    let releases: Vec<_> = registry.catalogues.iter().flat_map(|catalogue| catalogue.list()).collect();
    if let Some(release) = releases.iter().find(|release| release.name == *what) {
        let first = release.engines.first().cloned().unwrap_or_default();
        return Ok((args.engine.clone().unwrap_or(first), Some(what.clone())));
    }
    let plain = what.split('.').next().unwrap_or_default();
    if registry.engine(plain).is_some() && args.engine.is_none() {
        return Ok((what.clone(), None));
    }
    let servers = registry.engines.iter().map(|engine| engine.info()).filter(|info| info.form == Form::Server);
    let known: Vec<&str> =
        releases.iter().map(|release| release.name.as_str()).chain(servers.map(|info| info.name)).collect();
    let problem = format!("`{what}` is neither a release, nor a server's engine, nor a results directory");
    Err(Problem::mistake(problem, Registry::suggest(what, &known)))
}

fn refuse_unless_managed(config: &EngineConfig, registry: &Registry) -> Result<(), Problem> {
    let Some(engine) = registry.engine(&config.engine) else { return Ok(()) };
    if engine.info().form != Form::Server {
        let remedy = "it is a library, and has no process to start: `rumba run` opens it";
        return Err(Problem::mistake(format!("{} is no server", config.engine), remedy));
    }
    if config.is_existing() {
        let remedy = "name a release or a base directory: a server that already runs needs no supervisor";
        return Err(Problem::mistake("an existing server is not rumba's to start and stop", remedy));
    }
    if config.limits.client_cpus.is_some() {
        let remedy = "leave it out, and start your client with taskset";
        return Err(Problem::mistake("client_cpus restricts rumba's clients, and this server has none", remedy));
    }
    Ok(())
}

/// Lets clients connect over loopback if the engine leaves the choice. A user's client may be anywhere on the host, and
/// a socket's path may be longer than clients accept.
fn listen(config: &mut EngineConfig, registry: &Registry) {
    let settings = registry.engine(&config.engine).map(|engine| engine.info().settings).unwrap_or_default();
    if settings.iter().any(|info| info.name == "tcp") {
        config.settings.0.entry("tcp".to_owned()).or_insert(Value::Bool(true));
    }
}

/// The data of a trial from a run with `keep_data`.
fn kept_data(directory: &Path, args: &ServerStartArgs, registry: &Registry) -> Result<ServerRequest, Problem> {
    if !args.set.is_empty() || args.engine.is_some() {
        return Err(Problem::mistake(
            "--set and --engine do not apply to kept data: its files fit the settings that it was made with",
            "leave them out; `rumba server start ENGINE --set …` starts a server without data",
        ));
    }
    let results = super::report::read(directory)?;
    let trials = results.trials.iter().filter(|trial| args.trial.as_ref().is_none_or(|name| *name == trial.directory));
    let mut found = Vec::new();
    for trial in trials.filter(|trial| trial.record.status == Status::Done || args.trial.is_some()) {
        let config = &trial.record.plan.engine;
        let is_server = registry.engine(&config.engine).is_some_and(|engine| engine.info().form == Form::Server);
        if let (true, Some(data)) = (is_server, left_by(directory, &trial.directory)?) {
            found.push((&trial.directory, config, data));
        }
    }
    match found.as_slice() {
        [(name, config, data)] => {
            let mut engine = EngineConfig::clone(config);
            // Only rumba's own clients had it.
            engine.limits.client_cpus = None;
            listen(&mut engine, registry);
            Ok(ServerRequest { name: (*name).clone(), engine, from: Some(data.clone()) })
        }
        [] => Err(Problem::mistake(
            format!("{} has no kept data of a server", shown(directory)),
            "run it with --set keep_data=true: data of an embedded engine needs no server, and the data of a load is \
             not kept",
        )),
        several => {
            let names: Vec<&str> = several.iter().map(|(name, ..)| name.as_str()).collect();
            let problem = format!("{} has kept data of several trials", shown(directory));
            Err(Problem::mistake(problem, format!("choose one with --trial: {}", names.join(", "))))
        }
    }
}

/// The instance directory of a trial, if it was kept: in the results, or where the run put its data.
fn left_by(directory: &Path, trial: &str) -> Result<Option<PathBuf>, Problem> {
    let bases = data_base(directory).ok().into_iter().chain([directory.join("data")]);
    // A marker holds the path without links. A missing base holds nothing.
    for base in bases.filter_map(|base| base.canonicalize().ok()) {
        if let Some(data) = DataDir::kept(&base.join(trial))? {
            return Ok(Some(data));
        }
    }
    Ok(None)
}

/// The engine with its limits. It refuses limits that this host cannot enforce, unless the user allows that.
fn within_limits(engine: EngineConfig, place: &Path, allow_unlimited: bool) -> Result<EngineConfig, Problem> {
    if !allow_unlimited {
        limits::check(&engine.limits, place)?;
        return Ok(engine);
    }
    let (limits, warnings) = limits::enforceable(&engine.limits, place)?;
    warnings.iter().for_each(|warning| notify(&format!("warning: {} ({})", warning.message, warning.remedy)));
    Ok(EngineConfig { limits, ..engine })
}

/// Starts the supervisor, and receives from it whether the server started.
fn order(order: &Order) -> Result<Server, Problem> {
    let failed =
        |error: std::io::Error| Problem::failure(format!("the server's keeper: {error}"), "see `rumba doctor`");
    let mut command = super::own("keep").map_err(failed)?;
    command.current_dir("/").stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    // SAFETY: between fork and exec there is one system call. It makes a new session, so that the end of this terminal
    // does not end the server.
    unsafe {
        command.pre_exec(|| Ok(rustix::process::setsid().map(drop)?));
    }
    let mut keeper = command.spawn().map_err(failed)?;
    let json = serde_json::to_vec(order).map_err(|error| failed(error.into()))?;
    if let Some(mut stdin) = keeper.stdin.take() {
        // A supervisor that died before it read the order sends nothing.
        let _ = stdin.write_all(&json);
    }
    let mut line = String::new();
    if let Some(stdout) = keeper.stdout.take() {
        BufReader::new(stdout).read_line(&mut line).map_err(failed)?;
    }
    match serde_json::from_str(&line) {
        Ok(Answer::Up(server)) => Ok(*server),
        Ok(Answer::Failed(why)) => {
            Err(Problem::failure(format!("{} did not start: {why}", order.name), "it is removed completely"))
        }
        Err(_) => Err(Problem::failure(
            format!("the keeper of {} ended without a word", order.name),
            "rumba doctor --clean removes its leftovers",
        )),
    }
}

fn show(server: &Server) {
    let version = server.version.as_deref().unwrap_or("of an unknown version");
    let pid = server.pid.map_or(String::new(), |pid| format!(", process {pid}"));
    say!("{}: {} is up, {version}{pid}", server.name, server.engine);
    say!("  files   {}", shown(&server.directory));
    if let Some(from) = &server.from {
        say!("  data    a copy of {}", shown(from));
    }
    server.limits.iter().for_each(|limit| say!("  limit   {limit}"));
    if let Some(access) = &server.access {
        say!("  client  {}", command_line(access));
        if let (Some(file), false) = (&access.password_file, mentions_password_file(access)) {
            say!("          the password it asks for is in {}", shown(file));
        }
    }
    say!("  end     rumba server stop {}", server.name);
}

/// Whether the client finds the password without the password file being named.
fn mentions_password_file(access: &Access) -> bool {
    let Some(file) = access.password_file.as_ref().map(|file| file.display().to_string()) else { return true };
    let values = access.environment.iter().map(|(_, value)| value);
    values.chain(&access.command).any(|word| word.contains(&file))
}

/// The text quoted for a shell.
fn command_line(access: &Access) -> String {
    let variables = access.environment.iter().map(|(name, value)| format!("{name}={}", quoted(value)));
    variables.chain(access.command.iter().map(|word| quoted(word))).collect::<Vec<_>>().join(" ")
}

fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:@%+,".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', "'\\''"))
}

fn list(args: &ServerListArgs) -> super::Result {
    let kept = keeper::find(&ResourceRegistry::of_user()?)?;
    if args.json {
        let servers = kept.iter().map(|kept| {
            let keeper = json!({ "pid": kept.keeper.process.pid, "since": kept.keeper.created });
            json!({ "name": kept.name, "keeper": keeper, "server": kept.server })
        });
        return Ok(Output::json(&servers.collect()));
    }
    for KeptServer { name, keeper, server } in &kept {
        match server {
            Some(server) => show(server),
            None => say!("{name}: starts or ends, kept by process {} since {}", keeper.process.pid, keeper.created),
        }
    }
    if kept.is_empty() {
        say!("no server is kept; `rumba server start` starts one");
    }
    Ok(Output::default())
}

fn stop(args: &ServerStopArgs) -> super::Result {
    let managed = ResourceRegistry::of_user()?;
    let kept = keeper::find(&managed)?;
    let known: Vec<&str> = kept.iter().map(|kept| kept.name.as_str()).collect();
    if let Some(unknown) = args.names.iter().find(|name| !known.contains(&name.as_str())) {
        let remedy = match known.is_empty() {
            true => "none is kept".to_owned(),
            false => format!("known are: {}", known.join(", ")),
        };
        return Err(Problem::mistake(format!("no server called `{unknown}` is kept"), remedy));
    }
    for one in kept.iter().filter(|kept| args.all || args.names.contains(&kept.name)) {
        keeper::stop(one).map_err(|error| {
            let remedy = format!(
                "its supervisor is process {}; rumba doctor --clean removes its leftovers",
                one.keeper.process.pid
            );
            Problem::failure(format!("{} could not be stopped: {error}", one.name), remedy)
        })?;
        let left = rumba_lab::leftovers::find(&managed)?;
        if let Some(left) = left.iter().find(|left| left.owner == one.keeper) {
            return Err(Problem::failure(format!("{} has ended and left {left}", one.name), "rumba doctor --clean"));
        }
        say!("{}: stopped, and removed completely", one.name);
    }
    Ok(Output::default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn command_line_can_be_pasted_with_any_characters_in_paths() {
        let access = Access {
            environment: vec![("PGPASSFILE".into(), "/tmp/it's mine/pgpass".into())],
            command: vec!["psql".into(), "-h".into(), "127.0.0.1".into(), String::new()],
            password_file: Some("/tmp/it's mine/pgpass".into()),
        };
        assert_eq!(command_line(&access), r"PGPASSFILE='/tmp/it'\''s mine/pgpass' psql -h 127.0.0.1 ''");
        assert!(mentions_password_file(&access));
    }

    #[test]
    fn a_name_is_the_name_of_one_directory() {
        for name in ["innodb", "003-myrocks.zstd-c4-r1"] {
            assert!(refuse_name(name).is_ok(), "{name}");
        }
        for name in ["", "..", "a/b", "-all", "a b"] {
            assert!(refuse_name(name).is_err(), "{name}");
        }
    }
}
