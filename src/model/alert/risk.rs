//! Whether what was last seen of a live name would keep its certificate from being renewed, and what is told of that.
//!
//! The renewal may be months away, so there is time to mend a record, if somebody hears of it. Only what was positively seen counts,
//! and only where somebody has to act: silence, and what is on its way, neither raises anything nor ends it. What is told of the tie
//! is not told a second time as a risk, nor is one fault of a zone that stands in the way of two checks.

use std::time::Duration;

use super::cause::Cause;
use crate::model::domain::{RoutingMode, TieState};
use crate::model::evidence::{Actor, Check, Evidence, Tie, Verdict};
use crate::model::hostname::Hostname;
use crate::model::moment::Moment;
use crate::model::reason::Reason;
use crate::model::tie;

/// What an order for a live name must pass, beside the tie; the more pressing first.
pub const CHECKS: [Check; 2] = [Check::Routing, Check::Caa];
/// Live names are looked at once in this time: so long it takes until all that one record concerns have been met.
pub const ROUND: Duration = Duration::from_secs(24 * 3600);
/// Mail is put off by no more than so large a part of what is left of the certificate.
const PART: u32 = 10;
/// Characters of advice in what is told: it holds values that somebody published.
const ADVICE: usize = 300;

/// What was last seen of a live name.
#[derive(Clone, Copy, Debug)]
pub struct LastSeen<'a> {
    /// The name.
    pub hostname: &'a Hostname,
    /// What its tenant was told to point it at.
    pub mode: RoutingMode,
    /// The tie between name and tenant.
    pub tie: TieState,
    /// The last look from everywhere.
    pub evidence: &'a [Evidence],
}

/// What one check says of the renewal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Says<'a> {
    /// It would be refused.
    Refuses(&'a Evidence),
    /// Nothing stands in its way.
    Allows,
    /// Nothing either way, or nothing that is not told already.
    Silent,
}

/// What this check says of the renewal.
pub fn says<'a>(seen: &LastSeen<'a>, check: Check) -> Says<'a> {
    let of = |check| seen.evidence.iter().find(|e| e.finding.check == check);
    let Some(evidence) = of(check) else { return Says::Silent };
    let reason = evidence.finding.reason;
    match reason.verdict() {
        Verdict::Pass => Says::Allows,
        Verdict::Unknown => Says::Silent,
        Verdict::Wait | Verdict::Fail if reason.acts() == Actor::Nobody => Says::Silent,
        Verdict::Wait | Verdict::Fail if is_told(seen, check, reason) => Says::Silent,
        Verdict::Wait | Verdict::Fail => Says::Refuses(evidence),
    }
}

/// Whether something else tells of it: that the tie is weaker, or lost, and with it the renewal; or another check of the same fault.
fn is_told(seen: &LastSeen<'_>, check: Check, reason: Reason) -> bool {
    let way = seen.evidence.iter().find(|e| e.finding.check == Check::Routing).map(|e| e.finding.reason);
    let by_the_tie = check == Check::Routing && tie::way(seen.mode, seen.hostname, reason) == Some(Tie::Gone);
    seen.tie == TieState::Lost || by_the_tie || (check != Check::Routing && way == Some(reason))
}

/// What is known of a renewal at risk.
#[derive(Clone, Copy, Debug)]
pub struct Risk<'a> {
    /// The name.
    pub hostname: &'a Hostname,
    /// What stands in the way.
    pub by: &'a Evidence,
    /// When the renewal will first be tried, or was to be.
    pub renew_at: Moment,
    /// The end of the certificate in use.
    pub not_after: Moment,
}

