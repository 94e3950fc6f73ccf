//! Turns the tree into an [`Experiment`]. Every key is known, and every value is checked against its engine or
//! workload.

use std::sync::Arc;

use rumba_engine_api::engine::EngineConfig;
use rumba_engine_api::memory::MemoryUse;
use rumba_engine_api::setting::Settings;
use rumba_engine_api::workload::{LeastClients, Test, engine_in_test};
use rumba_results::engine_name;
use rumba_results::pair::Pair;
use rumba_results::warning::Warning;
use rumba_statistics::claims::Missing;

use super::claim::{Claims, claims, never_decided, scope};
use super::engines::{EngineContext, Engines, engines};
use super::error::{Origin, SpecError};
use super::known::Known;
use super::node::{Node, Table, Tree};
use super::prices::prices;
use super::run::run;
use super::{BoundWorkload, Experiment, RunSpec, ab, clients, fleet, memory, names, same_engine, take};
use crate::registry::Registry;

const TOP_KEYS: &[&str] =
    &["name", "source", "workload", "run", "limits", "common", "engine", "ab", "claim", "prices", "fleet"];

pub fn experiment(root: &Node, wanted: &[String], registry: &Registry) -> Result<Experiment, SpecError> {
    let table = root.table("experiment")?;
    take::only(table, "an experiment", TOP_KEYS)?;
    let name = name(table, root)?;
    let source = table.get("source").map(|node| take::text("source", node)).transpose()?.map(str::to_owned);
    let Work { workload, settings: workload_settings, bound, tests, least } = workload(table, root, registry)?;
    let prices = table.get("prices").map(prices).transpose()?;
    let fleet = table.get("fleet").map(fleet::fleet).transpose()?;
    let mut run = run(table.get("run"))?;
    (run.trial.prices, run.trial.fleet) = (prices, fleet);
    let refuse = |key: &str, problem: String, remedy: &str| {
        let node = table.get("run").and_then(|run| run.get(key));
        Err(SpecError::new(&node.unwrap_or(root).origin, problem, remedy))
    };
    if run.crash_s.is_some() && bound.acid().is_none() {
        let problem = format!("{workload} has no test of transaction guarantees");
        return refuse("verify", problem, "set verify = true");
    }
    let aged_by = match aged_by(&run, &tests) {
        Ok(settings) => settings,
        Err((key, problem, remedy)) => return refuse(key, problem, &remedy),
    };
    if let Some(setting) = bound.paces_itself().filter(|_| run.rate.is_some() || run.search.is_some()) {
        let problem = format!("{setting} makes clients wait between operations, and rate sets when operations start");
        return refuse("rate", problem, "take one of them out");
    }
    let work = MemoryUse {
        data_bytes: bound.expected_logical_bytes(),
        loaders: run.load_clients,
        clients: run.clients.iter().copied().max().unwrap_or_default(),
    };
    let context = EngineContext { wanted, workload: &workload, work, registry };
    let Engines { fitted, left_out, entries } = engines(table, root, &context)?;
    clients::refuse_too_few(table, &run, least.as_ref())?;
    fleet::refuse(table, &run, &*bound, &fitted, registry)?;
    clients::refuse_too_many(table, &run, &fitted, &*bound, registry)?;
    let memory::Budgets { shortages, unused: unused_memory, needs: memory_needs } = memory::Budgets::of(&fitted);
    let engines: Vec<EngineConfig> = fitted.into_iter().map(|fitted| fitted.config).collect();
    let absent = names_in_claims(left_out.iter().map(|(name, _)| name), &tests);
    let excused = |engine: &str| !wanted.is_empty() || absent.iter().any(|name| engine_name::is_called(name, engine));
    let known = names_in_claims(engines.iter().map(|engine| &engine.name), &tests);
    let scope = scope(&known, &run.clients);
    // Options may have renamed engines and tests, or replaced the numbers of clients. A misspelled name stays a mistake.
    let changed = |node: Option<&Node>| node.is_some_and(Node::is_from_option);
    let has_other_engines = ["workload", "common", "engine"].iter().any(|key| changed(table.get(*key)));
    let has_other_clients = changed(table.get("run").and_then(|run| run.get("clients")));
    let Claims { kept, left_out: unjudged } = claims(table, &scope, &|missing| match missing {
        Missing::Engine(engine) => has_other_engines || excused(engine),
        Missing::Clients => has_other_clients,
    })?;
    let never_decided = never_decided(&kept, &scope, run.repeats);
    let is_wanted = |engine: &str| wanted.iter().any(|name| engine_name::is_called(engine, name));
    let pairs = ab::pairs(table, &engines, &|engine| excused(engine) && !is_wanted(engine))?;
    let as_run = super::build_text::write(&as_run(root, entries, &pairs, kept.iter().map(|(node, _)| *node)));
    let claims = kept.into_iter().map(|(_, claim)| claim).collect();
    let left_out = left_out.into_iter().map(|(_, warning)| warning);
    let left_out =
        left_out.chain(claims_left_out(&unjudged).filter(|_| has_other_engines || has_other_clients)).collect();
    Ok(Experiment {
        name,
        source,
        workload,
        workload_settings,
        bound,
        aged_by,
        tests,
        left_out,
        same_engines: if run.aa { Vec::new() } else { same_engine::warnings(&engines, registry) },
        never_decided,
        shortages,
        unused_memory,
        memory_needs,
        engines,
        run,
        pairs,
        claims,
        as_run,
    })
}

