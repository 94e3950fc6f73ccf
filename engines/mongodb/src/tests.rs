//! Shared test helpers, and trials with SecantusDB. The tests of rumba run MongoDB itself.

use std::path::Path;

use rumba_engine_api::bson::{Document, DocumentBuf, Documents};
use rumba_engine_api::document::{Command, DocumentSession, Done, Find};
use rumba_engine_api::engine::{
    BuildSelector, Durability, Engine, EngineConfig, Instance, ProcessLocation, Schema, Session,
};
use rumba_engine_api::parity::{EngineTraits, Reads};
use rumba_engine_api::setting::Value;
use rumba_engine_api::worker::block_on;
use rumba_protocol_mongodb::Address;
use rumba_testkit::secantusdb::{SecantusDb, program};

use crate::MongoEngine;
use crate::brand::Brand;

/// A scripted server, which answers as a test specifies.
#[path = "../../../protocols/mongodb/tests/support/mod.rs"]
pub mod scripted;

/// An engine configuration with defaults only.
pub fn config(brand: Brand) -> EngineConfig {
    EngineConfig {
        cache: 64 << 20,
        server: (brand == Brand::SecantusDb).then(|| program().display().to_string()),
        ..EngineConfig::new(brand.info().name)
    }
}

fn documents(instance: &dyn Instance) -> Box<dyn DocumentSession> {
    match instance.session() {
        Ok(Session::Document(session)) => session,
        Ok(other) => panic!("{}", other.reported()),
        Err(error) => panic!("{error}"),
    }
}

fn fetch(session: &mut dyn DocumentSession, command: Command<'_>) -> Done {
    block_on(session.execute(command, &mut |_| {})).unwrap()
}

fn fill(instance: &dyn Instance, ids: std::ops::Range<i64>) {
    let mut all = Documents::default();
    ids.for_each(|id| all.push(|of| of.int("_id", id)));
    assert_eq!(
        fetch(&mut *documents(instance), Command::Insert { into: "t", documents: &all }).matched,
        all.len() as u64
    );
}

fn count(instance: &dyn Instance) -> u64 {
    fetch(&mut *documents(instance), Command::Find { of: "t", find: Find::by(Document::EMPTY) }).documents
}

fn open(dir: &Path, config: &EngineConfig) -> Box<dyn Instance> {
    MongoEngine::SECANTUSDB.open(dir, config, Schema::BySession).unwrap()
}

#[test]
#[needs(SecantusDb)]
fn private_server_serves_settles_and_reopens() {
    let dir = tempfile::tempdir().unwrap();
    let config = config(Brand::SecantusDb);
    let engine = MongoEngine::SECANTUSDB;
    engine.check(&config).unwrap();
    let instance = open(dir.path(), &config);
    fill(&*instance, 0..100);
    instance.settle().unwrap();
    instance.drain().unwrap();
    assert_eq!(count(&*instance), 100);
    let reported = instance.effective_settings();
    let value = |name: &str| reported.iter().find(|(reported, _)| reported == name).map(|(_, value)| value.as_str());
    assert_eq!(value("cache-size"), Some("64M"));
    assert_eq!(value("write_concern"), Some("{ \"w\": 1, \"j\": false }"));
    assert!(instance.version().unwrap().starts_with("SecantusDB"), "its figures bear its own name");
    let ProcessLocation::Server { pid: Some(pid), data_dir: Some(data) } = instance.place() else {
        panic!("a server of this host")
    };
    assert!(Path::new(&format!("/proc/{pid}")).exists() && data.join("WiredTiger").exists());
    let counters = instance.counters();
    assert!(counters.iter().any(|gauge| gauge.name == "client_write_conflicts"));
    assert_eq!(instance.debt(), [], "it does not report dirty data, and rumba does not guess");
    instance.close().unwrap();
    assert!(!Path::new(&format!("/proc/{pid}")).exists());
    assert!(engine.reopens(&config));
    let instance = engine.reopen(dir.path(), &config, Schema::BySession).unwrap();
    assert_eq!(count(&*instance), 100);
    instance.close().unwrap();
    let nothing = tempfile::tempdir().unwrap();
    let error = engine.reopen(nothing.path(), &config, Schema::BySession).err().unwrap().to_string();
    assert!(error.contains("no database"), "{error}");
}

