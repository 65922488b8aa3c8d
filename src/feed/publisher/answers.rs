//! What edges are told, rendered from the store's present rows and sealed and signed for sending.

use crate::feed::distribution;
use crate::feed::identity::{Feed, FeedError};
use crate::feed::wire::{self, Message};
use crate::model::feed::{CertificateEntry, ChallengeEntry, Deltas, Entry, Material, Position, Snapshot};
use crate::model::hostname::Hostname;
use crate::store::feed::{self, Scope, StoredCertificate};
use crate::store::{Tx, restore};
use crate::vault::distribution::{DistributionKey, Preflight, is_preflight};
use crate::vault::{Context, Sealed};

/// Changes a message carries at most.
const BATCH: i64 = 500;
/// Certificates sealed before other work gets its turn: a snapshot of very many takes seconds.
const SEALED_IN_A_ROW: usize = 128;
/// Version of a certificate that is served with.
const STORED: i64 = 1;
/// Version of a certificate that is destroyed.
const DESTROYED: i64 = 2;

/// Refuses a reader that is ahead of the feed. Numbers are never given twice, so the database is an older copy and nobody
/// said so: what it does not know would be taken off the edges, names that are served among it.
pub(super) fn not_ahead(reader: Position, feed: Position) -> Result<(), FeedError> {
    match reader.epoch == feed.epoch && reader.seq > feed.seq {
        true => Err(FeedError::Behind { reader: reader.seq, feed: feed.seq }),
        false => Ok(()),
    }
}

/// What changed after a position: nothing yet, or a message.
pub(super) async fn changes(feed: &Feed, after: Position) -> Result<Option<Message>, FeedError> {
    let mut tx = feed.store().read().await?;
    let position = feed::position(&mut tx).await?;
    not_ahead(after, position)?;
    if after.epoch != position.epoch {
        return Ok(Some(Message::Reset { position }));
    }
    if after.seq == position.seq {
        return Ok(None);
    }
    let upto = position.seq.min(after.seq.saturating_add(BATCH));
    let entries = entries(feed, &mut tx, Scope::Changes(after.seq, upto)).await?;
    Ok(Some(Message::Deltas(Deltas { epoch: position.epoch, after: after.seq, upto, entries })))
}

/// The message that nothing changed.
pub(super) fn nothing_after(after: Position) -> Deltas {
    Deltas { epoch: after.epoch, after: after.seq, upto: after.seq, entries: vec![] }
}

/// Everything. The position is read first: what is newer than it comes again as a delta and changes nothing.
pub(super) async fn snapshot(feed: &Feed) -> Result<Message, FeedError> {
    let mut tx = feed.store().read().await?;
    let position = feed::position(&mut tx).await?;
    let recovering = restore::recovering_since(&mut tx).await?.is_some();
    let snapshot = Snapshot { position, entries: entries(feed, &mut tx, Scope::All).await? };
    Ok(if recovering { Message::Recovery(snapshot) } else { Message::Snapshot(snapshot) })
}

/// The answer about one token.
pub(super) async fn challenge(feed: &Feed, token: &str) -> Result<Message, FeedError> {
    let mut tx = feed.store().read().await?;
    if is_preflight(token) {
        // An edge that was not given the newest distribution key yet: only what seals for edges tells it to fetch one.
        let answer = Preflight::of(&distribution::current(feed, &mut tx).await?).answer(token);
        let entry = |answer| ChallengeEntry {
            token: token.to_owned(),
            hostname: Hostname::trusted("preflight.invalid"),
            key_authorization: Some(answer),
            version: 1,
        };
        return Ok(Message::Challenge { challenge: answer.map(entry) });
    }
    let found = feed::challenge_by_token(&mut tx, token).await?;
    Ok(Message::Challenge { challenge: found.filter(|c| c.key_authorization.is_some()) })
}

/// Signs a message.
pub(super) fn signed(feed: &Feed, message: &Message) -> Result<Vec<u8>, FeedError> {
    Ok(wire::write(feed.signer(), message)?)
}

/// Certificates come before the hosts that name them.
async fn entries(feed: &Feed, tx: &mut Tx, scope: Scope) -> Result<Vec<Entry>, FeedError> {
    let tenants = feed::tenants(tx, scope).await?;
    let (hosts, mut certificates) = feed::hosts(tx, scope).await?;
    certificates.extend(feed::certificates(tx, scope).await?);
    certificates.sort_by(|a, b| a.id.cmp(&b.id));
    certificates.dedup_by(|a, b| a.id == b.id);
    let challenges = feed::challenges(tx, scope).await?;
    let mut out: Vec<Entry> = tenants.into_iter().map(Entry::Tenant).collect();
    if !certificates.is_empty() {
        let key = distribution::current(feed, tx).await?;
        for (n, certificate) in certificates.into_iter().enumerate() {
            if n % SEALED_IN_A_ROW == 0 {
                tokio::task::yield_now().await;
            }
            out.push(Entry::Certificate(certificate_entry(feed, &key, certificate)?));
        }
    }
    out.extend(hosts.into_iter().map(Entry::Host));
    out.extend(challenges.into_iter().map(Entry::Challenge));
    Ok(out)
}

fn certificate_entry(feed: &Feed, key: &DistributionKey, stored: StoredCertificate) -> Result<CertificateEntry, FeedError> {
    let (None, Some(sealed_key)) = (stored.destroyed_at, stored.sealed_key) else {
        return Ok(CertificateEntry { id: stored.id, version: DESTROYED, material: None });
    };
    let secret = feed.vault().open(&Context::new("certificate-key", &stored.sealed_for), &Sealed::try_from(sealed_key)?)?;
    let packet = key.seal(feed.env(), wire::key_label(stored.id.as_str()), &secret)?;
    let material = Material {
        names: stored.names,
        chain: stored.chain,
        sealed_key: packet.as_bytes().to_vec(),
        serial: stored.serial,
        not_after: stored.not_after,
        platform: stored.platform,
    };
    Ok(CertificateEntry { id: stored.id, version: STORED, material: Some(material) })
}
