//! The graph in memory: the reference for tests.

use std::collections::BTreeMap;

use rumba_engine_api::error::Result;

use crate::graph::{
    COUNT_BYTES, GraphStore, Link, LinkCount, LinkKey, ListQuery, Node, VisitLink, VisitNode, Written, entry_bytes,
    link_bytes, node_bytes,
};

/// A node without its id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OracleNode {
    pub node_type: u32,
    pub version: u64,
    pub time: u32,
    pub data: Vec<u8>,
}

/// A link without its key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OracleLink {
    pub visible: bool,
    pub version: u32,
    pub time: u64,
    pub data: Vec<u8>,
}

/// The oracle. Its tables can be read, to compare contents.
#[derive(Clone, Debug, Default)]
pub struct Oracle {
    pub nodes: BTreeMap<u64, OracleNode>,
    pub links: BTreeMap<LinkKey, OracleLink>,
    pub counts: BTreeMap<(u64, u64), LinkCount>,
    /// The id of the next node; set it to the id that the other store returned.
    pub next_id: u64,
}

impl Oracle {
    pub fn put_node(&mut self, node: &Node<'_>) {
        let Node { id, node_type, version, time, data } = *node;
        self.nodes.insert(id, OracleNode { node_type, version, time, data: data.to_vec() });
    }

    /// Puts a link as the load does, without its count.
    pub fn put_link(&mut self, link: &Link<'_>) -> Option<OracleLink> {
        let Link { key, visible, version, time, data } = *link;
        self.links.insert(key, OracleLink { visible, version, time, data: data.to_vec() })
    }

    fn change_count(&mut self, key: LinkKey, change: i64, time: u64) {
        let LinkKey { id1, link_type, .. } = key;
        self.counts
            .entry((id1, link_type))
            .and_modify(|count| {
                count.count += change;
                count.version += 1;
                count.time = time;
            })
            .or_insert(LinkCount { id1, link_type, count: change, time, version: 0 });
    }

    fn write_link(&mut self, link: &Link<'_>) -> Written {
        let before = self.bytes();
        let old = self.put_link(link);
        let change = i64::from(link.visible) - i64::from(old.as_ref().is_some_and(|old| old.visible));
        if change != 0 || old.is_none() {
            self.change_count(link.key, change, link.time);
        }
        Written { there: old.is_some(), growth: Some(self.bytes() - before) }
    }

    /// The logical bytes of everything.
    fn bytes(&self) -> i64 {
        let nodes: u64 = self.nodes.values().map(|node| node_bytes(node.data.len())).sum();
        let links: u64 =
            self.links.values().map(|link| link_bytes(link.data.len()) + entry_bytes(link.data.len())).sum();
        (nodes + links + self.counts.len() as u64 * COUNT_BYTES) as i64
    }
}

fn as_link(key: LinkKey, link: &OracleLink) -> Link<'_> {
    Link { key, visible: link.visible, version: link.version, time: link.time, data: &link.data }
}

impl GraphStore for Oracle {
    async fn add_node(&mut self, node: &Node<'_>) -> Result<u64> {
        let id = self.next_id;
        self.put_node(&Node { id, ..*node });
        Ok(id)
    }

    async fn get_node(&mut self, id: u64, visit: VisitNode<'_>) -> Result<bool> {
        let Some(OracleNode { node_type, version, time, data }) = self.nodes.get(&id) else { return Ok(false) };
        visit(&Node { id, node_type: *node_type, version: *version, time: *time, data });
        Ok(true)
    }

    async fn update_node(&mut self, node: &Node<'_>) -> Result<Written> {
        let before = self.bytes();
        let Some(old) = self.nodes.get_mut(&node.id) else { return Ok(Written::NOTHING) };
        (old.version, old.time, old.data) = (node.version, node.time, node.data.to_vec());
        Ok(Written { there: true, growth: Some(self.bytes() - before) })
    }

    async fn delete_node(&mut self, id: u64) -> Result<Written> {
        let before = self.bytes();
        let there = self.nodes.remove(&id).is_some();
        Ok(Written { there, growth: Some(self.bytes() - before) })
    }

    async fn add_link(&mut self, link: &Link<'_>) -> Result<Written> {
        Ok(self.write_link(link))
    }

    async fn update_link(&mut self, link: &Link<'_>) -> Result<Written> {
        Ok(self.write_link(link))
    }

    async fn delete_link(&mut self, key: LinkKey, time: u64) -> Result<bool> {
        let Some(link) = self.links.get_mut(&key) else { return Ok(false) };
        if std::mem::replace(&mut link.visible, false) {
            self.change_count(key, -1, time);
        }
        Ok(true)
    }

    async fn count_links(&mut self, id1: u64, link_type: u64) -> Result<i64> {
        Ok(self.counts.get(&(id1, link_type)).map_or(0, |count| count.count))
    }

    async fn get_links(&mut self, id1: u64, link_type: u64, id2s: &[u64], visit: VisitLink<'_>) -> Result<u64> {
        let mut met = 0;
        for &id2 in id2s {
            let key = LinkKey { link_type, id1, id2 };
            if let Some(link) = self.links.get(&key) {
                met += 1;
                visit(&as_link(key, link));
            }
        }
        Ok(met)
    }

    async fn get_links_list(&mut self, query: &ListQuery, visit: VisitLink<'_>) -> Result<u64> {
        let ListQuery { id1, link_type, from_time, to_time, offset, limit } = *query;
        let range = LinkKey { link_type, id1, id2: 0 }..=LinkKey { link_type, id1, id2: u64::MAX };
        let mut list: Vec<Link<'_>> = self
            .links
            .range(range)
            .filter(|(_, link)| link.visible && (from_time..=to_time).contains(&link.time))
            .map(|(key, link)| as_link(*key, link))
            .collect();
        list.sort_by_key(|link| std::cmp::Reverse((link.time, link.key.id2)));
        let wanted = list.iter().skip(offset as usize).take(limit as usize);
        Ok(wanted.map(visit).count() as u64)
    }
}
