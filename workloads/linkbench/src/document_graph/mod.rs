//! The graph over documents.

use rumba_engine_api::bson::{Document, DocumentBuf};
use rumba_engine_api::document::{Command, DocumentSession, Find, Update};
use rumba_engine_api::error::{EngineError, Result};
use rumba_engine_api::worker::StatementCounts;
use rumba_workload_kit::{CountedDocuments, keep_first, limited};

use crate::graph::{GraphStore, Link, LinkKey, ListQuery, NODE_TYPE, Node, VisitLink, VisitNode, Written, unreported};
use crate::node_ids::NodeIds;

mod load;
mod scan;
mod schema;

pub use load::DocumentLoader;
pub use schema::{collections, index};

use schema::{COUNTS, LINKS, NODES, number};

/// The adapter of the mix and of verification.
pub struct DocumentGraph {
    session: CountedDocuments,
    ids: NodeIds,
    /// Buffers that are rewritten for each command.
    filter: DocumentBuf,
    update: DocumentBuf,
    documents: rumba_engine_api::bson::Documents,
    /// Documents that never change.
    newest_first: DocumentBuf,
    covered: DocumentBuf,
    visibility: DocumentBuf,
    hide: DocumentBuf,
}

/// How often a count alone is retried if the server has no transactions.
const MOST_TRIES: u32 = 100;

impl DocumentGraph {
    /// A graph over `session`.
    pub fn new(session: Box<dyn DocumentSession>, ids: NodeIds) -> Self {
        Self {
            session: CountedDocuments::new(session),
            ids,
            filter: DocumentBuf::default(),
            update: DocumentBuf::default(),
            documents: Default::default(),
            newest_first: DocumentBuf::of(|of| {
                of.small("time", -1);
                of.small("id2", -1);
            }),
            covered: schema::covered(),
            visibility: DocumentBuf::of(|of| {
                of.small("visibility", 1);
                of.small("_id", 0);
            }),
            hide: DocumentBuf::of(|of| of.document("$set", |of| of.small("visibility", 0))),
        }
    }

    /// Passes the documents that are found to `read`; returns how many. The first error is the result.
    async fn find(
        session: &mut CountedDocuments,
        of: &str,
        find: Find<'_>,
        mut read: impl FnMut(Document<'_>) -> Result<()>,
    ) -> Result<u64> {
        let mut first = None;
        let mut each = |document: Document<'_>| keep_first(&mut first, read(document));
        let done = session.execute(Command::Find { of, find }, &mut each).await?;
        first.map_or(Ok(done.documents), Err)
    }

    /// Writes a link in its new form, and its count if that changes; returns whether the link existed.
    async fn write_link(&mut self, link: &Link<'_>) -> Result<bool> {
        let id = schema::link_id(link.key);
        let update = Update {
            filter: self.filter.write(|of| of.binary("_id", &id)),
            update: self.update.write(|of| {
                of.document("$setOnInsert", |of| schema::put_link_key(of, link.key));
                of.document("$set", |of| schema::put_link_change(of, link));
            }),
            upsert: true,
        };
        let before = Self::change_link(&mut self.session, update, self.visibility.get()).await?;
        let change = i64::from(link.visible) - i64::from(before == Some(true));
        if change != 0 || before.is_none() {
            self.change_count(link.key, change, link.time, before.is_none()).await?;
        }
        Ok(before.is_some())
    }

    /// Changes a link; returns whether it was visible before, or `None` if there was none.
    async fn change_link(
        session: &mut CountedDocuments,
        update: Update<'_>,
        projection: Document<'_>,
    ) -> Result<Option<bool>> {
        let mut before = None;
        let mut each = |document: Document<'_>| before = Some(schema::visibility(document));
        let command = Command::FindAndModify { of: LINKS, update, projection, new: false };
        session.execute(command, &mut each).await.map_err(crossed)?;
        before.transpose()
    }

    /// Changes a count, and creates it if necessary.
    async fn change_count(&mut self, key: LinkKey, change: i64, time: u64, may_be_new: bool) -> Result<()> {
        let LinkKey { link_type, id1, .. } = key;
        let id = schema::count_id(id1, link_type);
        let update = Update {
            filter: self.filter.write(|of| of.binary("_id", &id)),
            update: self.update.write(|of| {
                if may_be_new {
                    of.document("$setOnInsert", |of| {
                        of.int("id", number(id1));
                        of.int("link_type", number(link_type));
                    });
                }
                of.document("$inc", |of| {
                    of.int("count", change);
                    of.int("version", 1);
                });
                of.document("$set", |of| of.int("time", number(time)));
            }),
            upsert: may_be_new,
        };
        let change = Command::Update { of: COUNTS, update };
        let mut done = self.session.change(change).await;
        // Without transactions the link is already written, so a full retry of the operation would find nothing to
        // count.
        let mut tries = 0;
        while !self.session.has_transactions()
            && tries < MOST_TRIES
            && done.as_ref().is_err_and(|error| matches!(error, EngineError::Duplicate(_)) || error.is_conflict())
        {
            done = self.session.change(change).await;
            tries += 1;
        }
        let done = done.map_err(crossed)?;
        if done.matched + done.upserted > 0 {
            return Ok(());
        }
        let lost = format!("counttable has no document for id {id1}, link_type {link_type}, which has a link");
        Err(EngineError::failed("update", lost))
    }

    /// Hides a link, and subtracts it from its count if it was visible; returns whether it exists.
    async fn hide_link(&mut self, key: LinkKey, time: u64) -> Result<bool> {
        let id = schema::link_id(key);
        let filter = self.filter.write(|of| of.binary("_id", &id));
        let update = Update { filter, update: self.hide.get(), upsert: false };
        let before = Self::change_link(&mut self.session, update, self.visibility.get()).await?;
        if before == Some(true) {
            self.change_count(key, -1, time, false).await?;
        }
        Ok(before.is_some())
    }

    async fn put_link(&mut self, link: &Link<'_>) -> Result<Written> {
        self.session.begin().await?;
        let written = self.write_link(link).await;
        self.session.end(written).await.map(unreported)
    }
}

/// Two clients made the same document at once: the second finds it on its retry.
fn crossed(error: EngineError) -> EngineError {
    match error {
        EngineError::Duplicate(code) => EngineError::Conflict { why: "another client made it meanwhile", code },
        other => other,
    }
}

impl GraphStore for DocumentGraph {
    async fn add_node(&mut self, node: &Node<'_>) -> Result<u64> {
        let id = self.ids.next();
        self.documents.clear();
        self.documents.push(|of| {
            of.int("_id", number(id));
            schema::put_node(of, node);
        });
        self.session.change(Command::Insert { into: NODES, documents: &self.documents }).await?;
        Ok(id)
    }

