//! Moments in the life of a certificate, and windows in which a CA would like it to be renewed.

use std::time::Duration;

use super::super::id::CertificateId;
use super::super::moment::Moment;

/// Certificates that live shorter than this are renewed when half of their life is over.
const SHORT: Duration = Duration::from_secs(10 * 86_400);
/// Renewals of certificates that were issued together are spread over so large a part of their life.
const SPREAD: u32 = 20;
/// The last moment at which a CA can put a renewal: so large a part of the life is left then.
const LATEST: u32 = 10;
/// A certificate is not renewed before so large a part of its life is over: a CA that says "at once" of every new certificate
/// is not asked for one after the other.
const YOUNGEST: u32 = 90;
/// A window that is over means "now", within so large a part of the life: many may have heard of it at once.
const AT_ONCE: u32 = 2_000;

/// From when until when a certificate is valid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names are the certificate's")]
pub struct Validity {
    pub not_before: Moment,
    pub not_after: Moment,
}

impl Validity {
    /// How long it lives.
    pub fn lifetime(self) -> Duration {
        self.not_after.since(self.not_before)
    }
}

/// When a CA would like a certificate to be renewed (RFC 9773 §4.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names are the RFC's")]
pub struct Window {
    pub start: Moment,
    pub end: Moment,
}

/// A part of a time, as a fraction of 2³².
fn part(of: Duration, fraction: u32) -> Duration {
    let micros = (of.as_micros() * u128::from(fraction)) >> 32;
    Duration::from_micros(u64::try_from(micros).unwrap_or(u64::MAX))
}

/// The drawn bits of an id: no hash is needed to spread by it.
fn bits(id: &CertificateId) -> u32 {
    let text = id.as_str();
    u32::from_str_radix(&text[text.len() - 8..], 16).unwrap_or(0)
}

/// When a certificate is renewed of which the CA says nothing: a third of its life is left, half of a short one; somewhat
/// earlier, by its id, so that those issued together are not renewed together.
pub fn own_moment(id: &CertificateId, of: Validity) -> Moment {
    let life = of.lifetime();
    let used = if life < SHORT { life / 2 } else { life / 3 * 2 };
    of.not_before + used - part(life / SPREAD, bits(id))
}

/// The last moment to which a CA can put a renewal off.
pub fn latest(of: Validity) -> Moment {
    of.not_after - of.lifetime() / LATEST
}

/// Whether a window can be meant: it has an end after its start, begins while the certificate is valid, and is not further away
/// than the certificate lives.
pub fn is_meant(window: Window, of: Validity, now: Moment) -> bool {
    window.end > window.start && window.start < of.not_after && window.start.since(now) <= of.lifetime()
}

/// The last moment that can be drawn in a window.
pub(super) fn last_in(window: Window, of: Validity, now: Moment) -> Moment {
    moment_in(window, of, u32::MAX, now)
}

/// The moment in a window that `draw` stands for, as far as it can be kept.
pub(super) fn moment_in(window: Window, of: Validity, draw: u32, now: Moment) -> Moment {
    let at = if window.end <= now {
        now + part(of.lifetime() / AT_ONCE, draw)
    } else {
        window.start + part(window.end.since(window.start), draw)
    };
    at.min(latest(of)).max(of.not_before + of.lifetime() / YOUNGEST)
}
