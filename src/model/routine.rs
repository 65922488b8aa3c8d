//! When in the day a live domain is looked at: a slot of its own, spread evenly by its id.
//!
//! Routine looks are not alarms: a batch walks the slots of the day and reads; only a difference wakes the one door. The slot is
//! the last four hex digits of the id, which are drawn bits, so no column and no hash is needed: [`SLOTS`] places in a day.

use std::time::Duration;

use super::evidence::{Check, Evidence, Finding};
use super::id::DomainId;
use super::moment::Moment;

/// Places in a day.
pub const SLOTS: u32 = 0x1_0000;
const DAY: u64 = 24 * 3600 * 1_000_000;

/// The slot of a domain.
pub fn slot_of(id: &DomainId) -> u32 {
    let text = id.as_str();
    u32::from_str_radix(&text[text.len() - 4..], 16).unwrap_or(0)
}

/// The day of a moment and the slot that is due in it.
pub fn position(at: Moment) -> (i64, u32) {
    let micros = u64::try_from(at.micros()).unwrap_or(0);
    let slot = micros % DAY * u64::from(SLOTS) / DAY;
    (i64::try_from(micros / DAY).unwrap_or(i64::MAX), u32::try_from(slot).unwrap_or(SLOTS - 1))
}

/// When a domain is looked at next, after `now`.
pub fn next(id: &DomainId, now: Moment) -> Moment {
    let (day, slot) = position(now);
    let into_day = Duration::from_micros(DAY * u64::from(slot_of(id)) / u64::from(SLOTS));
    let day = if slot_of(id) > slot { day } else { day + 1 };
    Moment::from_micros(day.saturating_mul(i64::try_from(DAY).unwrap_or(i64::MAX))) + into_day
}

/// Whether a routine look saw something else than the evidence says: another verdict, or another word on the tie. A routine
/// look asks fewer observers, so the codes themselves may differ without anything having changed.
pub fn differs(evidence: &[Evidence], seen: &[Finding]) -> bool {
    seen.iter().filter(|f| f.check != Check::Holding).any(|f| {
        let before = evidence.iter().find(|e| e.finding.check == f.check).map(|e| e.finding.reason);
        before.is_none_or(|r| (r.verdict(), r.tie()) != (f.reason.verdict(), f.reason.tie()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_spread_over_the_day_and_come_once_a_day() {
        let now = Moment::from_secs(1_800_000_000);
        let mut quarters = [0_u32; 4];
        for n in 0..=255_u8 {
            let id = DomainId::mint(now, [n; 10]);
            quarters[usize::try_from(slot_of(&id) / (SLOTS / 4)).unwrap()] += 1;
            let due = next(&id, now);
            assert!(due > now && due <= now + Duration::from_secs(24 * 3600), "{due}");
            assert_eq!(position(due + Duration::from_secs(1)).1, slot_of(&id));
            assert_eq!(next(&id, due + Duration::from_secs(2)), due + Duration::from_secs(24 * 3600));
        }
        assert!(quarters.iter().all(|n| *n == 64), "{quarters:?}");
    }
}
