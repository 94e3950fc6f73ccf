//! The pages for a new crate: the facts that a reader of its figures must know.

/// The page of an engine.
pub fn of_engine(name: &str) -> String {
    format!(
        "# {name}

{name} keeps sorted maps in memory behind one lock, and appends every commit to a log, from which it reads them again. It is built in. Sessions are key-value; each key space is one map.

## Settings
None of its own.

## The common settings
| common | here |
|---|---|
| `cache` | Means nothing: all of the data is in memory. |
| `durability = \"sync\"` | The log is synced at every commit. |
| `durability = \"no-sync\"` | The log is written at every commit: a crash of the process loses nothing, a crash of the host may. |
| `durability = \"none\"` | The log is written when its buffer is full, and at the end: a crash loses the last commits. |
| `compression` | Only `none`. |

## Load, settle, drain, debt
- **Load**: a batch is one commit.
- **Settle** and **drain** sync the log; there is nothing to compact.
- **Debt**: `unsynced_bytes`, what of the log was not synced.
- **Counters**: `entries`; `written_log_bytes`, which makes `log_kb_per_op`.
- No file is a log: the log is where the data is.

## What bites
- **One writer.** `begin` waits for the other session's commit; there are no conflicts.
- All of the data must fit into memory, and the log holds what was overwritten too.
- The log has no checksums: half a commit at its end is cut off, but a crash of the host may leave worse.
"
    )
}

/// The page of a workload.
pub fn of_workload(name: &str) -> String {
    format!(
        "# {name}

Point reads of rows with consecutive keys, over engines of keys and values.

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
