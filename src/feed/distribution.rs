//! The distribution keys of the epoch: one in use, older ones kept so that an edge can still open what it holds.

use super::identity::{Feed, FeedError};
use crate::model::secret::Secret;
use crate::store::edges::DistributionKeyRow;
use crate::store::{StoreError, Tx, edges};
use crate::vault::distribution::DistributionKey;
use crate::vault::{Context, Sealed};

fn context(id: &str) -> Context {
    Context::new("distribution-key", id)
}

fn open(feed: &Feed, row: DistributionKeyRow) -> Result<DistributionKey, FeedError> {
    let secret: Secret = feed.vault().open(&context(&row.id), &Sealed::try_from(row.sealed_key)?)?;
    Ok(DistributionKey::from_secret(&secret)?)
}

/// All keys of the epoch, the one in use first.
pub(super) async fn all(feed: &Feed, tx: &mut Tx) -> Result<Vec<DistributionKey>, FeedError> {
    let mut rows = edges::distribution_keys(tx, feed.epoch()).await?;
    rows.sort_by_key(|row| row.retired_at.is_some());
    rows.into_iter().map(|row| open(feed, row)).collect()
}

/// Makes the epoch's first key unless there is one. Two first starts at once may make two: edges are given both, and the newer
/// one is used.
pub(super) async fn ensure(feed: &Feed) -> Result<(), FeedError> {
    let mut tx = feed.store().begin().await?;
    if in_use(feed, &mut tx).await?.is_none() {
        add(feed, &mut tx).await?;
    }
    Ok(tx.commit().await?)
}

/// The key to seal under.
pub(super) async fn current(feed: &Feed, tx: &mut Tx) -> Result<DistributionKey, FeedError> {
    Ok(in_use(feed, tx).await?.ok_or_else(|| StoreError::not_found("a distribution key of this epoch"))?)
}

async fn in_use(feed: &Feed, tx: &mut Tx) -> Result<Option<DistributionKey>, FeedError> {
    let rows = edges::distribution_keys(tx, feed.epoch()).await?;
    rows.into_iter().find(|row| row.retired_at.is_none()).map(|row| open(feed, row)).transpose()
}

async fn add(feed: &Feed, tx: &mut Tx) -> Result<(), FeedError> {
    let key = DistributionKey::generate(feed.env());
    let id = key.id().to_string();
    let sealed = feed.vault().seal(feed.env(), &context(&id), &key.to_secret())?;
    tx.execute(edges::insert_distribution_key(&id, feed.epoch(), sealed.as_bytes(), feed.env().now())).await?;
    Ok(())
}

/// Retires the key in use and makes another.
pub(super) async fn rotate(feed: &Feed, tx: &mut Tx) -> Result<(), FeedError> {
    tx.execute(edges::retire_distribution_keys(feed.epoch(), feed.env().now())).await?;
    add(feed, tx).await
}
