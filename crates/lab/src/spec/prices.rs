//! The `[prices]` table.

use rumba_results::prices::{KEYS, Prices};

use super::error::SpecError;
use super::node::Node;
use super::take;

pub fn prices(node: &Node) -> Result<Prices, SpecError> {
    let table = node.table("prices")?;
    take::only(table, "[prices]", KEYS)?;
    let given = |key: &str| table.get(key).map(|node| take::positive(&format!("prices.{key}"), node)).transpose();
    let price = |key: &str| given(key).map(Option::unwrap_or_default);
    if let (Some(drive), None) = (table.get("drive"), table.get("drive_tb_written")) {
        let remedy = "add drive_tb_written, the terabytes that may be written to it, from its data sheet";
        return Err(SpecError::new(&drive.origin, "prices.drive has no drive_tb_written", remedy));
    }
    Ok(Prices {
        vcpu_hour: price("vcpu_hour")?,
        memory_gb_hour: price("memory_gb_hour")?,
        storage_gb_month: price("storage_gb_month")?,
        million_ios: price("million_ios")?,
        drive: price("drive")?,
        drive_tb_written: price("drive_tb_written")?,
        rate: given("rate")?,
    })
}
