//! The settings of TPC-C.

use rumba_engine_api::error::{EngineError, Result};
use rumba_engine_api::setting::{Kind, SettingError, SettingInfo, Settings, Value, info};
use rumba_engine_api::sql::{Dialect, SqlSession};
use rumba_engine_api::workload::Test;

use crate::draw::Constants;
use crate::scale::Scale;

/// The setting that makes tests of ways to divide the warehouses.
const SPLITS: &str = "splits";

pub const SETTINGS: &[SettingInfo] = &[
    info("warehouses", Kind::Int(1, 100_000), "10", "warehouses, about 100 MB each"),
    info(
        "data_sets",
        Kind::Int(1, 100),
        "1",
        "sets of the nine tables, each with this many warehouses; clients are divided among them",
    ),
    info(
        SPLITS,
        Kind::Text,
        "none",
        "tests: all warehouses as this many sets, each loaded separately: \"1,10\" of 10 makes 1x10 and 10x1",
    ),
    info(
        "think",
        Kind::Choice(&["none", "spec"]),
        "none",
        "spec: clients are terminals, ten for each warehouse, with the specification's keying and think times \
               (tpmC_percent reaches 97.0%). none: neither",
    ),
    info(
        "statements",
        Kind::Choice(&["plain", "batched", "grouped"]),
        "plain",
        "plain: one per row. batched: one each for an order's items, stock and lines, and a delivery's orders. \
               grouped: as batched, and independent statements share a round trip",
    ),
    info("customers", Kind::Int(10, 100_000), "3000", "customers of a district; the specification has 3000"),
    info(
        "items",
        Kind::Int(100, 1_000_000),
        "100000",
        "items, and rows of stock of a warehouse; the specification has 100000",
    ),
    info(
        "constants",
        Kind::Int(0, i64::MAX),
        "1",
        "seed of the constants of the non-uniform random numbers; loads and runs of one database share it",
    ),
];

/// How statements take rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// One by one.
    Plain,
    /// Several at once.
    Batched,
    /// Several at once, and several statements in one round trip.
    Grouped,
}

impl Style {
    /// Prepares a session for statements of this kind.
    ///
    /// # Errors
    /// It cannot run several statements in one round trip.
    pub fn prepare(self, session: &mut dyn SqlSession) -> Result<()> {
        if self != Style::Grouped || session.group_statements() {
            return Ok(());
        }
        let remedy = match session.dialect() {
            Dialect::MySql => "it takes several only as text: set prepared = false, or statements = \"batched\"",
            Dialect::PostgreSql => {
                "it takes several only if they are prepared: set prepared = true, or statements = \"batched\""
            }
            _ => "it is embedded and has no round trips: set statements = \"batched\"",
        };
        Err(EngineError::failed("statements = \"grouped\"", format!("the engine cannot: {remedy}")))
    }
}

/// The settings, taken.
#[derive(Clone, Copy, Debug)]
pub struct Config {
    /// How much data there is in a data set.
    pub scale: Scale,
    pub sets: u32,
    /// The constants of the non-uniform random numbers.
    pub constants: Constants,
    /// How statements take rows.
    pub style: Style,
    /// Whether clients are terminals with keying and think times.
    pub thinks: bool,
}

impl Config {
    /// Reads the settings.
    ///
    /// # Errors
    /// The offending setting, and the accepted values.
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
        let style = match filled.text("statements") {
            Some("batched") => Style::Batched,
            Some("grouped") => Style::Grouped,
            _ => Style::Plain,
        };
        let sets = number("data_sets") as u32;
        Ok(Self { scale, sets, constants: Constants::drawn(number("constants") as u64), style, thinks })
    }
}

/// The tests that `splits` requests: the same warehouses in more or fewer sets, each with its own data.
///
/// # Errors
/// A number of sets that does not divide the warehouses.
pub fn splits(settings: &Settings) -> Result<Vec<Test>, SettingError> {
    let Some(splits) = settings.text(SPLITS).filter(|splits| *splits != "none") else { return Ok(Vec::new()) };
    let filled = settings.with_defaults(SETTINGS);
    let number = |name| filled.int(name).unwrap_or(1);
    let all = number("warehouses") * number("data_sets");
    splits.split(',').map(|sets| split(settings, sets.trim(), all)).collect()
}

fn split(settings: &Settings, sets: &str, all: i64) -> Result<Test, SettingError> {
    let divides = |sets: &i64| (1..=all).contains(sets) && all % sets == 0;
    let Some(sets) = sets.parse().ok().filter(divides) else {
        let problem = format!("{all} warehouses cannot be divided among `{sets}` sets");
        return Err(SettingError::new(SPLITS, problem, "name numbers that divide them, as in \"1,10\""));
    };
    let mut own = settings.0.clone();
    own.remove(SPLITS);
    own.insert("warehouses".to_owned(), Value::Int(all / sets));
    own.insert("data_sets".to_owned(), Value::Int(sets));
    Ok(Test { name: format!("{sets}x{}", all / sets), settings: Settings(own), loads: true })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn requested(splits: &str) -> Result<Vec<Test>, SettingError> {
        let set =
            [("warehouses", Value::Int(10)), ("items", Value::Int(500)), (SPLITS, Value::Text(splits.to_owned()))];
        super::splits(&Settings(set.map(|(name, value)| (name.to_owned(), value)).into()))
    }

    #[test]
    fn the_same_warehouses_are_divided_among_more_sets() {
        let tests = requested("1, 10").expect("both divide ten");
        let reported = tests.iter().map(|test| (test.name.as_str(), Config::new(&test.settings).expect("it is whole")));
        let reported: Vec<_> =
            reported.map(|(name, config)| (name, config.sets, config.scale.warehouses, config.scale.items)).collect();
        assert_eq!(reported, [("1x10", 1, 10, 500), ("10x1", 10, 1, 500)]);
        assert!(tests.iter().all(|test| test.loads));
        assert!(super::splits(&Settings::default()).expect("none is requested").is_empty());
        for wrong in ["1,3", "0", "20", "ten"] {
            let error = requested(wrong).expect_err(wrong);
            assert!(error.remedy.contains("divide"), "{error:?}");
        }
    }
}
