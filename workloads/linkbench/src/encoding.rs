//! How rows are laid out in key-value spaces.
//!
//! Keys are fixed-width and big-endian, so that bytes order as numbers do.
//! Values start with a fixed-width little-endian head, in which zeros are valid
//! (the `null` engine answers with zeros), and end with the payload.

use rumba_engine_api::delta::Delta;
use rumba_engine_api::error::{EngineError, Result};
use rumba_engine_api::kv::{KeySpace, SpaceId};

use crate::graph::{IndexKey, Link, LinkCount, LinkKey, Node};

/// `nodetable`: id → type, version, time, data.
pub const NODES: SpaceId = 0;
/// `linktable`: (link_type, id1, id2) → visibility, version, time, data.
pub const LINKS: SpaceId = 1;
/// `counttable`: (id1, link_type) → count, time, version.
pub const COUNTS: SpaceId = 2;
/// `id1_type`: (id1, link_type, visibility, time falling, id2 falling) → version, data.
pub const INDEX: SpaceId = 3;

/// The key spaces, in the order of the constants above.
///
/// Lists share the first 17 bytes of the index's key. Verification and the
/// building of the index also scan across prefixes.
pub const SPACES: [KeySpace; 4] = [
    KeySpace { name: "nodetable", scan_prefix: 0, derived: false },
    KeySpace { name: "linktable", scan_prefix: 0, derived: false },
    KeySpace { name: "counttable", scan_prefix: 0, derived: false },
    KeySpace { name: "id1_type", scan_prefix: INDEX_PREFIX, derived: true },
];

const INDEX_PREFIX: usize = 17;

const NODE_HEAD: usize = 16;
const LINK_HEAD: usize = 13;
const ENTRY_HEAD: usize = 4;

/// A value that cannot be one of ours.
fn damaged(table: &'static str, value: &[u8]) -> EngineError {
    EngineError::failed("decode", format!("a value of {table} has {} bytes, fewer than its head", value.len()))
}

fn be<const N: usize>(key: &[u8], at: usize) -> Option<[u8; N]> {
    key.get(at..at + N)?.try_into().ok()
}

fn number(key: &[u8], at: usize) -> u64 {
    be(key, at).map_or(0, u64::from_be_bytes)
}

#[inline]
pub fn node_key(id: u64) -> [u8; 8] {
    id.to_be_bytes()
}

pub fn node_id(key: &[u8]) -> u64 {
    number(key, 0)
}

/// Replaces `value` by a node's.
#[inline]
pub fn put_node(value: &mut Vec<u8>, node: &Node<'_>) {
    let mut head = [0; NODE_HEAD];
    head[..4].copy_from_slice(&node.node_type.to_le_bytes());
    head[4..12].copy_from_slice(&node.version.to_le_bytes());
    head[12..].copy_from_slice(&node.time.to_le_bytes());
    value.clear();
    value.extend_from_slice(&head);
    value.extend_from_slice(node.data);
}

/// Reads a node's value.
///
/// # Errors
/// The value is shorter than its head.
#[inline]
pub fn node(id: u64, value: &[u8]) -> Result<Node<'_>> {
    let (head, data) = value.split_first_chunk::<NODE_HEAD>().ok_or_else(|| damaged("nodetable", value))?;
    let [t0, t1, t2, t3, v0, v1, v2, v3, v4, v5, v6, v7, s0, s1, s2, s3] = *head;
    Ok(Node {
        id,
        node_type: u32::from_le_bytes([t0, t1, t2, t3]),
        version: u64::from_le_bytes([v0, v1, v2, v3, v4, v5, v6, v7]),
        time: u32::from_le_bytes([s0, s1, s2, s3]),
        data,
    })
}

#[inline]
pub fn link_key(key: LinkKey) -> [u8; 24] {
    let mut bytes = [0; 24];
    bytes[..8].copy_from_slice(&key.link_type.to_be_bytes());
    bytes[8..16].copy_from_slice(&key.id1.to_be_bytes());
    bytes[16..].copy_from_slice(&key.id2.to_be_bytes());
    bytes
}

#[inline]
pub fn link_of_key(key: &[u8]) -> LinkKey {
    LinkKey { link_type: number(key, 0), id1: number(key, 8), id2: number(key, 16) }
}

