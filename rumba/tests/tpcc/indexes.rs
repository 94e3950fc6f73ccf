//! SQLite has one writer, so one of several loaders builds its indexes.

use rumba_engine_api::engine::{Engine, Instance, Session};
use rumba_engine_api::worker::{ClientAddress, block_on};
use rumba_engine_api::workload::Workload;
use rumba_engine_sqlite::Sqlite;
use rumba_workload_tpcc::TpcC;

use super::{ALONE, Turns, config, run, settings};

/// The number of indexes in addition to those of primary keys.
fn indexes(instance: &dyn Instance) -> i64 {
    let Session::Sql(mut session) = instance.session().unwrap() else { panic!("SQLite speaks SQL") };
    let sql = "SELECT COUNT(*) FROM sqlite_master WHERE type = 'index' AND sql IS NOT NULL";
    let (statement, mut count) = (session.prepare(sql).unwrap(), 0);
    block_on(session.execute(statement, &[], &mut |row| count = row.int(0))).unwrap();
    count
}

#[test]
fn one_loader_builds_every_index_of_all_data_sets_once() {
    let dir = tempfile::tempdir().unwrap();
    let small = [("warehouses", 1), ("customers", 20), ("items", 200), ("data_sets", 2)];
    let bound = TpcC.bind(&settings(&small)).unwrap();
    let instance = Sqlite.open(dir.path(), &config("sqlite"), bound.schema(Sqlite.info().family)).unwrap();
    bound.create_schema(&mut instance.session().unwrap()).unwrap();
    let stages = bound.load_stages();
    assert!(stages.len() == 2 && stages[1].parallel, "they follow the rows");
    run(bound.loader(0, instance.session().unwrap(), ALONE, 1).unwrap(), usize::MAX);
    let mut loaders = [0, 1, 2].map(|client| {
        let at = ClientAddress { client, clients: 3, ..ALONE };
        bound.loader(1, instance.session().unwrap(), at, 1).unwrap()
    });
    assert_eq!(indexes(&*instance), 0);
    // After its turn the first loader has claimed another index, which no other loader takes. Two tables of each data
    // set have an index.
    for (loader, turns, made) in [(1, usize::MAX, 0), (0, 1, 1), (2, usize::MAX, 1), (0, usize::MAX, 4)] {
        block_on(loaders[loader].run(&mut Turns::of(turns))).unwrap();
        assert_eq!(indexes(&*instance), made, "loader {loader}, {turns} turns");
    }
}