/// The user may have changed the clients, tests or engines of a published experiment without thinking of its claims.
fn claims_left_out(texts: &[String]) -> Option<Warning> {
    let message = format!(
        "{} of the experiment's claims are not judged, because --set or --engine changed what they compare: {}",
        texts.len(),
        texts.join(" ")
    );
    let remedy = "keep the engines, tests and numbers of clients that a claim names if you need its verdict";
    (!texts.is_empty()).then(|| Warning::new("claims-left-out", message, remedy))
}

/// The settings of the test that ages the data shared by a suite's tests; or the invalid key, with problem and remedy.
fn aged_by(run: &RunSpec, tests: &[Test]) -> Result<Option<Settings>, (&'static str, String, String)> {
    let shares = tests.iter().any(|test| !test.loads);
    let names = || tests.iter().map(|test| test.name.as_str()).collect::<Vec<_>>().join(", ");
    match (&run.age_by, run.age_s) {
        (None, Some(_)) if shares => {
            let problem = "the tests of a suite share their data; age_by must name the test that ages it";
            Err(("age", problem.to_owned(), format!("add age_by, the name of a test that writes: {}", names())))
        }
        (Some(_), None) => Err(("age_by", "age_by is set without age".to_owned(), "add age".to_owned())),
        (Some(_), _) if !shares => {
            Err(("age_by", "no suite of tests that share their data".to_owned(), "leave age_by out".to_owned()))
        }
        (Some(name), _) => match tests.iter().find(|test| test.name == *name) {
            Some(test) => Ok(Some(test.settings.clone())),
            None => Err(("age_by", format!("unknown test `{name}`"), format!("write one of {}", names()))),
        },
        (None, _) => Ok(None),
    }
}

/// The experiment with only these engines, pairs and claims, because the others name engines that do not run.
fn as_run<'a>(root: &Node, entries: Vec<Node>, pairs: &[Pair], claims: impl Iterator<Item = &'a Node>) -> Node {
    let mut root = root.clone();
    let nodes: Vec<Node> = claims.cloned().collect();
    if let Tree::Table(table) = &mut root.tree {
        table.insert("engine".to_owned(), Node::at(Tree::List(entries), Origin::Default));
        if pairs.is_empty() {
            table.remove("ab");
        } else {
            table.insert("ab".to_owned(), ab::table(pairs));
        }
        if nodes.is_empty() {
            table.remove("claim");
        } else if let Some(claim) = table.get_mut("claim") {
            claim.tree = Tree::List(nodes);
        }
    }
    root
}

