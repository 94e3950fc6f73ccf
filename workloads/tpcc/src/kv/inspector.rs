//! Reads and changes of rows in addition to the five transactions, over keys and values.

use rumba_engine_api::error::Result;
use rumba_engine_api::kv::{KvSession, Scan};
use rumba_engine_api::value::DateTime;
use rumba_workload_kit::{CountedKv, End};

use super::row::{layout, packed};
use super::{NOTHING, key2, key3, key4, part};
use crate::acid::{Inspect, Line};
use crate::content::{Row, Value};
use crate::data_set::DataSet;
use crate::entry::Payment;
use crate::rules::missing;
use crate::tables::{NONE, Table, Type, column};

/// An inspector over a session.
pub struct KvInspector {
    session: CountedKv,
    set: DataSet,
    row: Vec<u8>,
}

impl KvInspector {
    pub fn new(session: Box<dyn KvSession>, set: DataSet) -> Self {
        Self { session: CountedKv::new(session), set, row: Vec::new() }
    }

    /// A change, all or none.
    fn change(&mut self, body: impl FnOnce(&mut Self) -> Result<()>) -> Result<()> {
        self.session.begin()?;
        let ended = body(self).map(End::Commit);
        self.session.end(ended)
    }
}

impl Inspect for KvInspector {
    fn find<const N: usize>(&mut self, table: Table, key: &[u32], columns: [usize; N]) -> Result<Option<[i64; N]>> {
        let key: Vec<u8> = key.iter().flat_map(|part| part.to_be_bytes()).collect();
        let is_there = self.session.get(self.set.table(table), &key, &mut self.row)?;
        Ok(is_there.then(|| columns.map(|column| layout(table).number(&self.row, column))))
    }

    fn lines(&mut self, [warehouse, district, order]: [u32; 3]) -> Result<Vec<Line>> {
        let (from, to) = (key3([warehouse, district, order]), key3([warehouse, district, order + 1]));
        let (of_line, mut lines) = (layout(Table::OrderLine), Vec::new());
        let all = Scan { from: &from, to: &to, limit: usize::MAX };
        self.session.scan(self.set.table(Table::OrderLine), all, &mut |_, value| {
            lines.push(Line {
                item: of_line.number(value, column::OL_I_ID) as u32,
                quantity: of_line.number(value, column::OL_QUANTITY) as u32,
                cents: of_line.number(value, column::OL_AMOUNT),
            });
        })?;
        Ok(lines)
    }

    fn waiting(&mut self, [warehouse, district]: [u32; 2]) -> Result<Vec<u32>> {
        let (from, to) = (key2([warehouse, district]), key4([warehouse, district, u32::MAX, u32::MAX]));
        let mut orders = Vec::new();
        let all = Scan { from: &from, to: &to, limit: usize::MAX };
        self.session.scan(self.set.table(Table::NewOrder), all, &mut |key, _| orders.push(part(key, 2)))?;
        Ok(orders)
    }

    fn withdraw(&mut self, [warehouse, district]: [u32; 2], orders: &[u32]) -> Result<()> {
        let space = self.set.table(Table::NewOrder);
        self.change(|inspector| {
            orders.iter().try_for_each(|order| inspector.session.delete(space, &key3([warehouse, district, *order])))
        })
    }

    fn put_back(&mut self, [warehouse, district]: [u32; 2], orders: &[u32]) -> Result<()> {
        let space = self.set.table(Table::NewOrder);
        self.change(|inspector| {
            let put = |order: &u32| inspector.session.put(space, &key3([warehouse, district, *order]), NOTHING);
            orders.iter().try_for_each(put)
        })
    }

    fn set_prices(&mut self, prices: &[(u32, i64)]) -> Result<()> {
        let space = self.set.table(Table::Item);
        self.change(|Self { session, row, .. }| {
            for (item, cents) in prices {
                let key = item.to_be_bytes();
                if !session.get_for_update(space, &key, row)? {
                    return Err(missing("an item"));
                }
                layout(Table::Item).set(row, column::I_PRICE, *cents);
                session.put(space, &key, row)?;
            }
            Ok(())
        })
    }

    fn content(&mut self, table: Table) -> Result<Vec<Row>> {
        let (layout, mut rows) = (layout(table), Vec::new());
        let everything = Scan { from: &[], to: &[0xff; 24], limit: usize::MAX };
        self.session.scan(self.set.table(table), everything, &mut |key, value| {
            let values = table.columns().iter().enumerate().map(|(column, (_, kind))| match kind {
                Type::Key => Value::Number(i64::from(part(key, column))),
                Type::Text(_) | Type::Letters(_) => Value::text(layout.text(value, column)),
                _ => match layout.number(value, column) {
                    NONE => Value::None,
                    _ if *kind == Type::Time => Value::Time,
                    number => Value::Number(number),
                },
            });
            rows.push(values.collect());
        })?;
        Ok(rows)
    }

    fn payments(&mut self, since: DateTime, visit: &mut dyn FnMut(Payment)) -> Result<()> {
        let (of_payment, since) = (layout(Table::History), packed(since));
        let everything = Scan { from: &[], to: &[0xff; 24], limit: usize::MAX };
        self.session.scan(self.set.table(Table::History), everything, &mut |_, value| {
            let number = |column| of_payment.number(value, column) as u32;
            if of_payment.number(value, column::H_DATE) >= since {
                visit(Payment {
                    place: [number(column::H_W_ID), number(column::H_D_ID)],
                    customer: [number(column::H_C_W_ID), number(column::H_C_D_ID), number(column::H_C_ID)],
                    cents: number(column::H_AMOUNT),
                });
            }
        })?;
        Ok(())
    }
}
