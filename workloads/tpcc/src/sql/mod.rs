//! TPC-C over SQL.
//!
//! - `store` has the transactions statement by statement.
//! - `batched` has those that take several rows at once, with the statements of `several`; `bought` holds an order's lines and `waiting` a delivery's
//!   orders.
//! - `grouped` has those that send several statements at once.
//! - `prepared` has a client's statements.

mod batched;
mod bought;
mod grouped;
mod inspector;
mod loader;
mod prepared;
mod row_reader;
mod several;
mod store;
mod text;
mod waiting;

pub use inspector::SqlInspector;
pub use loader::{SqlLoader, create_tables};
pub use prepared::Texts;
pub use row_reader::SqlRowReader;
pub use store::SqlStore;

use rumba_engine_api::error::{EngineError, Result};
use rumba_engine_api::sql::{Dialect, Param, Row};
use rumba_engine_api::value::SqlValue;

fn int(number: u32) -> Param<'static> {
    Param::Int(i64::from(number))
}

/// A column's amount, in cents.
///
/// # Errors
/// The column does not hold an amount; the error has its name and content.
fn money(dialect: Dialect, row: &dyn Row, column: usize, name: &'static str) -> Result<i64> {
    exact(dialect, row.value(column), name, 2)
}

/// A column's tax or discount, in ten-thousandths.
///
/// # Errors
/// The column does not hold a rate; the error has its name and content.
fn rate(dialect: Dialect, row: &dyn Row, column: usize, name: &'static str) -> Result<i64> {
    exact(dialect, row.value(column), name, 4)
}

/// An exact number in units of 10 to the power of minus `scale`: cents with 2. A value that is not a number is an
/// error, because 0 would pass for an amount of the data.
fn exact(dialect: Dialect, value: SqlValue<'_>, name: &'static str, scale: u8) -> Result<i64> {
    // SQLite stores it as a whole number of units.
    let digits = if dialect == Dialect::Sqlite { 0 } else { scale };
    let units = value.decimal().and_then(|number| number.in_units(digits));
    units.and_then(|units| i64::try_from(units).ok()).ok_or_else(|| inexact(name, value, digits))
}

#[cold]
fn inexact(name: &'static str, value: SqlValue<'_>, digits: u8) -> EngineError {
    let mut text = Vec::new();
    value.write_text(&mut text);
    if value.is_null() {
        text.extend_from_slice(b"NULL");
    }
    let words = format!(
        "{} is not a 64-bit number with at most {digits} decimal places: the data is not the loaded data; load it \
         again",
        String::from_utf8_lossy(&text)
    );
    EngineError::failed(name, words)
}

/// A customer's discount and the tax of its warehouse.
fn discount_and_tax(dialect: Dialect, row: &dyn Row) -> Result<(i64, i64)> {
    Ok((rate(dialect, row, 0, "c_discount")?, rate(dialect, row, 3, "w_tax")?))
}

/// The number of a district's next order, and its tax.
fn number_and_tax(dialect: Dialect, row: &dyn Row) -> Result<(i64, i64)> {
    Ok((row.int(0), rate(dialect, row, 1, "d_tax")?))
}

/// A customer's balance in cents, and whether its credit is bad.
fn balance_and_credit(dialect: Dialect, row: &dyn Row) -> Result<(i64, bool)> {
    Ok((money(dialect, row, 0, "c_balance")?, row.bytes(1) == b"BC"))
}

#[cfg(test)]
mod tests {
    use rumba_engine_api::value::Decimal;

    use super::*;

    /// Guards against reading a value that is not a number as 0: an order with an unreadable price then cost 0, and a
    /// sum over it held.
    #[test]
    fn inexact_amount_is_an_error_and_not_zero() {
        let servers = [
            (SqlValue::Text(b"-17.90"), Ok(-1790)),
            (SqlValue::Decimal(Decimal::new(179, 1)), Ok(1790)),
            (SqlValue::Int(3), Ok(300)),
            (SqlValue::Text(b"17.905"), Err("17.905")),
            (SqlValue::Text(b"much"), Err("much")),
            (SqlValue::Double(17.5), Err("1.75e1")),
            (SqlValue::Decimal(Decimal::new(i128::from(i64::MAX), 0)), Err("9223372036854775807")),
            (SqlValue::Null, Err("NULL")),
        ];
        let embedded = [
            (SqlValue::Int(1790), Ok(1790)),
            (SqlValue::Text(b"1790"), Ok(1790)),
            (SqlValue::Text(b"17.90"), Err("17.90")),
            (SqlValue::Double(1790.5), Err("1.7905e3")),
            (SqlValue::Null, Err("NULL")),
        ];
        let of_servers = [Dialect::MySql, Dialect::PostgreSql].map(|dialect| (dialect, &servers[..]));
        for (dialect, values) in of_servers.into_iter().chain([(Dialect::Sqlite, &embedded[..])]) {
            for (value, expected) in values {
                let found = exact(dialect, *value, "i_price", 2).map_err(|error| error.to_string());
                match (&found, expected) {
                    (Err(reported), Err(shown)) => {
                        assert!(
                            reported.starts_with(&format!("i_price: {shown} is not a 64-bit number")),
                            "{dialect:?}: {reported}"
                        );
                    }
                    _ => assert_eq!(found, expected.map_err(str::to_owned), "{dialect:?}, {value:?}"),
                }
            }
        }
    }
}