fn name(table: &Table, root: &Node) -> Result<String, SpecError> {
    let node = take::required(table, "name", root, "name = \"my-experiment\"")?;
    let name = take::text("name", node)?;
    names::of_experiment(name, &node.origin)?;
    Ok(name.to_owned())
}

/// The names that claims may use: engines, and in a suite their tests.
fn names_in_claims<'a>(engines: impl Iterator<Item = &'a String>, tests: &[Test]) -> Vec<String> {
    let names = |engine: &String| {
        let in_tests = tests.iter().map(|test| engine_in_test(engine, Some(&test.name)));
        std::iter::once(engine.clone()).chain(in_tests).collect::<Vec<_>>()
    };
    engines.flat_map(names).collect()
}

struct Work {
    workload: String,
    settings: Settings,
    bound: BoundWorkload,
    tests: Vec<Test>,
    /// The fewest clients with which all operations reach the data. In a suite the tests count, and not their shared
    /// part.
    least: Option<LeastClients>,
}

/// The workload's name, its settings, and the workload bound to them.
fn workload(table: &Table, root: &Node, registry: &Registry) -> Result<Work, SpecError> {
    let node =
        take::required(table, "workload", root, "[workload.NAME], with one of those that `rumba workloads` lists")?;
    let workloads = node.table("workload")?;
    let mut entries = workloads.iter();
    let (Some((name, body)), None) = (entries.next(), entries.next()) else {
        return Err(SpecError::new(
            &node.origin,
            format!("{} workloads are given; an experiment runs one", workloads.len()),
            "keep one [workload.NAME] table",
        ));
    };
    let known = registry.workload_names();
    let workload = registry.workload(name).ok_or_else(|| {
        SpecError::new(
            &body.key_origin,
            format!("unknown workload `{name}`"),
            format!("{} (`rumba workloads` lists them)", Registry::suggest(name, &known)),
        )
    })?;
    let origin = &body.key_origin;
    let body = body.table(&format!("workload.{name}"))?;
    let settings = take::settings(body)?.as_described(workload.settings());
    let known = Known::of(workload, &settings).map_err(|error| take::at_setting(error, body, root))?;
    let known = known.all();
    let settings = settings.as_described(&known);
    let checked = settings.check(name, &known).and_then(|()| {
        let tests = workload.tests(&settings)?;
        let of_tests = tests.iter().map(|test| workload.bind(&test.settings).map(|test| test.least_clients()));
        let of_tests = of_tests.collect::<Result<Vec<_>, _>>()?;
        let bound = workload.bind(&settings)?;
        let least = match tests.is_empty() {
            true => bound.least_clients(),
            false => of_tests.into_iter().flatten().max_by_key(|least| least.clients),
        };
        Ok((bound, tests, least))
    });
    let (bound, tests, least) = checked.map_err(|error| take::at_setting(error, body, root))?;
    each_once(&tests, origin)?;
    Ok(Work { workload: name.clone(), settings, bound: BoundWorkload(Arc::from(bound)), tests, least })
}

/// Tests are distinguished only by name. Two with one name, such as scripts of two directories, would be repeats of
/// each other.
fn each_once(tests: &[Test], origin: &Origin) -> Result<(), SpecError> {
    let is_again = |(nth, test): &(usize, &Test)| tests[..*nth].iter().any(|before| before.name == test.name);
    tests.iter().enumerate().find(is_again).map_or(Ok(()), |(_, test)| {
        Err(SpecError::new(
            origin,
            format!("two of its tests are called `{}`, so rumba would report them as repeats of one", test.name),
            "give each test once, and scripts file names of their own; repeats = 2 or more runs a test again",
        ))
    })
}
