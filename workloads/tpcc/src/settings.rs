//! The settings of TPC-C.

use rumba_core::setting::{Kind, SettingError, SettingInfo, Settings};

use crate::draw::Constants;
use crate::scale::Scale;

/// The settings, each with its default.
pub const SETTINGS: &[SettingInfo] = &[
    SettingInfo {
        name: "warehouses",
        kind: Kind::Int(1, 100_000),
        default: "10",
        help: "warehouses, about 100 MB each",
    },
    SettingInfo {
        name: "data_sets",
        kind: Kind::Int(1, 100),
        default: "1",
        help: "sets of the nine tables, each of so many warehouses; clients are divided among them",
    },
    SettingInfo {
        name: "think",
        kind: Kind::Choice(&["none", "spec"]),
        default: "none",
        help: "spec: clients are terminals, ten of a warehouse, with the specification's keying and think times; none: neither",
    },
    SettingInfo {
        name: "statements",
        kind: Kind::Choice(&["plain", "batched"]),
        default: "plain",
        help: "plain: a statement for each row; batched: an order's items, stock and lines at once, a delivery's orders at once",
    },
    SettingInfo {
        name: "customers",
        kind: Kind::Int(10, 100_000),
        default: "3000",
        help: "customers of a district; the specification has 3000",
    },
    SettingInfo {
        name: "items",
        kind: Kind::Int(100, 1_000_000),
        default: "100000",
        help: "items, and rows of stock of a warehouse; the specification has 100000",
    },
    SettingInfo {
        name: "constants",
        kind: Kind::Int(0, i64::MAX),
        default: "1",
        help: "what the constants of the non-uniform random numbers are drawn from; loads and runs of one database share it",
    },
];

/// How statements take rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// One by one.
    Plain,
    /// Several at once.
    Batched,
}

/// The settings, taken.
#[derive(Clone, Copy, Debug)]
pub struct Config {
    /// How much data there is in a data set.
    pub scale: Scale,
    /// How many data sets.
    pub sets: u32,
    /// The constants of the non-uniform random numbers.
    pub constants: Constants,
    /// How statements take rows.
    pub style: Style,
    /// Whether clients are terminals with keying and think times.
    pub thinks: bool,
}

impl Config {
    /// Takes the settings.
    ///
    /// # Errors
    /// The offending setting, and what would be accepted.
    pub fn new(settings: &Settings) -> Result<Self, SettingError> {
        settings.check("tpcc", SETTINGS)?;
        let filled = settings.with_defaults(SETTINGS);
        let number = |name| filled.int(name).unwrap_or_default();
        let scale = Scale {
            warehouses: number("warehouses") as u32,
            customers: number("customers") as u32,
            items: number("items") as u32,
        };
        let thinks = filled.text("think") == Some("spec");
        let style = if filled.text("statements") == Some("batched") { Style::Batched } else { Style::Plain };
        let sets = number("data_sets") as u32;
        Ok(Self { scale, sets, constants: Constants::drawn(number("constants") as u64), style, thinks })
    }
}