    async fn get_node(&mut self, id: u64, visit: VisitNode<'_>) -> Result<bool> {
        let filter = self.filter.write(|of| of.int("_id", number(id)));
        let find = Find { limit: 1, ..Find::by(filter) };
        let read = |document: Document<'_>| schema::node(document).map(|node| visit(&node));
        Ok(Self::find(&mut self.session, NODES, find, read).await? > 0)
    }

    async fn update_node(&mut self, node: &Node<'_>) -> Result<Written> {
        let update = Update {
            filter: self.filter.write(|of| {
                of.int("_id", number(node.id));
                of.small("type", node.node_type as i32);
            }),
            update: self.update.write(|of| of.document("$set", |of| schema::put_node_change(of, node))),
            upsert: false,
        };
        Ok(unreported(self.session.change(Command::Update { of: NODES, update }).await?.matched > 0))
    }

    async fn delete_node(&mut self, id: u64) -> Result<Written> {
        let filter = self.filter.write(|of| {
            of.int("_id", number(id));
            of.small("type", NODE_TYPE as i32);
        });
        Ok(unreported(self.session.change(Command::Delete { from: NODES, filter, all: false }).await?.matched > 0))
    }

    async fn add_link(&mut self, link: &Link<'_>) -> Result<Written> {
        self.put_link(link).await
    }

    async fn update_link(&mut self, link: &Link<'_>) -> Result<Written> {
        self.put_link(link).await
    }

    async fn delete_link(&mut self, key: LinkKey, time: u64) -> Result<bool> {
        self.session.begin().await?;
        let hidden = self.hide_link(key, time).await;
        self.session.end(hidden).await
    }

    async fn count_links(&mut self, id1: u64, link_type: u64) -> Result<i64> {
        let id = schema::count_id(id1, link_type);
        let find = Find { limit: 1, ..Find::by(self.filter.write(|of| of.binary("_id", &id))) };
        let mut count = 0;
        let read = |document: Document<'_>| schema::count(document).map(|found| count = found.count);
        Self::find(&mut self.session, COUNTS, find, read).await?;
        Ok(count)
    }

    async fn get_links(&mut self, id1: u64, link_type: u64, id2s: &[u64], visit: VisitLink<'_>) -> Result<u64> {
        if id2s.is_empty() {
            return Ok(0);
        }
        let filter = self.filter.write(|of| {
            of.document("_id", |of| {
                of.array("$in", |of| {
                    id2s.iter().for_each(|&id2| of.binary(&schema::link_id(LinkKey { link_type, id1, id2 })));
                });
            });
        });
        let read = |document: Document<'_>| schema::link(document).map(|link| visit(&link));
        Self::find(&mut self.session, LINKS, Find::by(filter), read).await
    }

    async fn get_links_list(&mut self, query: &ListQuery, visit: VisitLink<'_>) -> Result<u64> {
        let filter = self.filter.write(|of| {
            of.int("id1", number(query.id1));
            of.int("link_type", number(query.link_type));
            of.document("time", |of| {
                of.int("$gte", number(query.from_time));
                // An exclusive bound, because SecantusDB 0.7.0b3 does not find all entries equal to an inclusive one.
                of.int("$lt", number(query.to_time.saturating_add(1)));
            });
            of.small("visibility", 1);
        });
        let find = Find {
            sort: self.newest_first.get(),
            projection: self.covered.get(),
            skip: limited(query.offset),
            limit: limited(query.limit),
            ..Find::by(filter)
        };
        let read = |document: Document<'_>| schema::link(document).map(|link| visit(&link));
        Self::find(&mut self.session, LINKS, find, read).await
    }

    fn statements(&mut self) -> StatementCounts {
        self.session.take_statements()
    }
}

#[cfg(test)]
mod tests;
