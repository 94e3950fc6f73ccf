//! Full scans over SQL, in pages.

use rumba_engine_api::error::Result;
use rumba_engine_api::sql::{Param, Row};

use super::{SqlGraph, bit, int, link_row, node_row};
use crate::graph::{GraphScan, IndexKey, LinkCount, LinkKey, VisitCount, VisitLink, VisitNode};
use crate::sql_text::Sql;

/// A cursor before the first row: every number in the tables is larger.
const BEFORE: Param<'static> = Param::Int(-1);

fn count_row(row: &dyn Row) -> LinkCount {
    LinkCount {
        id1: row.int(0) as u64,
        link_type: row.int(1) as u64,
        count: row.int(2),
        time: row.int(3) as u64,
        version: row.int(4) as u64,
    }
}

impl SqlGraph {
    async fn page_of_links(&mut self, which: Sql, values: &[Param<'_>], visit: VisitLink<'_>) -> Result<u64> {
        Ok(self.statements.execute(which, values, &mut |row| visit(&link_row(row))).await?.rows)
    }
}

impl GraphScan for SqlGraph {
    async fn scan_nodes(&mut self, after: Option<u64>, limit: u64, visit: VisitNode<'_>) -> Result<u64> {
        let values = [after.map_or(BEFORE, int), int(limit)];
        Ok(self.statements.execute(Sql::ScanNodes, &values, &mut |row| visit(&node_row(row))).await?.rows)
    }

    async fn scan_links(&mut self, after: Option<LinkKey>, limit: u64, visit: VisitLink<'_>) -> Result<u64> {
        let [a, b, c] = after.map_or([BEFORE; 3], |key| [key.link_type, key.id1, key.id2].map(int));
        self.page_of_links(Sql::ScanLinks, &[a, b, c, int(limit)], visit).await
    }

    async fn scan_index(&mut self, after: Option<IndexKey>, limit: u64, visit: VisitLink<'_>) -> Result<u64> {
        let [a, b, c, d, e] = after.map_or([BEFORE; 5], |entry| {
            let IndexKey { id1, link_type, visible, time, id2 } = entry;
            [int(id1), int(link_type), bit(visible), int(time), int(id2)]
        });
        self.page_of_links(Sql::ScanIndex, &[a, b, c, d, e, int(limit)], visit).await
    }

    async fn scan_counts(&mut self, after: Option<(u64, u64)>, limit: u64, visit: VisitCount<'_>) -> Result<u64> {
        let [a, b] = after.map_or([BEFORE; 2], |(id1, link_type)| [int(id1), int(link_type)]);
        let values = [a, b, int(limit)];
        Ok(self.statements.execute(Sql::ScanCounts, &values, &mut |row| visit(&count_row(row))).await?.rows)
    }
}
