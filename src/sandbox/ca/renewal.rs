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
    /// The suggested window for the certificate of this id: two days, beginning when two thirds of its life are over; at once
    /// when it was revoked.
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
        Ok((start, start + WIDE))
    }
}

fn moved(now: Moment, seconds: i64) -> Moment {
    Moment::from_secs(now.secs().saturating_add(seconds))
}