#[test]
#[needs(SecantusDb)]
fn committed_documents_survive_a_kill() {
    let dir = tempfile::tempdir().unwrap();
    let mut config = config(Brand::SecantusDb);
    config.durability = Durability::Sync;
    let instance = open(dir.path(), &config);
    fill(&*instance, 0..50);
    instance.kill().unwrap();
    drop(instance);
    let instance = MongoEngine::SECANTUSDB.reopen(dir.path(), &config, Schema::BySession).unwrap();
    assert_eq!(count(&*instance), 50);
    instance.close().unwrap();
}

#[test]
#[needs(SecantusDb)]
fn existing_server_must_be_empty_and_is_left_unchanged() {
    let server = SecantusDb::start(&[]);
    let dir = tempfile::tempdir().unwrap();
    let mut config = config(Brand::MongoDb);
    config.server = Some(format!("mongodb://127.0.0.1:{}/alone", server.port()));
    let engine = MongoEngine::MONGODB;
    engine.check(&config).unwrap();
    let instance = engine.open(dir.path(), &config, Schema::BySession).unwrap();
    fill(&*instance, 0..10);
    assert!(!engine.reopens(&config) && instance.kill().is_err());
    // A trial may remove data that another trial left.
    drop(instance);
    let instance = engine.open(dir.path(), &config, Schema::BySession).unwrap();
    assert_eq!((count(&*instance), instance.unpaid()), (0, None));
    instance.close().unwrap();
    let flushed = config.server.replace(format!("mongodb://127.0.0.1:{}/alone?flush=no", server.port()));
    let instance = engine.open(dir.path(), &config, Schema::BySession).unwrap();
    instance.settle().and_then(|()| instance.drain()).unwrap();
    assert!(instance.unpaid().unwrap().contains("`flush=no`"));
    instance.close().unwrap();
    config.server = flushed;
    let mut theirs = rumba_protocol_mongodb::Admin::connect(
        &crate::dsn::target(&crate::dsn::FORM.parse(config.server.as_deref().unwrap()).unwrap()).unwrap(),
        std::time::Duration::from_secs(30),
    )
    .unwrap();
    theirs.run("alone", DocumentBuf::of(|of| of.text("create", "orders")).get()).unwrap();
    let error = engine.check(&config).unwrap_err();
    assert!(error.problem.contains("it holds orders"), "{error}");
    assert!(engine.open(dir.path(), &config, Schema::BySession).is_err());
    config.compression = Some("zlib".into());
    assert!(engine.check(&config).unwrap_err().problem.contains("not configured by rumba"));
}

#[test]
#[needs(SecantusDb)]
fn concurrent_trial_on_the_same_database_is_refused() {
    // The second instance emptied the first one's data, because the database carries rumba's marker.
    let server = SecantusDb::start(&[]);
    let dir = tempfile::tempdir().unwrap();
    let at = |host: &str, database: &str| EngineConfig {
        server: Some(format!("mongodb://{host}:{}/{database}", server.port())),
        ..config(Brand::MongoDb)
    };
    let open = |config: &EngineConfig| MongoEngine::MONGODB.open(dir.path(), config, Schema::BySession);
    let first = open(&at("127.0.0.1", "lab")).unwrap();
    fill(&*first, 0..10);
    let error = open(&at("127.0.0.1", "lab")).err().unwrap().to_string();
    assert!(error.contains("another trial uses the database lab"), "{error}");
    assert_eq!(count(&*first), 10);
    open(&at("127.0.0.1", "another")).unwrap().close().unwrap();
    first.close().unwrap();
    open(&at("127.0.0.1", "lab")).unwrap().close().unwrap();
}

