//! An order of a missing item is rolled back and leaves no trace (2.4.2.3). The same holds for an order that is rolled
//! back after all of its rows are written. Each kind of trace is planted after their rollback in SQLite. The tests of clause
//! 3.4.2 that let another transaction meet them must find it.

use std::task::{Context, Poll};

use rumba_engine_api::acid::Outcome;
use rumba_engine_api::engine::Session;
use rumba_engine_api::error::Result;
use rumba_engine_api::sql::{Answer, Param, SqlSession, Statement, Visit};
use rumba_engine_sqlite::Sqlite;

use super::Worked;

/// There is no item with this number among the 200.
const UNUSED: i64 = 201;

/// The planted statement after the rollback of such an order, and the tests that find it. An order status meets an
/// order in district 2 (3.4.2.2), and another order meets one in district 4 (3.4.2.4). Rows that the other order writes
/// as well show only in the first test.
const FAULTS: [(&str, &[&str]); 6] = [
    ("UPDATE item SET i_im_id = i_im_id", &[]),
    ("UPDATE district SET d_next_o_id = d_next_o_id + 1 WHERE d_id IN (2, 4)", &["i2", "i4"]),
    ("UPDATE stock SET s_ytd = s_ytd + 3, s_order_cnt = s_order_cnt + 1 WHERE s_i_id = 11", &["i2", "i4"]),
    (
        "INSERT OR IGNORE INTO orders SELECT 1, 2, d_next_o_id, 2, NULL, NULL, 5, 1 FROM district WHERE d_id = 2",
        &["i2"],
    ),
    ("INSERT OR IGNORE INTO new_order SELECT 1, 2, d_next_o_id FROM district WHERE d_id = 2", &["i2"]),
    (
        "INSERT OR IGNORE INTO order_line SELECT 1, 2, d_next_o_id, 1, 11, 1, NULL, 3, 300, 'left' FROM district \
         WHERE d_id = 2",
        &["i2"],
    ),
];

/// The same after the rollback of an order that has written its lines. With batched statements only this order has
/// lines, because an order of a missing item ends earlier.
const FAULTS_OF_WHOLE: [(&str, &[&str]); 2] = [
    ("UPDATE stock SET s_ytd = s_ytd + 3, s_order_cnt = s_order_cnt + 1 WHERE s_i_id = 11", &["i2", "i4"]),
    (
        "INSERT OR IGNORE INTO order_line SELECT 1, 2, d_next_o_id, 1, 11, 1, NULL, 3, 300, 'left' FROM district \
         WHERE d_id = 2",
        &["i2"],
    ),
];

/// The order after whose rollback the fault is planted.
#[derive(Clone, Copy)]
enum Whose {
    /// An order that has looked up the missing item.
    Unused,
    /// An order's that has written lines.
    Whole,
}

/// A session of SQLite that plants the fault.
struct Leaves {
    session: Box<dyn SqlSession>,
    whose: Whose,
    fault: &'static str,
    /// The statements that begin a transaction, look up an item, and roll back.
    begin: Option<Statement>,
    item: Option<Statement>,
    rollback: Option<Statement>,
    /// The statements that insert lines, one for each number of lines.
    lines: Vec<Statement>,
    /// Whether the transaction is one of those.
    is_it: bool,
    /// Whether the pending answer is that of its rollback.
    is_rolled_back: bool,
}

impl Leaves {
    fn over(session: Box<dyn SqlSession>, whose: Whose, fault: &'static str) -> Self {
        let (begin, item, rollback, lines) = (None, None, None, Vec::new());
        Self { session, whose, fault, begin, item, rollback, lines, is_it: false, is_rolled_back: false }
    }
}

impl SqlSession for Leaves {
    rumba_engine_api::forward_sql_properties!(session);

    fn prepare(&mut self, sql: &str) -> Result<Statement> {
        let statement = self.session.prepare(sql)?;
        match sql {
            "BEGIN IMMEDIATE" => self.begin = Some(statement),
            "ROLLBACK" => self.rollback = Some(statement),
            _ if sql.starts_with("SELECT i_price") => self.item = Some(statement),
            _ if sql.starts_with("INSERT INTO order_line") => self.lines.push(statement),
            _ => {}
        }
        Ok(statement)
    }

    fn prepare_rows(&mut self, table: &str, columns: &[&str]) -> Result<Statement> {
        self.session.prepare_rows(table, columns)
    }

    fn submit(&mut self, statement: Statement, params: &[Param<'_>]) -> Result<()> {
        self.is_it &= self.begin != Some(statement);
        self.is_it |= match self.whose {
            Whose::Unused => self.item == Some(statement) && params == [Param::Int(UNUSED)],
            Whose::Whole => self.lines.contains(&statement),
        };
        self.is_rolled_back = self.is_it && self.rollback == Some(statement);
        self.session.submit(statement, params)
    }

    fn submit_rows(&mut self, rows: Statement, values: &[Param<'_>]) -> Result<()> {
        self.session.submit_rows(rows, values)
    }

    fn submit_text(&mut self, sql: &str) -> Result<()> {
        self.session.submit_text(sql)
    }

    fn close(&mut self, statement: Statement) -> Result<()> {
        self.session.close(statement)
    }

    fn poll_answer(&mut self, context: &mut Context<'_>, visit: Visit<'_>) -> Poll<Result<Answer>> {
        let answer = self.session.poll_answer(context, visit);
        if answer.is_ready() && std::mem::take(&mut self.is_rolled_back) {
            self.is_it = false;
            self.session.run(self.fault)?;
        }
        answer
    }

    fn run(&mut self, sql: &str) -> Result<()> {
        self.session.run(sql)
    }
}

/// The tests that find a fault planted after the rollback of such an order, in a separate database.
fn broken(statements: &str, whose: Whose, fault: &'static str) -> Vec<String> {
    let worked = Worked::loaded(&Sqlite, statements, 1);
    let sessions = || -> Result<Session> {
        let Session::Sql(session) = worked.instance.session()? else { panic!("SQLite speaks SQL") };
        Ok(Session::Sql(Box::new(Leaves::over(session, whose, fault))))
    };
    let promises = worked.bound.acid().unwrap().isolation(&sessions).unwrap();
    let broken = promises.into_iter().filter(|promise| promise.outcome == Outcome::Broken);
    broken.map(|promise| promise.short).collect()
}

#[test]
fn leftovers_of_rolled_back_orders_are_found() {
    all_found("plain", Whose::Unused, &FAULTS);
}

#[test]
fn leftover_lines_of_batched_rolled_back_orders_are_found() {
    all_found("batched", Whose::Whole, &FAULTS_OF_WHOLE);
}

/// Checks that each fault is found by its tests and by no others.
fn all_found(statements: &str, whose: Whose, faults: &[(&'static str, &[&str])]) {
    // The second of two mostly waits for the first.
    std::thread::scope(|scope| {
        let looks = faults.iter().map(|&(fault, found)| {
            let look = scope.spawn(move || broken(statements, whose, fault));
            (fault, found, look)
        });
        for (fault, expected, found) in looks.collect::<Vec<_>>() {
            assert_eq!(found.join().unwrap(), expected, "{fault}");
        }
    });
}
