//! The graph over SQL.

use rumba_core::engine::EngineError;
use rumba_core::sql::{Answer, Param, Row, SqlSession, Statement, Visit};

use crate::graph::{
    GraphLoad, GraphScan, GraphStore, IndexKey, IndexRange, IndexStep, Link, LinkCount, LinkKey, ListQuery, Node,
    VisitCount, VisitLink, VisitNode, Written,
};
use crate::profile::WriteStyle;
use crate::sql_stage::{Stage, Staged};
use crate::sql_text::{self, Sql};

/// The adapter.
pub struct SqlGraph {
    session: Box<dyn SqlSession>,
    prepared: [Option<Statement>; sql_text::COUNT],
    style: WriteStyle,
    stage: Stage,
}

/// Statements do not tell the length of what they replace or remove.
fn untold(there: bool) -> Written {
    Written { there, growth: None }
}

/// Between two statements of one write, another client wrote the same link.
const CROSSED: EngineError = EngineError::Conflict("another client wrote the link meanwhile");

fn int(number: u64) -> Param<'static> {
    // Ids and times stay below 2^63; "no upper bound" becomes the largest.
    Param::Int(i64::try_from(number).unwrap_or(i64::MAX))
}

fn bit(visible: bool) -> Param<'static> {
    Param::Int(i64::from(visible))
}

fn link_params<'a>(link: &Link<'a>) -> [Param<'a>; 7] {
    let LinkKey { link_type, id1, id2 } = link.key;
    let version = Param::Int(i64::from(link.version));
    [int(id1), int(id2), int(link_type), bit(link.visible), version, int(link.time), Param::Bytes(link.data)]
}

fn link_row(row: &dyn Row) -> Link<'_> {
    Link {
        key: LinkKey { id1: row.int(0) as u64, id2: row.int(1) as u64, link_type: row.int(2) as u64 },
        visible: row.int(3) != 0,
        version: row.int(4) as u32,
        time: row.int(5) as u64,
        data: row.bytes(6),
    }
}

fn node_row(row: &dyn Row) -> Node<'_> {
    Node {
        id: row.int(0) as u64,
        node_type: row.int(1) as u32,
        version: row.int(2) as u64,
        time: row.int(3) as u32,
        data: row.bytes(4),
    }
}

impl SqlGraph {
    /// A graph over `session`, with these statements prepared.
    ///
    /// # Errors
    /// A statement that the engine refuses; the index's statements need the index.
    pub fn new(
        mut session: Box<dyn SqlSession>,
        style: WriteStyle,
        statements: &[&[Sql]],
    ) -> Result<Self, EngineError> {
        let text = sql_text::text(session.dialect())?;
        let mut prepared = [None; sql_text::COUNT];
        for &statement in statements.iter().copied().flatten() {
            if prepared[statement as usize].is_none() {
                prepared[statement as usize] = Some(session.prepare(&(text.statement)(statement))?);
            }
        }
        Ok(Self { session, prepared, style, stage: Stage::default() })
    }

