//! The proof over SQL: the consistency conditions of clause 3.3.2, by exact arithmetic and outer joins in the database
//! itself.

use rumba_core::check::Check;
use rumba_core::error::EngineError;
use rumba_core::sql::{Dialect, Row, SqlSession};
use rumba_core::value::SqlValue;
use rumba_core::worker::block_on;

use super::units;
use crate::data_set::DataSet;
use crate::proof::{EXAMPLES, Found, name, proven, together};
use crate::scale::Scale;
use crate::tables::Table;
use crate::tally::Sums;

/// A condition that every row of a query's answer breaks.
struct Condition {
    /// The number of its clause in 3.3.2.
    clause: usize,
    /// The table whose rows are looked at.
    of: Table,
    /// The rows that break it.
    broken: &'static str,
    /// What the columns of such a row are.
    columns: &'static [&'static str],
}

const CONDITIONS: &[Condition] = &[
    Condition {
        clause: 1,
        of: Table::Warehouse,
        broken: "SELECT w_id, w_ytd, s FROM warehouse \
                 LEFT JOIN (SELECT d_w_id, SUM(d_ytd) AS s FROM district GROUP BY d_w_id) d ON d_w_id = w_id \
                 WHERE s IS NULL OR s <> w_ytd",
        columns: &["warehouse", "w_ytd", "sum of d_ytd"],
    },
    Condition {
        clause: 2,
        of: Table::District,
        broken: "SELECT d_w_id, d_id, d_next_o_id, om, nm FROM district \
                 LEFT JOIN (SELECT o_w_id, o_d_id, MAX(o_id) AS om FROM orders GROUP BY o_w_id, o_d_id) o \
                 ON o_w_id = d_w_id AND o_d_id = d_id \
                 LEFT JOIN (SELECT no_w_id, no_d_id, MAX(no_o_id) AS nm FROM new_order GROUP BY no_w_id, no_d_id) n \
                 ON no_w_id = d_w_id AND no_d_id = d_id \
                 WHERE om IS NULL OR om <> d_next_o_id - 1 OR nm <> d_next_o_id - 1",
        columns: &["warehouse", "district", "d_next_o_id", "last order", "last new order"],
    },
    Condition {
        clause: 3,
        of: Table::NewOrder,
        broken: "SELECT no_w_id, no_d_id, MIN(no_o_id), MAX(no_o_id), COUNT(*) FROM new_order \
                 GROUP BY no_w_id, no_d_id HAVING MAX(no_o_id) - MIN(no_o_id) + 1 <> COUNT(*)",
        columns: &["warehouse", "district", "first new order", "last", "how many"],
    },
    Condition {
        clause: 4,
        of: Table::District,
        broken: "SELECT d_w_id, d_id, said, there FROM district \
                 LEFT JOIN (SELECT o_w_id, o_d_id, SUM(o_ol_cnt) AS said FROM orders GROUP BY o_w_id, o_d_id) o \
                 ON o_w_id = d_w_id AND o_d_id = d_id \
                 LEFT JOIN (SELECT ol_w_id, ol_d_id, COUNT(*) AS there FROM order_line GROUP BY ol_w_id, ol_d_id) l \
                 ON ol_w_id = d_w_id AND ol_d_id = d_id \
                 WHERE said IS NULL OR there IS NULL OR said <> there",
        columns: &["warehouse", "district", "sum of o_ol_cnt", "order lines"],
    },
    Condition {
        clause: 5,
        of: Table::Orders,
        broken: "SELECT o_w_id, o_d_id, o_id, o_carrier_id, no_o_id FROM orders \
                 LEFT JOIN new_order ON no_w_id = o_w_id AND no_d_id = o_d_id AND no_o_id = o_id \
                 WHERE (o_carrier_id IS NULL AND no_o_id IS NULL) OR (o_carrier_id IS NOT NULL AND no_o_id IS NOT NULL) \
                 UNION ALL SELECT no_w_id, no_d_id, o_id, o_carrier_id, no_o_id FROM new_order \
                 LEFT JOIN orders ON no_w_id = o_w_id AND no_d_id = o_d_id AND no_o_id = o_id WHERE o_id IS NULL",
        columns: &["warehouse", "district", "order", "carrier", "new order"],
    },
    Condition {
        clause: 6,
        of: Table::Orders,
        broken: "SELECT o_w_id, o_d_id, o_id, o_ol_cnt, there FROM orders \
                 LEFT JOIN (SELECT ol_w_id, ol_d_id, ol_o_id, COUNT(*) AS there FROM order_line \
                 GROUP BY ol_w_id, ol_d_id, ol_o_id) l ON ol_w_id = o_w_id AND ol_d_id = o_d_id AND ol_o_id = o_id \
                 WHERE there IS NULL OR there <> o_ol_cnt \
                 UNION ALL SELECT ol_w_id, ol_d_id, ol_o_id, o_ol_cnt, ol_number FROM order_line \
                 LEFT JOIN orders ON ol_w_id = o_w_id AND ol_d_id = o_d_id AND ol_o_id = o_id WHERE o_id IS NULL",
        columns: &["warehouse", "district", "order", "o_ol_cnt", "order lines"],
    },
    Condition {
        clause: 7,
        of: Table::OrderLine,
        broken: "SELECT ol_w_id, ol_d_id, ol_o_id, ol_number, o_carrier_id FROM order_line \
                 JOIN orders ON ol_w_id = o_w_id AND ol_d_id = o_d_id AND ol_o_id = o_id \
                 WHERE (ol_delivery_d IS NULL AND o_carrier_id IS NOT NULL) \
                 OR (ol_delivery_d IS NOT NULL AND o_carrier_id IS NULL)",
        columns: &["warehouse", "district", "order", "line", "carrier"],
    },
    Condition {
        clause: 8,
        of: Table::Warehouse,
        broken: "SELECT w_id, w_ytd, s FROM warehouse \
                 LEFT JOIN (SELECT h_w_id, SUM(h_amount) AS s FROM history GROUP BY h_w_id) h ON h_w_id = w_id \
                 WHERE s IS NULL OR s <> w_ytd",
        columns: &["warehouse", "w_ytd", "sum of h_amount"],
    },
    Condition {
        clause: 9,
        of: Table::District,
        broken: "SELECT d_w_id, d_id, d_ytd, s FROM district \
                 LEFT JOIN (SELECT h_w_id, h_d_id, SUM(h_amount) AS s FROM history GROUP BY h_w_id, h_d_id) h \
                 ON h_w_id = d_w_id AND h_d_id = d_id WHERE s IS NULL OR s <> d_ytd",
        columns: &["warehouse", "district", "d_ytd", "sum of h_amount"],
    },
    Condition {
        clause: 10,
        of: Table::Customer,
        broken: "SELECT c_w_id, c_d_id, c_id, c_balance, got, paid FROM customer \
                 LEFT JOIN (SELECT o_w_id, o_d_id, o_c_id, SUM(ol_amount) AS got FROM orders \
                 JOIN order_line ON ol_w_id = o_w_id AND ol_d_id = o_d_id AND ol_o_id = o_id \
                 WHERE ol_delivery_d IS NOT NULL GROUP BY o_w_id, o_d_id, o_c_id) o \
                 ON o_w_id = c_w_id AND o_d_id = c_d_id AND o_c_id = c_id \
                 LEFT JOIN (SELECT h_c_w_id, h_c_d_id, h_c_id, SUM(h_amount) AS paid FROM history \
                 GROUP BY h_c_w_id, h_c_d_id, h_c_id) h ON h_c_w_id = c_w_id AND h_c_d_id = c_d_id AND h_c_id = c_id \
                 WHERE c_balance <> COALESCE(got, 0) - COALESCE(paid, 0)",
        columns: &["warehouse", "district", "customer", "c_balance", "delivered", "paid"],
    },
    Condition {
        clause: 12,
        of: Table::Customer,
        broken: "SELECT c_w_id, c_d_id, c_id, c_balance, c_ytd_payment, got FROM customer \
                 LEFT JOIN (SELECT o_w_id, o_d_id, o_c_id, SUM(ol_amount) AS got FROM orders \
                 JOIN order_line ON ol_w_id = o_w_id AND ol_d_id = o_d_id AND ol_o_id = o_id \
                 WHERE ol_delivery_d IS NOT NULL GROUP BY o_w_id, o_d_id, o_c_id) o \
                 ON o_w_id = c_w_id AND o_d_id = c_d_id AND o_c_id = c_id \
                 WHERE c_balance + c_ytd_payment <> COALESCE(got, 0)",
        columns: &["warehouse", "district", "customer", "c_balance", "c_ytd_payment", "delivered"],
    },
];

