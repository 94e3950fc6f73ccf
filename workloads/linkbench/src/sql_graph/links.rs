//! Writes to links: each is one transaction, or two if the originals use two.

use rumba_engine_api::error::{EngineError, Result};
use rumba_engine_api::sql::{Answer, Param};

use super::{SqlGraph, int, link_params};
use crate::graph::{Link, LinkKey, Written, unreported};
use crate::profile::WriteStyle;
use crate::sql_text::{Sql, Upserted};

/// Between the two transactions of one write, another client wrote the same link.
const CROSSED: EngineError = EngineError::conflict("another client wrote the link meanwhile");

fn by(visible: bool) -> i64 {
    if visible { 1 } else { -1 }
}

impl SqlGraph {
    /// 2011: one upsert makes the link visible; an update writes the rest if it was there.
    pub(super) async fn upsert(&mut self, link: &Link<'_>) -> Result<Written> {
        let result = self.upsert_within(link).await;
        self.statements.end(result.map(|met| unreported(met != Upserted::New)), true).await
    }

    async fn upsert_within(&mut self, link: &Link<'_>) -> Result<Upserted> {
        let values = link_params(link);
        let mut version = None;
        let answer = self.statements.begin(Sql::UpsertLink, &values, &mut |row| version = Some(row.int(0))).await?;
        let met = Upserted::reported(answer.affected, version);
        if met != Upserted::Same {
            let change = if met == Upserted::New { i64::from(link.visible) } else { by(link.visible) };
            self.add_to_count(link, change).await?;
        }
        if met != Upserted::New {
            self.statements.change(Sql::UpdateLink, &values).await?;
        }
        Ok(met)
    }

    /// 2017: an add takes the link to be new.
    pub(super) async fn insert_or_overwrite(&mut self, link: &Link<'_>) -> Result<Written> {
        if self.insert(link).await? {
            return Ok(unreported(false));
        }
        if self.overwrite(link).await? { Ok(unreported(true)) } else { Err(CROSSED) }
    }

    /// 2017: an update assumes that the link exists.
    pub(super) async fn overwrite_or_insert(&mut self, link: &Link<'_>) -> Result<Written> {
        if self.overwrite(link).await? {
            return Ok(unreported(true));
        }
        if self.insert(link).await? { Ok(unreported(false)) } else { Err(CROSSED) }
    }

    /// A transaction that inserts the link; false if it exists already. The server's lock on the row ends with the
    /// transaction, because two clients that both kept it would wait for each other.
    async fn insert(&mut self, link: &Link<'_>) -> Result<bool> {
        let result = self.insert_within(link).await;
        let wrote = matches!(result, Ok(true));
        self.statements.end(result, wrote).await
    }

    async fn insert_within(&mut self, link: &Link<'_>) -> Result<bool> {
        let values = link_params(link);
        match self.statements.begin(Sql::InsertLink, &values, &mut |_| {}).await {
            Err(EngineError::Duplicate(_)) | Ok(Answer { affected: 0, .. }) => return Ok(false),
            other => other?,
        };
        self.add_to_count(link, i64::from(link.visible)).await?;
        Ok(true)
    }

    /// A transaction that overwrites the link; false if it does not exist. A server may lock the gap at its position,
    /// until the transaction ends.
    async fn overwrite(&mut self, link: &Link<'_>) -> Result<bool> {
        let result = self.overwrite_within(link).await;
        let wrote = matches!(result, Ok(true));
        self.statements.end(result, wrote).await
    }

    async fn overwrite_within(&mut self, link: &Link<'_>) -> Result<bool> {
        let Some(visible) = self.lock(link.key).await? else { return Ok(false) };
        self.statements.change(Sql::UpdateLink, &link_params(link)).await?;
        if visible != link.visible {
            self.change_count(link.key, by(link.visible), link.time).await?;
        }
        Ok(true)
    }

    /// A transaction that hides a link; false when it is not there.
    pub(super) async fn hide(&mut self, key: LinkKey, time: u64) -> Result<bool> {
        let result = self.hide_within(key, time).await;
        let wrote = matches!(result, Ok(Some(true)));
        self.statements.end(result.map(|visible| visible.is_some()), wrote).await
    }

    /// Whether the link was visible, and so was hidden; `None` when it is not there.
    async fn hide_within(&mut self, key: LinkKey, time: u64) -> Result<Option<bool>> {
        let visible = self.lock(key).await?;
        if visible == Some(true) {
            self.statements.change(Sql::HideLink, &[int(key.id1), int(key.id2), int(key.link_type)]).await?;
            match self.style {
                WriteStyle::Upsert => {
                    let values = [int(key.id1), int(key.link_type), int(time)];
                    self.statements.change(Sql::TakeFromCount, &values).await?;
                }
                WriteStyle::InsertOrUpdate => self.change_count(key, -1, time).await?,
            }
        }
        Ok(visible)
    }

    /// Begins a transaction and locks a link: whether it is visible; `None` when it is not there.
    async fn lock(&mut self, key: LinkKey) -> Result<Option<bool>> {
        let mut visible = None;
        let values = [int(key.id1), int(key.id2), int(key.link_type)];
        self.statements.begin(Sql::LockLink, &values, &mut |row| visible = Some(row.int(0) != 0)).await?;
        Ok(visible)
    }

    /// Adds to the count of a link's id and type, or inserts a missing count.
    async fn add_to_count(&mut self, link: &Link<'_>, change: i64) -> Result<()> {
        let LinkKey { id1, link_type, .. } = link.key;
        // A missing count has no link to subtract.
        let base = Param::Int(change.max(0));
        let values = [int(id1), int(link_type), base, Param::Int(change), int(link.time)];
        self.statements.change(Sql::AddToCount, &values).await.map(drop)
    }

    async fn change_count(&mut self, key: LinkKey, change: i64, time: u64) -> Result<()> {
        let values = [int(key.id1), int(key.link_type), Param::Int(change), int(time)];
        if self.statements.change(Sql::ChangeCount, &values).await?.matched > 0 {
            return Ok(());
        }
        let LinkKey { link_type, id1, .. } = key;
        let lost = format!("counttable has no row for id {id1}, link_type {link_type}, which has a link");
        Err(EngineError::failed("UPDATE counttable", lost))
    }
}
