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
        ],
        workloads: vec![Box::new(rumba_workload_linkbench::LinkBench)],
        catalogues: Vec::new(),
        probe: Some(|| commands::own("probe")),
    }
}
