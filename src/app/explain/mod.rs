//! The whole story of one name: every claim on it, who holds it, where its order and certificate are, and what happens next.
//!
//! One document for the API, the command line and the operator's page of a domain. A tenant is told of its own claims only:
//! who else claims a name, or holds it, is nobody's business. What happens next is worded by `words` from the same rows.

mod document;
mod words;

use super::App;
use super::fleet::{place_of, played};
use super::show::{self, DomainView};
use super::tokens::Principal;
use crate::model::claim::Claim;
use crate::model::conclude::FRESH_EDGE;
use crate::model::hostname::Hostname;
use crate::model::id::DomainId;
use crate::model::moment::Moment;
use crate::model::records::ApexRoute;
use crate::model::standing::Standing;
use crate::store::fleet::lists::{self, FleetRow};
use crate::store::fleet::one::{self, EdgeAt, InsideRow};
use crate::store::fleet::queue::closed_row;
use crate::store::{StoreResult, Tx};

pub use document::{
    EdgeStory, Explanation, HeldStory, HoldingStory, Inside, IntentStory, OrderStory, PlaceStory, StandingStory, Story,
};

/// So many claims on one name are told, the open ones and the latest first.
const CLAIMS: usize = 10;
/// So many orders of a domain are told.
const ORDERS: i64 = 10;
/// So many events of a claim.
const EVENTS: usize = 20;

/// The story of a name, as far as the caller may hear it; nothing where no claim of theirs is on it.
pub async fn explain(
    app: &App,
    apex: &ApexRoute,
    hostname: &Hostname,
    principal: &Principal,
) -> StoreResult<Option<Explanation>> {
    let most = i64::try_from(CLAIMS * 5).unwrap_or(i64::MAX);
    let mut tx = app.store.read().await?;
    let mut claims: Vec<FleetRow> = match principal {
        Principal::Operator => lists::claims_on(&mut tx, hostname, most).await?,
        Principal::Tenant(own) => lists::own_claims_on(&mut tx, hostname, own, most).await?,
    };
    let holding = one::holding(&mut tx, hostname).await?;
    drop(tx);
    claims.sort_by_key(|row| !row.claim.is_open());
    let more_claims = claims.len().saturating_sub(CLAIMS);
    claims.truncate(CLAIMS);
    let operator = *principal == Principal::Operator;
    let told = holding.filter(|h| operator || h.domain_id.as_ref().is_some_and(|id| claims.iter().any(|c| c.id == *id)));
    let mut stories = Vec::with_capacity(claims.len());
    for claim in claims {
        if let Some(mut story) = story(app, apex, &claim.id, operator).await? {
            story.domain.events.truncate(EVENTS);
            stories.push(story);
        }
    }
    if stories.is_empty() {
        return Ok(None);
    }
    Ok(Some(Explanation {
        hostname: hostname.clone(),
        hostname_display: hostname.display(),
        registered_domain: hostname.registered_domain().to_owned(),
        told_at: app.env.now(),
        holding: told.map(|h| HoldingStory {
            state: h.state,
            term: h.term,
            since: h.since,
            domain_id: h.domain_id,
            tenant: h.tenant_slug,
        }),
        claims: stories,
        more_claims,
    }))
}

/// The story of one claim; its inside is for operators.
pub async fn story(app: &App, apex: &ApexRoute, id: &DomainId, operator: bool) -> StoreResult<Option<Story>> {
    let now = app.env.now();
    let domain = match operator {
        true => show::domain_for_operator(&app.store, apex, id, now).await?,
        false => show::domain(&app.store, apex, id, now).await?,
    };
    let Some(domain) = domain else { return Ok(None) };
    let mut tx = app.store.read().await?;
    let Some(inside) = one::inside(&mut tx, id).await? else { return Ok(None) };
    let orders: Vec<OrderStory> = one::orders(&mut tx, id, ORDERS).await?.into_iter().map(OrderStory::from).collect();
    let edges = edges(&mut tx, &inside, &domain, now).await?;
    drop(tx);
    let place = if domain.claim == Claim::Queued { place(app, id, operator, now).await? } else { None };
    let standing = standing(&inside, &domain, now);
    let next = words::next(&words::Facts { domain: &domain, place: place.as_ref(), orders: &orders, edges: &edges, now });
    Ok(Some(Story {
        standing,
        tie: inside.tie,
        claim_since: inside.claim_since,
        place,
        orders,
        edges,
        next,
        inside: operator.then(|| Inside::from(inside)),
        domain,
    }))
}

/// The row's word, unless the certificate ended meanwhile: that is known by the clock alone.
fn standing(inside: &InsideRow, domain: &DomainView, now: Moment) -> StandingStory {
    let row = Standing::from_code(&inside.standing);
    let sentence = row.map_or("This row has not been judged by this release yet.", Standing::sentence);
    let ended = domain.claim == Claim::Live && domain.certificate.as_ref().is_some_and(|c| now >= c.not_after);
    StandingStory {
        code: inside.standing.clone(),
        sentence: if ended { "The certificate in use has ended.".to_owned() } else { sentence.to_owned() },
        who_acts: domain.who_acts,
        since: inside.standing_since,
    }
}

async fn edges(tx: &mut Tx, inside: &InsideRow, domain: &DomainView, now: Moment) -> StoreResult<Vec<EdgeStory>> {
    let (Some(certificate), Claim::Live) = (&inside.certificate_id, domain.claim) else { return Ok(Vec::new()) };
    let told = |e: EdgeAt| EdgeStory {
        counted: e.status == "active" && !e.lost && e.heartbeat_at > now - FRESH_EDGE,
        name: e.name,
        status: e.status,
        has_it: e.has_it,
        observed: e.observed,
        heartbeat_at: e.heartbeat_at,
    };
    Ok(one::edges_with(tx, certificate).await?.into_iter().map(told).collect())
}

/// Where a domain's order stands in the queue, by the function that gives the grants; nothing while it waits for none.
pub async fn place(app: &App, id: &DomainId, operator: bool, now: Moment) -> StoreResult<Option<PlaceStory>> {
    let played = played(app).await?;
    let Some((queue, order)) = place_of(&played.queues, id) else { return Ok(None) };
    let held = match order.held {
        Some((limit, until)) => {
            let key = limit.key(&order.hostname);
            let mut tx = app.store.read().await?;
            let closed = closed_row(&mut tx, &queue.issuer, limit, key).await?;
            Some(HeldStory {
                limit: limit.as_str().to_owned(),
                key: key.to_owned(),
                until,
                closed: closed.as_ref().map(|(why, _)| why.as_str().to_owned()),
                // The CA's page speaks for the whole account: it is the operator's.
                link: closed.and_then(|(_, link)| link).filter(|_| operator),
            })
        }
        None => None,
    };
    Ok(Some(PlaceStory {
        issuer: queue.issuer.clone(),
        lane: order.lane,
        position: order.position,
        waiting: queue.waiting,
        expected_at: order.eta.map(|at| at.max(now)),
        paused_until: queue.paused_until,
        held,
    }))
}