#[inline]
pub fn put_link(value: &mut Vec<u8>, link: &Link<'_>) {
    let mut head = [0; LINK_HEAD];
    head[0] = u8::from(link.visible);
    head[1..5].copy_from_slice(&link.version.to_le_bytes());
    head[5..].copy_from_slice(&link.time.to_le_bytes());
    value.clear();
    value.extend_from_slice(&head);
    value.extend_from_slice(link.data);
}

/// Reads a link's value.
///
/// # Errors
/// The value is shorter than its head.
#[inline]
pub fn link(key: LinkKey, value: &[u8]) -> Result<Link<'_>> {
    let (head, data) = value.split_first_chunk::<LINK_HEAD>().ok_or_else(|| damaged("linktable", value))?;
    let [visible, v0, v1, v2, v3, t0, t1, t2, t3, t4, t5, t6, t7] = *head;
    Ok(Link {
        key,
        visible: visible != 0,
        version: u32::from_le_bytes([v0, v1, v2, v3]),
        time: u64::from_le_bytes([t0, t1, t2, t3, t4, t5, t6, t7]),
        data,
    })
}

/// The key of an index entry. Time and id2 are inverted, so that a forward scan meets the newest link first, and among
/// links with the same time the largest id2.
#[inline]
pub fn entry_key(entry: &IndexKey) -> [u8; 33] {
    let mut bytes = [0; 33];
    bytes[..INDEX_PREFIX].copy_from_slice(&entry_prefix(entry.id1, entry.link_type, entry.visible));
    bytes[17..25].copy_from_slice(&(!entry.time).to_be_bytes());
    bytes[25..].copy_from_slice(&(!entry.id2).to_be_bytes());
    bytes
}

fn entry_prefix(id1: u64, link_type: u64, visible: bool) -> [u8; INDEX_PREFIX] {
    let mut bytes = [0; INDEX_PREFIX];
    bytes[..8].copy_from_slice(&id1.to_be_bytes());
    bytes[8..16].copy_from_slice(&link_type.to_be_bytes());
    bytes[16] = u8::from(visible);
    bytes
}

/// The bounds of a list, from the newest wanted time (inclusive) to the oldest. The end is longer than any key of that
/// time, so it follows them all.
#[inline]
pub fn list_bounds(id1: u64, link_type: u64, from_time: u64, to_time: u64) -> ([u8; 25], [u8; 34]) {
    let prefix = entry_prefix(id1, link_type, true);
    let (mut from, mut to) = ([0; 25], [0xFF; 34]);
    from[..INDEX_PREFIX].copy_from_slice(&prefix);
    from[INDEX_PREFIX..].copy_from_slice(&(!to_time).to_be_bytes());
    to[..INDEX_PREFIX].copy_from_slice(&prefix);
    to[INDEX_PREFIX..25].copy_from_slice(&(!from_time).to_be_bytes());
    (from, to)
}

/// Replaces `value` by an index entry's.
#[inline]
pub fn put_entry(value: &mut Vec<u8>, link: &Link<'_>) {
    value.clear();
    value.extend_from_slice(&link.version.to_le_bytes());
    value.extend_from_slice(link.data);
}

/// Reads an index entry as the link it covers.
///
/// # Errors
/// The value is shorter than its head.
#[inline]
pub fn entry<'a>(key: &[u8], value: &'a [u8]) -> Result<Link<'a>> {
    let (version, data) = value.split_first_chunk::<ENTRY_HEAD>().ok_or_else(|| damaged("id1_type", value))?;
    Ok(Link {
        key: LinkKey { id1: number(key, 0), link_type: number(key, 8), id2: !number(key, 25) },
        visible: key.get(16).is_some_and(|&byte| byte != 0),
        version: u32::from_le_bytes(*version),
        time: !number(key, 17),
        data,
    })
}

#[inline]
pub fn count_key(id1: u64, link_type: u64) -> [u8; 16] {
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&id1.to_be_bytes());
    bytes[8..].copy_from_slice(&link_type.to_be_bytes());
    bytes
}

/// The id1 and link_type in a count's key.
pub fn count_of_key(key: &[u8]) -> (u64, u64) {
    (number(key, 0), number(key, 8))
}