/// MMAPv1 never receives a cache size, but was compared as if it had the one in the record.
#[test]
fn mmapv1_has_no_cache_of_its_own() {
    let has_cache = |engine: &str| {
        let mut config = config(Brand::MongoDb);
        config.settings.0.insert("storageEngine".into(), Value::Text(engine.into()));
        MongoEngine::MONGODB.has_cache(&config)
    };
    assert_eq!(["wiredTiger", "rocksdb", "mmapv1"].map(has_cache), [true, true, false]);
    assert!(MongoEngine::MONGODB.has_cache(&config(Brand::MongoDb)));
}

/// rumba assumed a log and reads through the page cache, which are usual only for WiredTiger.
#[test]
fn external_server_is_unknown_before_it_is_queried() {
    let own = config(Brand::MongoDb);
    assert_eq!(MongoEngine::MONGODB.nature(&own), EngineTraits::new("SNAPSHOT", true, Reads::Buffered));
    let others = EngineConfig { server: Some("mongodb://host/lab".into()), ..own };
    assert_eq!(MongoEngine::MONGODB.nature(&others), EngineTraits::default());
}

/// The server's greeting announces transactions, but it refused the first one in the middle of a run.
#[test]
fn replica_set_over_mmapv1_has_no_transactions() {
    let of_engine = |engine: &'static str| {
        let server = scripted::Server::new(move |name, _| {
            Some(match name {
                "listCollections" => scripted::batch("firstBatch", 0..0, 0),
                _ => scripted::ok(|of| of.document("storageEngine", |of| of.text("name", engine))),
            })
        });
        let Address::Socket(socket) = server.target().address else { panic!("it listens at a socket") };
        let dsn = format!("mongodb:///lab?socket={}", socket.display());
        let dir = tempfile::tempdir().unwrap();
        let config = EngineConfig { server: Some(dsn), ..config(Brand::MongoDb) };
        let instance = MongoEngine::MONGODB.open(dir.path(), &config, Schema::BySession).unwrap();
        let mut session = documents(&*instance);
        let has_transactions = session.has_transactions();
        let has_begun = block_on(session.execute(Command::Begin, &mut |_| {})).is_ok();
        assert_eq!(has_begun, has_transactions);
        drop(session);
        let reported = instance.effective_settings().into_iter().find(|(name, _)| name == "transactions").unwrap().1;
        instance.close().unwrap();
        (has_transactions, reported)
    };
    assert_eq!(of_engine("wiredTiger"), (true, "of a replica set".to_owned()));
    assert_eq!(of_engine("mmapv1"), (false, "none: MMAPv1 has none".to_owned()));
}

#[test]
fn missing_server_is_reported_with_how_to_install_it() {
    let missing = |engine: MongoEngine, server| {
        engine.availability(BuildSelector { server: Some(server), library: None }).missing
    };
    let reported = missing(MongoEngine::MONGODB, "/nowhere").unwrap();
    assert!(reported.what.contains("no mongod in it") && reported.install.contains("DSN"), "{reported:?}");
    let reported = missing(MongoEngine::SECANTUSDB, "/nowhere").unwrap();
    assert!(reported.install.contains("pip install"), "{reported:?}");
    assert!(missing(MongoEngine::MONGODB, "mongodb://host/lab").is_none());
    let error =
        MongoEngine::MONGODB.check(&EngineConfig { server: Some("host:27017".into()), ..config(Brand::MongoDb) });
    assert!(error.unwrap_err().problem.contains("a DSN begins with mongodb://"));
    // Installing software cannot fix an error in a DSN.
    let mistaken = "mongodb://host/admin";
    assert!(missing(MongoEngine::MONGODB, mistaken).is_none());
    let error = MongoEngine::MONGODB.check(&EngineConfig { server: Some(mistaken.into()), ..config(Brand::MongoDb) });
    assert!(error.unwrap_err().problem.contains("the server's own"));
}