    async fn execute(&mut self, which: Sql, params: &[Param<'_>], visit: Visit<'_>) -> Result<Answer, EngineError> {
        let Some(statement) = self.prepared[which as usize] else {
            return Err(EngineError::failed("execute", format!("{which:?} was not prepared for this session")));
        };
        self.session.execute(statement, params, visit).await
    }

    async fn change(&mut self, which: Sql, params: &[Param<'_>]) -> Result<Answer, EngineError> {
        self.execute(which, params, &mut |_| {}).await
    }

    /// Ends a transaction: commits what succeeded and wrote, undoes the rest.
    async fn end<T>(&mut self, result: Result<T, EngineError>, wrote: bool) -> Result<T, EngineError> {
        let result = match result {
            Ok(answer) if wrote => self.change(Sql::Commit, &[]).await.map(|_| answer),
            other => {
                let undone = self.change(Sql::Rollback, &[]).await;
                return other.and_then(|answer| undone.map(|_| answer));
            }
        };
        if result.is_err() {
            // A failed commit may or may not have ended the transaction.
            let _ = self.change(Sql::Rollback, &[]).await;
        }
        result
    }

    async fn add_to_count(&mut self, key: LinkKey, change: i64, time: u64) -> Result<(), EngineError> {
        let params = [int(key.id1), int(key.link_type), Param::Int(change), int(time)];
        self.change(Sql::AddToCount, &params).await.map(drop)
    }

    /// Whether the link is visible; `None` when it is not there. Locks it.
    async fn lock_link(&mut self, key: LinkKey) -> Result<Option<bool>, EngineError> {
        let mut visible = None;
        let params = [int(key.id1), int(key.id2), int(key.link_type)];
        self.execute(Sql::LockLink, &params, &mut |row| visible = Some(row.int(0) != 0)).await?;
        Ok(visible)
    }

    /// 2011: one upsert makes the link visible; an update writes the rest if it was there.
    async fn upsert(&mut self, link: &Link<'_>) -> Result<Written, EngineError> {
        let params = link_params(link);
        let mut version = None;
        self.execute(Sql::UpsertLink, &params, &mut |row| version = Some(row.int(0))).await?;
        let there = version.is_none_or(|version| version < 0);
        if there {
            self.change(Sql::UpdateLink, &params).await?;
        }
        if version.is_some() {
            let change = if there { 2 * i64::from(link.visible) - 1 } else { i64::from(link.visible) };
            self.add_to_count(link.key, change, link.time).await?;
        }
        Ok(untold(there))
    }

    /// 2017, the link is taken to be new; false when it is not.
    async fn insert(&mut self, link: &Link<'_>) -> Result<bool, EngineError> {
        if self.change(Sql::InsertLink, &link_params(link)).await?.affected == 0 {
            return Ok(false);
        }
        self.add_to_count(link.key, i64::from(link.visible), link.time).await?;
        Ok(true)
    }

    /// 2017, the link is taken to be there; false when it is not.
    async fn overwrite(&mut self, link: &Link<'_>) -> Result<bool, EngineError> {
        let Some(visible) = self.lock_link(link.key).await? else { return Ok(false) };
        self.change(Sql::UpdateLink, &link_params(link)).await?;
        let change = i64::from(link.visible) - i64::from(visible);
        if change != 0 {
            self.add_to_count(link.key, change, link.time).await?;
        }
        Ok(true)
    }

    async fn write_link(&mut self, link: &Link<'_>, new: bool) -> Result<Written, EngineError> {
        match self.style {
            WriteStyle::Upsert => self.upsert(link).await,
            WriteStyle::InsertOrUpdate if new => {
                if self.insert(link).await? {
                    return Ok(untold(false));
                }
                if self.overwrite(link).await? { Ok(untold(true)) } else { Err(CROSSED) }
            }
            WriteStyle::InsertOrUpdate => {
                if self.overwrite(link).await? {
                    return Ok(untold(true));
                }
                if self.insert(link).await? { Ok(untold(false)) } else { Err(CROSSED) }
            }
        }
    }

    /// Hides a link within a transaction; whether it was there, and whether it was visible.
    async fn hide(&mut self, key: LinkKey, time: u64) -> Result<(bool, bool), EngineError> {
        let visible = self.lock_link(key).await?;
        if visible == Some(true) {
            self.change(Sql::HideLink, &[int(key.id1), int(key.id2), int(key.link_type)]).await?;
            self.add_to_count(key, -1, time).await?;
        }
        Ok((visible.is_some(), visible == Some(true)))
    }

    async fn load_rows(&mut self, stage: &Stage) -> Result<(), EngineError> {
        for row in stage.rows() {
            match row {
                Staged::Node(node) => {
                    let Node { id, node_type, version, time, data } = node;
                    let params = [int(id), int(node_type.into()), int(version), int(time.into()), Param::Bytes(data)];
                    self.change(Sql::LoadNode, &params).await?;
                }
                Staged::Link(link) => {
                    self.change(Sql::LoadLink, &link_params(&link)).await?;
                }
                Staged::Count(LinkCount { id1, link_type, count, time, version }) => {
                    let params = [int(id1), int(link_type), Param::Int(count), int(time), int(version)];
                    self.change(Sql::LoadCount, &params).await?;
                }
            }
        }
        Ok(())
    }
}

impl GraphStore for SqlGraph {
    async fn add_node(&mut self, node: &Node<'_>) -> Result<u64, EngineError> {
        let Node { node_type, version, time, data, .. } = *node;
        let params = [int(node_type.into()), int(version), int(time.into()), Param::Bytes(data)];
        Ok(self.change(Sql::AddNode, &params).await?.last_insert_id as u64)
    }

    async fn get_node(&mut self, id: u64, visit: VisitNode<'_>) -> Result<bool, EngineError> {
        Ok(self.execute(Sql::GetNode, &[int(id)], &mut |row| visit(&node_row(row))).await?.rows > 0)
    }

    async fn update_node(&mut self, node: &Node<'_>) -> Result<Written, EngineError> {
        let params = [int(node.id), int(node.version), int(node.time.into()), Param::Bytes(node.data)];
        Ok(untold(self.change(Sql::UpdateNode, &params).await?.affected > 0))
    }

    async fn delete_node(&mut self, id: u64) -> Result<Written, EngineError> {
        Ok(untold(self.change(Sql::DeleteNode, &[int(id)]).await?.affected > 0))
    }

    async fn add_link(&mut self, link: &Link<'_>) -> Result<Written, EngineError> {
        self.change(Sql::Begin, &[]).await?;
        let result = self.write_link(link, true).await;
        self.end(result, true).await
    }

    async fn update_link(&mut self, link: &Link<'_>) -> Result<Written, EngineError> {
        self.change(Sql::Begin, &[]).await?;
        let result = self.write_link(link, false).await;
        self.end(result, true).await
    }

    async fn delete_link(&mut self, key: LinkKey, time: u64) -> Result<bool, EngineError> {
        self.change(Sql::Begin, &[]).await?;
        let result = self.hide(key, time).await;
        let wrote = matches!(result, Ok((_, true)));
        self.end(result.map(|(there, _)| there), wrote).await
    }

    async fn count_links(&mut self, id1: u64, link_type: u64) -> Result<i64, EngineError> {
        let mut count = 0;
        self.execute(Sql::CountLinks, &[int(id1), int(link_type)], &mut |row| count = row.int(0)).await?;
        Ok(count)
    }

    async fn get_links(
        &mut self,
        id1: u64,
        link_type: u64,
        id2s: &[u64],
        visit: VisitLink<'_>,
    ) -> Result<u64, EngineError> {
        let Some(&last) = id2s.last() else { return Ok(0) };
        let fits = sql_text::MULTIGETS.iter().find(|(size, _)| *size >= id2s.len());
        let &(size, statement) = fits.unwrap_or(&sql_text::MULTIGETS[sql_text::MULTIGETS.len() - 1]);
        let mut params = [int(last); 2 + crate::graph::MULTIGET_MAX];
        (params[0], params[1]) = (int(id1), int(link_type));
        params[2..].iter_mut().zip(id2s).for_each(|(param, &id2)| *param = int(id2));
        let answer = self.execute(statement, &params[..2 + size], &mut |row| visit(&link_row(row))).await?;
        Ok(answer.rows)
    }

    async fn get_links_list(&mut self, query: &ListQuery, visit: VisitLink<'_>) -> Result<u64, EngineError> {
        let ListQuery { id1, link_type, from_time, to_time, offset, limit } = *query;
        let params = [int(id1), int(link_type), int(from_time), int(to_time), int(limit), int(offset)];
        Ok(self.execute(Sql::GetLinksList, &params, &mut |row| visit(&link_row(row))).await?.rows)
    }
}

impl GraphLoad for SqlGraph {
    fn stage_node(&mut self, node: &Node<'_>) {
        self.stage.push_node(node);
    }

    fn stage_link(&mut self, link: &Link<'_>) {
        self.stage.push_link(link);
    }

    fn stage_count(&mut self, count: &LinkCount) {
        self.stage.push_count(count);
    }

    async fn load_staged(&mut self) -> Result<(), EngineError> {
        if self.stage.is_empty() {
            return Ok(());
        }
        self.change(Sql::Begin, &[]).await?;
        let stage = std::mem::take(&mut self.stage);
        let result = self.load_rows(&stage).await;
        self.stage = stage;
        self.end(result, true).await
    }

    fn clear_staged(&mut self) {
        self.stage.clear();
    }

    async fn build_index(&mut self, _range: IndexRange, _rows: usize) -> Result<IndexStep, EngineError> {
        let text = sql_text::text(self.session.dialect())?;
        self.session.run(text.index)?;
        Ok(IndexStep::default())
    }

    fn builds_index_at_once(&self) -> bool {
        true
    }
}

/// A cursor before the first row: every number in the tables is larger.
const BEFORE: Param<'static> = Param::Int(-1);

impl GraphScan for SqlGraph {
    async fn scan_nodes(&mut self, after: Option<u64>, limit: u64, visit: VisitNode<'_>) -> Result<u64, EngineError> {
        let params = [after.map_or(BEFORE, int), int(limit)];
        Ok(self.execute(Sql::ScanNodes, &params, &mut |row| visit(&node_row(row))).await?.rows)
    }

    async fn scan_links(
        &mut self,
        after: Option<LinkKey>,
        limit: u64,
        visit: VisitLink<'_>,
    ) -> Result<u64, EngineError> {
        let [a, b, c] = after.map_or([BEFORE; 3], |key| [key.link_type, key.id1, key.id2].map(int));
        Ok(self.execute(Sql::ScanLinks, &[a, b, c, int(limit)], &mut |row| visit(&link_row(row))).await?.rows)
    }

    async fn scan_index(
        &mut self,
        after: Option<IndexKey>,
        limit: u64,
        visit: VisitLink<'_>,
    ) -> Result<u64, EngineError> {
        let [a, b, c, d, e] = after.map_or([BEFORE; 5], |entry| {
            let IndexKey { id1, link_type, visible, time, id2 } = entry;
            [int(id1), int(link_type), bit(visible), int(time), int(id2)]
        });
        Ok(self.execute(Sql::ScanIndex, &[a, b, c, d, e, int(limit)], &mut |row| visit(&link_row(row))).await?.rows)
    }

    async fn scan_counts(
        &mut self,
        after: Option<(u64, u64)>,
        limit: u64,
        visit: VisitCount<'_>,
    ) -> Result<u64, EngineError> {
        let [a, b] = after.map_or([BEFORE; 2], |(id1, link_type)| [int(id1), int(link_type)]);
        let count = |row: &dyn Row| LinkCount {
            id1: row.int(0) as u64,
            link_type: row.int(1) as u64,
            count: row.int(2),
            time: row.int(3) as u64,
            version: row.int(4) as u64,
        };
        Ok(self.execute(Sql::ScanCounts, &[a, b, int(limit)], &mut |row| visit(&count(row))).await?.rows)
    }
}
