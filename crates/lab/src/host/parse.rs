//! The small texts of `/proc` and `/sys`, parsed. Text in, value out.

use std::collections::BTreeMap;

/// The value of the first `key : value` or `key: value` line.
pub fn field<'a>(text: &'a str, key: &str) -> Option<&'a str> {
    text.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        (name.trim() == key).then(|| value.trim())
    })
}

/// A field of `/proc/meminfo`, which is in units of 1024 bytes, in bytes.
pub fn meminfo_bytes(text: &str, key: &str) -> Option<u64> {
    field(text, key)?.strip_suffix("kB")?.trim().parse::<u64>().ok().map(|kib| kib * 1024)
}

/// The word in brackets of `always [madvise] never`; the whole text when none is.
pub fn chosen(text: &str) -> &str {
    text.split_once('[').and_then(|(_, rest)| rest.split_once(']')).map_or(text, |(word, _)| word)
}

/// How many numbers a list such as `0-3,8` names.
pub fn list_length(text: &str) -> Option<usize> {
    text.trim().split(',').try_fold(0, |sum, part| {
        let (from, to) = part.split_once('-').unwrap_or((part, part));
        let (from, to): (usize, usize) = (from.parse().ok()?, to.parse().ok()?);
        Some(sum + to.checked_sub(from)? + 1)
    })
}

/// The bytes of swap space in `/proc/swaps`, whose third column is KiB.
pub fn swap_bytes(text: &str) -> u64 {
    text.lines()
        .skip(1)
        .filter_map(|line| line.split_ascii_whitespace().nth(2)?.parse::<u64>().ok())
        .map(|kib| kib * 1024)
        .sum()
}

/// The one-minute load average of `/proc/loadavg`.
pub fn load_average(text: &str) -> Option<f64> {
    text.split_ascii_whitespace().next()?.parse().ok()
}

/// The `KEY=value` lines of `/etc/os-release`, quotes taken off.
pub fn os_release(text: &str) -> BTreeMap<&str, &str> {
    text.lines()
        .filter_map(|line| line.split_once('='))
        .map(|(key, value)| (key.trim(), value.trim().trim_matches(['"', '\''])))
        .collect()
}

/// The CPU's name in `/proc/cpuinfo`, where each architecture has its own field for it.
pub fn cpu_model(cpuinfo: &str) -> Option<&str> {
    ["model name", "Model", "cpu model", "uarch", "cpu"].into_iter().find_map(|key| field(cpuinfo, key))
}

/// Whether the CPU reports a hypervisor.
pub fn has_hypervisor(cpuinfo: &str) -> bool {
    field(cpuinfo, "flags").is_some_and(|flags| flags.split(' ').any(|flag| flag == "hypervisor"))
}

/// Ticks that the host's CPUs did not spend on work so far, from the first lines of `/proc/stat`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostCpuTicks {
    /// The online CPUs by number: each has a line.
    pub online: Vec<u32>,
    /// Idle ticks, including I/O wait. The kernel divides one idle period between both in no reliable way, so only the
    /// sum is used.
    pub idle: u64,
    /// Ticks that the hypervisor gave to other guests while this host wanted to run.
    pub steal: u64,
    /// Context switches of all CPUs.
    pub ctx_switches: u64,
}

/// Parses `/proc/stat`. The first line sums over all CPUs; one line for each CPU follows: user nice system idle iowait
/// irq softirq steal. `None` also when all counters are zero, as in some sandboxes.
pub fn host_cpu_ticks(stat: &str) -> Option<HostCpuTicks> {
    let mut lines = stat.lines();
    let mut fields = lines.next()?.split_ascii_whitespace();
    if fields.next()? != "cpu" {
        return None;
    }
    let ticks: Vec<u64> = fields.map_while(|field| field.parse().ok()).collect();
    if ticks.iter().all(|ticks| *ticks == 0) {
        return None;
    }
    let online: Vec<u32> =
        lines.map_while(|line| line.strip_prefix("cpu")?.split_ascii_whitespace().next()?.parse().ok()).collect();
    let steal = ticks.get(7).copied().unwrap_or(0);
    let ctx_switches = stat.lines().find_map(|line| line.strip_prefix("ctxt ")?.trim().parse().ok())?;
    let idle = ticks.get(3)? + ticks.get(4).unwrap_or(&0);
    (!online.is_empty()).then_some(HostCpuTicks { online, idle, steal, ctx_switches })
}

