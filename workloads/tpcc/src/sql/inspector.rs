//! Reads and changes of rows in addition to the five transactions, in plain SQL text.

use rumba_engine_api::error::Result;
use rumba_engine_api::sql::{Dialect, SqlSession};
use rumba_engine_api::value::{DateTime, SqlTime};

use super::row_reader::{SqlRowReader, number_of};
use super::text::columns;
use super::{money, rate};
use crate::acid::{Inspect, Line};
use crate::content::{Row, Value};
use crate::data_set::DataSet;
use crate::entry::Payment;
use crate::tables::{Table, Type};

/// How many orders one statement takes.
const AT_ONCE: usize = 500;

/// An inspector over a session.
pub struct SqlInspector {
    looks: SqlRowReader,
    set: DataSet,
}

/// A condition for an order's rows; the columns begin with this prefix.
fn of_order(prefix: &str, [warehouse, district, order]: [u32; 3]) -> String {
    format!("{prefix}_w_id = {warehouse} AND {prefix}_d_id = {district} AND {prefix}_o_id = {order}")
}

impl SqlInspector {
    pub fn new(session: Box<dyn SqlSession>, set: DataSet) -> Self {
        Self { looks: SqlRowReader::new(session), set }
    }

    /// Whether texts compare as if all letters were capitals, as in tables of MySQL's family by default. Last names are
    /// all in capitals.
    pub fn folds_case(&mut self) -> Result<bool> {
        Ok(self.looks.number(&self.set.sql("SELECT COUNT(*) FROM customer WHERE c_last = 'barbarbar'"))? > 0)
    }

    /// Statements, all or none.
    fn change(&mut self, statements: impl IntoIterator<Item = String>) -> Result<()> {
        let session = &mut self.looks.session;
        session.run(if self.looks.dialect == Dialect::Sqlite { "BEGIN IMMEDIATE" } else { "BEGIN" })?;
        let set = self.set;
        let done = statements.into_iter().try_for_each(|text| session.run(&set.sql(&text)));
        let end = done.and_then(|()| session.run("COMMIT"));
        if end.is_err() {
            // The first error is more useful than a second one.
            let _ = session.run("ROLLBACK");
        }
        end
    }

    /// Money as a statement writes it.
    fn money(&self, cents: i64) -> String {
        match self.looks.dialect {
            Dialect::Sqlite => cents.to_string(),
            _ => format!("{}.{:02}", cents / 100, cents % 100),
        }
    }
}

impl Inspect for SqlInspector {
    fn find<const N: usize>(&mut self, table: Table, key: &[u32], columns: [usize; N]) -> Result<Option<[i64; N]>> {
        let columns = columns.map(|column| table.columns()[column]);
        let names = columns.map(|(name, _)| name).join(", ");
        // The key's columns come first.
        let key: Vec<String> =
            table.columns().iter().zip(key).map(|((name, _), part)| format!("{name} = {part}")).collect();
        let sql = format!("SELECT {names} FROM {} WHERE {}", self.set.name(table.name()), key.join(" AND "));
        let (dialect, mut found) = (self.looks.dialect, None);
        self.looks.rows(&sql, &mut |row| {
            let numbers = found.insert([0; N]);
            for (nth, (number, column)) in numbers.iter_mut().zip(columns).enumerate() {
                *number = number_of(dialect, row, nth, column)?;
            }
            Ok(())
        })?;
        Ok(found)
    }

    fn lines(&mut self, place: [u32; 3]) -> Result<Vec<Line>> {
        let rows = of_order("ol", place);
        let sql = format!("SELECT ol_i_id, ol_quantity, ol_amount FROM order_line WHERE {rows} ORDER BY ol_number");
        let (dialect, mut lines) = (self.looks.dialect, Vec::new());
        self.looks.rows(&self.set.sql(&sql), &mut |row| {
            let (item, quantity) = (row.int(0) as u32, row.int(1) as u32);
            lines.push(Line { item, quantity, cents: money(dialect, row, 2, "ol_amount")? });
            Ok(())
        })?;
        Ok(lines)
    }

    fn waiting(&mut self, [warehouse, district]: [u32; 2]) -> Result<Vec<u32>> {
        let sql = format!(
            "SELECT no_o_id FROM new_order WHERE no_w_id = {warehouse} AND no_d_id = {district} ORDER BY no_o_id"
        );
        let mut orders = Vec::new();
        self.looks.rows(&self.set.sql(&sql), &mut |row| {
            orders.push(row.int(0) as u32);
            Ok(())
        })?;
        Ok(orders)
    }

    fn withdraw(&mut self, [warehouse, district]: [u32; 2], orders: &[u32]) -> Result<()> {
        let delete = |orders: &[u32]| {
            let all: Vec<String> = orders.iter().map(u32::to_string).collect();
            format!(
                "DELETE FROM new_order WHERE no_w_id = {warehouse} AND no_d_id = {district} AND no_o_id IN ({})",
                all.join(", ")
            )
        };
        self.change(orders.chunks(AT_ONCE).map(delete))
    }

    fn put_back(&mut self, [warehouse, district]: [u32; 2], orders: &[u32]) -> Result<()> {
        let insert = |orders: &[u32]| {
            let all: Vec<String> = orders.iter().map(|order| format!("({warehouse}, {district}, {order})")).collect();
            format!("INSERT INTO new_order (no_w_id, no_d_id, no_o_id) VALUES {}", all.join(", "))
        };
        self.change(orders.chunks(AT_ONCE).map(insert))
    }

    fn set_prices(&mut self, prices: &[(u32, i64)]) -> Result<()> {
        let set = |&(item, cents): &(u32, i64)| {
            format!("UPDATE item SET i_price = {} WHERE i_id = {item}", self.money(cents))
        };
        let statements: Vec<String> = prices.iter().map(set).collect();
        self.change(statements)
    }

    fn content(&mut self, table: Table) -> Result<Vec<Row>> {
        let sql = format!("SELECT {} FROM {}", columns(table).join(", "), self.set.name(table.name()));
        let (dialect, mut rows) = (self.looks.dialect, Vec::new());
        self.looks.rows(&sql, &mut |row| {
            let value = |(column, &(name, kind)): (usize, &(&'static str, Type))| -> Result<Value> {
                Ok(match kind {
                    _ if row.value(column).is_null() => Value::None,
                    Type::Time => Value::Time,
                    Type::Money => Value::Number(money(dialect, row, column, name)?),
                    Type::Rate => Value::Number(rate(dialect, row, column, name)?),
                    Type::Key | Type::Int => Value::Number(row.int(column)),
                    Type::Text(_) | Type::Letters(_) => Value::text(row.bytes(column)),
                })
            };
            rows.push(table.columns().iter().enumerate().map(value).collect::<Result<Row>>()?);
            Ok(())
        })?;
        Ok(rows)
    }

    fn payments(&mut self, since: DateTime, visit: &mut dyn FnMut(Payment)) -> Result<()> {
        let sql = format!(
            "SELECT h_w_id, h_d_id, h_c_w_id, h_c_d_id, h_c_id, h_amount FROM history WHERE h_date >= '{}'",
            SqlTime(since)
        );
        let dialect = self.looks.dialect;
        self.looks.rows(&self.set.sql(&sql), &mut |row| {
            let [warehouse, district, of_warehouse, of_district, customer] =
                [0, 1, 2, 3, 4].map(|column| row.int(column) as u32);
            visit(Payment {
                place: [warehouse, district],
                customer: [of_warehouse, of_district, customer],
                cents: money(dialect, row, 5, "h_amount")? as u32,
            });
            Ok(())
        })
    }
}
