//! When a certificate is to be renewed and when the CA is asked about it next: what each answer changes.

use std::time::Duration;

use super::super::id::CertificateId;
use super::super::moment::Moment;
use super::window::{Validity, Window, is_meant, last_in, moment_in, own_moment};

/// A CA is not asked about one certificate more often than this, whatever it says, nor more seldom than [`SELDOM`].
const OFTEN: Duration = Duration::from_secs(60);
const SELDOM: Duration = Duration::from_secs(86_400);
/// How often it is asked where it does not say (Let's Encrypt asks for twice a day at least).
const UNTOLD: Duration = Duration::from_secs(6 * 3600);
/// The first wait after it could not be asked; it doubles.
const AFTER_FAILURE: Duration = Duration::from_secs(600);
/// The first answers about certificates that were issued together are asked for within this.
const FIRST: Duration = Duration::from_secs(3600);

/// A CA's answer about one certificate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Advice {
    /// When it would like the certificate to be renewed.
    pub window: Window,
    /// Where it says why.
    pub explanation: Option<String>,
    /// How long it asks not to be asked again.
    pub retry_after: Option<Duration>,
}

/// When a certificate is to be renewed, and why then.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Schedule {
    /// The moment.
    pub at: Moment,
    /// The window it lies in; none where the CA said none that can be meant, and the certificate's life decides.
    pub window: Option<Window>,
    /// Where the CA says why.
    pub explanation: Option<String>,
    /// When the CA is asked next.
    pub poll_at: Moment,
    /// How often in a row it could not be asked.
    pub failures: i64,
    /// What was wrong with its last answer, if something was.
    pub said: Option<String>,
}

/// The schedule of a certificate of which nobody was asked yet. The CA is soon.
pub fn first(id: &CertificateId, of: Validity, draw: u32, now: Moment) -> Schedule {
    let spread = FIRST.min(of.lifetime() / 100).as_secs().max(1);
    Schedule {
        at: own_moment(id, of),
        window: None,
        explanation: None,
        poll_at: now + OFTEN + Duration::from_secs(u64::from(draw) % spread),
        failures: 0,
        said: None,
    }
}

/// After the CA said something. The moment is drawn anew only where the window is another one, or where it lies behind all that could
/// be drawn now: then a clock that ran ahead drew it.
pub fn heard(before: &Schedule, id: &CertificateId, of: Validity, advice: &Advice, draw: u32, now: Moment) -> Schedule {
    let poll_at = now + advice.retry_after.unwrap_or(UNTOLD).clamp(OFTEN, SELDOM);
    if !is_meant(advice.window, of, now) {
        let said = format!(
            "the CA's window, {} to {}, cannot be meant for a certificate that is valid from {} to {}",
            advice.window.start, advice.window.end, of.not_before, of.not_after
        );
        return Schedule { poll_at, said: Some(said), ..by_itself(before, id, of) };
    }
    let same = before.window == Some(advice.window) && before.at <= last_in(advice.window, of, now);
    Schedule {
        at: if same { before.at } else { moment_in(advice.window, of, draw, now) },
        window: Some(advice.window),
        explanation: advice.explanation.clone(),
        poll_at,
        failures: 0,
        said: None,
    }
}

/// After the CA could not be asked, or answered nothing that can be read: what it last said stays, and it is asked again after
/// a wait that grows.
pub fn unheard(before: &Schedule, told: Option<Duration>, said: &str, now: Moment) -> Schedule {
    Schedule {
        poll_at: now + told.map_or_else(|| ask_again_in(before.failures + 1), |told| told.clamp(OFTEN, SELDOM)),
        failures: before.failures + 1,
        said: Some(said.to_owned()),
        ..before.clone()
    }
}

/// The wait after the CA could not be asked for the n-th time in a row.
pub fn ask_again_in(failures: i64) -> Duration {
    let doublings = u32::try_from(failures.clamp(1, 9)).unwrap_or(9) - 1;
    (AFTER_FAILURE * (1 << doublings)).min(SELDOM)
}

/// Nothing that was said counts any more.
fn by_itself(before: &Schedule, id: &CertificateId, of: Validity) -> Schedule {
    Schedule { at: own_moment(id, of), window: None, explanation: None, failures: 0, ..before.clone() }
}
