//! Settings and activity of the host that spoil a benchmark, each with its remedy.

use rumba_engine_api::units::show_bytes;
use rumba_results::warning::Warning;

use super::facts::{Facts, Machine, Storage};

/// Above this share of the CPUs, the load before a run competes with it.
const BUSY_LOAD_PER_CPU: f64 = 0.25;
/// Flash slows down as it fills; above this share measurements depend on the fill.
const FULL: f64 = 0.9;
/// Traffic of other processes on the device, bytes per second, below which it is noise.
const QUIET_BYTES_PER_S: f64 = 1024.0 * 1024.0;

impl Facts {
    /// The warnings; none on a host that is fit for a benchmark.
    pub fn warnings(&self) -> Vec<Warning> {
        let Self { machine, storage } = self;
        let of_machine =
            [governor(machine), cpus(machine), huge_pages(machine), swap(machine), clock(machine), load(machine)];
        let of_storage = [kind(storage), discard(storage), full(storage), others(storage)];
        of_machine.into_iter().chain(of_storage).flatten().collect()
    }
}

fn governor(machine: &Machine) -> Option<Warning> {
    let other: Vec<&str> =
        machine.governors.iter().map(String::as_str).filter(|governor| *governor != "performance").collect();
    (!other.is_empty()).then(|| {
        Warning::new(
            "governor",
            format!("the frequency governor is {}, so the clock follows the load", other.join(", ")),
            "as root: echo performance | tee /sys/devices/system/cpu/cpu*/cpufreq/scaling_governor",
        )
    })
}

fn cpus(machine: &Machine) -> Option<Warning> {
    let cpus = machine.cpus_allowed.or(machine.cpus)?;
    (cpus < 2).then(|| {
        Warning::new(
            "one-cpu",
            "one CPU is shared by clients, the engine's background threads and the meters",
            "give the machine or container at least 2 CPUs",
        )
    })
}

fn huge_pages(machine: &Machine) -> Option<Warning> {
    (machine.transparent_huge_pages.as_deref()? == "always").then(|| {
        Warning::new(
            "huge-pages-always",
            "transparent huge pages are always given, which stalls engines and inflates their memory",
            "as root: echo madvise > /sys/kernel/mm/transparent_hugepage/enabled",
        )
    })
}

fn swap(machine: &Machine) -> Option<Warning> {
    let (bytes, swappiness) = (machine.swap_bytes?, machine.swappiness?);
    (bytes > 0 && swappiness > 0).then(|| {
        Warning::new(
            "swap",
            format!(
                "{} of swap at swappiness {swappiness}: the engine's cache may be swapped out",
                show_bytes(bytes as f64)
            ),
            "as root: swapoff -a, or sysctl vm.swappiness=0",
        )
    })
}

fn clock(machine: &Machine) -> Option<Warning> {
    // The clocks that Linux reads without entering the kernel; any other costs
    // a system call, and device access on top, for every time stamp.
    const FAST: [&str; 6] =
        ["tsc", "kvm-clock", "hyperv_clocksource_tsc_page", "arch_sys_counter", "riscv_clocksource", "timebase"];
    let clock = machine.clock_source.as_deref()?;
    (!FAST.contains(&clock)).then(|| {
        Warning::new(
            "slow-clock",
            format!("the clock source is {clock}: every time stamp enters the kernel and is charged to the operation"),
            "boot with a stable TSC, or as root: echo tsc > /sys/devices/system/clocksource/clocksource0/current_clocksource",
        )
    })
}

fn load(machine: &Machine) -> Option<Warning> {
    let (load, cpus) = (machine.load_average?, machine.cpus?);
    (load > BUSY_LOAD_PER_CPU * cpus as f64).then(|| {
        Warning::new(
            "busy-host",
            format!("the load average was {load:.2} on {cpus} CPUs before the run began"),
            "wait until other work has ended, or stop it",
        )
    })
}

fn kind(storage: &Storage) -> Option<Warning> {
    let mount = storage.mount.as_ref()?;
    let (filesystem, dir) = (&mount.filesystem, storage.dir.display());
    let remedy = "put the data directory on a local disk's own filesystem, such as ext4 or xfs";
    if mount.is_memory() {
        let message = format!("{dir} is on {filesystem}, so fsync is free and device I/O cannot be measured");
        return Some(Warning::new("data-in-memory", message, remedy));
    }
    if mount.is_layered() {
        let message = format!("{dir} is on {filesystem}, a layered filesystem whose device cannot be measured");
        return Some(Warning::new("layered-filesystem", message, remedy));
    }
    if mount.is_network() {
        let message = format!("{dir} is on {filesystem}: the network or the sharing host is measured too");
        return Some(Warning::new("network-filesystem", message, remedy));
    }
    let reason = storage.device.as_ref().err()?;
    Some(Warning::new("no-device", format!("device figures will be absent for {dir}: {reason}"), remedy))
}

fn discard(storage: &Storage) -> Option<Warning> {
    let mount = storage.mount.as_ref()?;
    (mount.has_option("discard") || mount.has_option("discard=async")).then(|| {
        let point = mount.point.display();
        Warning::new(
            "discard",
            format!("{point} is mounted with discard: deleted files cost device time during the run"),
            format!("as root: mount -o remount,nodiscard {point}, and fstrim {point} between runs"),
        )
    })
}

