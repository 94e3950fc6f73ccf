//! TPC-C over SQL: `store` has the transactions statement by statement, `batched` those that take several rows at once (what
//! they know of an order's lines is in `bought`, of a delivery's orders in `waiting`), `grouped` those that take several
//! statements at once, `prepared` a client's statements.

mod batched;
mod bought;
mod grouped;
mod inspector;
mod loader;
mod looks;
mod prepared;
mod store;
mod text;
mod waiting;

pub use inspector::SqlInspector;
pub use loader::{SqlLoader, create_tables};
pub use looks::Looks;
pub use prepared::Texts;
pub use store::SqlStore;

use rumba_core::sql::{Dialect, Row};

/// A column's exact number in units of 10 to the power of minus `scale`: cents with 2.
fn units(dialect: Dialect, row: &dyn Row, column: usize, scale: u8) -> i64 {
    let value = row.value(column);
    if dialect == Dialect::Sqlite {
        return value.int();
    }
    value.decimal().and_then(|number| number.in_units(scale)).map_or(0, |units| units as i64)
}
