//! DNS that is on its way from one state to another: what is said meanwhile, and that nothing is ordered too early.

use std::sync::Arc;
use std::time::Duration;

use nameplate::app::{check, show};
use nameplate::dns::world::line;
use nameplate::model::evidence::{Check, Verdict, View};
use nameplate::model::hostname::Hostname;
use nameplate::model::id::DomainId;
use nameplate::model::moment::Moment;
use nameplate::model::records::ApexRoute;
use nameplate::sandbox::dns::{View as World, Who};

use crate::support::rig::Rig;

const NAME: &str = "shop.acme.test";
const HOUR: Duration = Duration::from_secs(3600);

/// What the page would show of one check: verdict, code, and whose words they rest on.
async fn shown(rig: &Rig, id: &DomainId, check: Check) -> (Verdict, String, String) {
    let apex = ApexRoute { target: None, addresses: vec![] };
    let view = show::domain(&rig.app.store, &apex, id, rig.env.now()).await.unwrap().unwrap();
    let check = view.checks.into_iter().find(|c| c.check == check).unwrap();
    (check.verdict, check.code, check.observed.join(" | "))
}

/// What the page would show side by side, and when old answers are gone.
async fn side_by_side(rig: &Rig, id: &DomainId, check: Check) -> (Vec<View>, Option<Moment>) {
    let apex = ApexRoute { target: None, addresses: vec![] };
    let view = show::domain(&rig.app.store, &apex, id, rig.env.now()).await.unwrap().unwrap();
    let check = view.checks.into_iter().find(|c| c.check == check).unwrap();
    (check.views, check.old_until)
}

/// Somebody asks, and the look is made.
async fn check_now(rig: &Rig, id: &DomainId) {
    rig.pass(HOUR).await;
    check::check_now(&rig.app, id, "tenant").await.unwrap();
    rig.pass(Duration::from_secs(60)).await;
}

/// A second server of the tenant's zone that has only these records.
fn second_server_has(rig: &Rig, lines: &[&str]) {
    let zone = [
        "acme.test. 300 IN SOA ns1.acme.test. h.acme.test. 1 7200 900 1209600 86400",
        "acme.test. 300 IN NS ns1.acme.test.",
        "acme.test. 300 IN NS ns2.acme.test.",
    ];
    let records: Vec<_> = zone.iter().chain(lines).map(|l| line::parse(l).unwrap()).collect();
    rig.zones.set_view(Who::Server("ns2.acme.test".to_owned()), Some(World::of(records, Vec::new())));
}

#[tokio::test]
async fn b08_while_name_servers_disagree_it_is_on_its_way_and_nothing_is_ordered() {
    let rig = Rig::new(8).await;
    for line in ["acme.test. 300 IN NS ns2.acme.test.", "ns2.acme.test. 300 IN A 192.0.2.54"] {
        rig.zones.add(line).unwrap();
    }
    let tenant = rig.tenant("acme").await;
    let id = rig.claim(&tenant, NAME).await;
    let (value, target) = (rig.value(&id).await, rig.domain_text(&id, "target").await.unwrap());
    let cname = format!("{NAME}. 60 IN CNAME {target}.");
    let txt = format!("_nameplate-challenge.{NAME}. 60 IN TXT \"{value}\"");
    second_server_has(&rig, &[&cname]);
    rig.publish(&id, NAME).await;
    rig.pass(2 * HOUR).await;
    let (verdict, code, observed) = shown(&rig, &id, Check::Ownership).await;
    assert_eq!((verdict, code.as_str()), (Verdict::Wait, "txt_propagating"), "{observed}");
    let (views, old_until) = side_by_side(&rig, &id, Check::Ownership).await;
    assert_eq!(views.iter().filter(|v| v.as_expected).count(), 1, "{views:?}");
    let behind = views.iter().find(|v| !v.as_expected).unwrap();
    assert_eq!((behind.observer.as_str(), behind.ttl), ("ns2.acme.test", Some(300)));
    assert!(old_until.is_some_and(|t| t > rig.env.now() - HOUR), "{old_until:?}");
    assert!(observed.contains("ns1.acme.test") || observed.contains("ns2.acme.test"), "who disagrees is named: {observed}");
    assert_eq!(rig.domain_text(&id, "claim").await.unwrap(), "awaiting_dns");
    assert_eq!(rig.ca.state().counters().orders_created, 0);
    // The second server has caught up.
    second_server_has(&rig, &[&cname, &txt]);
    rig.until_active(&id, HOUR).await;
    assert_eq!(rig.ca.state().counters().orders_created, 1);
}

