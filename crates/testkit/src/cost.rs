//! The cost of a protocol's session with the null server, so that only the client is measured.

use rumba_engine_api::sql::{Param, Row, SqlSession, Statement};
use rumba_engine_api::worker::block_on;

use crate::allocations;

/// Runs a point select, which returns a row of 119 bytes.
pub fn point_select(session: &mut dyn SqlSession, statement: Statement, id: i64) {
    let mut seen = 0;
    let mut visit = |row: &dyn Row| seen = row.bytes(0).len();
    let answer = block_on(session.execute(statement, &[Param::Int(id)], &mut visit)).expect("an answer");
    assert_eq!((answer.rows, seen), (1, 119));
}

/// An operation allocates nothing after its first run. Running a future allocates one waker, which does not belong to
/// the session; `futures` is their number in an operation.
pub fn allocates_nothing(futures: u64, mut operation: impl FnMut(u64)) {
    const OPERATIONS: u64 = 10_000;
    operation(0);
    let allocated = allocations::during(|| (0..OPERATIONS).for_each(&mut operation));
    assert_eq!(allocated - futures * OPERATIONS, 0);
}

/// A session that has run a few operations takes at most 12 KiB.
pub fn is_small_at_rest<S>(make: impl FnMut() -> S) {
    let each = allocations::bytes_of_each(100, make);
    println!("a session takes {each} bytes");
    assert!(each <= 12 << 10, "{each} bytes");
}
