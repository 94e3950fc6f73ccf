//! The one place that names concrete engines and workloads.

use rumba_lab::registry::Registry;

use crate::commands;

/// Every engine and workload of this binary. A new one is one line here.
pub fn registry() -> Registry {
    Registry {
        engines: vec![
            Box::new(rumba_engine_null::Null),
            Box::new(rumba_engine_rocksdb::RocksDb),
            #[cfg(feature = "wiredtiger")]
            Box::new(rumba_engine_wiredtiger::WiredTiger),
            Box::new(rumba_engine_lmdb::Lmdb),
            Box::new(rumba_engine_sqlite::Sqlite),
            Box::new(rumba_engine_mysql::MySqlEngine::INNODB),
            Box::new(rumba_engine_mysql::MySqlEngine::MYROCKS),
            Box::new(rumba_engine_mysql::MySqlEngine::TOKUDB),
            Box::new(rumba_engine_mysql::MySqlEngine::ANY),
            Box::new(rumba_engine_postgresql::PostgreSql),
        ],
        workloads: vec![Box::new(rumba_workload_linkbench::LinkBench)],
        catalogues: vec![Box::new(rumba_engine_mysql::Servers), Box::new(rumba_engine_postgresql::Servers)],
        probe: Some(|| commands::own("probe")),
    }
}
