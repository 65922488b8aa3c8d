//! The operator's pages: the fleet in numbers, what is stuck, the queue, the budget, the edges, tenants, one domain.
//!
//! For operators alone: to anybody else there is nothing at these addresses. Numbers come from `app::fleet`'s snapshot and say
//! how old they are; lists are pages of fifty by an index, so that no page grows with the fleet. Pictures are SVG drawn here
//! beside the table that says the same. May import what `pages` may. To fake it: seed a store. How to get it wrong: hand a
//! page a list without a limit, or leave [`Operator`] out of a handler.

pub(in crate::web) mod alerts;
pub(in crate::web) mod budget;
pub(in crate::web) mod domain;
pub(in crate::web) mod domains;
pub(in crate::web) mod edges;
pub(in crate::web) mod expiry;
pub(in crate::web) mod left_behind;
mod line;
pub(in crate::web) mod overview;
pub(in crate::web) mod queue;
pub(in crate::web) mod recovery;
pub(in crate::web) mod tenant_remove;
pub(in crate::web) mod tenants;

use axum::extract::FromRequestParts;
use axum::http::header;
use axum::http::request::Parts;
use axum::response::IntoResponse;

use super::face::claim_words as claim_word;
use super::when::{absolute, relative};
use crate::app::tokens::Principal;
use crate::model::claim::Claim;
use crate::model::evidence::Actor;
use crate::model::moment::Moment;
use crate::web::auth::PageCaller;
use crate::web::problem::Problem;
use crate::web::state::WebState;
use crate::web::texts::operator as o;

/// So many rows a page of a list has.
const PAGE: usize = 50;

/// `GET /assets/operator.css`
pub(in crate::web) async fn style() -> impl IntoResponse {
    let headers = [(header::CONTENT_TYPE, "text/css; charset=utf-8"), (header::CACHE_CONTROL, "public, max-age=300")];
    (headers, include_str!("../../../../templates/operator.css"))
}

/// An operator; to anybody else there is nothing at these addresses, whatever they ask.
pub(in crate::web) struct Operator;

impl FromRequestParts<WebState> for Operator {
    type Rejection = Problem;
    async fn from_request_parts(parts: &mut Parts, state: &WebState) -> Result<Self, Problem> {
        let reader = PageCaller::from_request_parts(parts, state).await?;
        if reader.caller.principal == Principal::Operator { Ok(Operator) } else { Err(Problem::no_route()) }
    }
}

/// A time, in the three forms that a page needs.
struct When {
    machine: String,
    full: String,
    ago: String,
}

impl When {
    fn at(at: Moment, now: Moment) -> When {
        When { machine: at.rfc3339(), full: absolute(at), ago: relative(at, now) }
    }
}

/// A time that may be missing, or be none.
fn when(at: Option<Moment>, now: Moment) -> Option<When> {
    at.filter(|at| *at != Moment::NEVER).map(|at| When::at(at, now))
}

fn claim_tone(claim: Claim) -> &'static str {
    match claim {
        Claim::Live => "good",
        Claim::AwaitingDns | Claim::Queued => "wait",
        Claim::Expired => "act",
        Claim::Releasing | Claim::Released | Claim::Withdrawn => "off",
    }
}

fn actor_word(actor: Actor) -> &'static str {
    match actor {
        Actor::Platform => o::ours(),
        Actor::Ca => o::cas(),
        Actor::DnsProvider => o::providers(),
        Actor::Tenant => o::tenants_own(),
        Actor::Nobody => o::nobodys(),
    }
}

/// The same where it stands alone.
fn actor_move(actor: Actor) -> &'static str {
    match actor {
        Actor::Platform => o::our_move(),
        Actor::Ca => o::cas_move(),
        Actor::DnsProvider => o::providers_move(),
        Actor::Tenant => o::tenants_move(),
        Actor::Nobody => o::nobodys_move(),
    }
}

fn actor_tone(actor: Actor) -> &'static str {
    match actor {
        Actor::Platform => "act",
        Actor::Ca | Actor::DnsProvider => "wait",
        Actor::Tenant => "link",
        Actor::Nobody => "off",
    }
}

/// A whole number with thin spaces between its thousands, as people read it.
fn grouped(n: i64) -> String {
    let digits = n.unsigned_abs().to_string();
    let mut out = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push('\u{202f}');
        }
        out.push(digit);
    }
    if n < 0 { format!("−{out}") } else { out }
}

/// `n` of `all` on a scale of a thousand; what is there is seen.
fn share(n: i64, all: i64) -> i64 {
    if n <= 0 || all <= 0 { 0 } else { (n.saturating_mul(1000) / all).clamp(6, 1000) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_read_well_and_bars_are_seen() {
        assert_eq!([grouped(0), grouped(999), grouped(1_234_567)], ["0", "999", "1\u{202f}234\u{202f}567"]);
        assert_eq!([share(0, 10), share(1, 100_000), share(5, 10), share(10, 10), share(1, 0)], [0, 6, 500, 1000, 0]);
    }
}
