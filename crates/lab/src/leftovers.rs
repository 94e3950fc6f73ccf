//! leftovers: all that a killed run may have left on the host, whatever made it.

use crate::limits;
use crate::provision::{DATA_DIRECTORY, Kind, Ledger, Leftover, ProvisionError};

/// Everything that a run makes and lists.
const KINDS: [Kind; 3] = [DATA_DIRECTORY, limits::KINDS[0], limits::KINDS[1]];

/// What killed runs have left behind, the last made first.
///
/// # Errors
/// When the ledger cannot be read.
pub fn find(ledger: &Ledger) -> Result<Vec<Leftover>, ProvisionError> {
    ledger.leftovers(&KINDS)
}

/// Entries of the ledger that nobody here understands, each with what to do: whatever they list is not cleaned.
///
/// # Errors
/// When the ledger cannot be read.
pub fn unreadable(ledger: &Ledger) -> Result<Vec<ProvisionError>, ProvisionError> {
    ledger.unreadable(&KINDS)
}
