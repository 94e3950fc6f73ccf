//! Sets of CPUs, written as the kernel writes them: `0-1,3`.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::setting::{SettingError, Value};

/// The largest number of a CPU that the affinity calls of libraries take: `CPU_SETSIZE` of the C library is 1024.
pub const LARGEST_CPU: u32 = 1023;

/// Numbers of CPUs as `/proc/cpuinfo` has them; never empty.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
pub struct CpuSet(BTreeSet<u32>);

impl CpuSet {
    /// The set of these numbers; `None` if there is none.
    pub fn of(cpus: impl IntoIterator<Item = u32>) -> Option<Self> {
        let cpus: BTreeSet<u32> = cpus.into_iter().collect();
        (!cpus.is_empty()).then_some(Self(cpus))
    }

    /// The numbers, ascending.
    pub fn iter(&self) -> impl Iterator<Item = u32> {
        self.0.iter().copied()
    }

    /// The CPUs that another set lacks; `None` if it has all.
    pub fn without(&self, other: &Self) -> Option<Self> {
        Self::of(self.0.difference(&other.0).copied())
    }
}

/// Reads a value that names CPUs: `"0"`, `"0-1"`, `"0,2-3"`, or a single number.
pub fn parse_cpus(key: &str, value: &Value) -> Result<CpuSet, SettingError> {
    let cpus = match value {
        Value::Int(cpu) => cpu.to_string().parse(),
        Value::Text(text) => text.parse(),
        other => Err(format!("`{other}` names no CPUs")),
    };
    cpus.map_err(|problem| SettingError::new(key, problem, "write numbers of CPUs such as \"0\", \"0-1\" or \"0,2-3\""))
}

impl FromStr for CpuSet {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut cpus = BTreeSet::new();
        for part in text.split(',').map(str::trim) {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            let (first, last) = (number(first)?, number(last)?);
            if first > last {
                return Err(format!("`{part}` ends before it begins"));
            }
            cpus.extend(first..=last);
        }
        Ok(Self(cpus))
    }
}

fn number(text: &str) -> Result<u32, String> {
    match text.trim().parse() {
        Ok(cpu) if cpu <= LARGEST_CPU => Ok(cpu),
        Ok(cpu) => Err(format!("CPU {cpu} is above {LARGEST_CPU}, the largest that can be named")),
        Err(_) => Err(format!("`{}` is not the number of a CPU", text.trim())),
    }
}

impl fmt::Display for CpuSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut left = self.iter().peekable();
        let mut separator = "";
        while let Some(first) = left.next() {
            let mut last = first;
            while let Some(next) = left.next_if_eq(&(last + 1)) {
                last = next;
            }
            match first == last {
                true => write!(f, "{separator}{first}")?,
                false => write!(f, "{separator}{first}-{last}")?,
            }
            separator = ",";
        }
        Ok(())
    }
}

impl TryFrom<String> for CpuSet {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl From<CpuSet> for String {
    fn from(cpus: CpuSet) -> Self {
        cpus.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Result<String, String> {
        text.parse().map(|cpus: CpuSet| cpus.to_string())
    }

    #[test]
    fn sets_are_written_as_the_kernel_writes_them() {
        for (text, shown) in [("0", "0"), ("0-1", "0-1"), ("3, 2,0", "0,2-3"), ("1-1,0-0", "0-1"), ("0-2,1-5", "0-5")] {
            assert_eq!(parsed(text), Ok(shown.to_owned()));
        }
        let set: CpuSet = "0,2-3".parse().unwrap();
        assert_eq!(serde_json::to_string(&set).unwrap(), "\"0,2-3\"");
        assert_eq!(serde_json::from_str::<CpuSet>("\"2-3,0\"").unwrap(), set);
        assert_eq!(CpuSet::of([]), None);
    }

    #[test]
    fn mistakes_in_a_set_are_named_with_its_form() {
        assert_eq!(parsed("3-0"), Err("`3-0` ends before it begins".to_owned()));
        assert_eq!(parsed("1024"), Err("CPU 1024 is above 1023, the largest that can be named".to_owned()));
        for (text, named) in
            [("", "``"), ("0,", "``"), ("-1", "``"), ("a", "`a`"), ("0-1-2", "`1-2`"), ("1.5", "`1.5`")]
        {
            assert_eq!(parsed(text), Err(format!("{named} is not the number of a CPU")));
        }
        let refused = parse_cpus("limits.cpus", &Value::Bool(true)).unwrap_err();
        assert_eq!((refused.key.as_str(), refused.problem.as_str()), ("limits.cpus", "`true` names no CPUs"));
        assert!(refused.remedy.contains("\"0,2-3\""), "{}", refused.remedy);
        assert_eq!(parse_cpus("limits.cpus", &Value::Int(2)), Ok(CpuSet(BTreeSet::from([2]))));
        assert!(parse_cpus("limits.cpus", &Value::Int(-1)).is_err());
    }

    #[test]
    fn only_cpus_that_another_set_lacks_are_left() {
        let set = |text: &str| text.parse::<CpuSet>().unwrap();
        assert_eq!(set("0-3").without(&set("1-2")), Some(set("0,3")));
        assert_eq!(set("1").without(&set("0-1")), None);
    }
}
