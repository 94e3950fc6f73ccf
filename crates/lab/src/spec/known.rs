//! The settings of a workload: its own, and those that other settings declare.

use rumba_engine_api::setting::{SettingError, SettingInfo, Settings};
use rumba_engine_api::workload::Workload;

use super::error::SpecError;
use super::node::{Node, Table, Tree};
use super::take;
use crate::registry::Registry;

/// A workload's settings.
pub struct Known {
    own: &'static [SettingInfo],
    declared: Vec<SettingInfo<String>>,
}

impl Known {
    /// The settings of a workload, given these values.
    ///
    /// # Errors
    /// As [`Workload::declared`].
    pub fn of(workload: &dyn Workload, given: &Settings) -> Result<Self, SettingError> {
        Ok(Self { own: workload.settings(), declared: workload.declared(given)? })
    }

    pub fn all(&self) -> Vec<SettingInfo<&str>> {
        self.own.iter().copied().chain(self.declared.iter().map(SettingInfo::borrowed)).collect()
    }
}

/// The names of the settings that the settings of an experiment's workload declare.
///
/// # Errors
/// The mistake in one of them, at its place.
pub fn declared(root: &Node, registry: &Registry) -> Result<Vec<String>, SpecError> {
    let Some((name, body)) = workload_of(root) else { return Ok(Vec::new()) };
    let Some(workload) = registry.workload(name) else { return Ok(Vec::new()) };
    let given = take::settings(body)?.as_described(workload.settings());
    let declared = workload.declared(&given).map_err(|error| take::at_setting(error, body, root))?;
    Ok(declared.into_iter().map(|info| info.name).collect())
}

/// The name and the table of an experiment's workload, if it has one.
fn workload_of(root: &Node) -> Option<(&str, &Table)> {
    let Tree::Table(table) = &root.tree else { return None };
    let Tree::Table(workloads) = &table.get("workload")?.tree else { return None };
    let (name, body) = workloads.iter().next()?;
    match &body.tree {
        Tree::Table(body) => Some((name, body)),
        _ => None,
    }
}
