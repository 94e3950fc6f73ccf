//! Faults of the two indexes that the key-value adapter maintains itself. An order status uses the entry of an order,
//! and a payment that of a name. The rows of tables are unchanged.

use rumba_engine_api::kv::SpaceId;
use rumba_engine_lmdb::Lmdb;

use super::{BY_CUSTOMER, Worked};

/// Customers by name.
const BY_NAME: SpaceId = 9;

#[test]
fn an_entry_of_an_index_that_is_lost_or_left_is_found() {
    let orders = "every new order that was acknowledged is there";
    for (index, broken) in [(BY_NAME, "tables have the rows of the scale"), (BY_CUSTOMER, orders)] {
        for is_lost in [true, false] {
            let worked = Worked::new(&Lmdb, "plain");
            let mut rows = worked.keys();
            rows.0.begin().unwrap();
            let mut entry = rows.of(index, &[1]).remove(0);
            if is_lost {
                rows.delete(index, &entry);
            } else {
                // An entry for a missing order or customer.
                *entry.last_mut().unwrap() ^= 0x80;
                rows.put(index, &entry, &[0]);
            }
            rows.0.commit().unwrap();
            drop(rows);
            assert_eq!(worked.broken(), [broken], "space {index}, lost {is_lost}");
        }
    }
}