#[tokio::test]
async fn b08_the_same_holds_for_the_alias() {
    let rig = Rig::new(9).await;
    let tenant = rig.tenant("acme").await;
    let id = rig.claim(&tenant, NAME).await;
    rig.publish(&id, NAME).await;
    let old = [
        "acme.test. 300 IN SOA ns1.acme.test. h.acme.test. 1 7200 900 1209600 86400",
        "acme.test. 300 IN NS ns1.acme.test.",
        &format!("{NAME}. 60 IN CNAME old.acme.test."),
        "old.acme.test. 60 IN A 198.51.100.7",
    ];
    let old: Vec<_> = old.iter().map(|l| line::parse(l).unwrap()).collect();
    for label in ["own-a", "own-b"] {
        rig.zones.set_view(Who::Resolver(label.to_owned()), Some(World::of(old.clone(), Vec::new())));
    }
    rig.pass(2 * HOUR).await;
    let (verdict, code, observed) = shown(&rig, &id, Check::Routing).await;
    assert_eq!((verdict, code.as_str()), (Verdict::Wait, "cname_propagating"), "{observed}");
    assert_eq!(rig.ca.state().counters().orders_created, 0);
    for label in ["own-a", "own-b"] {
        rig.zones.set_view(Who::Resolver(label.to_owned()), None);
    }
    rig.until_active(&id, HOUR).await;
}

#[tokio::test]
async fn b14_a_flattened_alias_is_held_against_what_the_target_resolves_to_now() {
    let mut rig = Rig::new(14).await;
    let settings = Arc::make_mut(&mut rig.app.settings);
    settings.apex_target = Some(Hostname::trusted("apex.app.example"));
    settings.platform.addresses = vec![];
    for last in 1..=3 {
        rig.zones.add(&format!("apex.app.example. 60 IN A 192.0.2.{last}")).unwrap();
    }
    let tenant = rig.tenant("acme").await;
    let id = rig.claim(&tenant, "acme.test").await;
    rig.zones.add(&format!("_nameplate-challenge.acme.test. 60 IN TXT \"{}\"", rig.value(&id).await)).unwrap();
    for last in 1..=2 {
        rig.zones.add(&format!("acme.test. 60 IN A 192.0.2.{last}")).unwrap();
    }
    rig.until_active(&id, HOUR).await;
    let (verdict, code, _) = shown(&rig, &id, Check::Routing).await;
    assert_eq!(verdict, Verdict::Pass, "{code}");
    // One address more, which is nobody's of ours.
    rig.zones.add("acme.test. 60 IN A 198.51.100.7").unwrap();
    check_now(&rig, &id).await;
    let (verdict, code, observed) = shown(&rig, &id, Check::Routing).await;
    assert_eq!((verdict, code.as_str()), (Verdict::Fail, "address_mixed"), "{observed}");
    assert!(observed.contains("198.51.100.7"), "{observed}");
    // It becomes ours: the target resolves to it now. Nothing else changed.
    rig.zones.add("apex.app.example. 60 IN A 198.51.100.7").unwrap();
    check_now(&rig, &id).await;
    let (verdict, code, _) = shown(&rig, &id, Check::Routing).await;
    assert_eq!(verdict, Verdict::Pass, "{code}");
}
