//! The facts as conditions: a name and a text each, as records keep them.

use std::collections::BTreeMap;

use rumba_engine_api::units::show_bytes;

use super::facts::{Facts, Machine, Storage};

impl Facts {
    /// The conditions by name; facts that the host does not expose are marked.
    pub fn conditions(&self) -> BTreeMap<String, String> {
        let machine = machine_conditions(&self.machine);
        let storage = storage_conditions(&self.storage);
        machine.into_iter().chain(storage).map(|(name, text)| (name.to_owned(), text)).collect()
    }
}

fn machine_conditions(machine: &Machine) -> Vec<(&'static str, String)> {
    let governor = machine.governors.iter().map(String::as_str).collect::<Vec<_>>().join(", ");
    vec![
        ("cpu", or_unknown(machine.cpu.clone())),
        ("cpus", cpus(machine)),
        ("smt", or_unknown(machine.smt.map(|on| if on { "on" } else { "off" }.to_owned()))),
        ("numa_nodes", or_unknown(machine.numa_nodes.map(|nodes| nodes.to_string()))),
        ("governor", if governor.is_empty() { "not exposed".to_owned() } else { governor }),
        ("memory", memory(machine)),
        ("swap", swap(machine)),
        ("transparent_huge_pages", or_unknown(machine.transparent_huge_pages.clone())),
        ("page_size", show_bytes(machine.page_bytes as f64)),
        ("kernel", machine.kernel.clone()),
        ("distribution", or_unknown(machine.distribution.clone())),
        ("clock_source", or_unknown(machine.clock_source.clone())),
        ("virtual_machine", machine.virtual_machine.clone().unwrap_or_else(|| "none detected".to_owned())),
        ("container", machine.container.clone().unwrap_or_else(|| "none detected".to_owned())),
        ("load_average_at_start", or_unknown(machine.load_average.map(|load| format!("{load:.2}")))),
    ]
}

fn cpus(machine: &Machine) -> String {
    match (machine.cpus, machine.cpus_allowed) {
        (Some(all), Some(allowed)) if allowed < all => format!("{all}, of which {allowed} may be used"),
        (all, allowed) => or_unknown(all.or(allowed).map(|cpus| cpus.to_string())),
    }
}

fn memory(machine: &Machine) -> String {
    let total = or_unknown(machine.memory_bytes.map(|bytes| show_bytes(bytes as f64)));
    match machine.memory_limit_bytes {
        Some(limit) if Some(limit) < machine.memory_bytes => {
            format!("{total}, limited to {}", show_bytes(limit as f64))
        }
        _ => total,
    }
}

fn swap(machine: &Machine) -> String {
    match (machine.swap_bytes, machine.swappiness) {
        (Some(0), _) => "off".to_owned(),
        (Some(bytes), Some(swappiness)) => format!("{}, swappiness {swappiness}", show_bytes(bytes as f64)),
        (Some(bytes), None) => show_bytes(bytes as f64),
        (None, _) => or_unknown(None),
    }
}

fn storage_conditions(storage: &Storage) -> Vec<(&'static str, String)> {
    let space = |bytes: Option<u64>| or_unknown(bytes.map(|bytes| show_bytes(bytes as f64)));
    let mut conditions = vec![
        ("device", device(storage)),
        ("filesystem", or_unknown(storage.mount.as_ref().map(|mount| mount.filesystem.clone()))),
        ("mount_options", or_unknown(storage.mount.as_ref().map(|mount| mount.options.join(",")))),
        ("free_space", format!("{} of {}", space(storage.free_bytes), space(storage.total_bytes))),
    ];
    if storage.device.is_ok() {
        let facts = &storage.device_facts;
        let rotational = facts.rotational.map(|turns| if turns { "yes" } else { "no" }.to_owned());
        conditions.push(("device_model", or_unknown(facts.model.clone())));
        conditions.push(("device_rotational", or_unknown(rotational)));
        let read_ahead = facts.read_ahead_bytes.map(|bytes| show_bytes(bytes as f64));
        conditions.push(("device_read_ahead", or_unknown(read_ahead)));
        conditions.push(("io_scheduler", or_unknown(facts.scheduler.clone())));
    }
    conditions
}

/// A loop device is named by its file, because its number is arbitrary.
fn device(storage: &Storage) -> String {
    match (&storage.device, &storage.device_facts.backing_file) {
        (Ok(_), Some(file)) => format!("loop device on the file {file}"),
        (Ok(device), None) => device.name.clone(),
        (Err(reason), _) => format!("none: {reason}"),
    }
}

fn or_unknown(text: Option<String>) -> String {
    text.unwrap_or_else(|| "not exposed".to_owned())
}

#[cfg(test)]
mod tests {
    use super::super::block::{Device, DeviceFacts};
    use super::super::diskstats::DeviceNumber;
    use super::*;

    #[test]
    fn metric_unavailable_on_the_host_is_marked_not_omitted() {
        let conditions: BTreeMap<_, _> = machine_conditions(&Machine::default()).into_iter().collect();
        for name in ["cpu", "governor", "smt", "swap", "memory"] {
            assert_eq!(conditions[name], "not exposed", "{name}");
        }
    }

    #[test]
    fn limits_below_the_machine_are_part_of_the_condition() {
        let machine = Machine {
            cpus: Some(16),
            cpus_allowed: Some(4),
            memory_bytes: Some(64 << 30),
            memory_limit_bytes: Some(480 << 20),
            swap_bytes: Some(2 << 30),
            swappiness: Some(60),
            ..Machine::default()
        };
        let conditions: BTreeMap<_, _> = machine_conditions(&machine).into_iter().collect();
        assert_eq!(conditions["cpus"], "16, of which 4 may be used");
        assert_eq!(conditions["memory"], "64.0 GiB, limited to 480.0 MiB");
        assert_eq!(conditions["swap"], "2.00 GiB, swappiness 60");
    }

    /// The rotational flag and the read-ahead decide how much engines with memory-mapped files read.
    #[test]
    fn plain_directory_reports_rotational_flag_and_read_ahead() {
        let of = |device_facts: DeviceFacts| {
            let device = Device { number: DeviceNumber { major: 254, minor: 0 }, name: "vda".to_owned() };
            let storage = Storage {
                dir: "/data".into(),
                device: Ok(device),
                device_facts,
                mount: None,
                total_bytes: None,
                free_bytes: None,
                others_bytes_per_s: None,
            };
            let conditions: BTreeMap<_, _> = storage_conditions(&storage).into_iter().collect();
            ["device_rotational", "device_read_ahead"].map(|name| conditions[name].clone())
        };
        let reported =
            DeviceFacts { rotational: Some(true), read_ahead_bytes: Some(2560 << 10), ..DeviceFacts::default() };
        assert_eq!(of(reported), ["yes", "2.50 MiB"]);
        assert_eq!(of(DeviceFacts::default()), ["not exposed", "not exposed"]);
    }
}
