//! The stories that everybody in this trade has seen once, each with its end.

use std::time::Duration;

use nameplate::app::{self, offboard};
use nameplate::dns::world::{Fault, How};
use nameplate::model::id::{DomainId, TenantId};
use nameplate::store::sql;

use crate::support::rig::Rig;

const NAME: &str = "shop.acme.test";
const HOUR: Duration = Duration::from_secs(3600);
const DAY: Duration = Duration::from_secs(24 * 3600);

/// Time passes with everything that runs: steps, the daily looks, the looks at names at rest.
async fn pass(rig: &Rig, time: Duration) {
    rig.stride(4 * HOUR);
    let end = rig.env.now() + time;
    while rig.env.now() < end {
        rig.turn().await;
        app::routine::batch(&rig.app).await.unwrap();
        app::resting::round(&rig.app).await.unwrap();
    }
    rig.check_invariants().await;
}

async fn served(rig: &Rig, name: &str) -> bool {
    rig.edge_follows().await;
    rig.serial_at_edge(name).is_some()
}

async fn state(rig: &Rig, id: &DomainId) -> String {
    rig.domain_text(id, "claim").await.unwrap()
}

async fn txt(rig: &Rig, id: &DomainId, name: &str) -> String {
    format!("_nameplate-challenge.{name}. 60 IN TXT \"{}\"", rig.value(id).await)
}

/// A tenant with a live name.
async fn live(rig: &Rig, slug: &str, name: &str) -> (TenantId, DomainId) {
    let tenant = rig.tenant(slug).await;
    let id = rig.claim(&tenant, name).await;
    rig.publish(&id, name).await;
    rig.until_active(&id, HOUR).await;
    (tenant, id)
}

async fn told(rig: &Rig, id: &DomainId, kind: &str) -> usize {
    rig.events(id).await.iter().filter(|k| *k == kind).count()
}

/// A customer leaves and forgets its CNAME; a stranger signs up and claims the name. It is never the stranger's, whatever it waits
/// for, and whoever left it behind hears of the record every week.
#[tokio::test]
async fn the_departed_customer_with_a_forgotten_cname_and_a_stranger_who_signs_up() {
    let rig = Rig::new(301).await;
    let (acme, former) = live(&rig, "acme", NAME).await;
    offboard::begin(&rig.app.store, &rig.env, &acme, "operator").await.unwrap();
    pass(&rig, HOUR).await;
    assert!(!served(&rig, NAME).await);
    let stranger = rig.tenant("stranger").await;
    let claim = rig.claim(&stranger, NAME).await;
    let placed = rig.ca.state().counters().orders_created;
    pass(&rig, 29 * DAY).await;
    assert_eq!((state(&rig, &claim).await.as_str(), served(&rig, NAME).await), ("awaiting_dns", false));
    assert_eq!(rig.ca.state().counters().orders_created, placed);
    assert!(told(&rig, &former, "name_dangles").await >= 4, "{:?}", rig.events(&former).await);
    // Its own record beside the forgotten one does not help either, nor a CNAME of its own: as long as the former's is there.
    rig.zones.add(&txt(&rig, &claim, NAME).await).unwrap();
    rig.zones.remove(&format!("{NAME}. 60 IN CNAME acme.app.example.")).unwrap();
    rig.zones.add(&format!("{NAME}. 60 IN CNAME stranger.app.example.")).unwrap();
    pass(&rig, DAY / 2).await;
    assert_eq!((state(&rig, &claim).await.as_str(), told(&rig, &claim, "quarantined").await), ("awaiting_dns", 1));
    assert_eq!(rig.ca.state().counters().orders_created, placed);
    // Whoever runs the zone decides, and nobody else.
    rig.zones.remove(&txt(&rig, &former, NAME).await).unwrap();
    app::check::check_now(&rig.app, &claim, "tenant").await.unwrap();
    rig.until_active(&claim, 2 * HOUR).await;
}

/// A wildcard CNAME leads every name of a zone to one tenant's host. It proves nothing for anybody, and ties nothing but what was proven.
#[tokio::test]
async fn the_wildcard_cname_zone() {
    let rig = Rig::new(302).await;
    rig.zones.add("*.acme.test. 60 IN CNAME acme.app.example.").unwrap();
    let (acme, stranger) = (rig.tenant("acme").await, rig.tenant("stranger").await);
    let mut claims = Vec::new();
    for name in ["a.acme.test", "b.acme.test", "c.d.acme.test"] {
        for tenant in [&acme, &stranger] {
            claims.push(rig.claim(tenant, name).await);
        }
    }
    pass(&rig, 2 * DAY).await;
    for id in &claims {
        assert_eq!(state(&rig, id).await, "awaiting_dns", "{}", rig.story(id).await);
    }
    assert_eq!(rig.ca.state().counters().orders_created, 0);
    // The one that is proven is served, through the wildcard, for whoever proved it.
    rig.zones.add(&txt(&rig, &claims[0], "a.acme.test").await).unwrap();
    rig.zones.add("a.acme.test. 60 IN CNAME acme.app.example.").unwrap();
    rig.until_active(&claims[0], HOUR).await;
    assert!(served(&rig, "a.acme.test").await && !served(&rig, "b.acme.test").await);
}

