//! Guards against allocations per operation once buffers have grown. All clients would share the allocator's lock, and
//! its time would be charged to the engine.
#![allow(clippy::unwrap_used)]

mod support;

use rumba_testkit::allocations::{self, Counting};
use std::path::Path;
use std::sync::{Arc, Mutex};

use rumba_engine_api::engine::{Durability, Engine, EngineConfig, Session};
use rumba_engine_api::worker::Client;
use rumba_engine_api::workload::Bound;
use rumba_engine_null::Null;
use rumba_null_server::{Config, Listen, NullServer, Protocol};
use rumba_protocol_mongodb::{Address, MongoSession, SessionOptions, Target};
use support::server::Server;
use support::{address, bind, drive};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// A session of the `null` engine, which answers at once with zeros.
fn zeros(bound: &dyn Bound) -> Session {
    let config = EngineConfig { cache: 1, durability: Durability::None, ..EngineConfig::new("null") };
    let instance = Null.open(Path::new("."), &config, bound.schema(Null.info().family)).unwrap();
    instance.session().unwrap()
}

/// The allocations of a run, less those of a run without operations.
fn allocated(run: &mut dyn FnMut(u64)) -> u64 {
    let mut measure = |ops| allocations::during(|| run(ops));
    // Buffers grow first.
    measure(20_000);
    let empty = measure(0);
    measure(100_000) - empty
}

#[test]
fn operations_allocate_nothing() {
    for profile in ["2011", "2017"] {
        let bound = bind(&[("profile", profile), ("maxid1", "100000")]);
        let mut client = bound.client(zeros(bound.as_ref()), address(0, 1), 7).unwrap();
        let extra = allocated(&mut |ops| drop(drive(client.as_mut(), ops)));
        assert_eq!(extra, 0, "profile {profile}");
    }
}

/// A batch is one operation. Buffers may still meet their largest batch now and then.
fn assert_batches_allocate_nothing(loader: &mut dyn Client) {
    drive(loader, 400);
    let grown = allocations::during(|| drop(drive(loader, 1000)));
    assert!(grown < 20, "{grown} allocations in 1000 batches of 1024 rows");
}

#[test]
fn the_load_allocates_nothing() {
    let bound = bind(&[("maxid1", "400000000")]);
    let mut loader = bound.loader(0, zeros(bound.as_ref()), address(0, 1), 7).unwrap();
    assert_batches_allocate_nothing(loader.as_mut());
}

/// A server that answers without recording.
fn quiet() -> Arc<Mutex<Server>> {
    Arc::new(Mutex::new(Server { has_link: true, is_quiet: true, ..Server::default() }))
}

#[test]
fn operations_over_sql_allocate_nothing() {
    for profile in ["2011", "2017"] {
        let (bound, server) = (bind(&[("profile", profile), ("maxid1", "100000")]), quiet());
        let mut client = bound.client(Server::session(&server, 2), address(0, 1), 7).unwrap();
        let extra = allocated(&mut |ops| drop(drive(client.as_mut(), ops)));
        assert_eq!(extra, 0, "profile {profile}");
    }
}

#[test]
fn load_over_sql_allocates_nothing() {
    let (bound, server) = (bind(&[("maxid1", "400000000")]), quiet());
    let mut loader = bound.loader(0, Server::session(&server, 2), address(0, 1), 7).unwrap();
    assert_batches_allocate_nothing(loader.as_mut());
}

/// A server that answers everything with one document, which is node, link and count at once; and a session to it.
fn documents(dir: &Path) -> (NullServer, Session) {
    const INTS: [&str; 9] = ["type", "id", "count", "id1", "link_type", "id2", "visibility", "version", "time"];
    let mut config = Config::new(Listen::Socket(dir.join("s")));
    config.protocol = Protocol::MongoDb;
    config.columns = INTS
        .iter()
        .map(|name| format!("{name}:int"))
        .chain(["data".to_owned()])
        .map(|column| column.parse().unwrap())
        .collect();
    let server = NullServer::start(&config).unwrap();
    let address = Address::Socket(dir.join("s"));
    let target = Target::anonymous(address);
    let session = MongoSession::connect(&target, &SessionOptions::to("db")).unwrap();
    (server, Session::Document(Box::new(session)))
}

#[test]
fn operations_over_documents_allocate_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let (_server, session) = documents(dir.path());
    let bound = bind(&[("maxid1", "100000")]);
    let mut client = bound.client(session, address(0, 1), 7).unwrap();
    let mut run = |ops| allocations::during(|| drop(drive(client.as_mut(), ops)));
    run(20_000);
    let empty = run(0);
    // Buffers may still grow for a longer payload now and then.
    let grown = run(10_000) - empty;
    assert!(grown < 5, "{grown} allocations in 10,000 operations");
}

#[test]
fn thousand_clients_fit_together_with_their_connections() {
    let (bound, server) = (bind(&[("maxid1", "1000000000")]), quiet());
    let sessions: Vec<Session> = (0..64).map(|_| Server::session(&server, 2)).collect();
    let before = allocations::bytes();
    let mut clients: Vec<_> =
        sessions.into_iter().zip(0..).map(|(session, at)| bound.client(session, address(at, 64), 7).unwrap()).collect();
    for client in &mut clients {
        drive(client.as_mut(), 2000);
    }
    let each = (allocations::bytes() - before) / 64;
    println!("{each} bytes per client");
    // This includes 32 KiB reserved for a payload, of which only the first page is touched.
    assert!(each < 44 << 10, "{each} bytes per client");
}
