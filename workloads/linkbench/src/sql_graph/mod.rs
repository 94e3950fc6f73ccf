//! The graph over SQL.

use rumba_engine_api::error::{EngineError, Result};
use rumba_engine_api::sql::{Param, Row, SqlSession};
use rumba_engine_api::worker::StatementCounts;

use crate::graph::{
    GraphStore, Link, LinkKey, ListQuery, MULTIGET_MAX, NODE_TYPE, Node, VisitLink, VisitNode, Written, unreported,
};
use crate::profile::WriteStyle;
use crate::sql_text::{self, Sql};

mod links;
mod load;
mod scan;
mod statements;

pub use load::SqlLoader;
use statements::Statements;

/// The adapter of the mix and of verification.
pub struct SqlGraph {
    statements: Statements,
    style: WriteStyle,
}

fn int(number: u64) -> Param<'static> {
    // Ids and times stay below 2^63; "no upper bound" becomes the largest.
    Param::Int(i64::try_from(number).unwrap_or(i64::MAX))
}

fn bit(visible: bool) -> Param<'static> {
    Param::Int(i64::from(visible))
}

fn node_params<'a>(node: &Node<'a>) -> [Param<'a>; 5] {
    let Node { id, node_type, version, time, data } = *node;
    [int(id), int(node_type.into()), int(version), int(time.into()), Param::Bytes(data)]
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
    /// A graph over `session` for clients of the mix; the index must be there.
    ///
    /// # Errors
    /// A statement that the engine refuses.
    pub fn client(session: Box<dyn SqlSession>, style: WriteStyle) -> Result<Self> {
        let mix = sql_text::text(session.dialect())?.mix(style);
        Self::new(session, style, &mix)
    }

    /// A graph over `session` for verification. Its scan of the index reads the index and not the table.
    ///
    /// # Errors
    /// A statement that the engine refuses.
    pub fn verifier(mut session: Box<dyn SqlSession>, style: WriteStyle) -> Result<Self> {
        for reported in sql_text::text(session.dialect())?.before_scans {
            session.run(reported)?;
        }
        Self::new(session, style, sql_text::SCANS)
    }

    /// A graph over `session` with these statements prepared.
    ///
    /// # Errors
    /// A statement that the engine refuses.
    pub fn new(session: Box<dyn SqlSession>, style: WriteStyle, statements: &[Sql]) -> Result<Self> {
        Ok(Self { statements: Statements::new(session, statements)?, style })
    }

    /// Starts the smallest multiget that takes all ids; false if there are no ids.
    fn submit_multiget(&mut self, id1: u64, link_type: u64, id2s: &[u64]) -> Result<bool> {
        let Some(&last) = id2s.last() else { return Ok(false) };
        let Some(&which) = self.statements.text.multigets.iter().find(|multiget| multiget.ids() >= id2s.len()) else {
            return Err(EngineError::failed("submit", format!("a multiget of {} ids", id2s.len())));
        };
        let ids = id2s.iter().copied().chain(std::iter::repeat(last)).take(which.ids());
        let values = [id1, link_type].into_iter().chain(ids).map(int);
        // Most are small, and unneeded memory is not cleared.
        match which.ids() {
            ..=8 => self.submit_some::<10>(which, values)?,
            _ => self.submit_some::<{ 2 + MULTIGET_MAX }>(which, values)?,
        }
        Ok(true)
    }

    /// Starts a statement of at most `MOST` values.
    fn submit_some<const MOST: usize>(
        &mut self,
        which: Sql,
        values: impl Iterator<Item = Param<'static>>,
    ) -> Result<()> {
        let mut places = [Param::Null; MOST];
        let filled = places.iter_mut().zip(values).map(|(place, value)| *place = value).count();
        self.statements.submit(which, &places[..filled])
    }
}

impl GraphStore for SqlGraph {
    async fn add_node(&mut self, node: &Node<'_>) -> Result<u64> {
        let [_, values @ ..] = node_params(node);
        // Some servers return the id as a row, others with the count.
        let mut returned = None;
        let answer = self.statements.execute(Sql::AddNode, &values, &mut |row| returned = Some(row.int(0))).await?;
        Ok(returned.unwrap_or(answer.last_insert_id) as u64)
    }

    async fn get_node(&mut self, id: u64, visit: VisitNode<'_>) -> Result<bool> {
        Ok(self.statements.execute(Sql::GetNode, &[int(id)], &mut |row| visit(&node_row(row))).await?.rows > 0)
    }

    async fn update_node(&mut self, node: &Node<'_>) -> Result<Written> {
        Ok(unreported(self.statements.change(Sql::UpdateNode, &node_params(node)).await?.matched > 0))
    }

    async fn delete_node(&mut self, id: u64) -> Result<Written> {
        Ok(unreported(self.statements.change(Sql::DeleteNode, &[int(id), int(NODE_TYPE.into())]).await?.affected > 0))
    }

    async fn add_link(&mut self, link: &Link<'_>) -> Result<Written> {
        match self.style {
            WriteStyle::Upsert => self.upsert(link).await,
            WriteStyle::InsertOrUpdate => self.insert_or_overwrite(link).await,
        }
    }

    async fn update_link(&mut self, link: &Link<'_>) -> Result<Written> {
        match self.style {
            WriteStyle::Upsert => self.upsert(link).await,
            WriteStyle::InsertOrUpdate => self.overwrite_or_insert(link).await,
        }
    }

    async fn delete_link(&mut self, key: LinkKey, time: u64) -> Result<bool> {
        self.hide(key, time).await
    }

    async fn count_links(&mut self, id1: u64, link_type: u64) -> Result<i64> {
        let mut count = 0;
        self.statements.execute(Sql::CountLinks, &[int(id1), int(link_type)], &mut |row| count = row.int(0)).await?;
        Ok(count)
    }

    async fn get_links(&mut self, id1: u64, link_type: u64, id2s: &[u64], visit: VisitLink<'_>) -> Result<u64> {
        if !self.submit_multiget(id1, link_type, id2s)? {
            return Ok(0);
        }
        Ok(self.statements.transactions.session.answer(&mut |row| visit(&link_row(row))).await?.rows)
    }

    async fn get_links_list(&mut self, query: &ListQuery, visit: VisitLink<'_>) -> Result<u64> {
        let ListQuery { id1, link_type, from_time, to_time, offset, limit } = *query;
        let values = [int(id1), int(link_type), int(from_time), int(to_time), int(limit), int(offset)];
        Ok(self.statements.execute(Sql::GetLinksList, &values, &mut |row| visit(&link_row(row))).await?.rows)
    }

    fn statements(&mut self) -> StatementCounts {
        self.statements.transactions.take_statements()
    }
}
