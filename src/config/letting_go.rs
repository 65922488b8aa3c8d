//! `tie` and `release`: when a name is let go of that nothing ties to its tenant, and what is revoked then.

use std::time::Duration;

use super::reader::Reader;
use super::setting::Setting;
use crate::model::letting_go::{LettingGo, Revoke};
use crate::model::tie;

/// Shorter than the pause between two looks, a grace would be none.
const SHORTEST: Duration = Duration::from_secs(24 * 3600);

impl Setting for Revoke {
    const EXPECTED: &'static str = "never, on_handover or always";
    fn read(text: &str) -> Option<Self> {
        text.parse().ok()
    }
    fn show(&self) -> String {
        self.to_string()
    }
}

pub(super) fn read(r: &mut Reader<'_>) -> LettingGo {
    let usual = LettingGo::default();
    let tie_grace = r.value(
        "tie.grace",
        tie::GRACE,
        "A name is let go of when nothing was seen to tie it to its tenant for so long. Time in which nothing could be seen does not count.",
    );
    if tie_grace < SHORTEST {
        r.problem("tie.grace", "", "must be a day (24h) at least".to_owned());
    }
    LettingGo {
        tie_grace: tie_grace.max(SHORTEST),
        revoke: r.value(
            "release.revoke",
            usual.revoke,
            "Which certificates of names that were let go of are revoked at their CA: never, on_handover (the name has another holder) or always.",
        ),
    }
}
