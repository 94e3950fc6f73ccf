//! The load over SQL: rows are sent in batches, in the session's best way.

use rumba_engine_api::error::Result;
use rumba_engine_api::sql::{Param, SqlSession, Statement};
use rumba_engine_api::worker::StatementCounts;

use super::{Statements, int, link_params, node_params};
use crate::graph::{GraphLoad, IndexRange, IndexStep, Link, LinkCount, Node};
use crate::sql_stage::{Stage, Staged};
use crate::sql_text::{LINK, LINK_COUNT, NODE};

/// The adapter of the load.
pub struct SqlLoader {
    statements: Statements,
    nodes: Statement,
    links: Statement,
    counts: Statement,
    stage: Stage,
    /// Empty between batches, to reuse its memory.
    values: Vec<Param<'static>>,
}

impl SqlLoader {
    /// A loader over `session`.
    ///
    /// # Errors
    /// A statement that the engine refuses.
    pub fn new(session: Box<dyn SqlSession>) -> Result<Self> {
        let mut statements = Statements::new(session, &[])?;
        let session = &mut statements.transactions.session;
        Ok(Self {
            nodes: session.prepare_rows("nodetable", &NODE)?,
            links: session.prepare_rows("linktable", &LINK)?,
            counts: session.prepare_rows("counttable", &LINK_COUNT)?,
            stage: Stage::default(),
            values: Vec::new(),
            statements,
        })
    }

    fn rows(&self, row: &Staged<'_>) -> Statement {
        match row {
            Staged::Node(_) => self.nodes,
            Staged::Link(_) => self.links,
            Staged::Count(_) => self.counts,
        }
    }

    /// Loads the staged rows, each run of rows of one table at once.
    async fn load(&mut self, stage: &Stage) -> Result<()> {
        let mut rows = stage.rows().peekable();
        let mut begins = true;
        while let Some(table) = rows.peek().map(|row| self.rows(row)) {
            let mut values = std::mem::take(&mut self.values);
            while let Some(row) = rows.next_if(|row| self.rows(row) == table) {
                push(&mut values, &row);
            }
            let submitted = self.submit(table, &values, begins).await;
            self.values = emptied(values);
            submitted?;
            begins = false;
        }
        Ok(())
    }

    async fn submit(&mut self, table: Statement, values: &[Param<'_>], begins: bool) -> Result<()> {
        if begins {
            let first = |session: &mut dyn SqlSession| session.submit_rows(table, values);
            return self.statements.transactions.begin_with(first, &mut |_| {}).await.map(drop);
        }
        self.statements.transactions.session.load_rows(table, values).await.map(drop)
    }
}

fn push<'a>(values: &mut Vec<Param<'a>>, row: &Staged<'a>) {
    match row {
        Staged::Node(node) => values.extend(node_params(node)),
        Staged::Link(link) => values.extend(link_params(link)),
        Staged::Count(LinkCount { id1, link_type, count, time, version }) => {
            values.extend([int(*id1), int(*link_type), Param::Int(*count), int(*time), int(*version)]);
        }
    }
}

/// The memory of a vector, free of borrowed values. Collecting an empty vector's own values keeps its allocation (a
/// test counts).
fn emptied(mut values: Vec<Param<'_>>) -> Vec<Param<'static>> {
    values.clear();
    values.into_iter().map(|_| Param::Null).collect()
}

impl GraphLoad for SqlLoader {
    fn stage_node(&mut self, node: &Node<'_>) {
        self.stage.push_node(node);
    }

    fn stage_link(&mut self, link: &Link<'_>) {
        self.stage.push_link(link);
    }

    fn stage_count(&mut self, count: &LinkCount) {
        self.stage.push_count(count);
    }

    async fn load_staged(&mut self) -> Result<()> {
        if self.stage.is_empty() {
            return Ok(());
        }
        let stage = std::mem::take(&mut self.stage);
        let result = self.load(&stage).await;
        self.stage = stage;
        self.statements.end(result, true).await
    }

    fn clear_staged(&mut self) {
        self.stage.clear();
    }

    async fn build_index(&mut self, _range: IndexRange, _rows: usize) -> Result<IndexStep> {
        let index = self.statements.text.index;
        self.statements.transactions.session.run(index)?;
        Ok(IndexStep::default())
    }

    fn builds_index_at_once(&self) -> bool {
        true
    }

    fn statements(&mut self) -> StatementCounts {
        self.statements.transactions.take_statements()
    }
}
