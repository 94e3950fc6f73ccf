//! Nodes, links and counts as documents: the collections and values of the published document store
//! (mdcallag/linkbench, `LinkStoreMongoDb2`).

use rumba_engine_api::bson::{Document, DocumentBuf, Malformed, Writer};
use rumba_engine_api::error::{EngineError, Result};

use crate::graph::{IndexKey, Link, LinkCount, LinkKey, Node};

/// The `_id`s of links and counts: their concatenated numbers, which sort like the primary keys of the tables.
pub use crate::encoding::{count_key as count_id, link_key as link_id};

pub const NODES: &str = "nodetable";
pub const LINKS: &str = "linktable";
pub const COUNTS: &str = "counttable";
/// The index for lists. Its columns are those of the tables' own index.
pub const INDEX: &str = "id1_type";
const INDEXED: [&str; 7] = ["id1", "link_type", "visibility", "time", "id2", "version", "data"];
/// The fields of the index, in order.
pub const ENTRY: [&str; 5] = ["id1", "link_type", "visibility", "time", "id2"];

/// Commands that create the collections. On older servers, a transaction cannot create them.
pub fn collections() -> [DocumentBuf; 3] {
    [NODES, LINKS, COUNTS].map(|name| DocumentBuf::of(|of| of.text("create", name)))
}

/// The command that creates the index.
pub fn index() -> DocumentBuf {
    DocumentBuf::of(|of| {
        of.text("createIndexes", LINKS);
        of.array("indexes", |of| {
            of.document(|of| {
                of.document("key", |of| INDEXED.iter().for_each(|name| of.small(name, 1)));
                of.text("name", INDEX);
            });
        });
    })
}

/// A projection on the index's own fields, so that the server reads no document.
pub fn covered() -> DocumentBuf {
    DocumentBuf::of(|of| {
        INDEXED.iter().for_each(|name| of.small(name, 1));
        of.small("_id", 0);
    })
}

/// Ids and times stay below 2^63; "no upper bound" becomes the largest.
pub fn number(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

/// A node's values but its `_id`.
pub fn put_node(of: &mut Writer<'_>, node: &Node<'_>) {
    of.small("type", node.node_type as i32);
    put_node_change(of, node);
}

/// The fields that an update of a node sets.
pub fn put_node_change(of: &mut Writer<'_>, node: &Node<'_>) {
    of.int("version", number(node.version));
    of.small("time", node.time as i32);
    of.binary("data", node.data);
}

/// A link's values that never change.
pub fn put_link_key(of: &mut Writer<'_>, key: LinkKey) {
    of.int("id1", number(key.id1));
    of.int("link_type", number(key.link_type));
    of.int("id2", number(key.id2));
}

/// A link's other values.
pub fn put_link_change(of: &mut Writer<'_>, link: &Link<'_>) {
    of.small("visibility", i32::from(link.visible));
    of.small("version", link.version as i32);
    of.int("time", number(link.time));
    of.binary("data", link.data);
}

/// A count. Its version includes its creation, as `$inc` counts on a missing document.
pub fn put_count(of: &mut Writer<'_>, count: &LinkCount) {
    of.binary("_id", &count_id(count.id1, count.link_type));
    of.int("id", number(count.id1));
    of.int("link_type", number(count.link_type));
    of.int("count", count.count);
    of.int("version", number(count.version + 1));
    of.int("time", number(count.time));
}

/// The values that an index entry begins with, so that a page can continue after them.
pub fn entry(key: &IndexKey) -> [i64; 5] {
    [number(key.id1), number(key.link_type), i64::from(key.visible), number(key.time), number(key.id2)]
}

pub fn node(document: Document<'_>) -> Result<Node<'_>> {
    read("node", document, |document| {
        Ok(Node {
            id: document.int("_id")? as u64,
            node_type: document.int("type")? as u32,
            version: document.int("version")? as u64,
            time: document.int("time")? as u32,
            data: document.blob("data")?,
        })
    })
}

/// Read in one pass, because a list has thousands.
pub fn link(document: Document<'_>) -> Result<Link<'_>> {
    read("link", document, |document| {
        let mut link = Link { key: LinkKey::default(), visible: false, version: 0, time: 0, data: &[] };
        let mut found = 0_u32;
        for element in document.iter() {
            let (name, value) = element?;
            let int = || value.int().ok_or(Malformed("a number is missing"));
            found += 1;
            match name {
                b"id1" => link.key.id1 = int()? as u64,
                b"link_type" => link.key.link_type = int()? as u64,
                b"id2" => link.key.id2 = int()? as u64,
                b"visibility" => link.visible = int()? != 0,
                b"version" => link.version = int()? as u32,
                b"time" => link.time = int()? as u64,
                b"data" => link.data = value.bytes().ok_or(Malformed("a payload is missing"))?,
                _ => found -= 1,
            }
        }
        if found == INDEXED.len() as u32 { Ok(link) } else { Err(Malformed("a value is missing")) }
    })
}

pub fn count(document: Document<'_>) -> Result<LinkCount> {
    read("count", document, |document| {
        Ok(LinkCount {
            id1: document.int("id")? as u64,
            link_type: document.int("link_type")? as u64,
            count: document.int("count")?,
            time: document.int("time")? as u64,
            version: (document.int("version")? as u64).saturating_sub(1),
        })
    })
}

/// Whether a link was visible, from the answer of a change.
pub fn visibility(document: Document<'_>) -> Result<bool> {
    read("link", document, |document| Ok(document.int("visibility")? != 0))
}

#[inline]
fn read<'a, T>(
    what: &str,
    document: Document<'a>,
    values: impl FnOnce(Document<'a>) -> Result<T, Malformed>,
) -> Result<T> {
    values(document).map_err(|error| broken(what, error, document))
}

#[cold]
fn broken(what: &str, error: Malformed, document: Document<'_>) -> EngineError {
    EngineError::failed("find", format!("{document:?} is no {what}: {error}"))
}
