use super::*;
use crate::dns::world::ZoneStore;
use crate::model::hostname::Hostname;
use crate::model::id::TenantId;

const NOW: Moment = Moment::from_secs(1_800_000_000);

fn tenant(n: u8) -> TenantId {
    TenantId::mint(NOW, [n; 10])
}

fn claimed(n: u8) -> Claimed {
    Claimed {
        id: DomainId::mint(NOW, [n; 10]),
        tenant: tenant(n),
        value: format!("nameplate-verify={n}"),
        target: format!("tenant-{n}.app.example"),
        published_at: Some(NOW - 9 * DAY),
        given_up_at: None,
        gone_for: Duration::ZERO,
        gone_since: None,
        last_gone: None,
        followed_for: Duration::ZERO,
        followed_since: None,
    }
}

/// A name with two claims, of which the first is served; and the rows that say so.
fn well() -> (Name, Vec<Seen>, Names) {
    let zones = ZoneStore::new();
    let mut names = Names::new(&zones);
    let n = names.add();
    let (first, second) = (claimed(1), Claimed { published_at: None, gone_since: Some(NOW - DAY), ..claimed(2) });
    names.claimed(n, first.clone());
    names.claimed(n, second.clone());
    names.hand_to(n, 0, NOW - 9 * DAY).unwrap();
    let row = |of: &Claimed, claim: &str| Seen {
        id: of.id.to_string(),
        hostname: names.at(n).host.to_string(),
        tenant: of.tenant.to_string(),
        claim: claim.to_owned(),
        tie: "held".to_owned(),
        holder: Some(first.id.to_string()),
        holding: Some("held".to_owned()),
        route_domain: Some(first.id.to_string()),
        route_tenant: Some(first.tenant.to_string()),
        route_action: Some("serve".to_owned()),
        ..Seen::default()
    };
    let live = Seen { certificate: Some("crt".to_owned()), has_key: true, open_orders: 1, ..row(&first, "live") };
    let seen = vec![live, row(&second, "awaiting_dns")];
    (names.at(n).clone(), seen, names)
}

#[track_caller]
fn breaks(rule: Rule, spoil: impl FnOnce(&mut Name, &mut Vec<Seen>)) {
    let (mut name, mut seen, names) = well();
    spoil(&mut name, &mut seen);
    let found = judge(&name, &seen, &names, NOW);
    assert!(found.iter().any(|broken| broken.rule == rule), "{rule:?}: {found:?}");
}

#[test]
fn what_is_well_breaks_no_rule() {
    let (name, seen, names) = well();
    assert_eq!(judge(&name, &seen, &names, NOW), []);
    assert_eq!(issued_without_a_tie(&name, NOW), None);
}

#[test]
fn each_rule_can_be_broken() {
    breaks(Rule::Proof, |_, seen| seen[1].claim = "queued".to_owned());
    breaks(Rule::Proof, |_, seen| seen[0].route_tenant = Some(tenant(2).to_string()));
    breaks(Rule::Holder, |_, seen| seen[1].claim = "live".to_owned());
    breaks(Rule::Holder, |_, seen| seen[0].holding = Some("quarantined".to_owned()));
    breaks(Rule::Holder, |_, seen| seen[0].holder = Some(seen[1].id.clone()));
    breaks(Rule::Certificate, |_, seen| seen[0].certificate = None);
    breaks(Rule::Certificate, |_, seen| seen[0].has_key = false);
    breaks(Rule::Silence, |_, seen| seen[0].claim = "releasing".to_owned());
    breaks(Rule::Silence, |_, seen| seen[0].tie = "lost".to_owned());
    breaks(Rule::Zero, |name, seen| {
        name.claims[0].given_up_at = Some(NOW - 8 * DAY);
        seen[0].claim = "released".to_owned();
    });
    breaks(Rule::Zero, |name, seen| {
        name.claims[0].given_up_at = Some(NOW - 8 * DAY);
        (seen[0].claim, seen[0].certificate, seen[0].keys) = ("released".to_owned(), None, 1);
    });
    breaks(Rule::Orders, |_, seen| seen[0].open_orders = 2);
    breaks(Rule::Route, |name, seen| {
        name.claims[0].given_up_at = Some(NOW);
        seen[0].claim = "releasing".to_owned();
    });
    breaks(Rule::Route, |_, seen| seen[0].route_domain = Some(seen[1].id.clone()));
    breaks(Rule::Dangling, |_, seen| seen[0].holding = Some("free".to_owned()));
    breaks(Rule::Acknowledged, |_, seen| seen[0].id = DomainId::mint(NOW, [9; 10]).to_string());
    breaks(Rule::Acknowledged, |_, seen| seen[0].claim = "withdrawn".to_owned());
}

#[test]
fn a_name_is_let_go_of_only_for_a_cause() {
    let well = claimed(1);
    assert!(!has_cause(&well, NOW));
    assert!(has_cause(&Claimed { given_up_at: Some(NOW), ..well.clone() }, NOW));
    let gone = |days: u32| Claimed { gone_since: Some(NOW - DAY * days), ..well.clone() };
    assert!(!has_cause(&gone(6), NOW) && has_cause(&gone(7), NOW));
    let followed = |hours: u32| Claimed { followed_since: Some(NOW - Duration::from_secs(3600) * hours), ..well.clone() };
    assert!(!has_cause(&followed(70), NOW) && has_cause(&followed(72), NOW));
}

#[test]
fn nothing_is_issued_for_a_name_that_nobody_is_tied_to() {
    let (mut name, ..) = well();
    name.claims[0].gone_since = Some(NOW - Duration::from_secs(600));
    assert_eq!(issued_without_a_tie(&name, NOW), None, "a moment ago it was tied");
    name.claims[0].gone_since = Some(NOW - 2 * DAY);
    assert_eq!(issued_without_a_tie(&name, NOW).map(|broken| broken.rule), Some(Rule::Renewal));
}

#[test]
fn the_same_finding_counts_once() {
    let mut oracle = Oracle::default();
    let broken = |of: &str| Broken { rule: Rule::Proof, of: of.to_owned(), said: "so".to_owned() };
    oracle.take(vec![broken("a"), broken("a"), broken("b")], NOW);
    oracle.take(vec![broken("b")], NOW);
    assert_eq!((oracle.violations, oracle.takeovers, oracle.said().len()), (2, 2, 2));
}

#[test]
fn whose_host_leads_to_us_is_the_zones_word() {
    let (name, _, names) = well();
    assert!(names.leads_to_us(&name.host));
    assert!(!names.leads_to_us(&Hostname::trusted("www.nobody.test")));
}
