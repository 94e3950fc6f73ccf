//! TPC-C over ordered keys and values: a space for each table, and one for each of the two indexes.
//!
//! A transaction reads rows that it will change by `get_for_update`, and other rows as last committed. There is no
//! snapshot across reads, so an order status or a stock level may see half of a transaction. Clause 3.4 forbids that at
//! level 3, but allows it for a stock level; see docs/workloads/tpcc.md.

mod inspector;
mod loader;
mod row;
mod rows;
mod store;

pub use inspector::KvInspector;
pub use loader::KvLoader;
pub use rows::KvRows;
pub use store::KvStore;

use std::borrow::Cow;

use rumba_engine_api::kv::{KeySpace, SpaceId};

use crate::data_set::DataSet;
use crate::tables::Table;

/// Customers by name: (warehouse, district, last name, first name, customer).
const BY_NAME: SpaceId = Table::ALL.len();
/// Orders by customer, the newest first: (warehouse, district, customer, order's complement).
const BY_CUSTOMER: SpaceId = BY_NAME + 1;

/// The spaces of a data set: those of the tables by their numbers, then the indexes.
const SPACES: [KeySpace; Table::ALL.len() + 2] = [
    space("warehouse", 0),
    space("district", 0),
    space("customer", 0),
    space("history", 0),
    // The oldest of a district, and the lines of orders, are scanned within a warehouse's district.
    space("new_order", 8),
    space("orders", 0),
    space("order_line", 8),
    space("item", 0),
    space("stock", 0),
    KeySpace { name: "customer_by_name", scan_prefix: 24, derived: true },
    KeySpace { name: "orders_by_customer", scan_prefix: 12, derived: true },
];

/// The spaces of all data sets. The names of several sets are made once for each bound workload, and stay.
pub fn spaces(sets: u32) -> Vec<KeySpace> {
    let named = |set: DataSet, space: KeySpace| match set.name(space.name) {
        Cow::Borrowed(_) => space,
        Cow::Owned(name) => KeySpace { name: name.leak(), ..space },
    };
    DataSet::all(sets).flat_map(|set| SPACES.map(|space| named(set, space))).collect()
}

impl DataSet {
    /// The first space of the set.
    fn space(self, of_set: SpaceId) -> SpaceId {
        self.number as usize * SPACES.len() + of_set
    }

    fn table(self, table: Table) -> SpaceId {
        self.space(table as usize)
    }
}

const fn space(name: &'static str, scan_prefix: usize) -> KeySpace {
    KeySpace { name, scan_prefix, derived: false }
}

/// The bytes of a last and of a first name in the index.
const NAME_BYTES: usize = 16;

/// A key of this many numbers, four bytes each, in byte order.
fn key2(parts: [u32; 2]) -> [u8; 8] {
    joined(&parts)
}

fn key3(parts: [u32; 3]) -> [u8; 12] {
    joined(&parts)
}

fn key4(parts: [u32; 4]) -> [u8; 16] {
    joined(&parts)
}

fn joined<const BYTES: usize>(parts: &[u32]) -> [u8; BYTES] {
    let mut key = [0; BYTES];
    for (place, part) in key.chunks_exact_mut(4).zip(parts) {
        place.copy_from_slice(&part.to_be_bytes());
    }
    key
}

/// The number of a key at a place; 0 where the key is shorter.
fn part(key: &[u8], place: usize) -> u32 {
    let bytes = key.get(4 * place..4 * place + 4).and_then(|bytes| bytes.try_into().ok());
    bytes.map_or(0, u32::from_be_bytes)
}

/// The beginning of a customer's name key, before the first name.
fn name_prefix(warehouse: u32, district: u32, last: &[u8]) -> [u8; 8 + NAME_BYTES] {
    let mut key = [0; 8 + NAME_BYTES];
    key[..8].copy_from_slice(&key2([warehouse, district]));
    let length = last.len().min(NAME_BYTES);
    key[8..8 + length].copy_from_slice(&last[..length]);
    key
}

fn name_key(place: [u32; 3], last: &[u8], first: &[u8]) -> [u8; 12 + 2 * NAME_BYTES] {
    let mut key = [0; 12 + 2 * NAME_BYTES];
    let [warehouse, district, customer] = place;
    key[..8 + NAME_BYTES].copy_from_slice(&name_prefix(warehouse, district, last));
    let length = first.len().min(NAME_BYTES);
    key[8 + NAME_BYTES..][..length].copy_from_slice(&first[..length]);
    key[8 + 2 * NAME_BYTES..].copy_from_slice(&customer.to_be_bytes());
    key
}

/// The key of a payment: its customer's, and a number that its writer uses only once.
fn history_key(customer: [u32; 3], number: u64) -> [u8; 20] {
    let mut key = [0; 20];
    key[..12].copy_from_slice(&key3(customer));
    key[12..].copy_from_slice(&number.to_be_bytes());
    key
}

/// The value where the key holds everything.
const NOTHING: &[u8] = &[0];
