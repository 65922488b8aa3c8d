//! The budget as the API tells it.

use serde::Serialize;
use utoipa::ToSchema;

use super::rfc3339;
use crate::app::fleet::{Budget, Tokens};
use crate::model::moment::Moment;

/// What one CA lets us spend, and how it is.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
#[schema(as = Budget)]
pub struct BudgetView {
    /// The issuer, by the name it has in the configuration.
    #[schema(example = "letsencrypt")]
    pub issuer: String,
    /// Its ACME directory.
    #[schema(format = "uri", example = "https://acme-v02.api.letsencrypt.org/directory")]
    pub directory: String,
    /// Whether new orders may go there.
    pub in_use: bool,
    /// Whether it has an account.
    pub has_account: bool,
    /// Why there is none yet.
    #[schema(required)]
    pub account_problem: Option<String>,
    /// `not_in_use`: it was removed, or the configuration does not name it any more; `no_account`; `ok`; `probing`: one order at a time, after failures; `open`: left alone for a while; `halted`: its account cannot be used
    /// until an operator has seen to it.
    #[schema(example = "ok")]
    pub state: String,
    /// Why it is halted, in the CA's words.
    #[schema(required)]
    pub halted: Option<String>,
    /// What an operator can do about it.
    #[schema(required)]
    pub to_do: Option<String>,
    /// Its last failure.
    #[schema(required)]
    pub last_failure: Option<String>,
    /// The CA lets nothing through before.
    #[schema(value_type = Option<String>, format = DateTime, example = "2027-01-15T08:00:00Z", required)]
    #[serde(with = "rfc3339::option")]
    pub paused_until: Option<Moment>,
    /// The account's limit, what the CA closed, and the emptiest of all others.
    pub limits: Vec<LimitView>,
}

/// One limit and key.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
#[schema(as = BudgetLimit)]
pub struct LimitView {
    /// The limit: `orders_per_account`, `certificates_per_domain`, `certificates_per_name`, `failures_per_name` or
    /// `failures_in_a_row`.
    #[schema(example = "orders_per_account")]
    pub limit: String,
    /// What it is kept for: `account`, a registered domain, or a name.
    #[schema(example = "account")]
    pub key: String,
    /// Whether it is configured. One that is not is told of while the CA refuses for it, and has no numbers.
    pub configured: bool,
    /// How many may be spent at once.
    pub burst: u32,
    /// In how many seconds an empty one is full again.
    pub per_seconds: u64,
    /// How many may be spent now.
    pub left: u32,
    /// Spends whose outcome is not known yet.
    pub open: u32,
    /// When one more may be spent.
    #[schema(value_type = String, format = DateTime, example = "2027-01-15T08:00:00Z")]
    #[serde(with = "rfc3339")]
    pub next_at: Moment,
    /// When all may be spent, if nothing more is.
    #[schema(value_type = String, format = DateTime, example = "2027-01-15T08:00:00Z")]
    #[serde(with = "rfc3339")]
    pub full_at: Moment,
    /// How many orders wait for room here.
    pub waiting: usize,
    /// The hostnames of the first of them.
    pub first_waiting: Vec<String>,
    /// `used_up_by_others` or `paused_by_ca`, where the CA refused although we had not used it up; else null.
    #[schema(required)]
    pub closed: Option<String>,
    /// The CA's words at that.
    #[schema(required)]
    pub said: Option<String>,
    /// Where the CA says more, or lets an operator lift the pause.
    #[schema(required)]
    pub link: Option<String>,
}

impl From<Budget> for BudgetView {
    fn from(b: Budget) -> Self {
        BudgetView {
            state: b.state().to_owned(),
            to_do: b.to_do(),
            issuer: b.issuer,
            directory: b.directory,
            in_use: b.in_use,
            has_account: b.has_account,
            account_problem: b.account_problem,
            halted: b.halted,
            last_failure: b.trouble.map(|(said, _)| said),
            paused_until: b.paused_until,
            limits: b.tokens.into_iter().map(LimitView::from).collect(),
        }
    }
}

impl From<Tokens> for LimitView {
    fn from(t: Tokens) -> Self {
        let (closed, said, link) = match t.closed {
            Some(shut) => (Some(shut.why.as_str().to_owned()), Some(shut.said), shut.link),
            None => (None, None, None),
        };
        LimitView {
            limit: t.limit_name.as_str().to_owned(),
            key: t.key,
            configured: t.is_known,
            burst: t.limit.burst,
            per_seconds: t.limit.per_secs,
            left: t.left,
            open: t.open,
            next_at: t.next_at,
            full_at: t.full_at,
            waiting: t.waiting,
            first_waiting: t.first.iter().map(|o| o.hostname.to_string()).collect(),
            closed,
            said,
            link,
        }
    }
}
