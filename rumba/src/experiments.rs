//! The published experiments and recipes, embedded in the binary.

macro_rules! experiments {
    ($($name:literal),* $(,)?) => {
        &[$(($name, include_str!(concat!("../../experiments/", $name, ".toml")))),*]
    };
}

/// The experiments by name, as their files have them.
pub const EXPERIMENTS: &[(&str, &str)] = experiments![
    "linkbench-fast-server",
    "linkbench-fast-server-embedded",
    "storage-tiers",
    "storage-tiers-apart",
    "innodb-page-size",
    "doublewrite",
    "small-server",
    "zlib-vs-zstd",
    "three-trees",
    "isolation-and-instrumentation",
    "binlog-impact",
    "range-scan",
    "lsm-shape",
    "write-ladder",
    "read-ladder",
    "redo-flush",
    "charset",
    "io-bound-point-select",
    "table-size",
    "table-size-embedded",
    "versions",
    "versions-rocksdb",
    "versions-rocksdb-linkbench",
    "tpcc-scale",
    "tpcc-releases",
    "tpcc-settings",
    "tpcc-trees",
    "tpcc-ladder",
    "tpcc-proof",
    "tpcc-proof-embedded",
    "tpcc-lost",
    "ycsb",
    "ycsb-trees",
    "ycsb-documents",
    "linkbench-documents",
];

/// Experiments that answer a question and reproduce no publication: `rumba run NAME` runs them without their file.
const RECIPES: &[(&str, &str)] = experiments!["quickstart", "innodb-or-myrocks"];

pub fn recipe(name: &str) -> Option<&'static str> {
    RECIPES.iter().find(|(known, _)| *known == name).map(|(_, text)| *text)
}
