//! Any sequence of simple statements gives the same result as an ordered map in memory.

use std::collections::BTreeMap;

use proptest::prelude::*;
use rumba_engine_api::sql::{Param, Statement};

use crate::*;

type Map = BTreeMap<i64, Vec<u8>>;

#[derive(Clone, Debug)]
enum Call {
    Begin,
    Commit,
    Rollback,
    Upsert(i64, Vec<u8>),
    Insert(i64, Vec<u8>),
    Update(i64, Vec<u8>),
    Delete(i64),
    Select(i64),
    Range(i64, i64, i64),
}

fn call() -> impl Strategy<Value = Call> {
    let id = -5i64..20;
    let blob = (any::<u8>(), prop_oneof![Just(0usize), 1usize..40, Just(9000usize)]).prop_map(|(b, n)| vec![b; n]);
    let row = (id.clone(), blob);
    prop_oneof![
        2 => Just(Call::Begin),
        2 => Just(Call::Commit),
        1 => Just(Call::Rollback),
        3 => row.clone().prop_map(|(id, blob)| Call::Upsert(id, blob)),
        3 => row.clone().prop_map(|(id, blob)| Call::Insert(id, blob)),
        3 => row.prop_map(|(id, blob)| Call::Update(id, blob)),
        2 => id.clone().prop_map(Call::Delete),
        3 => id.clone().prop_map(Call::Select),
        2 => (id.clone(), id, 0i64..10).prop_map(|(from, to, limit)| Call::Range(from, to, limit)),
    ]
}

const STATEMENTS: [&str; 8] = [
    "BEGIN IMMEDIATE",
    "COMMIT",
    "ROLLBACK",
    "INSERT INTO t VALUES (?, ?) ON CONFLICT (id) DO UPDATE SET b = excluded.b",
    "INSERT INTO t VALUES (?, ?)",
    "UPDATE t SET b = ?2 WHERE id = ?1",
    "DELETE FROM t WHERE id = ?",
    "SELECT id, b FROM t WHERE id >= ? AND id < ? ORDER BY id LIMIT ?",
];

struct Both {
    session: Box<Sql>,
    statements: Vec<Statement>,
    committed: Map,
    open: Option<Map>,
}

impl Both {
    fn new(mut session: Box<Sql>) -> Self {
        session.run("CREATE TABLE t (id INTEGER PRIMARY KEY, b BLOB)").unwrap();
        let statements = STATEMENTS.iter().map(|sql| session.prepare(sql).unwrap()).collect();
        Self { session, statements, committed: Map::new(), open: None }
    }

    fn map(&mut self) -> &mut Map {
        self.open.as_mut().unwrap_or(&mut self.committed)
    }

    /// The number of affected rows, or `None` for an error.
    fn affected(&mut self, statement: usize, params: &[Param<'_>]) -> Option<u64> {
        let statement = self.statements[statement];
        execute(&mut *self.session, statement, params, &mut |_| {}).ok().map(|answer| answer.affected)
    }

    fn rows(&mut self, from: i64, to: i64, limit: i64) -> Vec<(i64, Vec<u8>)> {
        let params = [Param::Int(from), Param::Int(to), Param::Int(limit)];
        let mut seen = Vec::new();
        let visit = &mut |row: &dyn rumba_engine_api::sql::Row| seen.push((row.int(0), row.bytes(1).to_vec()));
        execute(&mut *self.session, self.statements[7], &params, visit).unwrap();
        seen
    }

    fn make(&mut self, call: Call) {
        match call {
            Call::Begin if self.open.is_none() => {
                assert_eq!(self.affected(0, &[]), Some(0));
                self.open = Some(self.committed.clone());
            }
            Call::Begin => assert_eq!(self.affected(0, &[]), None),
            Call::Commit if self.open.is_some() => {
                assert_eq!(self.affected(1, &[]), Some(0));
                self.committed = self.open.take().unwrap();
            }
            Call::Commit => assert_eq!(self.affected(1, &[]), None),
            Call::Rollback => {
                assert_eq!(self.affected(2, &[]), Some(0));
                self.open = None;
            }
            Call::Upsert(id, blob) => {
                assert_eq!(self.affected(3, &[Param::Int(id), Param::Bytes(&blob)]), Some(1));
                self.map().insert(id, blob);
            }
            Call::Insert(id, blob) => {
                let affected = self.affected(4, &[Param::Int(id), Param::Bytes(&blob)]);
                let is_new = !self.map().contains_key(&id);
                assert_eq!(affected, is_new.then_some(1));
                self.map().entry(id).or_insert(blob);
            }
            Call::Update(id, blob) => {
                let affected = self.affected(5, &[Param::Int(id), Param::Bytes(&blob)]);
                let old = self.map().get_mut(&id);
                assert_eq!(affected, Some(u64::from(old.is_some())));
                if let Some(old) = old {
                    *old = blob;
                }
            }
            Call::Delete(id) => {
                let affected = self.affected(6, &[Param::Int(id)]);
                assert_eq!(affected, Some(u64::from(self.map().remove(&id).is_some())));
            }
            Call::Select(id) => self.compare(id, id + 1, 1),
            Call::Range(from, to, limit) => self.compare(from, to, limit),
        }
    }

    fn compare(&mut self, from: i64, to: i64, limit: i64) {
        let seen = self.rows(from, to, limit);
        let rows = self.map().iter().filter(|(id, _)| (from..to).contains(id)).take(limit as usize);
        let expected: Vec<(i64, Vec<u8>)> = rows.map(|(id, blob)| (*id, blob.clone())).collect();
        assert_eq!(seen, expected);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_sequence_of_statements_agrees_with_a_map(calls in prop::collection::vec(call(), 1..150)) {
        let (_dir, instance) = open();
        let mut both = Both::new(session(&*instance));
        for call in calls {
            both.make(call);
        }
        both.compare(i64::MIN, i64::MAX, i64::MAX);
        // Another session sees only committed rows.
        let ids: Vec<i64> = both.committed.keys().copied().collect();
        prop_assert_eq!(ints(&mut *session(&*instance), "SELECT id FROM t ORDER BY id"), ids);
    }
}
