//! The records of a domain as a file that a zone takes in, from its page and from a hand-off link.

use axum::extract::State;
use axum::response::Response;

use super::domain::face;
use super::hand_off::{self, DeadLinkPage, kept_quiet};
use crate::web::api::domains::own_domain;
use crate::web::auth::PageCaller;
use crate::web::input::{Id, LinkText};
use crate::web::problem::Problem;
use crate::web::state::WebState;
use crate::web::zone_file::answer;

/// `GET /domains/{id}/records.zone`
pub(in crate::web) async fn show_zone(
    State(state): State<WebState>,
    reader: PageCaller,
    Id(id): Id,
) -> Result<Response, Problem> {
    let id = own_domain(&state, &reader.caller, &id).await?;
    Ok(answer(&face(&state, &id).await?.view))
}

/// `GET /hand-off/{token}/records.zone`
pub(in crate::web) async fn show_handed_zone(
    State(state): State<WebState>,
    LinkText(text): LinkText,
) -> Result<Response, Problem> {
    let found = match hand_off::find(&state, &text).await? {
        Ok(found) => found,
        Err(dead) => return DeadLinkPage::hand_off(dead).answer(dead),
    };
    let domain = found.row.domain_id.ok_or_else(Problem::no_domain)?;
    Ok(kept_quiet(answer(&face(&state, &domain).await?.view)))
}
