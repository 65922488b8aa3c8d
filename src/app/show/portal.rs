//! What the portal's pages show beside the document of one domain.

use super::build;
use super::document::EventView;
use crate::model::claim::Claim;
use crate::model::evidence::Actor;
use crate::model::id::{DomainId, ImportId};
use crate::model::moment::Moment;
use crate::model::sentence::{Facts, Reader, sentence_of};
use crate::store::portal::{self, ListedRow, Listing, Moved};
use crate::store::{Store, StoreResult};

/// A domain at a glance.
#[derive(Clone, Debug, PartialEq)]
pub struct ListedDomain {
    /// Its id.
    pub id: DomainId,
    /// The name as DNS has it.
    pub hostname: String,
    /// The name as its readers write it.
    pub hostname_display: String,
    /// Where the claim stands.
    pub claim: Claim,
    /// Visitors are served, or why not, as a list says it.
    pub in_a_list: String,
    /// Whose move it is.
    pub who_acts: Actor,
    /// Whether a visitor gets the tenant's page.
    pub serving: bool,
    /// Whether it waits for its records as young claims do, with nothing to correct.
    pub is_young: bool,
}

/// A tenant's domains in order of their names.
pub async fn listing(store: &Store, listing: &Listing, limit: i64, now: Moment) -> StoreResult<Vec<ListedDomain>> {
    let rows = portal::list(&mut store.read().await?, listing, limit).await?;
    Ok(rows.into_iter().map(|row| listed(row, now)).collect())
}

/// Claims that an import made, in one state, in the order of their age.
pub async fn of_import(
    store: &Store,
    import: &ImportId,
    claim: Claim,
    after: Option<&DomainId>,
    limit: i64,
    now: Moment,
) -> StoreResult<Vec<ListedDomain>> {
    let rows = portal::of_import(&mut store.read().await?, import, claim, after, limit).await?;
    Ok(rows.into_iter().map(|row| listed(row, now)).collect())
}

/// At a glance the edges count as one, which follows once all of them do: which ones are behind is told on the domain's page.
fn listed(row: ListedRow, now: Moment) -> ListedDomain {
    let is_young = build::is_young(row.claim, row.created_at, row.evidence.iter().map(|e| e.finding.verdict()), now);
    let sentence = sentence_of(&Facts {
        reader: Reader::Tenant,
        claim: row.claim,
        evidence: &row.evidence,
        order_state: row.order_state,
        held: row.held,
        order_problem: None,
        not_after: row.not_after,
        counted: 1,
        renewed: false,
        behind: usize::from(!row.active),
        failures: row.failures,
        now,
    });
    ListedDomain {
        id: row.id,
        hostname: row.hostname.to_string(),
        hostname_display: row.hostname.display(),
        claim: row.claim,
        in_a_list: sentence.in_a_list,
        who_acts: sentence.who_acts,
        serving: sentence.serving,
        is_young,
    }
}

/// A domain's events before its `before`th, latest first.
pub async fn history(store: &Store, id: &DomainId, before: i64, limit: i64) -> StoreResult<Vec<EventView>> {
    let rows = portal::history(&mut store.read().await?, id, before, limit).await?;
    Ok(rows.into_iter().map(build::event).collect())
}

/// The names in a domain's certificate in use.
pub async fn certificate_names(store: &Store, id: &DomainId) -> StoreResult<Vec<String>> {
    portal::certificate_names(&mut store.read().await?, id).await
}

/// How far the stream of events has come.
pub async fn position(store: &Store) -> StoreResult<i64> {
    portal::position(&mut store.read().await?).await
}

/// What moved after `position`, in the stream's order.
pub async fn moved(store: &Store, position: i64, limit: i64) -> StoreResult<Vec<Moved>> {
    portal::moved(&mut store.read().await?, position, limit).await
}
