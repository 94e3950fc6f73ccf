//! The one place that names concrete engines and workloads.

use rumba_engine_api::engine::Engine;
use rumba_engine_api::server::Catalogue;
use rumba_engine_api::workload::Workload;

/// Every engine of this binary. A new one is one line here.
pub fn engines() -> Vec<Box<dyn Engine>> {
    vec![
        Box::new(rumba_engine_null::Null),
        Box::new(rumba_engine_rocksdb::RocksDb),
        #[cfg(feature = "wiredtiger")]
        Box::new(rumba_engine_wiredtiger::WiredTiger),
        Box::new(rumba_engine_lmdb::Lmdb),
        Box::new(rumba_engine_sqlite::Sqlite),
        Box::new(rumba_engine_bf_tree::BfTree),
        Box::new(rumba_engine_fractal_tree::FractalTree),
        Box::new(rumba_engine_mysql::MySqlEngine::INNODB),
        Box::new(rumba_engine_mysql::MySqlEngine::MYROCKS),
        Box::new(rumba_engine_mysql::MySqlEngine::TOKUDB),
        Box::new(rumba_engine_mysql::MySqlEngine::ANY),
        Box::new(rumba_engine_postgresql::PostgreSql),
        Box::new(rumba_engine_mongodb::MongoEngine::MONGODB),
        Box::new(rumba_engine_mongodb::MongoEngine::SECANTUSDB),
    ]
}

/// Every workload. A new one is one line here.
pub fn workloads() -> Vec<Box<dyn Workload>> {
    vec![
        Box::new(rumba_workload_linkbench::LinkBench),
        Box::new(rumba_workload_sysbench::Sysbench),
        Box::new(rumba_workload_sysbench::Lua),
        Box::new(rumba_workload_tpcc::TpcC),
        Box::new(rumba_workload_ycsb::Ycsb),
    ]
}

/// The servers and libraries that can be installed.
pub fn catalogues() -> Vec<Box<dyn Catalogue>> {
    vec![
        Box::new(rumba_engine_mysql::catalogue()),
        Box::new(rumba_engine_postgresql::catalogue()),
        Box::new(rumba_engine_mongodb::catalogue()),
        Box::new(rumba_engine_rocksdb::catalogue()),
    ]
}
