//! Full scans over documents, in pages.

use rumba_engine_api::bson::{DocumentBuf, Writer};
use rumba_engine_api::document::Find;
use rumba_engine_api::error::Result;
use rumba_workload_kit::limited;

use super::DocumentGraph;
use super::schema::{self, COUNTS, ENTRY, INDEX, LINKS, NODES, number};
use crate::graph::{GraphScan, IndexKey, LinkKey, VisitCount, VisitLink, VisitNode};

/// In rising order of these.
fn rising(names: &[&str]) -> DocumentBuf {
    DocumentBuf::of(|of| names.iter().for_each(|name| of.small(name, 1)))
}

/// All documents, or those whose `_id` comes after the given one.
fn behind(id: Option<impl FnOnce(&mut Writer<'_>)>) -> DocumentBuf {
    DocumentBuf::of(|of| {
        if let Some(id) = id {
            of.document("_id", id);
        }
    })
}

/// All entries of the index, or those after one: equal up to some field, and larger in that field.
fn behind_entry(after: Option<IndexKey>) -> DocumentBuf {
    DocumentBuf::of(|of| {
        let Some(values) = after.map(|entry| schema::entry(&entry)) else { return };
        of.array("$or", |of| {
            for last in 0..ENTRY.len() {
                of.document(|of| {
                    ENTRY[..last].iter().zip(values).for_each(|(name, value)| of.int(name, value));
                    of.document(ENTRY[last], |of| of.int("$gt", values[last]));
                });
            }
        });
    })
}

impl GraphScan for DocumentGraph {
    async fn scan_nodes(&mut self, after: Option<u64>, limit: u64, visit: VisitNode<'_>) -> Result<u64> {
        let (order, filter) =
            (rising(&["_id"]), behind(after.map(|id| move |of: &mut Writer<'_>| of.int("$gt", number(id)))));
        let find = Find { sort: order.get(), limit: limited(limit), ..Find::by(filter.get()) };
        Self::find(&mut self.session, NODES, find, |document| schema::node(document).map(|node| visit(&node))).await
    }

    async fn scan_links(&mut self, after: Option<LinkKey>, limit: u64, visit: VisitLink<'_>) -> Result<u64> {
        let after = after.map(|key| move |of: &mut Writer<'_>| of.binary("$gt", &schema::link_id(key)));
        let (order, filter) = (rising(&["_id"]), behind(after));
        let find = Find { sort: order.get(), limit: limited(limit), ..Find::by(filter.get()) };
        Self::find(&mut self.session, LINKS, find, |document| schema::link(document).map(|link| visit(&link))).await
    }

    async fn scan_index(&mut self, after: Option<IndexKey>, limit: u64, visit: VisitLink<'_>) -> Result<u64> {
        let (order, filter, covered) = (rising(&ENTRY), behind_entry(after), schema::covered());
        let find = Find {
            sort: order.get(),
            projection: covered.get(),
            limit: limited(limit),
            index: INDEX,
            ..Find::by(filter.get())
        };
        Self::find(&mut self.session, LINKS, find, |document| schema::link(document).map(|link| visit(&link))).await
    }

    async fn scan_counts(&mut self, after: Option<(u64, u64)>, limit: u64, visit: VisitCount<'_>) -> Result<u64> {
        let after = after
            .map(|(id1, link_type)| move |of: &mut Writer<'_>| of.binary("$gt", &schema::count_id(id1, link_type)));
        let (order, filter) = (rising(&["_id"]), behind(after));
        let find = Find { sort: order.get(), limit: limited(limit), ..Find::by(filter.get()) };
        Self::find(&mut self.session, COUNTS, find, |document| schema::count(document).map(|count| visit(&count))).await
    }
}
