//! Maps compression names to table and server options.

use rumba_engine_api::engine::EngineConfig;
use rumba_engine_api::setting::SettingError;

use crate::counters::Kind;
use crate::options::spelled;
use crate::requested::RequestedEngine;
use rumba_server_kit::version::Version;

use crate::software::{Brand, Software};

/// InnoDB's compression names.
pub const INNODB: &[&str] = &["none", "zlib", "page-zlib", "page-lz4", "page-snappy"];
/// MyRocks' compression names.
pub const MYROCKS: &[&str] = &["none", "snappy", "lz4", "zlib", "zstd"];
/// TokuDB's compression names.
pub const TOKUDB: &[&str] = &["none", "zlib", "snappy", "quicklz", "lzma"];
/// Compression names for engines without known options.
pub const OTHER: &[&str] = &["none"];

/// The options of a compression.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Compressed {
    /// Options for every table's definition.
    pub table: Vec<String>,
    /// Server variables.
    pub variables: Vec<(String, String)>,
    /// Plugins to load.
    pub plugins: Vec<String>,
    /// Options of MyRocks' column families.
    pub families: Vec<(String, String)>,
}

/// The effective compression: `none` if data is not compressed, and `None` if an existing server decides it.
pub fn in_force(kind: &Kind, config: &EngineConfig) -> Option<String> {
    let set = |name: &str| {
        let mut all = config.settings.0.iter();
        all.find(|(setting, _)| spelled(setting).ends_with(name)).map(|(_, value)| value.to_string())
    };
    let named = || config.compression.clone();
    match kind {
        Kind::InnoDb if set("page_compressed").is_some_and(|level| level != "0") => {
            Some(format!("page-{}", set("compression_algorithm").unwrap_or_else(|| "zlib".to_owned())))
        }
        Kind::InnoDb if set("row_format").is_some_and(|format| format.eq_ignore_ascii_case("compressed")) => {
            Some("zlib".to_owned())
        }
        Kind::InnoDb => named().or_else(|| Some("none".to_owned())),
        Kind::RocksDb => {
            let written =
                ["override_cf_options", "default_cf_options"].into_iter().find_map(|name| of_families(&set(name)?));
            // RocksDB's own default in builds with snappy.
            let default = || (!config.is_existing()).then(|| "snappy".to_owned());
            written.or_else(named).or_else(default)
        }
        Kind::TokuDb => named().or_else(|| Some("zlib".to_owned())),
        Kind::Other(_) => named(),
    }
}

/// The compression of the bottommost level, which holds most of the data, from column-family options: `zstd`.
fn of_families(options: &str) -> Option<String> {
    let value = |name: &str| {
        let parts = options.split(['{', ';', '}']).filter_map(|part| part.trim().split_once('='));
        let mut found =
            parts.filter(|(own, _)| *own == name).map(|(_, value)| value.rsplit(':').next().unwrap_or(value));
        found.next_back().filter(|word| *word != "kDisableCompressionOption")
    };
    let word = ["bottommost_compression", "compression_per_level", "compression"].into_iter().find_map(value)?;
    let plain = word.trim_start_matches('k').trim_end_matches("Compression").trim_end_matches("NotFinal");
    Some(if plain == "No" { "none".to_owned() } else { plain.to_ascii_lowercase() })
}

/// Maps the experiment's compression to options. `software` is set for a server that rumba runs.
///
/// # Errors
/// A compression that the engine or the server lacks.
pub fn plan(
    requested: &RequestedEngine<'_>,
    kind: &Kind,
    software: Option<&Software>,
    variables: &[(String, String)],
) -> Result<Compressed, SettingError> {
    let mut out = Compressed::default();
    let name = requested.config.compression.as_deref();
    let known = match kind {
        Kind::InnoDb => INNODB,
        Kind::RocksDb => MYROCKS,
        Kind::TokuDb => TOKUDB,
        Kind::Other(_) => OTHER,
    };
    if let Some(name) = name.filter(|name| !known.contains(name)) {
        let problem = format!("`{name}` is not a compression of this engine");
        return Err(SettingError::new("compression", problem, format!("it has: {}", known.join(", "))));
    }
    match kind {
        Kind::InnoDb => innodb(&mut out, requested, name.unwrap_or("none"), software, variables)?,
        Kind::RocksDb => myrocks(&mut out, requested, name, software, variables)?,
        Kind::TokuDb => out.table.push(tokudb(name.unwrap_or("zlib"), requested.server.brand)),
        Kind::Other(_) => {}
    }
    own_words(&mut out, requested);
    Ok(out)
}

