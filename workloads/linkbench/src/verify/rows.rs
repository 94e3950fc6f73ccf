//! Checks that the tables hold exactly as many rows as were written, and no foreign rows.

use rumba_engine_api::check::Check;
use rumba_engine_api::error::Result;
use rumba_workload_kit::ledger::RowCount;

use super::PAGE;
use crate::graph::{GraphScan, NODE_TYPE};

/// Reads every node: their number, and whether each looks like a written one.
pub async fn nodes(graph: &mut impl GraphScan, expected: &RowCount) -> Result<[Check; 2]> {
    let mut content = Check::new("every node has the type and a version that were written");
    let mut after = None;
    loop {
        let rows = graph
            .scan_nodes(after, PAGE, &mut |node| {
                after = Some(node.id);
                content.examined += 1;
                // 1 as loaded or added, 2 as updated.
                if node.node_type != NODE_TYPE || !(1..=2).contains(&node.version) {
                    content.fail(|| {
                        format!("node {} has the type {} and the version {}", node.id, node.node_type, node.version)
                    });
                }
            })
            .await?;
        if rows < PAGE {
            break;
        }
    }
    let count = expected.check("the nodes are as many as loaded and added, less those deleted", content.examined);
    Ok([count, content])
}