#[inline]
pub fn count_value(count: &LinkCount) -> [u8; 24] {
    let mut bytes = [0; 24];
    bytes[..8].copy_from_slice(&count.count.to_le_bytes());
    bytes[8..16].copy_from_slice(&count.time.to_le_bytes());
    bytes[16..].copy_from_slice(&count.version.to_le_bytes());
    bytes
}

/// A change of a count without a read. `change` has the amount to add, its time, and the version of a new count.
#[inline]
pub fn put_count_change(delta: &mut Delta, change: &LinkCount) {
    delta.begin(Some(&count_value(change)));
    delta.add(0, change.count);
    delta.overwrite(8, &change.time.to_le_bytes());
    delta.add(16, 1);
}

/// Reads a count's value.
///
/// # Errors
/// The value is shorter than it must be.
#[inline]
pub fn count(id1: u64, link_type: u64, value: &[u8]) -> Result<LinkCount> {
    match (be(value, 0), be(value, 8), be(value, 16)) {
        (Some(count), Some(time), Some(version)) => Ok(LinkCount {
            id1,
            link_type,
            count: i64::from_le_bytes(count),
            time: u64::from_le_bytes(time),
            version: u64::from_le_bytes(version),
        }),
        _ => Err(damaged("counttable", value)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn keys() -> impl Strategy<Value = LinkKey> {
        // Small numbers collide in their first bytes, large ones use all of them.
        let id = prop_oneof![0..4u64, any::<u64>()];
        (id.clone(), id.clone(), id).prop_map(|(link_type, id1, id2)| LinkKey { link_type, id1, id2 })
    }

    fn entries() -> impl Strategy<Value = IndexKey> {
        let time = prop_oneof![0..4u64, any::<u64>()];
        (keys(), any::<bool>(), time).prop_map(|(LinkKey { link_type, id1, id2 }, visible, time)| IndexKey {
            id1,
            link_type,
            visible,
            time,
            id2,
        })
    }

    proptest! {
        #[test]
        fn link_keys_order_as_the_primary_key_does(a in keys(), b in keys()) {
            prop_assert_eq!(link_key(a).cmp(&link_key(b)), a.cmp(&b));
            prop_assert_eq!(link_of_key(&link_key(a)), a);
        }

        #[test]
        fn a_forward_scan_of_the_index_meets_the_newest_link_first(a in entries(), b in entries()) {
            let order = |e: &IndexKey| (e.id1, e.link_type, e.visible, !e.time, !e.id2);
            prop_assert_eq!(entry_key(&a).cmp(&entry_key(&b)), order(&a).cmp(&order(&b)));
            prop_assert_eq!(entry(&entry_key(&a), &[0; 4]).unwrap().entry(), a);
        }

        #[test]
        fn a_list_meets_exactly_the_visible_links_of_its_time_range(e in entries(), a in 0..6u64, b in 0..6u64, id1 in 0..4u64) {
            let (from, to) = list_bounds(id1, e.link_type, a, b);
            let inside = from.as_slice() <= entry_key(&e).as_slice() && entry_key(&e).as_slice() < to.as_slice();
            prop_assert_eq!(inside, e.visible && e.id1 == id1 && (a..=b).contains(&e.time));
        }

        #[test]
        fn values_come_back(visible: bool, version: u32, time: u64, big: u64, data: Vec<u8>) {
            let mut value = Vec::new();
            let written = Link { key: LinkKey::default(), visible, version, time, data: &data };
            put_link(&mut value, &written);
            prop_assert_eq!(link(written.key, &value).unwrap(), written);
            put_entry(&mut value, &written);
            prop_assert_eq!(entry(&entry_key(&written.entry()), &value).unwrap(), written);
            let written = Node { id: 1, node_type: version, version: big, time: version, data: &data };
            put_node(&mut value, &written);
            prop_assert_eq!(node(1, &value).unwrap(), written);
            let written = LinkCount { id1: 1, link_type: 2, count: big as i64, time, version: big };
            prop_assert_eq!(count(1, 2, &count_value(&written)).unwrap(), written);
        }
    }

    #[test]
    fn a_value_cut_short_is_an_error_and_not_a_row() {
        assert!(link(LinkKey::default(), &[0; 12]).is_err());
        assert!(node(0, &[0; 15]).is_err());
        assert!(count(0, 0, &[0; 23]).is_err());
        assert!(entry(&[0; 33], &[0; 3]).is_err());
    }
}