/// B85: a domain lapses and is bought by somebody else. Its zone is empty: the tie is lost, renewals stop, and after the grace the name
/// is served no longer. The new owner gets it by its own record.
#[tokio::test]
async fn b85_the_lapsed_domain_with_a_new_owner() {
    let rig = Rig::new(303).await;
    let (_, former) = live(&rig, "acme", NAME).await;
    rig.zones.remove(&format!("{NAME}. 60 IN CNAME acme.app.example.")).unwrap();
    rig.unpublish_txt(&former, NAME).await;
    pass(&rig, 3 * DAY).await;
    assert_eq!((state(&rig, &former).await.as_str(), told(&rig, &former, "tie_lost").await), ("live", 1));
    assert!(served(&rig, NAME).await, "within the grace nothing is taken away");
    pass(&rig, 6 * DAY).await;
    assert_eq!((state(&rig, &former).await.as_str(), served(&rig, NAME).await), ("releasing", false));
    let owner = rig.tenant("owner").await;
    let claim = rig.claim(&owner, NAME).await;
    rig.publish(&claim, NAME).await;
    rig.until_active(&claim, 2 * HOUR).await;
    pass(&rig, HOUR).await;
    assert_eq!(state(&rig, &former).await, "released");
    let keys = sql("SELECT count(*) AS n FROM certificates WHERE sealed_key IS NOT NULL AND domain_id = $1");
    assert_eq!(rig.count(keys.bind(former.as_str())).await, 0, "the former's key went with the name");
}

/// A slug is asked for again in every spelling, to get hold of what still leads to its canonical host.
#[tokio::test]
async fn the_reused_slug() {
    let rig = Rig::new(304).await;
    let (acme, _) = live(&rig, "acme", NAME).await;
    offboard::begin(&rig.app.store, &rig.env, &acme, "operator").await.unwrap();
    pass(&rig, 40 * DAY).await;
    for slug in ["acme", "ACME", "a-c-m-e", "acme-", "Acme"] {
        let new = app::tenants::NewTenant { slug, name: None };
        let added = app::tenants::add(&rig.app.store, &rig.env, new, |_| None, "operator").await;
        assert!(added.is_err(), "{slug} was given again");
    }
    let next = rig.tenant("acme2").await;
    let claim = rig.claim(&next, NAME).await;
    rig.zones.add(&txt(&rig, &claim, NAME).await).unwrap();
    pass(&rig, DAY).await;
    assert!(!served(&rig, NAME).await, "a way to the retired host is a way to nobody");
}

/// A value that proved a name once is published again after the name was let go of, by whoever kept it.
#[tokio::test]
async fn the_old_token() {
    let rig = Rig::new(305).await;
    let (acme, former) = live(&rig, "acme", NAME).await;
    let old = txt(&rig, &former, NAME).await;
    app::remove::remove(&rig.app, &former, "tenant").await.unwrap();
    pass(&rig, 8 * DAY).await;
    assert_eq!(state(&rig, &former).await, "released");
    let again = rig.claim(&acme, NAME).await;
    let other = rig.tenant("other").await;
    let others = rig.claim(&other, NAME).await;
    for id in [&again, &others] {
        assert_ne!(txt(&rig, id, NAME).await, old, "every claim has a value of its own");
    }
    pass(&rig, 5 * DAY).await;
    for id in [&again, &others] {
        assert_eq!(state(&rig, id).await, "awaiting_dns", "the old value is there, and proves nothing");
    }
    assert!(!served(&rig, NAME).await);
    assert_eq!(told(&rig, &again, "proven").await, 0);
}

