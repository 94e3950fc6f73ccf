//! A client's statements, each prepared at its first use.
//!
//! A terminal with think times runs few of them in an hour. With ten thousand terminals a server would keep half a
//! million. It holds memory for each, parsed and per connection, and so does the client.

use std::sync::{Arc, OnceLock};

use rumba_engine_api::error::Result;
use rumba_engine_api::sql::{Dialect, SqlSession, Statement};
use strum::VariantArray;

use super::several::Several;
use super::text::{Sql, stock_of};
use crate::data_set::DataSet;
use crate::scale::DISTRICTS;
use crate::settings::Style;

const PLAIN: usize = Sql::VARIANTS.len();
const STOCK: usize = PLAIN + DISTRICTS as usize;
const ALL: usize = STOCK + Several::ALL;

/// A statement of the transactions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wanted {
    /// One row at a time.
    Plain(Sql),
    /// The row of stock that an order in this district takes from.
    Stock(u32),
    /// Several rows at once.
    Several(Several),
}

impl Wanted {
    /// Its place among all.
    fn number(self) -> usize {
        match self {
            Wanted::Plain(sql) => sql as usize,
            Wanted::Stock(district) => PLAIN + district as usize - 1,
            Wanted::Several(several) => STOCK + several.number(),
        }
    }

    fn of(self, set: DataSet, dialect: Dialect) -> String {
        match self {
            Wanted::Plain(sql) => sql.of(set, dialect),
            Wanted::Stock(district) => stock_of(district, set, dialect),
            Wanted::Several(several) => several.of(set, dialect),
        }
    }

    /// All that clients of a style may run.
    fn all(style: Style) -> impl Iterator<Item = Wanted> {
        let stock = (1..=DISTRICTS).map(Wanted::Stock);
        let runs = move |several: &Several| match several {
            Several::Restock(_) => style == Style::Grouped,
            _ => style != Style::Plain,
        };
        let several = Several::all().filter(runs).map(Wanted::Several);
        Sql::VARIANTS.iter().copied().map(Wanted::Plain).chain(stock).chain(several)
    }
}

/// The texts of the statements over a data set. Each is built once for all clients of the engine, because ten thousand
/// terminals prepare most of theirs again.
pub struct Texts {
    set: DataSet,
    texts: [OnceLock<Box<str>>; ALL],
}

impl Texts {
    /// None yet, over a data set.
    pub fn new(set: DataSet) -> Self {
        Self { set, texts: [const { OnceLock::new() }; ALL] }
    }

    fn of(&self, wanted: Wanted, dialect: Dialect) -> &str {
        self.texts[wanted.number()].get_or_init(|| wanted.of(self.set, dialect).into())
    }
}

/// The statements of one session.
pub(super) struct Prepared {
    texts: Arc<Texts>,
    statements: [Option<Statement>; ALL],
}

impl Prepared {
    /// None yet, of these texts.
    pub fn new(texts: Arc<Texts>) -> Self {
        Self { texts, statements: [None; ALL] }
    }

    /// A statement, prepared now if it was not before. No request may be in progress on the session.
    pub fn get(&mut self, session: &mut dyn SqlSession, wanted: Wanted) -> Result<Statement> {
        let place = &mut self.statements[wanted.number()];
        if let Some(statement) = *place {
            return Ok(statement);
        }
        let dialect = session.dialect();
        let statement = session.prepare(self.texts.of(wanted, dialect))?;
        *place = Some(statement);
        Ok(statement)
    }

    /// Prepares all statements that clients of a style may run.
    pub fn all(&mut self, session: &mut dyn SqlSession, style: Style) -> Result<()> {
        Wanted::all(style).try_for_each(|wanted| self.get(session, wanted).map(drop))
    }
}
