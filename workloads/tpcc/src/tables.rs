//! The nine tables (clause 1.3), for all engines.

/// NULL, where rows are numbers.
pub const NONE: i64 = i64::MIN;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Table {
    Warehouse,
    District,
    Customer,
    History,
    NewOrder,
    Orders,
    OrderLine,
    Item,
    Stock,
}

impl Table {
    /// All, in the order of their numbers.
    pub const ALL: [Table; 9] = [
        Table::Warehouse,
        Table::District,
        Table::Customer,
        Table::History,
        Table::NewOrder,
        Table::Orders,
        Table::OrderLine,
        Table::Item,
        Table::Stock,
    ];
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Type {
    /// An integer that is part of the primary key; the key's columns come first.
    Key,
    /// A whole number.
    Int,
    /// An amount of money, in cents.
    Money,
    /// A share, in ten-thousandths.
    Rate,
    /// A date and time, or none.
    Time,
    /// Text of up to this many bytes.
    Text(u16),
    /// Text of this many bytes.
    Letters(u16),
}

impl Type {
    pub fn is_text(self) -> bool {
        matches!(self, Type::Text(_) | Type::Letters(_))
    }
}

impl Table {
    pub fn name(self) -> &'static str {
        match self {
            Table::Warehouse => "warehouse",
            Table::District => "district",
            Table::Customer => "customer",
            Table::History => "history",
            Table::NewOrder => "new_order",
            Table::Orders => "orders",
            Table::OrderLine => "order_line",
            Table::Item => "item",
            Table::Stock => "stock",
        }
    }

    /// The columns with their types, in the order in which rows are loaded. Keys begin with the warehouse, so that the
    /// rows of one warehouse are adjacent; history has no key (1.3.1).
    pub fn columns(self) -> &'static [(&'static str, Type)] {
        use Type::{Int, Key, Letters, Money, Rate, Text, Time};
        match self {
            Table::Warehouse => &[
                ("w_id", Key),
                ("w_name", Text(10)),
                ("w_street_1", Text(20)),
                ("w_street_2", Text(20)),
                ("w_city", Text(20)),
                ("w_state", Letters(2)),
                ("w_zip", Letters(9)),
                ("w_tax", Rate),
                ("w_ytd", Money),
            ],
            Table::District => &[
                ("d_w_id", Key),
                ("d_id", Key),
                ("d_name", Text(10)),
                ("d_street_1", Text(20)),
                ("d_street_2", Text(20)),
                ("d_city", Text(20)),
                ("d_state", Letters(2)),
                ("d_zip", Letters(9)),
                ("d_tax", Rate),
                ("d_ytd", Money),
                ("d_next_o_id", Int),
            ],
            Table::Customer => &[
                ("c_w_id", Key),
                ("c_d_id", Key),
                ("c_id", Key),
                ("c_first", Text(16)),
                ("c_middle", Letters(2)),
                ("c_last", Text(16)),
                ("c_street_1", Text(20)),
                ("c_street_2", Text(20)),
                ("c_city", Text(20)),
                ("c_state", Letters(2)),
                ("c_zip", Letters(9)),
                ("c_phone", Letters(16)),
                ("c_since", Time),
                ("c_credit", Letters(2)),
                ("c_credit_lim", Money),
                ("c_discount", Rate),
                ("c_balance", Money),
                ("c_ytd_payment", Money),
                ("c_payment_cnt", Int),
                ("c_delivery_cnt", Int),
                ("c_data", Text(500)),
            ],
            Table::History => &[
                ("h_c_id", Int),
                ("h_c_d_id", Int),
                ("h_c_w_id", Int),
                ("h_d_id", Int),
                ("h_w_id", Int),
                ("h_date", Time),
                ("h_amount", Money),
                ("h_data", Text(24)),
            ],
            Table::NewOrder => &[("no_w_id", Key), ("no_d_id", Key), ("no_o_id", Key)],
            Table::Orders => &[
                ("o_w_id", Key),
                ("o_d_id", Key),
                ("o_id", Key),
                ("o_c_id", Int),
                ("o_entry_d", Time),
                ("o_carrier_id", Int),
                ("o_ol_cnt", Int),
                ("o_all_local", Int),
            ],
            Table::OrderLine => &[
                ("ol_w_id", Key),
                ("ol_d_id", Key),
                ("ol_o_id", Key),
                ("ol_number", Key),
                ("ol_i_id", Int),
                ("ol_supply_w_id", Int),
                ("ol_delivery_d", Time),
                ("ol_quantity", Int),
                ("ol_amount", Money),
                ("ol_dist_info", Letters(24)),
            ],
            Table::Item => {
                &[("i_id", Key), ("i_im_id", Int), ("i_name", Text(24)), ("i_price", Money), ("i_data", Text(50))]
            }
            Table::Stock => &[
                ("s_w_id", Key),
                ("s_i_id", Key),
                ("s_quantity", Int),
                ("s_dist_01", Letters(24)),
                ("s_dist_02", Letters(24)),
                ("s_dist_03", Letters(24)),
                ("s_dist_04", Letters(24)),
                ("s_dist_05", Letters(24)),
                ("s_dist_06", Letters(24)),
                ("s_dist_07", Letters(24)),
                ("s_dist_08", Letters(24)),
                ("s_dist_09", Letters(24)),
                ("s_dist_10", Letters(24)),
                ("s_ytd", Int),
                ("s_order_cnt", Int),
                ("s_remote_cnt", Int),
                ("s_data", Text(50)),
            ],
        }
    }
}

/// The positions of columns that are selected by position.
pub mod column {
    pub const W_NAME: usize = 1;
    pub const W_TAX: usize = 7;
    pub const W_YTD: usize = 8;
    pub const D_NAME: usize = 2;
    pub const D_TAX: usize = 8;
    pub const D_YTD: usize = 9;
    pub const D_NEXT_O_ID: usize = 10;
    pub const C_FIRST: usize = 3;
    pub const C_LAST: usize = 5;
    pub const C_CREDIT: usize = 13;
    pub const C_DISCOUNT: usize = 15;
    pub const C_BALANCE: usize = 16;
    pub const C_YTD_PAYMENT: usize = 17;
    pub const C_PAYMENT_CNT: usize = 18;
    pub const C_DELIVERY_CNT: usize = 19;
    pub const C_DATA: usize = 20;
    pub const H_C_ID: usize = 0;
    pub const H_C_D_ID: usize = 1;
    pub const H_C_W_ID: usize = 2;
    pub const H_D_ID: usize = 3;
    pub const H_W_ID: usize = 4;
    pub const H_DATE: usize = 5;
    pub const H_AMOUNT: usize = 6;
    pub const O_C_ID: usize = 3;
    pub const O_CARRIER_ID: usize = 5;
    pub const O_OL_CNT: usize = 6;
    pub const OL_I_ID: usize = 4;
    pub const OL_SUPPLY_W_ID: usize = 5;
    pub const OL_DELIVERY_D: usize = 6;
    pub const OL_QUANTITY: usize = 7;
    pub const OL_AMOUNT: usize = 8;
    pub const I_PRICE: usize = 3;
    pub const I_DATA: usize = 4;
    pub const S_QUANTITY: usize = 2;
    /// The first of ten.
    pub const S_DIST_01: usize = 3;
    pub const S_YTD: usize = 13;
    pub const S_ORDER_CNT: usize = 14;
    pub const S_REMOTE_CNT: usize = 15;
    pub const S_DATA: usize = 16;
}