/// Of each district its orders less its new orders.
const DONE: &str = "SELECT d_w_id, d_id, COALESCE(placed, 0) - COALESCE(waits, 0) FROM district \
    LEFT JOIN (SELECT o_w_id, o_d_id, COUNT(*) AS placed FROM orders GROUP BY o_w_id, o_d_id) o \
    ON o_w_id = d_w_id AND o_d_id = d_id \
    LEFT JOIN (SELECT no_w_id, no_d_id, COUNT(*) AS waits FROM new_order GROUP BY no_w_id, no_d_id) n \
    ON no_w_id = d_w_id AND no_d_id = d_id";

/// Holds the tables against each other, against the scale and against what clients were told.
///
/// # Errors
/// Whatever the engine said.
pub fn verify(
    session: Box<dyn SqlSession>,
    scale: &Scale,
    sums: impl Iterator<Item = (DataSet, Sums)>,
) -> Result<Vec<Check>, EngineError> {
    let mut looks = Looks { dialect: session.dialect(), session };
    together(sums.map(|(set, sums)| Ok((set, looks.verify(set, scale, &sums)?))))
}

/// Asks for rows by text.
pub(super) struct Looks {
    pub(super) session: Box<dyn SqlSession>,
    pub(super) dialect: Dialect,
}

