//! `GET /operator/domains/{id}`: what its tenant sees, and its inside; and the form that ends a release.

use askama::Template;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{Html, IntoResponse, Response};
use serde::Deserialize;
use serde_json::Value;

use super::line::Line;
use super::{Operator, When, actor_move, actor_tone, claim_tone, claim_word, when};
use crate::app::expect::Expect;
use crate::app::explain::{self, Inside, OrderStory, Story};
use crate::app::show::CheckView;
use crate::app::undo::{self, ForceError};
use crate::model::claim::Claim;
use crate::model::domain::HoldingState;
use crate::model::evidence::Verdict;
use crate::model::id::DomainId;
use crate::model::moment::Moment;
use crate::store::fleet::lists;
use crate::store::fleet::one::{self, HoldingRow};
use crate::web::auth::PageCaller;
use crate::web::form;
use crate::web::input::{Form, Id};
use crate::web::pages::see;
use crate::web::problem::{Problem, html};
use crate::web::state::WebState;
use crate::web::texts::{self as t, operator as o};
use crate::web::visible;

/// So many other claims on the name, and so many events, are shown.
const OTHERS: i64 = 12;
const EVENTS: usize = 40;
/// So much of a document is shown; the API has it whole.
const LONGEST: usize = 4_000;

#[derive(Template)]
#[template(path = "operator/domain.html")]
struct Page {
    here: &'static str,
    now: Moment,
    story: Story,
    inside: Inside,
    holding: Option<HoldingRow>,
    others: Vec<Line>,
    own_page: String,
    csrf: String,
    /// Whether there is a release that can be ended.
    can_end: bool,
    /// What was wrong with the reason that was sent.
    trouble: Option<&'static str>,
}

/// The form that ends a release.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::web) struct EndForm {
    csrf: String,
    reason: String,
}

/// `POST /operator/domains/{id}/end-release`
pub(in crate::web) async fn post_end(
    State(state): State<WebState>,
    _: Operator,
    reader: PageCaller,
    Id(id): Id,
    headers: HeaderMap,
    Form(sent): Form<EndForm>,
) -> Result<Response, Problem> {
    let id: DomainId = id.parse().map_err(|_| Problem::no_domain())?;
    form::check(&state, &headers, &reader, &sent.csrf)?;
    match undo::force_release(&state.app, &id, &sent.reason, &Expect::ANY, &reader.actor).await {
        Ok(_) => Ok(see(&state, &format!("/operator/domains/{id}"))),
        Err(ForceError::NoReason) => {
            let page = page(&state, &reader, &id, Some(o::end_release_refused())).await?;
            Ok((StatusCode::UNPROCESSABLE_ENTITY, html(&page)?).into_response())
        }
        Err(e) => Err(e.into()),
    }
}

/// `GET /operator/domains/{id}`
pub(in crate::web) async fn show(
    State(state): State<WebState>,
    _: Operator,
    reader: PageCaller,
    Id(id): Id,
) -> Result<Html<String>, Problem> {
    let id: DomainId = id.parse().map_err(|_| Problem::no_domain())?;
    html(&page(&state, &reader, &id, None).await?)
}

async fn page(state: &WebState, reader: &PageCaller, id: &DomainId, trouble: Option<&'static str>) -> Result<Page, Problem> {
    let story = explain::story(&state.app, &state.settings.apex, id, true).await?;
    let story = story.ok_or_else(Problem::no_domain)?;
    let mut story = visible::document(&story).map_err(|e| Problem::page_failed(&e))?;
    story.domain.events.truncate(EVENTS);
    let inside = story.inside.take().ok_or_else(Problem::no_domain)?;
    let now = state.app.env.now();
    let mut tx = state.app.store.read().await?;
    let holding = one::holding(&mut tx, &story.domain.hostname).await?;
    let mut others = lists::claims_on(&mut tx, &story.domain.hostname, OTHERS).await?;
    drop(tx);
    others.retain(|row| row.id != *id);
    let rests = holding.as_ref().is_some_and(|h| h.domain_id.as_ref() == Some(id) && h.state == HoldingState::Quarantined);
    let can_end = story.domain.claim == Claim::Releasing || story.domain.claim == Claim::Released && rests;
    Ok(Page {
        here: "domains",
        now,
        inside,
        holding,
        others: Line::all(&others, now),
        own_page: state.domain_page(id),
        csrf: reader.csrf.clone(),
        can_end,
        trouble,
        story,
    })
}

impl Page {
    fn at(&self, at: &Moment) -> When {
        When::at(*at, self.now)
    }

    fn maybe(&self, at: &Option<Moment>) -> Option<When> {
        when(*at, self.now)
    }

    fn claim(&self) -> &'static str {
        claim_word(self.story.domain.claim)
    }

    fn claim_tone(&self) -> &'static str {
        claim_tone(self.story.domain.claim)
    }

    fn mover(&self) -> &'static str {
        actor_move(self.story.standing.who_acts)
    }

    fn mover_tone(&self) -> &'static str {
        actor_tone(self.story.standing.who_acts)
    }

    fn verdict(&self, check: &CheckView) -> &'static str {
        match check.verdict {
            Verdict::Pass => o::right(),
            Verdict::Wait => o::not_there_yet(),
            Verdict::Fail => o::needs_change(),
            Verdict::Unknown => o::could_not_look(),
        }
    }

    fn verdict_tone(&self, check: &CheckView) -> &'static str {
        match check.verdict {
            Verdict::Pass => "good",
            Verdict::Wait => "wait",
            Verdict::Fail => "act",
            Verdict::Unknown => "off",
        }
    }

    fn check_name(&self, check: &CheckView) -> &'static str {
        use crate::model::evidence::Check;
        match check.check {
            Check::Ownership => o::check_ownership(),
            Check::Routing => o::check_routing(),
            Check::Caa => o::check_caa(),
            Check::Delegation => o::check_delegation(),
            Check::Holding => o::check_holding(),
            Check::Preflight => o::check_preflight(),
        }
    }

    fn problem(&self, order: &OrderStory) -> Option<String> {
        order.problem.as_ref().map(pretty)
    }

    fn detail(&self, detail: &Value) -> Option<String> {
        detail.as_object().is_some_and(|fields| !fields.is_empty()).then(|| {
            let text = detail.to_string();
            text.chars().take(300).collect()
        })
    }
}

fn pretty(value: &Value) -> String {
    let text = serde_json::to_string_pretty(value).unwrap_or_default();
    text.chars().take(LONGEST).collect()
}
