//! One domain in a list.

use super::{When, actor_tone, actor_word, claim_tone, claim_word, when};
use crate::model::moment::Moment;
use crate::model::standing::Standing;
use crate::store::fleet::lists::FleetRow;
use crate::web::texts::operator as o;

/// A row as the table shows it.
pub(super) struct Line {
    pub(super) id: String,
    pub(super) hostname: String,
    /// The name in DNS, where it reads otherwise.
    pub(super) ascii: Option<String>,
    pub(super) tenant_id: String,
    pub(super) tenant: String,
    pub(super) claim: &'static str,
    pub(super) claim_tone: &'static str,
    pub(super) code: &'static str,
    pub(super) sentence: &'static str,
    pub(super) acts: &'static str,
    pub(super) acts_tone: &'static str,
    pub(super) since: When,
    pub(super) until: Option<When>,
    /// Its certificate ended.
    pub(super) ended: bool,
}

impl Line {
    pub(super) fn of(row: &FleetRow, now: Moment) -> Line {
        let display = row.hostname.display();
        Line {
            id: row.id.to_string(),
            ascii: (display != row.hostname.as_str()).then(|| row.hostname.to_string()),
            hostname: display,
            tenant_id: row.tenant_id.to_string(),
            tenant: row.tenant_slug.clone(),
            claim: claim_word(row.claim),
            claim_tone: claim_tone(row.claim),
            code: row.standing.map_or("not_judged", Standing::code),
            sentence: row.standing.map_or(o::not_judged(), Standing::sentence),
            acts: actor_word(row.acts),
            acts_tone: actor_tone(row.acts),
            since: When::at(row.since, now),
            ended: row.certificate_until.is_some_and(|end| end <= now),
            until: when(row.certificate_until, now),
        }
    }

    pub(super) fn all(rows: &[FleetRow], now: Moment) -> Vec<Line> {
        rows.iter().map(|row| Line::of(row, now)).collect()
    }
}
