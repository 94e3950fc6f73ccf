//! Rows to be loaded: values of one table after the other, in flat buffers.

use rumba_engine_api::sql::{Dialect, Param};
use rumba_engine_api::value::{DateTime, Decimal};

use crate::tables::Table;

/// A value of a row.
#[derive(Clone, Copy, Debug)]
enum Cell {
    Null,
    Int(i64),
    /// In units of 10 to the power of minus `scale`.
    Decimal {
        units: i64,
        scale: u8,
    },
    Time(DateTime),
    /// A text that ends here, and begins at the end of the previous one.
    Text {
        end: usize,
    },
}

/// An exact number in a dialect's form: SQLite has no decimals, so it uses the smallest unit.
#[inline]
pub fn exact(dialect: Dialect, units: i64, scale: u8) -> Param<'static> {
    match dialect {
        Dialect::Sqlite => Param::Int(units),
        _ => Param::Decimal(Decimal::new(i128::from(units), scale)),
    }
}

#[derive(Debug, Default)]
pub struct Rows {
    cells: Vec<Cell>,
    text: Vec<u8>,
}

impl Rows {
    pub fn int(&mut self, number: u32) -> &mut Self {
        self.cells.push(Cell::Int(i64::from(number)));
        self
    }

    /// An amount of money, in cents.
    pub fn cents(&mut self, cents: i64) -> &mut Self {
        self.cells.push(Cell::Decimal { units: cents, scale: 2 });
        self
    }

    /// A rate, in ten-thousandths.
    pub fn rate(&mut self, rate: u32) -> &mut Self {
        self.cells.push(Cell::Decimal { units: i64::from(rate), scale: 4 });
        self
    }

    pub fn time(&mut self, time: DateTime) -> &mut Self {
        self.cells.push(Cell::Time(time));
        self
    }

    pub fn null(&mut self) -> &mut Self {
        self.cells.push(Cell::Null);
        self
    }

    /// A text that `put` appends.
    pub fn text(&mut self, put: impl FnOnce(&mut Vec<u8>)) -> &mut Self {
        put(&mut self.text);
        self.cells.push(Cell::Text { end: self.text.len() });
        self
    }

    pub fn is_empty(&self) -> bool {
        self.cells.is_empty()
    }

    pub fn clear(&mut self) {
        self.cells.clear();
        self.text.clear();
    }

    /// Appends the values row by row, in a dialect's form.
    pub fn params<'a>(&'a self, dialect: Dialect, out: &mut Vec<Param<'a>>) {
        let mut start = 0;
        out.extend(self.cells.iter().map(|cell| match *cell {
            Cell::Null => Param::Null,
            Cell::Int(number) => Param::Int(number),
            Cell::Decimal { units, scale } => exact(dialect, units, scale),
            Cell::Time(time) => Param::Timestamp(time),
            Cell::Text { end } => Param::Text(&self.text[std::mem::replace(&mut start, end)..end]),
        }));
    }
}

#[derive(Debug, Default)]
pub struct Stage([Rows; Table::ALL.len()]);

impl Stage {
    pub fn of(&mut self, table: Table) -> &mut Rows {
        &mut self.0[table as usize]
    }

    pub fn filled(&self) -> impl Iterator<Item = (Table, &Rows)> {
        Table::ALL.into_iter().zip(&self.0).filter(|(_, rows)| !rows.is_empty())
    }

    pub fn clear(&mut self) {
        self.0.iter_mut().for_each(Rows::clear);
    }
}