impl Risk<'_> {
    /// What it is counted under.
    pub fn cause(&self) -> Cause {
        Cause::found(self.by.finding.reason)
    }

    /// The consequence with its date, what was seen, and what to do.
    pub fn sentence(&self, now: Moment) -> String {
        let (name, at, end) = (self.hostname, self.renew_at.in_words(), self.not_after.in_words());
        let begins = if now < self.renew_at {
            format!("the renewal of {name} will fail on {at} unless this changes")
        } else {
            format!("the renewal of {name} that was due on {at} waits for this")
        };
        let ends = if now < self.not_after { "ends" } else { "ended" };
        let why = self.by.finding.reason.sentence();
        let advice = bounded(&self.by.finding.advice);
        let blank = if advice.is_empty() { "" } else { " " };
        format!("{begins}: {why} The certificate in use {ends} on {end}.{blank}{advice}")
    }
}

/// The advice, cut where it is too long.
pub fn bounded(advice: &str) -> String {
    if advice.chars().count() <= ADVICE {
        return advice.to_owned();
    }
    advice.chars().take(ADVICE - 1).chain(['…']).collect()
}

/// Until when mail about it is gathered, so that one record over many names is one message: until all of them have been looked at,
/// unless the certificate ends soon. Another cause within the first round puts nothing off.
pub fn mail_at(raised_at: Moment, not_after: Moment, now: Moment) -> Moment {
    let gathered = now + ROUND.min(not_after.since(now) / PART);
    let first = raised_at + ROUND;
    if first > now { gathered.min(first) } else { gathered }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::model::evidence::Finding;

    const NOW: Moment = Moment::from_secs(1_800_000_000);
    const DAY: Duration = Duration::from_secs(86_400);

    fn evidence(check: Check, reason: Reason) -> Evidence {
        let advice = "Add the record: acme.test CAA 0 issue \"ca.test\".".to_owned();
        let finding = Finding { advice, ..Finding::bare(check, reason) };
        Evidence { finding, looked_at: NOW }
    }

    /// Says what routing and CAA say of a name, by the reasons found.
    fn both(name: &str, mode: RoutingMode, tie: TieState, way: Reason, caa: Reason) -> [Option<Reason>; 2] {
        let (hostname, evidence) = (Hostname::trusted(name), [evidence(Check::Routing, way), evidence(Check::Caa, caa)]);
        let seen = LastSeen { hostname: &hostname, mode, tie, evidence: &evidence };
        CHECKS.map(|check| match says(&seen, check) {
            Says::Refuses(by) => Some(by.finding.reason),
            Says::Allows | Says::Silent => None,
        })
    }

    fn held(way: Reason, caa: Reason) -> [Option<Reason>; 2] {
        both("shop.acme.test", RoutingMode::PerTenant, TieState::Held, way, caa)
    }

    #[test]
    fn what_was_seen_to_refuse_is_a_risk_and_each_check_is_one_of_its_own() {
        let (fine, hostile) = (Reason::CaaPermits, Reason::CaaExcludesCa);
        assert_eq!(held(Reason::CnameOk, fine), [None, None]);
        assert_eq!(held(Reason::CnameOk, hostile), [None, Some(hostile)]);
        assert_eq!(held(Reason::AaaaPointsElsewhere, fine), [Some(Reason::AaaaPointsElsewhere), None]);
        assert_eq!(held(Reason::AaaaPointsElsewhere, hostile), [Some(Reason::AaaaPointsElsewhere), Some(hostile)]);
    }

    #[test]
    fn a_fault_of_the_zone_is_told_once_and_not_twice() {
        let bogus = Reason::DnssecBogus;
        assert_eq!(held(bogus, bogus), [Some(bogus), None]);
        assert_eq!(held(Reason::CnameOk, bogus), [None, Some(bogus)]);
    }

    #[test]
    fn what_is_told_of_the_tie_is_no_risk_besides() {
        let (away, gone, fine) = (Reason::CnamePointsElsewhere, Reason::AddressMissing, Reason::CaaPermits);
        let told = |name, mode, tie, way| both(name, mode, tie, way, fine)[0];
        assert_eq!(told("shop.acme.test", RoutingMode::PerTenant, TieState::Weakened, away), None);
        // Where the record alone is the tie, nobody hears of the way otherwise.
        assert_eq!(told("acme.test", RoutingMode::PerTenant, TieState::Held, gone), Some(gone));
        assert_eq!(told("shop.acme.test", RoutingMode::Shared, TieState::Held, away), Some(away));
        // A name that is tied to nobody is not renewed at all, and is told of as that.
        let lost = both("acme.test", RoutingMode::PerTenant, TieState::Lost, gone, Reason::CaaForbidsAll);
        assert_eq!(lost, [None, None]);
    }

    #[test]
    fn nothing_is_said_on_silence_or_on_what_is_on_its_way() {
        let hostname = Hostname::trusted("shop.acme.test");
        let mut refusing = 0;
        for reason in Reason::ALL {
            for check in CHECKS {
                let evidence = [evidence(check, *reason)];
                let seen =
                    LastSeen { hostname: &hostname, mode: RoutingMode::Shared, tie: TieState::Held, evidence: &evidence };
                match says(&seen, check) {
                    Says::Allows => assert_eq!(reason.verdict(), Verdict::Pass),
                    Says::Silent => assert!(reason.verdict() == Verdict::Unknown || reason.acts() == Actor::Nobody),
                    Says::Refuses(_) => {
                        refusing += 1;
                        assert!(matches!(reason.verdict(), Verdict::Wait | Verdict::Fail) && reason.acts() != Actor::Nobody);
                    }
                }
            }
        }
        assert!(refusing > 50, "{refusing}");
        let nothing = LastSeen { hostname: &hostname, mode: RoutingMode::Shared, tie: TieState::Held, evidence: &[] };
        assert!(CHECKS.iter().all(|check| says(&nothing, *check) == Says::Silent));
    }

    #[test]
    fn the_sentence_has_the_consequence_its_date_and_what_to_do() {
        let (hostname, by) = (Hostname::trusted("shop.acme.test"), evidence(Check::Caa, Reason::CaaExcludesCa));
        let risk = Risk { hostname: &hostname, by: &by, renew_at: NOW + 60 * DAY, not_after: NOW + 90 * DAY };
        let said = risk.sentence(NOW);
        let (at, end) = (risk.renew_at.in_words(), risk.not_after.in_words());
        assert!(
            said.starts_with(&format!("the renewal of shop.acme.test will fail on {at} unless this changes: ")),
            "{said}"
        );
        assert!(said.contains(Reason::CaaExcludesCa.sentence()) && said.contains(&format!("ends on {end}.")), "{said}");
        assert!(said.ends_with("Add the record: acme.test CAA 0 issue \"ca.test\"."), "{said}");
        assert!(risk.sentence(NOW + 61 * DAY).contains(&format!("that was due on {at} waits for this")));
        assert!(risk.sentence(NOW + 91 * DAY).contains("ended on"));
        assert_eq!(risk.cause().key, "tenant_dns/caa_excludes_ca");
    }

    proptest! {
        #[test]
        fn advice_of_any_length_is_bounded(advice in "\\PC{0,700}") {
            let cut = bounded(&advice);
            prop_assert!(cut.chars().count() <= ADVICE);
            prop_assert!(cut == advice || cut.ends_with('…'));
        }

        #[test]
        fn mail_waits_for_a_round_and_never_for_long_where_the_end_is_near(left in 0..200_u64 * 86_400, ago in 0..4_u64 * 86_400) {
            let (raised_at, end) = (NOW - Duration::from_secs(ago), NOW + Duration::from_secs(left));
            let at = mail_at(raised_at, end, NOW);
            prop_assert!(at >= NOW && at <= NOW + ROUND && at.since(NOW).as_secs() <= left / 10);
            prop_assert_eq!(mail_at(NOW, end, NOW) == NOW + ROUND, left >= 10 * 86_400);
            // What was promised when it was raised holds whatever else stands in the way by now.
            prop_assert!(raised_at + ROUND <= NOW || at <= raised_at + ROUND);
        }
    }
}
