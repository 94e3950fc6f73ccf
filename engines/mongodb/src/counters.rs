//! The server's counters, gauges and deferred work.
//!
//! Names are the paths in `serverStatus`, with underscores for spaces. Names of the form `written_X_bytes` and those of
//! deferred work are rumba's. Values that a server does not report are left out.

use rumba_engine_api::bson::{Document, Value};
use rumba_server_kit::reading::Reading;

use crate::control::{Control, within};

/// Sections of `serverStatus` from which all numbers are taken.
const SECTIONS: [&[&str]; 4] = [&["opcounters"], &["metrics", "document"], &["transactions"], &["connections"]];

/// The WiredTiger statistics, out of hundreds, that show where its time and bytes go.
const WIREDTIGER: [(&str, &str); 15] = [
    ("cache", "bytes currently in the cache"),
    ("cache", "tracked dirty bytes in the cache"),
    ("cache", "bytes read into cache"),
    ("cache", "bytes written from cache"),
    ("cache", "pages read into cache"),
    ("cache", "pages written from cache"),
    ("cache", "pages evicted by application threads"),
    ("cache", "eviction server evicting pages"),
    ("block-manager", "bytes read"),
    ("block-manager", "bytes written"),
    ("block-manager", "bytes written for checkpoint"),
    ("log", "log bytes written"),
    ("log", "log sync operations"),
    ("transaction", "transaction checkpoints"),
    ("transaction", "transactions rolled back"),
];

/// Bytes written, by purpose. Each becomes a metric.
const WRITTEN: [(&str, &str, &str); 2] =
    [("written_log_bytes", "log", "log bytes written"), (CHECKPOINT, "block-manager", "bytes written for checkpoint")];
const CHECKPOINT: &str = "written_checkpoint_bytes";
/// The remaining bytes of the block manager, because the parts of a sum must not overlap.
const BLOCKS: &str = "written_blocks_bytes";

/// All counters and gauges.
pub fn counters(control: &mut Control) -> Reading {
    let mut reading = Reading::default();
    if let Ok(status) = control.reported("serverStatus") {
        take(status.get(), &mut reading);
    }
    reading
}

/// Deferred work: dirty pages that the next checkpoint writes.
pub fn debt(control: &mut Control) -> Reading {
    control.reported("serverStatus").map(|status| owed(status.get())).unwrap_or_default()
}

/// Reads the deferred work from a server's status.
fn owed(status: Document<'_>) -> Reading {
    let mut reading = Reading::default();
    reading.put_any("dirty_bytes", wiredtiger(status, "cache", "tracked dirty bytes in the cache"));
    reading
}

fn take(status: Document<'_>, reading: &mut Reading) {
    for path in SECTIONS {
        let Some(Value::Document(section)) = within(status, path) else { continue };
        for (name, value) in section.iter().map_while(Result::ok) {
            if let Some(number) = number(value) {
                let name = String::from_utf8_lossy(name);
                reading.put(format!("{}_{name}", path.join("_")), number);
            }
        }
    }
    for (section, name) in WIREDTIGER {
        if let Some(number) = wiredtiger(status, section, name) {
            reading.put(format!("{section} {name}").replace([' ', '-'], "_"), number);
        }
    }
    for (ours, section, name) in WRITTEN {
        reading.put_any(ours, wiredtiger(status, section, name));
    }
    let all = wiredtiger(status, "block-manager", "bytes written");
    let others = all.map(|all| all - reading.get(CHECKPOINT).unwrap_or_default());
    reading.put_any(BLOCKS, others);
}

fn wiredtiger(status: Document<'_>, section: &str, name: &str) -> Option<f64> {
    number(within(status, &["wiredTiger", section, name])?)
}

fn number(value: Value<'_>) -> Option<f64> {
    match value {
        Value::Double(number) => Some(number),
        Value::Int32(number) => Some(f64::from(number)),
        Value::Int(number) => Some(number as f64),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use rumba_engine_api::bson::DocumentBuf;

    use super::*;

    #[test]
    fn metrics_are_read_from_where_servers_report_them() {
        // Shortened output of a mongod 7.0.
        let status = DocumentBuf::of(|of| {
            of.document("opcounters", |of| {
                of.int("insert", 10);
                of.document("deprecated", |of| of.int("query", 1));
            });
            of.document("metrics", |of| of.document("document", |of| of.int("returned", 3)));
            of.document("wiredTiger", |of| {
                of.document("log", |of| of.int("log bytes written", 4096));
                of.document("block-manager", |of| of.int("bytes written", 8192));
            });
        });
        let mut reading = Reading::default();
        take(status.get(), &mut reading);
        assert_eq!(reading.get("opcounters_insert"), Some(10.0));
        assert_eq!(reading.get("metrics_document_returned"), Some(3.0));
        assert_eq!(
            (reading.get("written_log_bytes"), reading.get("block_manager_bytes_written")),
            (Some(4096.0), Some(8192.0))
        );
        assert_eq!(reading.get("written_checkpoint_bytes"), None);
        assert_eq!(reading.get("written_blocks_bytes"), Some(8192.0));
        let status = DocumentBuf::of(|of| {
            of.document("wiredTiger", |of| {
                of.document("block-manager", |of| {
                    of.int("bytes written", 8192);
                    of.int("bytes written for checkpoint", 6144);
                });
            });
        });
        let mut reading = Reading::default();
        take(status.get(), &mut reading);
        let parts = (reading.get("written_blocks_bytes"), reading.get("written_checkpoint_bytes"));
        assert_eq!(parts, (Some(2048.0), Some(6144.0)), "no byte is in two");
    }

    #[test]
    fn deferred_writes_are_dirty_bytes_and_unknown_is_not_zero() {
        // Shortened output of a mongod 7.0.
        let status = DocumentBuf::of(|of| {
            of.document("wiredTiger", |of| {
                of.document("cache", |of| {
                    of.int("bytes currently in the cache", 81920);
                    of.int("tracked dirty bytes in the cache", 12288);
                });
            });
        });
        assert_eq!(owed(status.get()).get("dirty_bytes"), Some(12288.0));
        // The status of another storage engine.
        let other = DocumentBuf::of(|of| of.document("storageEngine", |of| of.text("name", "mmapv1")));
        assert_eq!(owed(other.get()), Reading::default());
    }
}
