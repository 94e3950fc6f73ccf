//! The kept data of an experiment, by the loads that have left it.

use std::collections::BTreeMap;

use super::kept_data::KeptData;
use crate::provision::ProvisionError;

/// What has become of a load's data.
#[derive(Debug)]
enum KeptLoad {
    Here(Box<KeptData>),
    /// It cannot be had, and why; loading again may help.
    Lost(String),
    /// The load itself failed, and how: it would fail again.
    Failed(String),
}

/// The kept data of an experiment, by the number of the trial that loaded it. Until a run has taken charge of them they are
/// left where they are: one that is refused before it begins has no say over what another kept, and the ledger knows of it.
#[derive(Debug, Default)]
pub struct KeptLoads {
    loads: BTreeMap<u32, KeptLoad>,
    is_in_charge: bool,
}

impl Drop for KeptLoads {
    fn drop(&mut self) {
        if !self.is_in_charge {
            // What is dropped is removed.
            std::mem::forget(std::mem::take(&mut self.loads));
        }
    }
}

/// What there is of a load.
#[derive(Debug)]
pub enum Found<'a> {
    /// Its data.
    Here(&'a KeptData),
    /// None, and why; loading again may help.
    Lost(&'a str),
    /// None, because the load failed.
    Failed(&'a str),
}

impl KeptLoads {
    /// Puts a load's data in.
    pub fn put(&mut self, load: u32, data: KeptData) {
        self.loads.insert(load, KeptLoad::Here(Box::new(data)));
    }

    /// Notes that a load's data cannot be had.
    pub fn lose(&mut self, load: u32, why: String) {
        self.loads.insert(load, KeptLoad::Lost(why));
    }

    /// Notes that a load has failed.
    pub fn fail(&mut self, load: u32, why: String) {
        self.loads.insert(load, KeptLoad::Failed(why));
    }

    /// From here on what is no longer wanted, and all of it at the end, is removed.
    pub fn take_charge(&mut self) {
        self.is_in_charge = true;
    }

    /// What there is of a load.
    pub fn find(&self, load: u32) -> Found<'_> {
        match self.loads.get(&load) {
            Some(KeptLoad::Here(data)) => Found::Here(data),
            Some(KeptLoad::Lost(why)) => Found::Lost(why),
            Some(KeptLoad::Failed(why)) => Found::Failed(why),
            None => Found::Lost("it was not kept"),
        }
    }

    /// Whether a load's data is here.
    pub fn has(&self, load: u32) -> bool {
        matches!(self.loads.get(&load), Some(KeptLoad::Here(_)))
    }

    /// Removes the data of loads that nobody starts from any more.
    ///
    /// # Errors
    /// What could not be removed.
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
