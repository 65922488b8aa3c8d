//! What was sent to a webhook, what waits, and sending it again.

use axum::extract::State;
use axum::response::IntoResponse;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::webhooks::own_webhook;
use super::{Page, cursor, page, page_length};
use crate::app::show::{DeliveryView, words};
use crate::app::webhooks;
use crate::model::id::EventId;
use crate::model::moment::Moment;
use crate::store::deliveries;
use crate::web::auth::ApiCaller;
use crate::web::input::{Asked, Id, NoQuery};
use crate::web::problem::Problem;
use crate::web::state::WebState;

/// The states there are.
const STATES: [&str; 4] = ["pending", "delivered", "dropped", "given_up"];

/// Which deliveries are wanted.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(in crate::web) struct DeliveriesQuery {
    /// In this state only.
    #[param(schema_with = words::delivery_state)]
    state: Option<String>,
    /// From the `next` of the page before.
    #[param(pattern = "^[A-Za-z0-9_-]+$")]
    cursor: Option<String>,
    /// How many items a page holds.
    #[param(minimum = 1, maximum = 200, default = 50)]
    limit: Option<u32>,
}

/// List what was sent to a webhook
///
/// The latest first. What was delivered, dropped or given up is kept for a month, or as the operator decided (`webhooks.keep`).
#[utoipa::path(get, path = "/api/v1/webhooks/{id}/deliveries", tag = "Webhooks", operation_id = "listDeliveries",
    params(("id" = String, Path, description = "The webhook's id.", example = "whk_019b0000000070008000000000000001"), DeliveriesQuery),
    responses(
        (status = 200, description = "A page of deliveries.", body = Page<DeliveryView>),
        (status = 404, description = "`webhook_not_found`"),
        (status = 422, description = "`limit_out_of_range`, `cursor_invalid`, `delivery_state_invalid`"),
    ))]
pub(in crate::web) async fn list_deliveries(
    State(state): State<WebState>,
    ApiCaller(caller): ApiCaller,
    Id(id): Id,
    Asked(query): Asked<DeliveriesQuery>,
) -> Result<impl IntoResponse, Problem> {
    let webhook = own_webhook(&state, &caller, &id).await?;
    let limit = page_length(query.limit)?;
    let wanted = query.state.as_deref().unwrap_or_default();
    if !wanted.is_empty() && !STATES.contains(&wanted) {
        let detail = format!("There is no such state; the states are {}.", STATES.join(", "));
        return Err(Problem::wrong("state", "delivery_state_invalid", detail));
    }
    let before: Option<EventId> = cursor(query.cursor.as_deref())?;
    let before = before.as_ref().map_or("", EventId::as_str);
    let rows = deliveries::list(&state.app.store, &webhook.id, wanted, before, limit).await?;
    let (path, asked) = (format!("/api/v1/webhooks/{}/deliveries", webhook.id), [("state", query.state)]);
    Ok(axum::Json(page((&state, &path), (rows, limit), |row| row.event_id.to_string(), &asked, DeliveryView::from)))
}

/// What is sent again.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(in crate::web) struct ReplayQuery {
    /// One event, whatever became of it.
    #[param(pattern = "^evt_[0-9a-f]{32}$", example = "evt_019b0000000070008000000000000001")]
    event: Option<String>,
    /// Or everything that was given up of what was handed out since then.
    #[param(value_type = Option<String>, format = DateTime, example = "2027-01-15T08:00:00Z")]
    given_up_since: Option<String>,
}

/// How much is sent again.
#[derive(Serialize, ToSchema)]
#[schema(as = Replayed)]
pub(in crate::web) struct ReplayedBody {
    /// Deliveries.
    replayed: u64,
}

/// Send again
///
/// Under the same `webhook-id` as before, so that a receiver that had it already can tell.
#[utoipa::path(post, path = "/api/v1/webhooks/{id}/replay", tag = "Webhooks", operation_id = "replayDeliveries",
    params(("id" = String, Path, description = "The webhook's id.", example = "whk_019b0000000070008000000000000001"), ReplayQuery),
    responses(
        (status = 200, description = "How much is sent again.", body = ReplayedBody),
        (status = 404, description = "`webhook_not_found`, `delivery_not_found`"),
        (status = 422, description = "`replay_unclear`, `time_invalid`"),
    ))]
pub(in crate::web) async fn replay_deliveries(
    State(state): State<WebState>,
    ApiCaller(caller): ApiCaller,
    Id(id): Id,
    Asked(wanted): Asked<ReplayQuery>,
) -> Result<impl IntoResponse, Problem> {
    let webhook = own_webhook(&state, &caller, &id).await?;
    let (store, now) = (&state.app.store, state.app.env.now());
    let replayed = match (wanted.event, wanted.given_up_since) {
        (Some(event), None) => {
            let none = || {
                Problem::no_such("delivery_not_found", "This event was not handed out to this webhook, or is being sent.")
            };
            let event: EventId = event.parse().map_err(|_| none())?;
            match store.execute(deliveries::replay(&webhook.id, &event, now)).await? {
                0 => return Err(none()),
                n => n,
            }
        }
        (None, Some(since)) => {
            let wrong = || Problem::wrong("given_up_since", "time_invalid", "Give a time such as 2027-01-15T08:00:00Z.");
            let since = Moment::from_rfc3339(&since).ok_or_else(wrong)?;
            store.execute(deliveries::replay_given_up(&webhook.id, since, now)).await?
        }
        _ => {
            let detail = "Name one event, or a time since when everything given up is sent again.";
            return Err(Problem::wrong("event", "replay_unclear", detail));
        }
    };
    Ok(axum::Json(ReplayedBody { replayed }))
}

/// A try.
#[derive(Serialize, ToSchema)]
#[schema(as = WebhookTest)]
pub(in crate::web) struct TestBody {
    /// The event that is sent; the list of deliveries tells what became of it.
    #[schema(pattern = "^evt_[0-9a-f]{32}$")]
    event: String,
}

/// Try a webhook
///
/// Sends an event of the kind `webhook_test` to this webhook alone, whatever it is subscribed to.
#[utoipa::path(post, path = "/api/v1/webhooks/{id}/test", tag = "Webhooks", operation_id = "testWebhook",
    params(("id" = String, Path, description = "The webhook's id.", example = "whk_019b0000000070008000000000000001")),
    responses(
        (status = 202, description = "It is being sent.", body = TestBody),
        (status = 404, description = "`webhook_not_found`"),
    ))]
pub(in crate::web) async fn test_webhook(
    State(state): State<WebState>,
    ApiCaller(caller): ApiCaller,
    Id(id): Id,
    _: NoQuery,
) -> Result<impl IntoResponse, Problem> {
    let webhook = own_webhook(&state, &caller, &id).await?;
    let event = webhooks::test(&state.app, &webhook, &caller.actor()).await?;
    Ok((axum::http::StatusCode::ACCEPTED, axum::Json(TestBody { event: event.to_string() })))
}
