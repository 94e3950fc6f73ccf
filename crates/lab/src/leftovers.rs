//! leftovers: everything that a killed run may have left on the host.

use crate::limits;
use crate::provision::{DATA_DIRECTORY, Kind, Leftover, ProvisionError, ResourceRegistry};

/// Every kind of resource that a run makes and lists.
const KINDS: [Kind; 3] = [DATA_DIRECTORY, limits::KINDS[0], limits::KINDS[1]];

/// The leftovers of killed runs, the newest first.
///
/// # Errors
/// When the ledger cannot be read.
pub fn find(ledger: &ResourceRegistry) -> Result<Vec<Leftover>, ProvisionError> {
    ledger.leftovers(&KINDS)
}

/// Ledger entries that this version cannot read, each with its remedy. The resources that they list are not cleaned.
///
/// # Errors
/// When the ledger cannot be read.
pub fn unreadable(ledger: &ResourceRegistry) -> Result<Vec<ProvisionError>, ProvisionError> {
    ledger.unreadable(&KINDS)
}
