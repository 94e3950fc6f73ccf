//! The table in memory: the reference for tests.

use std::collections::BTreeMap;

use rumba_engine_api::error::Result;
use rumba_engine_api::worker::StatementCounts;

use crate::keys::Key;
use crate::store::{Store, Values, VisitField, Wanted, Written};

/// The table: the fields of each key.
#[derive(Debug, Default)]
pub struct Oracle {
    pub rows: BTreeMap<Vec<u8>, Vec<Vec<u8>>>,
}

fn visit_row(row: &[Vec<u8>], wanted: Wanted, visit: VisitField<'_>) {
    let is_wanted = |field: &usize| wanted == Wanted::All || wanted == Wanted::One(*field);
    (0..row.len()).filter(is_wanted).for_each(|field| visit(field, &row[field]));
}

impl Oracle {
    pub fn put(&mut self, key: &Key, values: &Values) {
        let fields = values.fields().map(|field| values.get(field).unwrap_or_default().to_vec());
        self.rows.insert(key.bytes().to_vec(), fields.collect());
    }

    fn change(&mut self, key: &Key, values: &Values) -> Written {
        let Some(row) = self.rows.get_mut(key.bytes()) else { return Written::NOTHING };
        let mut growth = 0;
        for field in values.fields() {
            let new = values.get(field).unwrap_or_default().to_vec();
            growth += new.len() as i64 - row[field].len() as i64;
            row[field] = new;
        }
        Written { found: Some(true), growth: Some(growth) }
    }
}

impl Store for Oracle {
    async fn read(&mut self, key: &Key, wanted: Wanted, visit: VisitField<'_>) -> Result<bool> {
        let found = self.rows.get(key.bytes());
        found.into_iter().for_each(|row| visit_row(row, wanted, visit));
        Ok(found.is_some())
    }

    async fn update(&mut self, key: &Key, values: &Values) -> Result<Written> {
        Ok(self.change(key, values))
    }

    async fn insert(&mut self, key: &Key, values: &Values) -> Result<()> {
        self.put(key, values);
        Ok(())
    }

    async fn scan(&mut self, from: &Key, count: u64, wanted: Wanted, visit: VisitField<'_>) -> Result<u64> {
        let mut met = 0;
        for (_, row) in self.rows.range(from.bytes().to_vec()..).take(count as usize) {
            visit_row(row, wanted, visit);
            met += 1;
        }
        Ok(met)
    }

    async fn read_modify_write(
        &mut self,
        key: &Key,
        wanted: Wanted,
        values: &Values,
        visit: VisitField<'_>,
    ) -> Result<Written> {
        if let Some(row) = self.rows.get(key.bytes()) {
            visit_row(row, wanted, visit);
        }
        Ok(self.change(key, values))
    }

    fn statements(&mut self) -> StatementCounts {
        StatementCounts::NONE
    }
}
