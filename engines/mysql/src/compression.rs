//! Compression by name: what it means for tables and for the server.

use rumba_core::setting::SettingError;

use crate::counters::Kind;
use crate::plan::Asked;
use rumba_server_kit::version::Version;

use crate::software::{Brand, Software};

/// What InnoDB is told by name.
pub const INNODB: &[&str] = &["none", "zlib", "page-zlib", "page-lz4", "page-snappy"];
/// What MyRocks is told by name.
pub const MYROCKS: &[&str] = &["none", "snappy", "lz4", "zlib", "zstd"];
/// What TokuDB is told by name.
pub const TOKUDB: &[&str] = &["none", "zlib", "snappy", "quicklz", "lzma"];
/// Engines about which nothing is known.
pub const OTHER: &[&str] = &["none"];

/// What a compression comes to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Compressed {
    /// Parts of every table's definition.
    pub table: Vec<String>,
    /// Variables of the server.
    pub variables: Vec<(String, String)>,
    /// Plugins to load.
    pub plugins: Vec<String>,
    /// Options of MyRocks' column families.
    pub families: Vec<(String, String)>,
}

/// What the experiment's compression comes to. `software` is that of a server
/// that rumba runs.
///
/// # Errors
/// A compression that the engine or the server does not have.
pub fn plan(
    asked: &Asked<'_>,
    kind: &Kind,
    software: Option<&Software>,
    variables: &[(String, String)],
) -> Result<Compressed, SettingError> {
    let mut out = Compressed::default();
    let name = asked.config.compression.as_deref();
    let known = match kind {
        Kind::InnoDb => INNODB,
        Kind::RocksDb => MYROCKS,
        Kind::Other(name) if name.eq_ignore_ascii_case("tokudb") => TOKUDB,
        Kind::Other(_) => OTHER,
    };
    if let Some(name) = name.filter(|name| !known.contains(name)) {
        let problem = format!("`{name}` is not a compression of this engine");
        return Err(SettingError::new("compression", problem, format!("it has: {}", known.join(", "))));
    }
    match kind {
        Kind::InnoDb => innodb(&mut out, asked, name.unwrap_or("none"), software, variables)?,
        Kind::RocksDb => myrocks(&mut out, asked, name, software, variables)?,
        Kind::Other(engine) if engine.eq_ignore_ascii_case("tokudb") => {
            let format =
                name.map_or("zlib".into(), |name| if name == "none" { "uncompressed".into() } else { name.to_owned() });
            out.table.push(format!("ROW_FORMAT=TOKUDB_{}", format.to_ascii_uppercase()));
        }
        Kind::Other(_) => {}
    }
    own_words(&mut out, asked);
    Ok(out)
}

/// What the experiment says of tables takes precedence over what compression comes to.
fn own_words(out: &mut Compressed, asked: &Asked<'_>) {
    let options = asked.options;
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

fn innodb(
    out: &mut Compressed,
    asked: &Asked<'_>,
    name: &str,
    software: Option<&Software>,
    variables: &[(String, String)],
) -> Result<(), SettingError> {
    match name {
        "none" => out.table.push("ROW_FORMAT=DYNAMIC".into()),
        "zlib" => {
            out.table.push("ROW_FORMAT=COMPRESSED".into());
            out.table.push(format!("KEY_BLOCK_SIZE={}", half_a_page(asked, variables)));
        }
        _ => pages(out, asked, name.trim_start_matches("page-"), software)?,
    }
    Ok(())
}

/// Half a page in KiB, which is 8 for the usual pages.
fn half_a_page(asked: &Asked<'_>, variables: &[(String, String)]) -> u64 {
    let set = variables.iter().find(|(name, _)| name == "innodb_page_size").map(|(_, value)| value.as_str());
    let page = set.or_else(|| Some(asked.server.variables.get("innodb_page_size")?.value.as_str()));
    page.and_then(|page| page.parse::<u64>().ok()).map_or(8, |page| (page / 2048).max(1))
}

/// Pages compressed one by one, and holes punched where they have become smaller.
fn pages(
    out: &mut Compressed,
    asked: &Asked<'_>,
    algorithm: &str,
    software: Option<&Software>,
) -> Result<(), SettingError> {
    let server = asked.server;
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

/// The published layout: none for the first levels, lz4 in the middle, the named one at the bottom.
fn myrocks(
    out: &mut Compressed,
    asked: &Asked<'_>,
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
    if let Some(supported) = asked.server.variables.get("rocksdb_supported_compression_types") {
        let has = |word: &str| supported.value.to_ascii_lowercase().split(',').any(|known| known.starts_with(word));
        if let Some(missing) = [name, "lz4"].into_iter().find(|word| name != "none" && !has(word)) {
            let problem = format!("{}'s MyRocks was built without {missing}", asked.server.name());
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
