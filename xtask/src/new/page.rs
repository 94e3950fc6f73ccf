//! The pages for a new crate: the facts that a reader of its figures must know.

pub fn of_engine(name: &str) -> String {
    format!(
        "# {name}

{name} keeps sorted maps in memory behind one lock, and appends every commit to a log, from which it reads them again. Sessions are key-value; each key space is one map.

## Install

{name} is built in.

## Settings

None of its own. `compression` accepts only `none`.

## Durability

| `durability` | {name} |
|---|---|
| `sync` | each commit syncs the log |
| `no-sync` | each commit writes the log: a crash of the process loses nothing, a crash of the host may |
| `buffered` | refused: nothing writes the buffer in the background |
| `none` | the log is written when its buffer is full, and at the end: a crash loses the last commits |

## Settle and drain

Settle and drain sync the log; there is no compaction. **Deferred work** is `unsynced_bytes`. The counter `written_log_bytes` makes `log_kb_per_op`.

## Memory

All of the data is in memory, so `cache` has no effect.

## Limits

- **One writer.** `begin` waits until the other session's transaction ends. There are no conflicts.
- The log also keeps overwritten values.
- The log has no checksums. A partial commit at its end is cut off, but a crash of the host may damage the data.
"
    )
}

pub fn of_workload(name: &str) -> String {
    format!(
        "# {name}

Point reads of rows with consecutive keys, over key-value and SQL engines.

## Settings
| setting | default | |
|---|---|---|
| `rows` | 100000 | rows in the table, 16 bytes each with their key |

## Operations
`get` (`g`): reads one row, chosen uniformly.

## Load and check
The rows are loaded in batches of 1024, by as many loaders as there are. At the end every row must be there.
"
    )
}
