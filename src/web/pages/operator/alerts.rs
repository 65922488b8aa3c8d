//! `GET /operator/alerts`: what somebody should know of now: of the platform, with counts, and of single names.

use askama::Template;
use axum::extract::State;
use axum::response::Html;

use super::{Operator, PAGE, When, grouped};
use crate::model::alert::cause::{Cause, Class};
use crate::model::moment::Moment;
use crate::store::alerts::{self, AlertFilter, AlertRow};
use crate::web::problem::{Problem, html};
use crate::web::state::WebState;
use crate::web::texts::operator as o;
use crate::web::visible::{cut, visible};

struct AlertLine {
    kind: String,
    who: &'static str,
    tone: &'static str,
    said: String,
    many: String,
    domain_id: Option<String>,
    hostname: String,
    left: String,
    raised: When,
}

impl AlertLine {
    fn of(row: AlertRow, now: Moment) -> AlertLine {
        let (who, tone) = match Cause::class_of(&row.cause) {
            Class::TenantDns => (o::tenants_own(), "link"),
            Class::DnsProvider => (o::providers(), "wait"),
            Class::Ca => (o::cas(), "wait"),
            Class::Platform => (o::ours(), "act"),
        };
        AlertLine {
            kind: visible(&row.kind),
            who,
            tone,
            said: cut(&visible(&row.said), 400),
            many: grouped(row.many),
            domain_id: row.domain_id.map(|id| id.to_string()),
            hostname: row.hostname.as_deref().map_or_else(|| "-".to_owned(), visible),
            left: match row.threshold {
                Some(0) => o::it_ended().to_owned(),
                Some(percent) => o::less_than(percent).plain(),
                None => "-".to_owned(),
            },
            raised: When::at(row.raised_at, now),
        }
    }
}

#[derive(Template)]
#[template(path = "operator/alerts.html")]
struct Page {
    here: &'static str,
    platform: Vec<AlertLine>,
    names: Vec<AlertLine>,
    more: bool,
}

/// `GET /operator/alerts`
pub(in crate::web) async fn show(State(state): State<WebState>, _: Operator) -> Result<Html<String>, Problem> {
    let (store, now) = (&state.app.store, state.app.env.now());
    let limit = i64::try_from(PAGE).unwrap_or(i64::MAX);
    let platform = alerts::list(store, &AlertFilter { platform: true, ..AlertFilter::default() }, limit).await?;
    let all = alerts::list(store, &AlertFilter::default(), 2 * limit).await?;
    let names: Vec<AlertRow> = all.into_iter().filter(|row| row.domain_id.is_some()).collect();
    let page = Page {
        here: "alerts",
        platform: platform.into_iter().map(|row| AlertLine::of(row, now)).collect(),
        more: names.len() > PAGE,
        names: names.into_iter().take(PAGE).map(|row| AlertLine::of(row, now)).collect(),
    };
    html(&page)
}
