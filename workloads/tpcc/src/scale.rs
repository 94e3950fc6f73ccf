//! How much data there is (clause 4.3.3.1).

pub const DISTRICTS: u32 = 10;
/// Items, and a warehouse's rows of stock, as the specification has them.
pub const ITEMS: u32 = 100_000;
/// Customers, and orders at the start, of a district.
pub const CUSTOMERS: u32 = 3_000;
/// The minimum, mean and maximum number of lines of an order.
pub const LINES: (u32, u32, u32) = (5, 10, 15);
/// The initial payment of each customer, which reduces what it owes, in cents.
pub const PAID: i64 = 1_000;

/// The cardinalities of a database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scale {
    pub warehouses: u32,
    /// Customers of a district, each with an order at the start.
    pub customers: u32,
    pub items: u32,
}

/// Bytes of a row of each table: the typical lengths of clause 4.2.2.
pub mod bytes {
    pub const WAREHOUSE: u64 = 89;
    pub const DISTRICT: u64 = 95;
    pub const CUSTOMER: u64 = 655;
    pub const HISTORY: u64 = 46;
    pub const NEW_ORDER: u64 = 8;
    pub const ORDER: u64 = 24;
    pub const ORDER_LINE: u64 = 54;
    pub const ITEM: u64 = 82;
    pub const STOCK: u64 = 306;
    /// An entry of the index of customers by name, and an entry of the index of orders by customer.
    pub const NAME: u64 = 42;
    pub const BY_CUSTOMER: u64 = 16;
}

impl Scale {
    /// Whether it is the specification's.
    pub fn is_specified(&self) -> bool {
        self.customers == CUSTOMERS && self.items == ITEMS
    }

    pub fn districts(&self) -> u64 {
        u64::from(self.warehouses) * u64::from(DISTRICTS)
    }

    /// Customers of all districts; as many orders are there at the start.
    pub fn all_customers(&self) -> u64 {
        self.districts() * u64::from(self.customers)
    }

    pub fn stock(&self) -> u64 {
        u64::from(self.warehouses) * u64::from(self.items)
    }

    /// The first order of a district that is not delivered at the start: 2,101 of 3,000.
    pub fn first_undelivered(&self) -> u32 {
        self.customers * 7 / 10 + 1
    }

    /// Orders of a district that are delivered at the start: 2,100.
    pub fn delivered(&self) -> u32 {
        self.first_undelivered() - 1
    }

    /// The number of last names in use: a third of the customers of a district, as in the specification. Several
    /// customers therefore share each name at any scale. If each had its own name, the search for the middle customer
    /// would never be needed.
    pub fn names(&self) -> u32 {
        (self.customers / 3).clamp(1, crate::names::NAMES)
    }

    /// About how many rows the load writes.
    pub fn rows(&self) -> u64 {
        let (customers, lines) = (self.all_customers(), u64::from(LINES.1));
        let undelivered = self.districts() * u64::from(self.customers - self.delivered());
        let small = u64::from(self.warehouses) + self.districts() + u64::from(self.items);
        // A customer, its history, its order.
        small + self.stock() + customers * (3 + lines) + undelivered
    }

    /// About how many bytes of values the load writes, index entries among them.
    pub fn logical_bytes(&self) -> u64 {
        let undelivered = self.districts() * u64::from(self.customers - self.delivered());
        let of_customer = bytes::CUSTOMER + bytes::HISTORY + bytes::NAME;
        let of_order = bytes::ORDER + bytes::BY_CUSTOMER + u64::from(LINES.1) * bytes::ORDER_LINE;
        u64::from(self.warehouses) * bytes::WAREHOUSE
            + self.districts() * bytes::DISTRICT
            + u64::from(self.items) * bytes::ITEM
            + self.stock() * bytes::STOCK
            + self.all_customers() * (of_customer + of_order)
            + undelivered * bytes::NEW_ORDER
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_warehouse_is_as_large_as_the_specification_says() {
        let scale = Scale { warehouses: 1, customers: CUSTOMERS, items: ITEMS };
        assert_eq!((scale.first_undelivered(), scale.delivered()), (2101, 2100));
        assert_eq!(scale.all_customers() - scale.districts() * u64::from(scale.delivered()), 9000);
        // 1 + 10 + 100k items + 100k stock + 30k customers, history, orders each + 300k lines + 9k new orders.
        assert_eq!(scale.rows(), 599_011);
        assert!(scale.is_specified());
    }

    #[test]
    fn at_least_three_district_customers_share_a_last_name() {
        let names = |customers| Scale { warehouses: 1, customers, items: ITEMS }.names();
        assert_eq!([10, 30, 3000, 100_000].map(names), [3, 10, 1000, 1000]);
    }
}