impl Looks {
    fn verify(&mut self, set: DataSet, scale: &Scale, sums: &Sums) -> Result<Vec<Check>, EngineError> {
        let mut rows = [0; Table::ALL.len()];
        for (table, count) in Table::ALL.into_iter().zip(&mut rows) {
            *count = self.number(&format!("SELECT COUNT(*) FROM {}", set.name(table.name())))?;
        }
        let mut done = Vec::new();
        self.rows(&set.sql(DONE), &mut |row| done.push(([row.int(0) as u32, row.int(1) as u32], row.int(2))))?;
        let warehouse_cents = self.cents(&set.sql("SELECT SUM(w_ytd) FROM warehouse"))?;
        let found = Found { rows, warehouse_cents, done };
        let mut checks = Vec::new();
        for condition in CONDITIONS {
            checks.push(self.condition(condition, set, &found)?);
        }
        Ok(proven(checks, scale, sums, &found))
    }

    /// Visits the rows of an answer.
    pub(super) fn rows(&mut self, sql: &str, visit: &mut dyn FnMut(&dyn Row)) -> Result<(), EngineError> {
        let statement = self.session.prepare(sql)?;
        let answer = block_on(self.session.execute(statement, &[], visit));
        let closed = self.session.close(statement);
        answer.and(closed)
    }

    /// The only number of an answer.
    pub(super) fn number(&mut self, sql: &str) -> Result<i64, EngineError> {
        let mut number = 0;
        self.rows(sql, &mut |row| number = row.int(0))?;
        Ok(number)
    }

    /// The same in cents.
    pub(super) fn cents(&mut self, sql: &str) -> Result<i64, EngineError> {
        let (dialect, mut cents) = (self.dialect, 0);
        self.rows(sql, &mut |row| cents = units(dialect, row, 0, 2))?;
        Ok(cents)
    }

    fn condition(&mut self, condition: &Condition, set: DataSet, found: &Found) -> Result<Check, EngineError> {
        let (mut wrong, mut examples) = (0, Vec::new());
        self.rows(&set.sql(condition.broken), &mut |row| {
            wrong += 1;
            if examples.len() < EXAMPLES {
                let columns = condition.columns.iter().enumerate();
                let told = columns.map(|(column, name)| format!("{name} {}", shown(row.value(column))));
                examples.push(told.collect::<Vec<_>>().join(", "));
            }
        })?;
        let examined = found.of(condition.of).cast_unsigned();
        Ok(Check { name: name(condition.clause), examined, wrong, examples })
    }
}

fn shown(value: SqlValue<'_>) -> String {
    let mut text = Vec::new();
    value.write_text(&mut text);
    if value.is_null() { "none".to_owned() } else { String::from_utf8_lossy(&text).into_owned() }
}
