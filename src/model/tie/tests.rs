use proptest::prelude::*;

use super::*;
use crate::model::claim::Claim;
use crate::model::evidence::{Evidence, Finding};
use crate::model::hostname::Hostname;
use crate::model::id::{AttemptId, DomainId, TenantId};

const NOW: Moment = Moment::from_secs(1_800_000_000);

fn domain(mode: RoutingMode, name: &str, tie: TieState) -> Domain {
    Domain {
        id: DomainId::mint(NOW, [3; 10]),
        tenant_id: TenantId::mint(NOW, [4; 10]),
        hostname: Hostname::trusted(name),
        lane: crate::model::order::Lane::Single,
        claim: Claim::Live,
        claim_since: NOW,
        routing_mode: mode,
        target: "acme.app.example".to_owned(),
        attempt_id: AttemptId::mint(NOW, [5; 10]),
        evidence: Vec::new(),
        looked_at: None,
        pace_from: NOW,
        check_asked_at: None,
        check_asked_by: None,
        public_probe: None,
        tie,
        lost_for_us: 0,
        counted_until: None,
        due_at: NOW,
        generation: 1,
        settled: 0,
        failures: 0,
        event_seq: 0,
        edits: 0,
        certificate_id: None,
        active_since: None,
        released_at: None,
        created_at: NOW,
    }
}

fn look(d: &mut Domain, record: Reason, way: Reason, at: Moment) -> TieState {
    let see = |check, reason| Evidence { finding: Finding::bare(check, reason), looked_at: at };
    d.evidence = vec![see(Check::Ownership, record), see(Check::Routing, way)];
    fold(d, at);
    d.tie
}

fn after(mode: RoutingMode, name: &str, before: TieState, record: Reason, way: Reason) -> TieState {
    look(&mut domain(mode, name, before), record, way, NOW)
}

const SHOP: &str = "shop.acme.com";

#[test]
fn with_a_target_of_its_own_a_name_hangs_on_two_threads() {
    use TieState::{Held, Lost, Weakened};
    let own = |before, record, way| after(RoutingMode::PerTenant, SHOP, before, record, way);
    assert_eq!(own(Held, Reason::TxtOk, Reason::CnameOk), Held);
    assert_eq!(own(Held, Reason::TxtMissing, Reason::CnameOk), Weakened);
    assert_eq!(own(Held, Reason::TxtMissing, Reason::CnameOkChain), Weakened);
    assert_eq!(own(Held, Reason::TxtOk, Reason::CnamePointsElsewhere), Weakened);
    assert_eq!(own(Held, Reason::TxtMissing, Reason::CnamePointsElsewhere), Lost);
    assert_eq!(own(Held, Reason::TxtMissing, Reason::CnameWrongTenantTarget), Lost);
    assert_eq!(own(Lost, Reason::TxtOk, Reason::CnameOk), Held);
    assert_eq!(own(Lost, Reason::TxtMissing, Reason::CnameOk), Weakened);
}

#[test]
fn where_the_way_does_not_say_whose_it_is_the_record_alone_counts() {
    use TieState::{Held, Lost};
    for (mode, name, way) in [
        (RoutingMode::Shared, SHOP, Reason::CnameOk),
        (RoutingMode::Shared, SHOP, Reason::CnamePointsElsewhere),
        (RoutingMode::PerTenant, "acme.com", Reason::AddressOk),
        (RoutingMode::PerTenant, "acme.com", Reason::AddressPointsElsewhere),
        (RoutingMode::PerTenant, SHOP, Reason::AddressOk),
    ] {
        assert_eq!(after(mode, name, Held, Reason::TxtOk, way), Held, "{name} {way:?}");
        assert_eq!(after(mode, name, Held, Reason::TxtMissing, way), Lost, "{name} {way:?}");
        assert_eq!(after(mode, name, Lost, Reason::TxtOk, way), Held, "{name} {way:?}");
    }
}

#[test]
fn the_page_says_which_record_must_stay() {
    let said = |mode, name, record, way| {
        let mut d = domain(mode, name, TieState::Held);
        look(&mut d, record, way, NOW);
        words(&d)
    };
    assert!(said(RoutingMode::Shared, SHOP, Reason::TxtOk, Reason::CnameOk).contains("Keep this record"));
    assert!(said(RoutingMode::PerTenant, "acme.com", Reason::TxtOk, Reason::AddressOk).contains("Keep this record"));
    assert_eq!(said(RoutingMode::PerTenant, SHOP, Reason::TxtOk, Reason::CnameOk), "");
    assert!(said(RoutingMode::PerTenant, SHOP, Reason::TxtMissing, Reason::CnameOk).contains("acme.app.example"));
    assert!(said(RoutingMode::Shared, SHOP, Reason::TxtMissing, Reason::CnameOk).contains("let go of"));
}

#[test]
fn only_time_that_was_seen_counts_and_silence_pauses_it() {
    let day = Duration::from_secs(24 * 3600);
    let mut d = domain(RoutingMode::PerTenant, SHOP, TieState::Held);
    let mut at = NOW;
    let mut next = |d: &mut Domain, record, way| {
        at = at + day;
        look(d, record, way, at);
        lost_for(d)
    };
    assert_eq!(next(&mut d, Reason::TxtMissing, Reason::CnameMissing), Duration::ZERO, "seen for the first time");
    assert_eq!(next(&mut d, Reason::TxtMissing, Reason::CnameMissing), day);
    assert_eq!(next(&mut d, Reason::DnsLookupFailed, Reason::DnsLookupFailed), day, "paused");
    assert_eq!(d.tie, TieState::Lost, "and not forgotten");
    assert_eq!(next(&mut d, Reason::TxtMissing, Reason::CnameMissing), day, "what lay between was not seen");
    assert_eq!(next(&mut d, Reason::TxtMissing, Reason::CnameMissing), 2 * day);
    at = at + 10 * day;
    look(&mut d, Reason::TxtMissing, Reason::CnameMissing, at);
    assert_eq!(lost_for(&d), 2 * day + BETWEEN_LOOKS, "ten days without a look are not ten days of looking");
    look(&mut d, Reason::TxtOk, Reason::CnameMissing, at + day);
    assert_eq!((lost_for(&d), d.tie), (Duration::ZERO, TieState::Weakened), "it begins anew");
}

proptest! {
    /// Silence never makes a tie worse than weakened, never starts the clock, and never moves it.
    #[test]
    fn silence_releases_nothing(
        record in 0..Reason::ALL.len(), way in 0..Reason::ALL.len(), before in 0..3_usize, shared: bool, apex: bool, counted: bool,
    ) {
        let (record, way) = (Reason::ALL[record], Reason::ALL[way]);
        let mode = if shared { RoutingMode::Shared } else { RoutingMode::PerTenant };
        let before = TieState::ALL[before];
        let mut d = domain(mode, if apex { "acme.com" } else { SHOP }, before);
        d.counted_until = counted.then_some(NOW - Duration::from_secs(60));
        d.lost_for_us = 5;
        let now = look(&mut d, record, way, NOW);
        if record.tie() != Tie::Gone {
            prop_assert!(now != TieState::Lost || before == TieState::Lost);
            prop_assert!(d.lost_for_us <= 5 && d.counted_until.is_none(), "the clock ran on silence");
        }
        if record.tie() == Tie::Present {
            prop_assert_ne!(now, TieState::Lost);
        }
        if now != TieState::Lost {
            prop_assert_eq!(d.lost_for_us, 0);
        }
    }
}