fn full(storage: &Storage) -> Option<Warning> {
    let (total, free) = (storage.total_bytes? as f64, storage.free_bytes? as f64);
    let used = 1.0 - free / total;
    (total > 0.0 && used >= FULL).then(|| {
        Warning::new(
            "device-full",
            format!(
                "the filesystem of {} is {:.0}% full ({} free)",
                storage.dir.display(),
                used * 100.0,
                show_bytes(free)
            ),
            "free space until it is at most 80% full, then fstrim: flash slows down as it fills",
        )
    })
}

fn others(storage: &Storage) -> Option<Warning> {
    let (device, rate) = (storage.device.as_ref().ok()?, storage.others_bytes_per_s?);
    (rate > QUIET_BYTES_PER_S).then(|| {
        Warning::new(
            "busy-device",
            format!("others read and wrote {} per second on {} before the run began", show_bytes(rate), device.name),
            "stop them, or put the data directory on its own device: the device's figures count all traffic",
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::block::{Device, DeviceFacts};
    use crate::host::diskstats::DeviceNumber;
    use crate::host::mounts::Mount;

    fn fit() -> Facts {
        let number = DeviceNumber { major: 259, minor: 1 };
        Facts {
            machine: Machine {
                cpus: Some(8),
                cpus_allowed: Some(8),
                governors: ["performance".to_owned()].into(),
                swap_bytes: Some(0),
                swappiness: Some(60),
                transparent_huge_pages: Some("madvise".to_owned()),
                clock_source: Some("tsc".to_owned()),
                load_average: Some(0.1),
                ..Machine::default()
            },
            storage: Storage {
                dir: "/data".into(),
                device: Ok(Device { number, name: "nvme0n1p1".to_owned() }),
                device_facts: DeviceFacts::default(),
                mount: Some(Mount {
                    root: "/".into(),
                    point: "/data".into(),
                    filesystem: "ext4".to_owned(),
                    source: "/dev/nvme0n1p1".into(),
                    options: vec!["rw".to_owned(), "noatime".to_owned()],
                }),
                total_bytes: Some(1000),
                free_bytes: Some(500),
                others_bytes_per_s: Some(0.0),
            },
        }
    }

    fn codes(spoil: impl FnOnce(&mut Facts)) -> Vec<String> {
        let mut facts = fit();
        spoil(&mut facts);
        let warnings = facts.warnings();
        assert!(warnings.iter().all(|warning| !warning.remedy.is_empty()));
        warnings.into_iter().map(|warning| warning.code).collect()
    }

    fn filesystem(facts: &mut Facts, name: &str) {
        facts.storage.mount.as_mut().unwrap().filesystem = name.to_owned();
        facts.storage.device = Err("no device".to_owned());
    }

    #[test]
    fn a_fit_host_has_no_warning() {
        assert_eq!(codes(|_| ()), [""; 0]);
    }

    #[test]
    fn each_disturbance_of_the_machine_is_named() {
        assert_eq!(codes(|facts| facts.machine.governors = ["powersave".to_owned()].into()), ["governor"]);
        assert_eq!(codes(|facts| facts.machine.cpus_allowed = Some(1)), ["one-cpu"]);
        assert_eq!(
            codes(|facts| facts.machine.transparent_huge_pages = Some("always".to_owned())),
            ["huge-pages-always"]
        );
        assert_eq!(codes(|facts| facts.machine.swap_bytes = Some(1 << 30)), ["swap"]);
        assert_eq!(codes(|facts| facts.machine.clock_source = Some("hpet".to_owned())), ["slow-clock"]);
        assert_eq!(codes(|facts| facts.machine.load_average = Some(2.5)), ["busy-host"]);
    }

    #[test]
    fn each_disturbance_of_the_storage_is_named() {
        assert_eq!(codes(|facts| filesystem(facts, "tmpfs")), ["data-in-memory"]);
        assert_eq!(codes(|facts| filesystem(facts, "overlay")), ["layered-filesystem"]);
        assert_eq!(codes(|facts| filesystem(facts, "nfs4")), ["network-filesystem"]);
        assert_eq!(codes(|facts| filesystem(facts, "zfs")), ["no-device"]);
        assert_eq!(
            codes(|facts| facts.storage.mount.as_mut().unwrap().options.push("discard".to_owned())),
            ["discard"]
        );
        assert_eq!(codes(|facts| facts.storage.free_bytes = Some(99)), ["device-full"]);
        assert_eq!(codes(|facts| facts.storage.others_bytes_per_s = Some(5e6)), ["busy-device"]);
    }

    #[test]
    fn metric_unavailable_on_the_host_raises_no_warning() {
        assert_eq!(codes(|facts| facts.machine = Machine::default()), [""; 0]);
        assert_eq!(
            codes(|facts| {
                facts.storage.mount = None;
                facts.storage.total_bytes = None;
                facts.storage.others_bytes_per_s = None;
            }),
            [""; 0]
        );
    }
}
