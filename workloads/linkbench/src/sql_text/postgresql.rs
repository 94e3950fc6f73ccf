//! LinkBench's statements for PostgreSQL: the schema and statements of the branch that the published runs used
//! (mdcallag/linkbench: `pgsql-ddl.sql`, `LinkStorePgsql`). As there, the database's character set is LATIN1, which
//! accepts any byte but zero.

use super::{Marks, Sql, Tables, Text, common};

/// A server keeps memory for each statement of each client, without a limit on their number.
const MULTIGETS: &[Sql] =
    &[Sql::GetLinks1, Sql::GetLinks2, Sql::GetLinks4, Sql::GetLinks8, Sql::GetLinks32, Sql::GetLinks128];

/// With these settings a scan must use the one index that has its order. The scan of `id1_type` reads only that index's
/// columns, so the server uses an index-only scan where possible.
const BEFORE_SCANS: &[&str] = &[
    "SET enable_seqscan = off",
    "SET enable_bitmapscan = off",
    "SET enable_sort = off",
    "SET enable_indexscan = on",
    "SET enable_indexonlyscan = on",
];

pub fn text() -> Text {
    Text { before_scans: BEFORE_SCANS, ..Text::new(schema, INDEX, MULTIGETS, statement, Marks::Numbered) }
}

/// Ids and times are `numeric(20)` as published: there is no unsigned integer of 64 bits.
fn schema(tables: Tables<'_>) -> Vec<String> {
    let Tables { table_options, partitions, next_node } = tables;
    // Each partition of a partitioned table has the options.
    let (divided, options) = match partitions {
        0 => ("", table_options),
        _ => ("PARTITION BY HASH (id1)", ""),
    };
    let mut statements = vec![
        format!(
            "CREATE TABLE nodetable (
                id bigserial NOT NULL,
                type int NOT NULL,
                version numeric NOT NULL,
                time int NOT NULL,
                data text NOT NULL,
                PRIMARY KEY (id)
            ) {table_options}"
        ),
        // Loaded rows bring their own ids, and do not advance the sequence.
        format!("ALTER SEQUENCE nodetable_id_seq RESTART WITH {next_node}"),
        format!(
            "CREATE TABLE linktable (
                id1 numeric(20) NOT NULL DEFAULT '0',
                id2 numeric(20) NOT NULL DEFAULT '0',
                link_type numeric(20) NOT NULL DEFAULT '0',
                visibility smallint NOT NULL DEFAULT '0',
                data varchar(255) NOT NULL DEFAULT '',
                time numeric(20) NOT NULL DEFAULT '0',
                version bigint NOT NULL DEFAULT '0',
                PRIMARY KEY (link_type, id1, id2)
            ) {divided} {options}"
        ),
        format!(
            "CREATE TABLE counttable (
                id numeric(20) NOT NULL DEFAULT '0',
                link_type numeric(20) NOT NULL DEFAULT '0',
                count int NOT NULL DEFAULT '0',
                time numeric(20) NOT NULL DEFAULT '0',
                version numeric(20) NOT NULL DEFAULT '0',
                PRIMARY KEY (id, link_type)
            ) {table_options}"
        ),
    ];
    statements.extend((0..partitions).map(|part| {
        format!(
            "CREATE TABLE linktable_{part} PARTITION OF linktable \
             FOR VALUES WITH (MODULUS {partitions}, REMAINDER {part}) {table_options}"
        )
    }));
    statements
}

const INDEX: &str = "CREATE INDEX id1_type ON linktable (id1, link_type, visibility, time, id2, version, data)";

fn statement(statement: Sql) -> String {
    let common = common(statement);
    match statement {
        Sql::AddNode => format!("{common} RETURNING id"),
        // The update that follows writes the version again.
        Sql::UpsertLink => format!(
            "{common} ON CONFLICT (link_type, id1, id2) DO UPDATE SET visibility = EXCLUDED.visibility, \
             version = -1 WHERE linktable.visibility <> EXCLUDED.visibility RETURNING version"
        ),
        // The original gets a duplicate-key error, which here would end the transaction, and then rolls back.
        Sql::InsertLink => format!("{common} ON CONFLICT DO NOTHING"),
        Sql::LockLink => format!("{common} FOR UPDATE"),
        Sql::AddToCount => format!(
            "{common} ON CONFLICT (id, link_type) DO UPDATE SET \
             count = counttable.count + :change, version = counttable.version + 1, time = EXCLUDED.time"
        ),
        Sql::TakeFromCount => format!(
            "{common} ON CONFLICT (id, link_type) DO UPDATE SET \
             count = GREATEST(counttable.count - 1, 0), time = EXCLUDED.time, version = counttable.version + 1"
        ),
        _ if statement.ids() > 0 => format!("{common} ORDER BY id2"),
        _ => common,
    }
}
