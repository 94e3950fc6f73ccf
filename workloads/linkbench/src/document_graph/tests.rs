use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::task::{Context, Poll};

use rumba_engine_api::document::{DocumentSession, Done, Visit};
use rumba_engine_api::error::ErrorCode;
use rumba_engine_api::worker::block_on;

use super::*;
use crate::node_ids::NextNodeId;

/// A session of a server without transactions, on which another client has just created the count.
struct Crossed {
    counts: Arc<AtomicU32>,
    answer: Option<Result<Done>>,
}

impl DocumentSession for Crossed {
    fn has_transactions(&self) -> bool {
        false
    }

    fn submit(&mut self, command: Command<'_>) -> Result<()> {
        let is_first = matches!(command, Command::Update { of: COUNTS, .. }) && self.counts.fetch_add(1, Relaxed) == 0;
        self.answer = Some(match is_first {
            true => Err(EngineError::Duplicate(ErrorCode::of_server(11000, *b"\0\0\0\0\0"))),
            false => Ok(Done { matched: 1, ..Done::default() }),
        });
        Ok(())
    }

    fn poll_answer(&mut self, _: &mut Context<'_>, _: Visit<'_>) -> Poll<Result<Done>> {
        Poll::Ready(self.answer.take().unwrap())
    }

    fn run(&mut self, _: Document<'_>) -> Result<()> {
        Ok(())
    }
}

/// Guards against a full restart of the operation: it would find the link already written, and count nothing.
#[test]
fn concurrent_count_insert_is_retried_alone() {
    let counts = Arc::new(AtomicU32::new(0));
    let session = Box::new(Crossed { counts: counts.clone(), answer: None });
    let mut graph = DocumentGraph::new(session, NodeIds::new(NextNodeId::new(1), 0));
    let key = LinkKey { link_type: 1, id1: 2, id2: 3 };
    let link = Link { key, visible: true, version: 0, time: 1, data: b"x" };
    assert!(!block_on(graph.add_link(&link)).unwrap().there);
    assert_eq!(counts.load(Relaxed), 2);
}
