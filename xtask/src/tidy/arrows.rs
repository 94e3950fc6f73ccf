//! The permitted dependencies between crates. The engine API depends on none, engines, workloads and protocols on it, what
//! is stored and reported on it alone, and the binary and the tools on all.

use std::collections::BTreeMap;
use std::path::Path;

use toml_edit::{Document, Item, TableLike};

use super::{Finding, Text};

/// A crate's role, by its directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Room {
    /// The interfaces of engines, workloads and protocols.
    EngineApi,
    /// Stored and reported data. No engine, workload or protocol uses it.
    Results,
    /// The connection between the hosts of a run.
    Fleet,
    Lab,
    /// From records to verdicts.
    Statistics,
    Report,
    /// Results as a browser shows them, also during a run.
    Live,
    /// The transport to a server, for any protocol.
    Transport,
    /// The protocol of a family of servers: a client, a null server.
    Protocol,
    /// The shared code of server engines.
    ServerKit,
    Engine,
    /// The shared code of workloads.
    WorkloadKit,
    Workload,
    /// The shared code of tests.
    Testkit,
    /// The fault tests, which drive the program as its users do.
    Faults,
    Binary,
    Chores,
}

impl Room {
    fn of(manifest: &Path) -> Option<Self> {
        let mut parts = manifest.parent()?.iter().map(|part| part.to_str().unwrap_or_default());
        Some(match (parts.next()?, parts.next()) {
            ("crates", Some("engine-api")) => Room::EngineApi,
            ("crates", Some("results")) => Room::Results,
            ("crates", Some("fleet")) => Room::Fleet,
            ("crates", Some("lab")) => Room::Lab,
            ("crates", Some("statistics")) => Room::Statistics,
            ("crates", Some("report")) => Room::Report,
            ("crates", Some("live")) => Room::Live,
            ("crates", Some("testkit")) => Room::Testkit,
            ("crates", Some("server-kit")) => Room::ServerKit,
            ("crates", Some("workload-kit")) => Room::WorkloadKit,
            ("protocols", Some("transport")) => Room::Transport,
            ("protocols", Some(_)) => Room::Protocol,
            ("tests", Some("faults")) => Room::Faults,
            ("engines", Some(_)) => Room::Engine,
            ("workloads", Some(_)) => Room::Workload,
            ("rumba", None) => Room::Binary,
            // Programs measured next to rumba, and the fuzz targets: each is a separate workspace.
            ("fuzz", None) | ("xtask", None | Some("peers")) => Room::Chores,
            _ => return None,
        })
    }

    /// Whether a crate here may use one there; `in_tests` when only its tests do.
    fn may_use(self, other: Room, in_tests: bool) -> bool {
        match self {
            _ if other == Room::Testkit => in_tests || matches!(self, Room::Testkit | Room::Chores),
            _ if other == Room::Faults => in_tests && self == Room::Binary,
            // Suites for any engine use it through its trait.
            Room::Testkit => other == Room::EngineApi,
            // The page's display of statistics is tested with the real statistics.
            Room::Report if in_tests => matches!(other, Room::EngineApi | Room::Results | Room::Statistics),
            Room::EngineApi | Room::Fleet => false,
            Room::Engine => matches!(other, Room::EngineApi | Room::Protocol | Room::ServerKit),
            Room::ServerKit => matches!(other, Room::EngineApi | Room::Transport),
            Room::Protocol => {
                matches!(other, Room::EngineApi | Room::Transport) || (in_tests && other == Room::Protocol)
            }
            // Its statements are tested on a real server and a real engine.
            Room::Workload if in_tests => {
                matches!(other, Room::EngineApi | Room::WorkloadKit | Room::Protocol | Room::Engine)
            }
            // The claims of an experiment are checked in the language in which they are judged.
            Room::Lab => matches!(other, Room::EngineApi | Room::Fleet | Room::Results | Room::Statistics),
            Room::Workload => matches!(other, Room::EngineApi | Room::WorkloadKit),
            Room::Statistics | Room::Report => matches!(other, Room::EngineApi | Room::Results),
            Room::Results | Room::Transport | Room::WorkloadKit => other == Room::EngineApi,
            // It observes a run and shows results; it knows neither engines nor workloads.
            Room::Live => {
                matches!(other, Room::EngineApi | Room::Results | Room::Lab | Room::Statistics | Room::Report)
            }
            // It knows rumba only by the program's output.
            Room::Faults => other == Room::Protocol,
            Room::Binary | Room::Chores => true,
        }
    }

