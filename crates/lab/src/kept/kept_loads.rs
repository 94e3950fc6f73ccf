//! The kept data of an experiment, by load.

use std::collections::BTreeMap;

use super::kept_data::KeptData;
use crate::provision::ProvisionError;

/// The state of a load's data.
#[derive(Debug)]
pub enum KeptLoad {
    Here(Box<KeptData>),
    /// The data is unusable, and why; loading again may help.
    Lost(String),
    /// The load failed, and why: another attempt would fail too.
    Failed(String),
}

/// The kept data of an experiment, by the number of the trial that loaded it. Until the run takes charge, the data is
/// never removed. A run that is refused before it begins must not remove another run's data, which the ledger lists.
#[derive(Debug, Default)]
pub struct KeptLoads {
    loads: BTreeMap<u32, KeptLoad>,
    is_in_charge: bool,
}

impl Drop for KeptLoads {
    fn drop(&mut self) {
        if !self.is_in_charge {
            self.leave();
        }
    }
}

impl KeptLoads {
    pub fn put(&mut self, load: u32, data: KeptData) {
        self.loads.insert(load, KeptLoad::Here(Box::new(data)));
    }

    /// Notes that a load's data is unusable.
    pub fn lose(&mut self, load: u32, why: String) {
        self.loads.insert(load, KeptLoad::Lost(why));
    }

    pub fn fail(&mut self, load: u32, why: String) {
        self.loads.insert(load, KeptLoad::Failed(why));
    }

    /// From now on, data that is no longer needed is removed, and all of it at the end.
    pub fn take_charge(&mut self) {
        self.is_in_charge = true;
    }

    /// Leaves the data to a later run. The ledger lists it, so that `rumba doctor` finds it too.
    pub fn leave(&mut self) {
        // Dropping the data would remove it.
        std::mem::forget(std::mem::take(&mut self.loads));
    }

    /// Looks up a load; `None` if its data was not kept.
    pub fn find(&self, load: u32) -> Option<&KeptLoad> {
        self.loads.get(&load)
    }

    /// Whether a load's data is available.
    pub fn has(&self, load: u32) -> bool {
        matches!(self.find(load), Some(KeptLoad::Here(_)))
    }

    /// Removes the data of loads that no later trial starts from.
    ///
    /// # Errors
    /// Data that could not be removed.
    pub fn release(&mut self, is_wanted: impl Fn(u32) -> bool) -> Result<(), ProvisionError> {
        let unwanted: Vec<u32> = self.loads.keys().copied().filter(|load| !is_wanted(*load)).collect();
        for load in unwanted {
            if let Some(KeptLoad::Here(data)) = self.loads.remove(&load) {
                data.remove()?;
            }
        }
        Ok(())
    }
}