/// Removes options that the experiment sets itself, because its table options take precedence.
fn own_words(out: &mut Compressed, requested: &RequestedEngine<'_>) {
    let options = requested.options;
    if let Some(format) = &options.row_format {
        out.table.retain(|part| !part.starts_with("ROW_FORMAT"));
        out.table.insert(0, format!("ROW_FORMAT={}", format.to_ascii_uppercase()));
    }
    if let Some(size) = options.key_block_size {
        out.table.retain(|part| !part.starts_with("KEY_BLOCK_SIZE"));
        out.table.push(format!("KEY_BLOCK_SIZE={size}"));
    }
    if let Some(level) = options.page_compressed {
        out.table.retain(|part| !part.starts_with("PAGE_COMPRESS"));
        if level > 0 {
            out.table.push(format!("PAGE_COMPRESSED=1 PAGE_COMPRESSION_LEVEL={level}"));
        }
    }
}

/// MariaDB has an own option for it, and a row format of this name is a syntax error there.
fn tokudb(name: &str, brand: Brand) -> String {
    let option = match brand {
        Brand::MariaDb => "COMPRESSION",
        Brand::MySql => "ROW_FORMAT",
    };
    let name = if name == "none" { "uncompressed" } else { name };
    format!("{option}=TOKUDB_{}", name.to_ascii_uppercase())
}

fn innodb(
    out: &mut Compressed,
    requested: &RequestedEngine<'_>,
    name: &str,
    software: Option<&Software>,
    variables: &[(String, String)],
) -> Result<(), SettingError> {
    match name {
        "none" => out.table.push("ROW_FORMAT=DYNAMIC".into()),
        "zlib" => {
            out.table.push("ROW_FORMAT=COMPRESSED".into());
            out.table.push(format!("KEY_BLOCK_SIZE={}", half_a_page(requested, variables)));
        }
        _ => pages(out, requested, name.trim_start_matches("page-"), software)?,
    }
    Ok(())
}

/// Half a page in KiB: 8 for pages of the default size.
fn half_a_page(requested: &RequestedEngine<'_>, variables: &[(String, String)]) -> u64 {
    let set = variables.iter().find(|(name, _)| name == "innodb_page_size").map(|(_, value)| value.as_str());
    let page = set.or_else(|| Some(requested.server.variables.get("innodb_page_size")?.value.as_str()));
    page.and_then(|page| page.parse::<u64>().ok()).map_or(8, |page| (page / 2048).max(1))
}

/// Options for page compression, which compresses each page and punches holes for the space saved.
fn pages(
    out: &mut Compressed,
    requested: &RequestedEngine<'_>,
    algorithm: &str,
    software: Option<&Software>,
) -> Result<(), SettingError> {
    let server = requested.server;
    let cannot = |remedy: &str| {
        let problem = format!("{} cannot compress pages with {algorithm}", server.name());
        Err(SettingError::new("compression", problem, remedy))
    };
    if server.brand == Brand::MySql {
        if server.version < Version(5, 7, 8) {
            return cannot("use `zlib` (ROW_FORMAT=COMPRESSED), or a server from MySQL 5.7 on");
        }
        if algorithm == "snappy" {
            return cannot("use `page-zlib` or `page-lz4`");
        }
        out.table.push(format!("ROW_FORMAT=DYNAMIC COMPRESSION='{algorithm}'"));
        return Ok(());
    }
    out.table.push("ROW_FORMAT=DYNAMIC PAGE_COMPRESSED=1".into());
    out.variables.push(("innodb_compression_algorithm".into(), algorithm.into()));
    let provider = format!("provider_{algorithm}");
    let needs_provider = algorithm != "zlib" && server.version >= Version(10, 7, 0);
    if let Some(software) = software.filter(|_| needs_provider) {
        if !software.has_plugin(&provider) {
            return cannot(&format!(
                "install its plugin {provider}: Debian's package mariadb-plugin-provider-{algorithm}"
            ));
        }
        out.plugins.push(provider);
    }
    Ok(())
}

