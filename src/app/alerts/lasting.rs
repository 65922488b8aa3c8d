//! What is nobody's alarm for a moment, and the operators' when it lasts: names left behind that still lead here, edges that do not serve
//! what they hold, and resolvers that do not answer.

use std::time::Duration;

use super::platform::{Condition, NAMED, named};
use crate::app::{App, AppError};
use crate::model::conclude::FRESH_EDGE;
use crate::model::letting_go::REMIND_EVERY;
use crate::model::moment::Moment;
use crate::store::alerts::{self, AlertRow};
use crate::store::{StoreResult, Tx, resting, rollout, routine};

/// Names that were let go of and still lead here.
const NAMES_LEFT_BEHIND: &str = "names_left_behind";
/// Whoever removes a domain is deleting its records just now.
const LEFT_FOR: Duration = Duration::from_secs(24 * 3600);
/// Edges that serve something else than they were given.
const EDGE_SERVES_ANOTHER: &str = "edge_serves_another";
/// A rollout, a handshake that failed and an edge that starts take less.
const SERVES_ANOTHER_FOR: Duration = Duration::from_secs(600);

/// Resolvers of ours, none of which answers.
const RESOLVERS_SILENT: &str = "resolvers_silent";
/// Resolvers that start anew take less.
const SILENT_FOR: Duration = Duration::from_secs(600);

/// What holds now.
pub(super) async fn conditions(app: &App, now: Moment) -> Result<Vec<Condition>, AppError> {
    let mut out = Vec::new();
    if let Some(left) = resting::left_behind(&app.store, now - LEFT_FOR, NAMED).await? {
        let (names, lead) = if left.many == 1 {
            ("1 name".to_owned(), "was let go of and leads")
        } else {
            (format!("{} names", left.many), "were let go of and lead")
        };
        let said = format!(
            "{names} {lead} here for more than a day: {}; strangers look for such names, and /operator/left-behind says whose records are to be deleted",
            named(&left.some, left.many)
        );
        out.push(Condition { many: left.many, ..Condition::of(NAMES_LEFT_BEHIND, "names", said) });
    }
    let lasts_since = now - SERVES_ANOTHER_FOR;
    if let Some(seen) = rollout::instead(&app.store, lasts_since, now - FRESH_EDGE, NAMED).await? {
        let edges = if seen.edges.many == 1 { "1 edge has".to_owned() } else { format!("{} edges have", seen.edges.many) };
        let certificates =
            if seen.certificates == 1 { "1 certificate".to_owned() } else { format!("{} certificates", seen.certificates) };
        let said = format!(
            "{edges} not served {certificates} of their book for more than ten minutes, but something else: {}; /operator/edges says what",
            named(&seen.edges.some, seen.edges.many)
        );
        out.push(Condition { many: seen.certificates, ..Condition::of(EDGE_SERVES_ANOTHER, "edges", said) });
    }
    if let Some(since) = routine::unheard_since(&app.store).await?
        && now.since(since) >= SILENT_FOR
    {
        let said = format!(
            "none of dns.resolvers has answered for {} minutes: no name is proven, ordered for or looked at until one does; nothing is \
             held against a name meanwhile",
            now.since(since).as_secs() / 60
        );
        out.push(Condition::of(RESOLVERS_SILENT, "resolvers", said));
    }
    Ok(out)
}

/// Whether an open alert is told again although it did not grow: names that nobody takes care of come to mind once a week, as they do to
/// whoever left them.
pub(super) async fn is_due_again(tx: &mut Tx, alert: &AlertRow, now: Moment) -> StoreResult<bool> {
    if alert.kind != NAMES_LEFT_BEHIND {
        return Ok(false);
    }
    let told_at = alerts::told_at(tx, alert).await?.unwrap_or(alert.raised_at);
    Ok(now.since(told_at) >= REMIND_EVERY)
}