    fn rule(self) -> &'static str {
        match self {
            Room::EngineApi => "the engine API depends on no crate of this workspace",
            Room::Fleet => {
                "the fleet's connection depends on no crate of this workspace: it knows no lab and no engine"
            }
            Room::Results => "what is stored and reported depends on the engine API alone",
            Room::Lab => {
                "lab depends on the engine API, the fleet's connection, results and statistics alone: it knows engines and workloads as traits"
            }
            Room::Statistics => "statistics depends on the engine API and results alone: records in, verdicts out",
            Room::Report => "report depends on the engine API and results alone; its tests may use the statistics",
            Room::Live => {
                "the live page depends on the engine API, results, lab, statistics and report alone: it knows no engine"
            }
            Room::Transport => "the transport depends on the engine API alone",
            Room::Protocol => "a protocol depends on the engine API and the transport alone; its tests may use another",
            Room::Engine => {
                "an engine depends on the engine API, its protocol and, if it is a server, the server kit alone"
            }
            Room::ServerKit => "the server kit depends on the engine API and the transport alone: it knows no protocol",
            Room::Workload => {
                "a workload depends on the engine API and the workload kit alone; its tests may use a protocol or an engine"
            }
            Room::WorkloadKit => "the workload kit depends on the engine API alone",
            Room::Testkit => "what tests share depends on the engine API alone: it knows engines as traits",
            Room::Faults => "the fault suite drives the program, and uses a protocol alone; the program's tests use it",
            Room::Binary | Room::Chores => "depends on what it needs",
        }
    }
}

struct Manifest<'a> {
    file: &'a Text,
    toml: Document<&'a str>,
}

/// Every dependency of every crate, of every kind: normal, for tests, for builds, for one platform.
pub fn check(files: &[Text]) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut manifests = Vec::new();
    for file in files.iter().filter(|file| file.path.ends_with("Cargo.toml")) {
        match Document::parse(file.content.as_str()) {
            Ok(toml) => manifests.push(Manifest { file, toml }),
            Err(error) => findings.push(file.finding(1, format!("not TOML: {}", error.message()))),
        }
    }
    let rooms: BTreeMap<&str, Room> =
        manifests.iter().filter_map(|manifest| Some((name(manifest)?, Room::of(&manifest.file.path)?))).collect();
    let shared = manifests.iter().find(|manifest| manifest.file.path == Path::new("Cargo.toml"));
    let shared = shared.and_then(|root| root.toml.get("workspace")?.get("dependencies")?.as_table_like());
    for manifest in &manifests {
        match (name(manifest), Room::of(&manifest.file.path)) {
            (Some(_), Some(room)) => findings.extend(wrong_arrows(manifest, room, &rooms, shared)),
            (Some(name), None) => findings.push(manifest.file.finding(
                1,
                format!(
                    "`{name}` is in no room: crates are in crates/, engines/, protocols/, tests/, workloads/, rumba or xtask"
                ),
            )),
            (None, _) => {}
        }
    }
    findings
}

fn name<'a>(manifest: &'a Manifest<'_>) -> Option<&'a str> {
    manifest.toml.get("package")?.get("name")?.as_str()
}

fn wrong_arrows(
    manifest: &Manifest<'_>,
    room: Room,
    rooms: &BTreeMap<&str, Room>,
    shared: Option<&dyn TableLike>,
) -> Vec<Finding> {
    dependency_tables(&manifest.toml)
        .into_iter()
        .flat_map(|(kind, table)| table.iter().map(move |(key, item)| (kind, table, key, item)))
        .filter_map(|(kind, table, key, item)| {
            let package = package_name(key, item, shared);
            let wrong = !room.may_use(*rooms.get(package)?, kind == "dev-dependencies");
            let offset = table.key(key).and_then(|key| key.span()).map_or(0, |span| span.start);
            wrong.then(|| {
                manifest.file.finding(manifest.file.line_of(offset), format!("depends on `{package}`; {}", room.rule()))
            })
        })
        .collect()
}

fn dependency_tables<'a>(toml: &'a Document<&str>) -> Vec<(&'static str, &'a dyn TableLike)> {
    const KINDS: [&str; 3] = ["dependencies", "dev-dependencies", "build-dependencies"];
    let platforms = toml.get("target").and_then(Item::as_table_like);
    let platforms = platforms.into_iter().flat_map(|table| table.iter().filter_map(|(_, item)| item.as_table_like()));
    let everywhere: &dyn TableLike = toml.as_table();
    std::iter::once(everywhere)
        .chain(platforms)
        .flat_map(|table| KINDS.into_iter().filter_map(|kind| Some((kind, table.get(kind)?.as_table_like()?))))
        .collect()
}

/// The package behind a dependency's key, which may be another name for it.
fn package_name<'a>(key: &'a str, item: &'a Item, shared: Option<&'a dyn TableLike>) -> &'a str {
    let is_shared = item.get("workspace").and_then(Item::as_bool).unwrap_or(false);
    let item = if is_shared { shared.and_then(|shared| shared.get(key)) } else { Some(item) };
    item.and_then(|item| item.get("package")?.as_str()).unwrap_or(key)
}
