//! When the CA would like a certificate to be renewed (ARI, RFC 9773).

use std::time::Duration;

use super::problem::Problem;
use super::state::CaState;
use crate::model::moment::Moment;

/// How often a client may ask (RFC 9773 §4.3 leaves the number to the CA).
pub(super) const ASK_AGAIN: Duration = Duration::from_secs(6 * 3600);
/// How wide a window is that nobody scripted.
const WIDE: Duration = Duration::from_secs(2 * 86_400);

impl CaState {
    /// The suggested window for the certificate of this id: two days, beginning when two thirds of its life are over, or as much
    /// of a short life as a fortieth; at once when it was revoked.
    pub fn renewal_window(&mut self, id: &str, now: Moment) -> Result<(Moment, Moment), Problem> {
        let scripted = self.next_window.take();
        let issued = self.issued_as(id).ok_or_else(|| Problem::not_found("certificate", &id))?;
        if let Some((starts_in, ends_in)) = scripted {
            return Ok((moved(now, starts_in), moved(now, ends_in)));
        }
        if issued.revoked {
            return Ok((now - WIDE, now));
        }
        let (from, until) = issued.good;
        let start = from + until.since(from) / 3 * 2;
        Ok((start, start + WIDE.min(until.since(from) / 40)))
    }
}

impl CaState {
    /// Whether the certificate of this id was revoked.
    pub fn is_revoked(&self, id: &str) -> bool {
        self.issued_as(id).is_some_and(|issued| issued.revoked)
    }

    /// Revokes whatever was issued for a name before this moment: what a CA does that finds a fault of its own.
    pub fn revoke_all_of(&mut self, name: &str, issued_before: Moment) -> usize {
        let of_name = self.orders.values_mut().filter(|o| o.names().iter().any(|n| n == name));
        let issued = of_name.filter_map(|o| o.issuance.as_mut()).filter(|i| i.good.0 < issued_before && !i.revoked);
        issued.map(|i| i.revoked = true).count()
    }
}

fn moved(now: Moment, seconds: i64) -> Moment {
    Moment::from_secs(now.secs().saturating_add(seconds))
}
