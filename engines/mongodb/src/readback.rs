//! Compares the effective settings after the start with the requested ones.

use rumba_engine_api::bson::Document;
use rumba_engine_api::engine::EngineConfig;
use rumba_engine_api::error::Result;
use rumba_server_kit::readback::{Match, compare, refused};

use crate::control::{Control, failed, text_within, within};
use crate::plan::Plan;

const CALL: &str = "reading the settings back";

/// An option, and its place in the server's configuration (getCmdLineOpts, `parsed`) and in its status.
struct ReportedOption {
    option: &'static str,
    at: &'static [&'static str],
}

const REPORTED: [ReportedOption; 8] = [
    ReportedOption { option: "storageEngine", at: &["storage", "engine"] },
    ReportedOption { option: "wiredTigerCacheSizeGB", at: &["storage", "wiredTiger", "engineConfig", "cacheSizeGB"] },
    ReportedOption {
        option: "wiredTigerCollectionBlockCompressor",
        at: &["storage", "wiredTiger", "collectionConfig", "blockCompressor"],
    },
    ReportedOption {
        option: "wiredTigerJournalCompressor",
        at: &["storage", "wiredTiger", "engineConfig", "journalCompressor"],
    },
    ReportedOption { option: "syncdelay", at: &["storage", "syncPeriodSecs"] },
    ReportedOption { option: "oplogSize", at: &["replication", "oplogSizeMB"] },
    ReportedOption { option: "rocksdbCacheSizeGB", at: &["storage", "rocksdb", "cacheSizeGB"] },
    ReportedOption { option: "rocksdbCompression", at: &["storage", "rocksdb", "compression"] },
];

/// Reads the settings back from the server, if it reports them, and returns the effective ones.
///
/// # Errors
/// The first setting that the server changed or ignored.
pub fn settings_in_force(control: &mut Control, plan: &Plan, config: &EngineConfig) -> Result<Vec<(String, String)>> {
    let mut settings = Vec::new();
    // A server without this command uses the options it was given.
    let options = control.reported("getCmdLineOpts").ok();
    for (name, requested) in &plan.arguments {
        let reported = REPORTED.iter().find(|reported| reported.option == name);
        let found = options.as_ref().zip(reported).and_then(|(options, reported)| parsed(options.get(), reported.at));
        if let Some(found) = &found
            && compare(requested, found) == Match::Other
        {
            return Err(refused(CALL, name, requested, found));
        }
        settings.push((
            name.clone(),
            found.unwrap_or_else(|| if requested.is_empty() { "given".into() } else { requested.clone() }),
        ));
    }
    let status = control.reported("serverStatus").map_err(failed(CALL))?;
    settings.extend(in_status(status.get(), plan, config)?);
    settings.push(("write_concern".to_owned(), format!("{:?}", plan.write_concern)));
    Ok(settings)
}

fn parsed(options: Document<'_>, at: &[&str]) -> Option<String> {
    let path: Vec<&str> = ["parsed"].iter().chain(at).copied().collect();
    match within(options, &path)? {
        rumba_engine_api::bson::Value::Text(text) => Some(String::from_utf8_lossy(text).into_owned()),
        rumba_engine_api::bson::Value::Double(number) => Some(number.to_string()),
        other => other.int().map(|number| number.to_string()),
    }
}

/// Compares the storage engine, cache size and replica-set state in the server's status.
fn in_status(status: Document<'_>, plan: &Plan, config: &EngineConfig) -> Result<Vec<(String, String)>> {
    let mut settings = Vec::new();
    if let Some(engine) = text_within(status, &["storageEngine", "name"]) {
        if let Some(requested) = plan.value("storageEngine")
            && compare(requested, &engine) == Match::Other
        {
            return Err(refused(CALL, "storageEngine", requested, &engine));
        }
        settings.push(("storage_engine".to_owned(), engine));
    }
    let configured = within(status, &["wiredTiger", "cache", "maximum bytes configured"]).and_then(|value| value.int());
    if let Some(bytes) = configured {
        let requested = config.cache.to_string();
        if plan.value("wiredTigerCacheSizeGB").is_some() && compare(&requested, &bytes.to_string()) == Match::Other {
            return Err(refused(CALL, "cache", &requested, &bytes.to_string()));
        }
        settings.push(("wiredTiger.cache.maximum bytes configured".to_owned(), bytes.to_string()));
    }
    let set = text_within(status, &["repl", "setName"]);
    settings.extend(set.map(|set| ("replica_set".to_owned(), set)));
    Ok(settings)
}

#[cfg(test)]
mod tests {
    use rumba_engine_api::bson::DocumentBuf;

    use rumba_engine_api::setting::Value;

    use super::*;
    use crate::brand::Brand;
    use crate::options::Options;
    use crate::plan::for_own;
    use crate::software::Software;
    use crate::tests::config;

    fn status(engine: &'static str, cache: i64) -> DocumentBuf {
        DocumentBuf::of(|of| {
            of.document("storageEngine", |of| of.text("name", engine));
            of.document("wiredTiger", |of| of.document("cache", |of| of.int("maximum bytes configured", cache)));
        })
    }

    #[test]
    fn unexpected_engine_or_cache_size_is_refused() {
        let mut requested = config(Brand::MongoDb);
        requested.cache = 1 << 30;
        let arguments = [("storageEngine", "wiredTiger"), ("wiredTigerCacheSizeGB", "1")]
            .map(|(a, b)| (a.to_owned(), b.to_owned()));
        let plan = Plan { arguments: arguments.into(), replicated: false, write_concern: DocumentBuf::default() };
        let reported = in_status(status("wiredTiger", 1 << 30).get(), &plan, &requested).unwrap();
        assert_eq!(reported[0], ("storage_engine".to_owned(), "wiredTiger".to_owned()));
        let error = in_status(status("rocksdb", 1 << 30).get(), &plan, &requested).unwrap_err().to_string();
        assert!(error.contains("storageEngine was set to wiredTiger and is rocksdb"), "{error}");
        let error = in_status(status("wiredTiger", 1 << 29).get(), &plan, &requested).unwrap_err().to_string();
        assert!(error.contains("cache was set to"), "{error}");
        let options = DocumentBuf::of(|of| {
            of.document("parsed", |of| of.document("storage", |of| of.double("syncPeriodSecs", 10.0)));
        });
        assert_eq!(parsed(options.get(), &["storage", "syncPeriodSecs"]).as_deref(), Some("10"));
    }

    #[test]
    fn every_option_that_a_common_setting_becomes_is_looked_for() {
        for engine in ["wiredTiger", "rocksdb"] {
            let mut requested = config(Brand::MongoDb);
            (requested.cache, requested.compression) = (1 << 30, Some("snappy".to_owned()));
            requested.settings.0.insert("storageEngine".to_owned(), Value::Text(engine.to_owned()));
            requested.settings.0.insert("transactions".to_owned(), Value::Bool(engine == "wiredTiger"));
            let software = Software::unchecked(Brand::MongoDb, "/x/bin/mongod".into());
            let options = Options::read(Brand::MongoDb, &requested).unwrap();
            let plan = for_own(&requested, &options, &software).unwrap();
            assert_eq!(plan.arguments.len(), 3, "{plan:?}");
            for (name, _) in &plan.arguments {
                assert!(REPORTED.iter().any(|reported| reported.option == name), "{name}");
            }
        }
    }
}