/// A name and one beneath it belong to different tenants. Each is served by its own proof, and neither's leaving touches the other.
#[tokio::test]
async fn parent_and_child_of_different_tenants() {
    let rig = Rig::new(306).await;
    let child = "eu.shop.acme.test";
    let (_, parents) = live(&rig, "acme", NAME).await;
    let (beta, childs) = live(&rig, "beta", child).await;
    pass(&rig, HOUR).await;
    assert_eq!(told(&rig, &parents, "claim_beneath").await, 1);
    app::remove::remove(&rig.app, &parents, "tenant").await.unwrap();
    pass(&rig, 9 * DAY).await;
    assert!(!served(&rig, NAME).await && served(&rig, child).await);
    // The child's proof is none for the parent, however the parent leads.
    let claim = rig.claim(&beta, NAME).await;
    rig.zones.remove(&format!("{NAME}. 60 IN CNAME acme.app.example.")).unwrap();
    rig.zones.add(&format!("{NAME}. 60 IN CNAME beta.app.example.")).unwrap();
    rig.unpublish_txt(&parents, NAME).await;
    pass(&rig, 2 * DAY).await;
    assert_eq!((state(&rig, &claim).await.as_str(), state(&rig, &childs).await.as_str()), ("awaiting_dns", "live"));
}

/// B82: two proofs of one name at one moment, a worker held at each boundary of its step while another walks past: one claim holds
/// it, and route, certificate and claim name the same tenant. At an apex a way to us is everybody's, so both pass every check.
#[tokio::test]
async fn the_race_of_two_proofs() {
    let (apex, mut stopped) = ("acme.test", 0);
    for cut in 1..14 {
        let rig = Rig::new(307).await;
        app::account::ensure_all(&rig.app).await.unwrap();
        let (a, b) = (rig.tenant("acme").await, rig.tenant("beta").await);
        let claims = [rig.claim(&a, apex).await, rig.claim(&b, apex).await];
        for id in &claims {
            rig.zones.add(&txt(&rig, id, apex).await).unwrap();
        }
        rig.zones.add(&format!("{apex}. 60 IN A 192.0.2.80")).unwrap();
        rig.scissors.set(cut);
        let (first, second) = (rig.new_worker(), rig.new_worker());
        let mut step = Box::pin(app::advance::advance(&first, &claims[0]));
        let held = tokio::select! {
            biased;
            done = &mut step => { done.unwrap(); false }
            () = rig.scissors.reached() => true,
        };
        if !held {
            // The step has no boundary more.
            break;
        }
        stopped += 1;
        // A transaction that is open on this store keeps others out; nobody can walk past there.
        let place = rig.scissors.crossed().last().copied().unwrap_or_default();
        if !place.contains("commit") {
            app::advance::advance(&second, &claims[1]).await.unwrap();
        }
        rig.scissors.set(0);
        rig.scissors.resume();
        step.await.unwrap();
        pass(&rig, 2 * HOUR).await;
        let one = sql(
            "SELECT count(*) AS n FROM holdings h JOIN routes r ON r.hostname = h.hostname AND r.domain_id = h.domain_id \
             JOIN certificates c ON c.id = r.certificate_id AND c.domain_id = h.domain_id WHERE h.state = 'held'",
        );
        assert_eq!(rig.count(one).await, 1, "cut {cut} at {place}");
        let mut states = [state(&rig, &claims[0]).await, state(&rig, &claims[1]).await];
        states.sort();
        assert_eq!(states, ["awaiting_dns", "live"], "cut {cut} at {place}");
    }
    assert!(stopped > 2, "too few boundaries were met");
}

/// An apex, where no CNAME can tell, goes from one tenant to another and back: each waits for nothing but the other's record.
#[tokio::test]
async fn the_apex_that_moves_between_two_tenants_without_deadlock() {
    let rig = Rig::new(308).await;
    let apex = "acme.test";
    rig.zones.add(&format!("{apex}. 60 IN A 192.0.2.80")).unwrap();
    let tenants = [rig.tenant("acme").await, rig.tenant("beta").await];
    let first = rig.claim(&tenants[0], apex).await;
    rig.zones.add(&txt(&rig, &first, apex).await).unwrap();
    rig.until_active(&first, HOUR).await;
    let mut holder = first;
    for turn in 1..4 {
        let next = rig.claim(&tenants[turn % 2], apex).await;
        rig.zones.add(&txt(&rig, &next, apex).await).unwrap();
        pass(&rig, DAY).await;
        assert_eq!(state(&rig, &next).await, "awaiting_dns", "turn {turn}: both records are there");
        rig.zones.remove(&txt(&rig, &holder, apex).await).unwrap();
        rig.until_active(&next, 90 * HOUR).await;
        assert!(served(&rig, apex).await, "turn {turn}: nobody was without an answer");
        pass(&rig, HOUR).await;
        holder = next;
    }
}