/// Microseconds that `some` or `full` of the processes have waited, from a file of `/proc/pressure`.
pub fn pressure_total_us(text: &str, which: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(which)?.strip_prefix(' '))?;
    line.split_ascii_whitespace().find_map(|part| part.strip_prefix("total=")?.parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_setting_in_force_is_the_one_in_brackets() {
        assert_eq!(chosen("always [madvise] never"), "madvise");
        assert_eq!(chosen("none [mq-deadline] kyber bfq"), "mq-deadline");
        assert_eq!(chosen("none"), "none");
    }

    #[test]
    fn lists_of_cpus_and_nodes_are_counted() {
        assert_eq!(list_length("0"), Some(1));
        assert_eq!(list_length("0-3,8,10-11\n"), Some(7));
        assert_eq!(list_length(""), None);
        assert_eq!(list_length("3-0"), None);
    }

    #[test]
    fn memory_and_swap_are_in_bytes() {
        assert_eq!(meminfo_bytes("MemTotal:       24668560 kB\nMemFree: 1 kB\n", "MemTotal"), Some(24_668_560 * 1024));
        assert_eq!(meminfo_bytes("MemTotal: x kB\n", "MemTotal"), None);
        let swaps = "Filename\tType\tSize\tUsed\tPriority\n/dev/sda3 partition 2097148 0 -2\n/swap file 1024 8 -3\n";
        assert_eq!(swap_bytes(swaps), (2_097_148 + 1024) * 1024);
        assert_eq!(swap_bytes("Filename\tType\tSize\tUsed\tPriority\n"), 0);
    }

    #[test]
    fn host_idle_time_covers_all_cpus_and_lists_online_ones() {
        let stat = "cpu  100 20 30 4000 500 6 7 80 9 0\ncpu0 1 2 3 4\ncpu2 1 2 3 4\nintr 7 0\nctxt 77\n";
        let ticks = HostCpuTicks { online: vec![0, 2], idle: 4000 + 500, steal: 80, ctx_switches: 77 };
        assert_eq!(host_cpu_ticks(stat), Some(ticks));
        assert_eq!(host_cpu_ticks("intr 5"), None);
        assert_eq!(host_cpu_ticks("cpu 1 2 3 4 5\nintr 7\n"), None, "of how many CPUs is not known");
        assert_eq!(host_cpu_ticks("cpu  0 0 0 0 0 0 0 0 0 0\ncpu0 0 0 0 0 0 0 0 0 0 0\n"), None, "it counts nothing");
    }

    #[test]
    fn pressure_is_the_total_of_the_requested_line() {
        let text = "some avg10=0.00 avg60=0.14 avg300=0.06 total=335666\nfull avg10=0.00 avg60=0.11 total=265215\n";
        assert_eq!(pressure_total_us(text, "some"), Some(335_666));
        assert_eq!(pressure_total_us(text, "full"), Some(265_215));
        assert_eq!(pressure_total_us("", "some"), None);
    }

    #[test]
    fn an_arm_cpu_is_named_too() {
        assert_eq!(cpu_model("processor\t: 0\nmodel name\t: Intel(R) Xeon(R)\n"), Some("Intel(R) Xeon(R)"));
        assert_eq!(cpu_model("processor\t: 0\nModel\t\t: Raspberry Pi 5\n"), Some("Raspberry Pi 5"));
        assert!(has_hypervisor("flags\t\t: fpu vme hypervisor lahf_lm\n"));
        assert!(!has_hypervisor("flags\t\t: fpu vme\n"));
    }

    #[test]
    fn the_distribution_is_read_without_its_quotes() {
        let release = os_release("PRETTY_NAME=\"Debian GNU/Linux 12 (bookworm)\"\nID=debian\n");
        assert_eq!(release["PRETTY_NAME"], "Debian GNU/Linux 12 (bookworm)");
        assert_eq!(release["ID"], "debian");
    }
}