/// The published layout: no compression for the first levels, lz4 in the middle, the requested one at the bottom.
fn myrocks(
    out: &mut Compressed,
    requested: &RequestedEngine<'_>,
    name: Option<&str>,
    software: Option<&Software>,
    variables: &[(String, String)],
) -> Result<(), SettingError> {
    let given = variables.iter().any(|(name, _)| name == "rocksdb_default_cf_options");
    let Some(name) = name else { return Ok(()) };
    if given || software.is_none() {
        let problem = "it would be overruled: the options of MyRocks' column families say how it compresses";
        let remedy = "leave out `compression`, and put it into rocksdb_default_cf_options of the server";
        return Err(SettingError::new("compression", problem, remedy));
    }
    if let Some(supported) = requested.server.variables.get("rocksdb_supported_compression_types") {
        let has = |word: &str| supported.value.to_ascii_lowercase().split(',').any(|known| known.starts_with(word));
        if let Some(missing) = [name, "lz4"].into_iter().find(|word| name != "none" && !has(word)) {
            let problem = format!("{}'s MyRocks was built without {missing}", requested.server.name());
            return Err(SettingError::new("compression", problem, format!("it has {}", supported.value)));
        }
    }
    let word = match name {
        "none" => "kNoCompression",
        "snappy" => "kSnappyCompression",
        "lz4" => "kLZ4Compression",
        "zlib" => "kZlibCompression",
        _ => "kZSTD",
    };
    let levels = match name {
        "none" => "kNoCompression".to_owned(),
        _ => format!("kNoCompression:kNoCompression:kNoCompression{}", ":kLZ4Compression".repeat(4)),
    };
    out.families.push(("compression_per_level".into(), levels));
    out.families.push(("bottommost_compression".into(), word.into()));
    Ok(())
}

#[cfg(test)]
mod tests {
    use rumba_engine_api::setting::Value;

    use super::*;

    fn of(kind: &Kind, compression: Option<&str>, settings: &[(&str, &str)]) -> Option<String> {
        let settings = settings.iter().map(|(name, value)| (*name, Value::Text((*value).to_owned()))).collect();
        let compression = compression.map(str::to_owned);
        in_force(kind, &EngineConfig { compression, settings, ..EngineConfig::new("engine") })
    }

    /// MariaDB refused Percona Server's form of the option as a syntax error.
    #[test]
    fn tokudb_compression_is_spelt_as_the_brand_takes_it() {
        assert_eq!(tokudb("zlib", Brand::MariaDb), "COMPRESSION=TOKUDB_ZLIB");
        assert_eq!(tokudb("none", Brand::MariaDb), "COMPRESSION=TOKUDB_UNCOMPRESSED");
        assert_eq!(tokudb("quicklz", Brand::MySql), "ROW_FORMAT=TOKUDB_QUICKLZ");
    }

    /// Sizes with zstd were compared with uncompressed sizes, without a warning.
    #[test]
    fn effective_compression_is_known_without_a_setting() {
        let is = |found: Option<String>, name: &str| assert_eq!(found.as_deref(), Some(name));
        is(of(&Kind::InnoDb, None, &[]), "none");
        is(of(&Kind::InnoDb, Some("zlib"), &[]), "zlib");
        is(of(&Kind::InnoDb, None, &[("row_format", "compressed")]), "zlib");
        is(of(&Kind::RocksDb, None, &[]), "snappy");
        is(of(&Kind::RocksDb, Some("zstd"), &[]), "zstd");
        let options = "compression=kNoCompression;block_based_table_factory={block_size=4096}";
        is(of(&Kind::RocksDb, None, &[("rocksdb_default_cf_options", options)]), "none");
        let single = "default={bottommost_compression=kZSTDNotFinalCompression}";
        is(of(&Kind::RocksDb, Some("lz4"), &[("rocksdb_override_cf_options", single)]), "zstd");
        let levels = "compression_per_level=kNoCompression:kLZ4Compression";
        is(of(&Kind::RocksDb, None, &[("default_cf_options", levels)]), "lz4");
        is(of(&Kind::of("TokuDB"), None, &[]), "zlib");
        assert_eq!(of(&Kind::of("Aria"), None, &[]), None);
    }
}