/// B13: thirty days of every kind of "no answer" release nothing; only answers do, over the grace.
#[tokio::test]
async fn b13_four_kinds_of_no_and_the_release_of_a_domain() {
    let rig = Rig::new(309).await;
    let (_, id) = live(&rig, "acme", NAME).await;
    for how in [How::ServFail, How::Timeout, How::Refused] {
        let fault = |name: &str| Fault { name: name.to_owned(), kind: None, how, below: false };
        rig.zones.set_faults(vec![fault(NAME), fault(&format!("_nameplate-challenge.{NAME}"))]);
        pass(&rig, 10 * DAY).await;
        assert!(served(&rig, NAME).await, "{how:?}: {}", rig.story(&id).await);
        assert_eq!((state(&rig, &id).await.as_str(), told(&rig, &id, "tie_lost").await), ("live", 0), "{how:?}");
    }
    rig.zones.set_faults(Vec::new());
    pass(&rig, 2 * DAY).await;
    // Now the zone answers, and says no.
    rig.zones.remove(&format!("{NAME}. 60 IN CNAME acme.app.example.")).unwrap();
    rig.unpublish_txt(&id, NAME).await;
    pass(&rig, 5 * DAY).await;
    assert_eq!(state(&rig, &id).await, "live", "not before the grace");
    // Silence in between stops the clock.
    rig.zones.set_faults(vec![Fault { name: "acme.test".to_owned(), kind: None, how: How::Timeout, below: true }]);
    pass(&rig, 10 * DAY).await;
    assert_eq!(state(&rig, &id).await, "live", "silence is no answer");
    rig.zones.set_faults(Vec::new());
    pass(&rig, 5 * DAY).await;
    assert_eq!((state(&rig, &id).await.as_str(), served(&rig, NAME).await), ("releasing", false));
}

/// B15: a proxy stands in front of the name, so that DNS does not show where it leads. The record alone ties it, and keeps it.
#[tokio::test]
async fn b15_a_proxied_name_is_not_released_for_a_missing_cname() {
    let rig = Rig::new(310).await;
    let (_, id) = live(&rig, "acme", NAME).await;
    rig.zones.remove(&format!("{NAME}. 60 IN CNAME acme.app.example.")).unwrap();
    rig.zones.add(&format!("{NAME}. 60 IN A 198.51.100.7")).unwrap();
    pass(&rig, 20 * DAY).await;
    assert_eq!((state(&rig, &id).await.as_str(), served(&rig, NAME).await), ("live", true));
    assert_eq!(told(&rig, &id, "tie_lost").await, 0, "{:?}", rig.events(&id).await);
}

/// B17: the signatures of the zone are broken. Resolvers that validate fail, and a name is neither ordered for nor let go of.
#[tokio::test]
async fn b17_a_bogus_zone_orders_nothing_and_releases_nothing() {
    let rig = Rig::new(311).await;
    let (_, id) = live(&rig, "acme", NAME).await;
    let placed = rig.ca.state().counters().orders_created;
    rig.zones.set_faults(vec![Fault { name: "acme.test".to_owned(), kind: None, how: How::Bogus, below: true }]);
    pass(&rig, 30 * DAY).await;
    assert_eq!((state(&rig, &id).await.as_str(), served(&rig, NAME).await), ("live", true));
    let other = rig.tenant("other").await;
    let claim = rig.claim(&other, "new.acme.test").await;
    rig.publish(&claim, "new.acme.test").await;
    pass(&rig, DAY).await;
    assert_eq!(rig.ca.state().counters().orders_created, placed, "nothing is ordered in a zone that cannot be validated");
    assert_eq!(told(&rig, &id, "tie_lost").await, 0);
}

/// B83: claims that nobody proves block nobody, and end; a fresh proof against an old one begins the hand-over that is written down.
#[tokio::test]
async fn b83_an_unverified_claim_blocks_nobody() {
    let rig = Rig::new(312).await;
    let squatter = rig.tenant("squatter").await;
    let pending = rig.claim(&squatter, NAME).await;
    pass(&rig, 31 * DAY).await;
    assert_eq!(state(&rig, &pending).await, "expired");
    rig.claim(&squatter, NAME).await;
    let (_, owner) = live(&rig, "owner", NAME).await;
    assert_eq!(told(&rig, &owner, "held_elsewhere").await, 0);
    // Verified long ago, and another has the zone now: notice, 72 hours, a look, then the hand-over.
    let next = rig.tenant("next").await;
    let claim = rig.claim(&next, NAME).await;
    rig.zones.remove(&txt(&rig, &owner, NAME).await).unwrap();
    rig.zones.remove(&format!("{NAME}. 60 IN CNAME owner.app.example.")).unwrap();
    rig.publish(&claim, NAME).await;
    pass(&rig, DAY).await;
    assert_eq!((told(&rig, &owner, "handover_began").await, state(&rig, &owner).await.as_str()), (1, "live"));
    rig.until_active(&claim, 60 * HOUR).await;
    pass(&rig, HOUR).await;
    assert_eq!((told(&rig, &owner, "handed_over").await, state(&rig, &owner).await.as_str()), (1, "released"));
}
