//! Claims that meet: when a name moves from one tenant to another, and that nothing else moves it.

use std::time::Duration;

use nameplate::app;
use nameplate::dns::world::{Fault, How};
use nameplate::model::claim::Claim;
use nameplate::model::hostname::Hostname;
use nameplate::model::id::DomainId;
use nameplate::store::sql;

use crate::support::met::{HOUR, Met};
use crate::support::rig::Rig;
use crate::support::stores::{Kind, TestStore};

const NAME: &str = "shop.acme.test";
const DAY: Duration = Duration::from_secs(24 * 3600);

/// The whole hand-over: notice to both, 72 hours, a certificate beside the holder's, then everything in one moment.
#[tokio::test]
async fn a_name_moves_72_hours_after_its_holders_record_went() {
    let met = Met::new(2, NAME).await;
    let rig = &met.rig;
    let old = rig.serial_at_edge(NAME).unwrap();
    met.swap().await;
    let began = rig.env.now();
    rig.pass(2 * HOUR).await;
    assert_eq!(met.told(&met.next, "handover_runs").await, 1, "{}", rig.story(&met.next).await);
    assert_eq!(met.told(&met.holder, "handover_began").await, 1, "{}", rig.story(&met.holder).await);
    assert_eq!(rig.domain_text(&met.holder, "standing").await.unwrap(), "name_contested");
    rig.pass(66 * HOUR).await;
    assert_eq!(met.state(&met.next).await, "awaiting_dns");
    assert_eq!(rig.serial_at_edge(NAME), Some(old.clone()), "the holder serves on");
    rig.until_active(&met.next, 12 * HOUR).await;
    assert!(rig.env.now().since(began) >= 72 * HOUR, "it took {:?}", rig.env.now().since(began));
    rig.check_invariants().await;
    met.held_by(&met.next, 2).await;
    let serial = rig.serial_at_edge(NAME).unwrap();
    assert_ne!(serial, old, "a new certificate");
    rig.pass(Duration::from_secs(120)).await;
    assert_eq!(met.state(&met.holder).await, "released");
    assert_eq!(met.told(&met.holder, "handed_over").await, 1);
    let keys = sql("SELECT count(*) AS n FROM certificates WHERE sealed_key IS NOT NULL");
    assert_eq!(rig.count(keys).await, 1, "the former's key is destroyed");
    let drawn = sql("SELECT count(DISTINCT o.sealed_key) AS n FROM orders o WHERE o.sealed_key IS NOT NULL");
    assert_eq!(rig.count(drawn).await, 1);
    assert_eq!(rig.ca.state().counters().orders_created, 2);
    met.nobody_is_named().await;
    rig.check_invariants().await;
}

/// At every boundary at which a worker can die, the edge has one certificate for the name, and the name moves once.
#[tokio::test]
async fn a_hand_over_survives_a_crash_at_every_boundary() {
    for cut in 1..200 {
        let met = Met::new(3, NAME).await;
        let rig = &met.rig;
        met.swap().await;
        met.nearly_over().await;
        rig.scissors.set(cut);
        let end = rig.env.now() + 12 * HOUR;
        let mut cuts = 0;
        while rig.active_since(&met.next).await.is_none() {
            assert!(rig.env.now() < end, "cut {cut}: {}", rig.story(&met.next).await);
            cuts += usize::from(rig.turn().await);
            assert!(rig.serial_at_edge(NAME).is_some(), "cut {cut}: visitors meet nothing");
            let holders = sql("SELECT count(*) AS n FROM holdings h JOIN routes r ON r.hostname = h.hostname \
                 WHERE h.state = 'held' AND r.domain_id = h.domain_id AND r.term = h.term");
            assert_eq!(rig.count(holders).await, 1, "cut {cut}: holding and route differ");
        }
        met.held_by(&met.next, 2).await;
        rig.pass(Duration::from_secs(300)).await;
        rig.check_invariants().await;
        assert_eq!(met.state(&met.holder).await, "released", "cut {cut}");
        if cuts == 0 {
            assert!(cut > 20, "only {cut} boundaries were crossed");
            return;
        }
    }
    panic!("there are more boundaries than were tried");
}

/// The record comes back within the 72 hours: the clock is set back, both are told, and a second time it starts from nothing.
#[tokio::test]
async fn a_record_that_comes_back_stops_the_hand_over() {
    let met = Met::new(4, NAME).await;
    let rig = &met.rig;
    met.swap().await;
    rig.pass(60 * HOUR).await;
    met.txt(&met.holder, true).await;
    app::check::check_now(&rig.app, &met.holder, "tenant").await.unwrap();
    rig.pass(HOUR).await;
    assert_eq!(met.told(&met.holder, "handover_ended").await, 1, "{}", rig.story(&met.holder).await);
    assert_eq!(met.told(&met.next, "handover_ended").await, 1, "{}", rig.story(&met.next).await);
    let clocks = || sql("SELECT count(*) AS n FROM holdings WHERE successor_id IS NOT NULL");
    assert_eq!(rig.count(clocks()).await, 0);
    assert_ne!(rig.domain_text(&met.holder, "standing").await.unwrap(), "name_contested");
    rig.pass(3 * DAY).await;
    assert_eq!((met.state(&met.holder).await.as_str(), met.state(&met.next).await.as_str()), ("live", "awaiting_dns"));
    met.txt(&met.holder, false).await;
    rig.pass(5 * HOUR).await;
    assert_eq!(rig.count(clocks()).await, 1, "{}", rig.story(&met.next).await);
    rig.pass(62 * HOUR).await;
    assert_eq!(met.state(&met.next).await, "awaiting_dns", "what was counted before does not count");
    assert_eq!(met.told(&met.holder, "handover_began").await, 2);
    rig.until_active(&met.next, DAY).await;
    rig.check_invariants().await;
    met.nobody_is_named().await;
}

/// The holder's record returns while the successor's certificate is being issued: the name stays, the work is dropped.
#[tokio::test]
async fn a_record_that_comes_back_at_the_last_moment_keeps_the_name() {
    for late in 0..12_usize {
        let met = Met::new(5, NAME).await;
        let rig = &met.rig;
        met.swap().await;
        met.nearly_over().await;
        let mut turns = 0;
        while met.state(&met.next).await != "queued" {
            rig.turn().await;
        }
        while turns < late && met.state(&met.next).await == "queued" {
            turns += 1;
            let app = rig.new_worker();
            app::dispatch::round(&rig.app).await.unwrap();
            app::advance::advance(&app, &met.next).await.unwrap();
            rig.edge_follows().await;
            rig.hand.advance(Duration::from_millis(300));
        }
        if met.state(&met.next).await == "live" {
            assert!(late > 6, "after {late} steps");
            return;
        }
        met.txt(&met.holder, true).await;
        // What was looked at is too old to take a name by.
        rig.hand.advance(Duration::from_secs(121));
        rig.pass(6 * HOUR).await;
        assert_eq!(
            (met.state(&met.holder).await.as_str(), met.state(&met.next).await.as_str()),
            ("live", "awaiting_dns"),
            "{late}"
        );
        met.held_by(&met.holder, 1).await;
        let open = sql("SELECT count(*) AS n FROM orders WHERE state NOT IN ('issued', 'failed', 'lost')");
        assert_eq!(rig.count(open).await, 0, "{late}: {}", rig.story(&met.next).await);
        rig.check_invariants().await;
    }
}

/// Silence stops the clock: a zone that cannot be asked moves nothing, however long.
#[tokio::test]
async fn silence_stops_the_clock() {
    for how in [How::ServFail, How::Timeout] {
        let met = Met::new(6, NAME).await;
        let rig = &met.rig;
        met.swap().await;
        rig.pass(40 * HOUR).await;
        let label = format!("_nameplate-challenge.{NAME}");
        let fault = Fault { name: label, kind: None, how, below: false };
        rig.zones.set_faults(vec![fault]);
        rig.pass(5 * DAY).await;
        assert_eq!((met.state(&met.holder).await.as_str(), met.state(&met.next).await.as_str()), ("live", "awaiting_dns"));
        rig.zones.set_faults(Vec::new());
        rig.pass(20 * HOUR).await;
        assert_eq!(met.state(&met.next).await, "awaiting_dns", "{how:?}: {}", rig.story(&met.next).await);
        rig.until_active(&met.next, 3 * DAY).await;
        rig.check_invariants().await;
    }
}

/// Silence once the successor waits for its certificate: nothing moves, nobody's servers are asked over and over, and it goes
/// on when it can be seen again.
#[tokio::test]
async fn silence_before_the_certificate_holds_everything() {
    let met = Met::new(12, NAME).await;
    let rig = &met.rig;
    met.swap().await;
    met.nearly_over().await;
    while met.state(&met.next).await != "queued" {
        rig.turn().await;
    }
    let label = format!("_nameplate-challenge.{NAME}");
    rig.zones.set_faults(vec![Fault { name: label, kind: None, how: How::ServFail, below: false }]);
    rig.hand.advance(Duration::from_secs(121));
    let steps = async || {
        let stmt = sql("SELECT generation AS n FROM domains WHERE id = $1").bind(met.next.as_str());
        rig.count(stmt).await
    };
    let before = steps().await;
    rig.pass(6 * HOUR).await;
    let taken = steps().await - before;
    assert!(taken < 60, "{taken} steps in six hours of silence: {}", rig.story(&met.next).await);
    met.held_by(&met.holder, 1).await;
    assert_eq!(met.state(&met.holder).await, "live");
    rig.zones.set_faults(Vec::new());
    rig.until_active(&met.next, 12 * HOUR).await;
    met.held_by(&met.next, 2).await;
    rig.check_invariants().await;
}

/// The holder is removed half way: the name goes on to whom the zone's owner wants to have it, never to nobody's surprise.
#[tokio::test]
async fn a_holder_that_is_removed_half_way_makes_room() {
    for (name, after) in [(NAME, 10), (NAME, 71), ("acme.test", 10)] {
        let met = Met::new(7, name).await;
        let rig = &met.rig;
        met.swap().await;
        rig.pass(HOUR * after).await;
        assert_eq!(app::remove::remove(&rig.app, &met.holder, "tenant").await.unwrap(), Claim::Releasing);
        rig.until_active(&met.next, 70 * HOUR).await;
        rig.pass(Duration::from_secs(120)).await;
        met.held_by(&met.next, 2).await;
        assert_eq!(met.state(&met.holder).await, "released", "{name} after {after} h");
        rig.check_invariants().await;
    }
}

/// A successor that withdraws, before its time and while its certificate is under way, leaves the holder as it was: nothing ties it, so
/// it is let go of at the end of its own grace and not before.
#[tokio::test]
async fn a_successor_that_withdraws_leaves_the_holder_alone() {
    for queued in [false, true] {
        let met = Met::new(8, NAME).await;
        let rig = &met.rig;
        met.swap().await;
        let swapped = rig.env.now();
        rig.pass(50 * HOUR).await;
        if queued {
            while met.state(&met.next).await != "queued" {
                rig.turn().await;
            }
        }
        app::remove::remove(&rig.app, &met.next, "tenant").await.unwrap();
        rig.pass(3 * DAY).await;
        assert_eq!(met.state(&met.holder).await, "live");
        met.held_by(&met.holder, 1).await;
        assert_eq!(met.told(&met.holder, "handover_ended").await, 1, "{}", rig.story(&met.holder).await);
        assert!(rig.serial_at_edge(NAME).is_some());
        let clocks = sql("SELECT count(*) AS n FROM holdings WHERE successor_id IS NOT NULL");
        assert_eq!(rig.count(clocks).await, 0);
        assert!(rig.env.now().since(swapped) < 7 * DAY);
        rig.pass(7 * DAY + HOUR - rig.env.now().since(swapped)).await;
        assert_eq!(met.state(&met.holder).await, "releasing", "{}", rig.story(&met.holder).await);
        assert_eq!(rig.serial_at_edge(NAME), None);
        rig.check_invariants().await;
    }
}

/// A third claim waits behind the second, and has its turn when that one goes.
#[tokio::test]
async fn a_third_claim_waits_behind_the_second() {
    let met = Met::new(9, NAME).await;
    let rig = &met.rig;
    let c = rig.tenant("gamma").await;
    let third = rig.claim(&c, NAME).await;
    met.swap().await;
    rig.pass(2 * HOUR).await;
    met.txt(&third, true).await;
    rig.pass(20 * HOUR).await;
    assert_eq!(met.told(&third, "held_elsewhere").await, 1);
    let whose = |id: &DomainId| sql("SELECT count(*) AS n FROM holdings WHERE successor_id = $1").bind(id.as_str());
    assert_eq!(rig.count(whose(&met.next)).await, 1);
    app::remove::remove(&rig.app, &met.next, "tenant").await.unwrap();
    rig.pass(HOUR).await;
    assert_eq!(rig.count(whose(&third)).await, 1, "{}", rig.story(&third).await);
    met.way(&met.next, false).await;
    met.way(&third, true).await;
    rig.until_active(&third, 4 * DAY).await;
    met.held_by(&third, 2).await;
    rig.check_invariants().await;
}

/// An apex goes from one tenant to the other and back again; each waits for the other's record only, so nobody is stuck.
#[tokio::test]
async fn an_apex_moves_there_and_back() {
    let met = Met::new(10, "acme.test").await;
    let rig = &met.rig;
    met.txt(&met.holder, false).await;
    met.txt(&met.next, true).await;
    rig.until_active(&met.next, 80 * HOUR).await;
    rig.pass(Duration::from_secs(60)).await;
    let again = rig.claim(&met.tenants[0], "acme.test").await;
    assert_ne!(again, met.holder);
    met.txt(&again, true).await;
    rig.pass(DAY).await;
    assert_eq!(met.state(&again).await, "awaiting_dns", "both records are there: the holder stays");
    met.txt(&met.next, false).await;
    rig.until_active(&again, 80 * HOUR).await;
    met.held_by(&again, 3).await;
    rig.check_invariants().await;
}

/// A successor whose own way to us is not there yet does not get the name; it moves as soon as everything passes.
#[tokio::test]
async fn a_name_does_not_move_before_it_leads_to_its_next_holder() {
    let met = Met::new(11, NAME).await;
    let rig = &met.rig;
    met.txt(&met.holder, false).await;
    met.txt(&met.next, true).await;
    rig.pass(5 * DAY).await;
    assert_eq!((met.state(&met.holder).await.as_str(), met.state(&met.next).await.as_str()), ("live", "awaiting_dns"));
    assert!(rig.serial_at_edge(NAME).is_some());
    met.way(&met.holder, false).await;
    met.way(&met.next, true).await;
    rig.until_active(&met.next, 6 * HOUR).await;
    rig.check_invariants().await;
}

/// The same on both databases: what one runs statement by statement the other runs as one.
#[tokio::test]
async fn names_move_and_pairs_part_on_both_databases() {
    for kind in [Kind::SqliteFile, Kind::Postgres] {
        let test = TestStore::blank(kind).await;
        let met = Met::on(Rig::on(20, &test.url).await, NAME).await;
        let rig = &met.rig;
        met.txt(&met.next, true).await;
        rig.pass(HOUR).await;
        assert_eq!(met.told(&met.holder, "proved_elsewhere").await, 1, "{kind:?}: {}", rig.story(&met.holder).await);
        met.txt(&met.next, false).await;
        rig.pass(HOUR).await;
        met.swap().await;
        rig.pass(HOUR).await;
        met.txt(&met.holder, true).await;
        rig.pass(5 * HOUR).await;
        assert_eq!(met.told(&met.next, "handover_ended").await, 1, "{kind:?}: {}", rig.story(&met.next).await);
        met.txt(&met.holder, false).await;
        rig.pass(5 * HOUR).await;
        met.nearly_over().await;
        rig.until_active(&met.next, 12 * HOUR).await;
        rig.pass(Duration::from_secs(120)).await;
        met.held_by(&met.next, 2).await;
        assert_eq!(met.state(&met.holder).await, "released", "{kind:?}");
        met.nobody_is_named().await;
        let (apex, www) = (Hostname::trusted("acme.test"), Hostname::trusted("www.acme.test"));
        let pair = async || app::pair::claim_with_partner(&rig.app, &met.tenants[1], &apex, Some(&www), "tenant").await;
        let id = pair().await.unwrap().id;
        rig.zones.add("acme.test. 60 IN A 192.0.2.80").unwrap();
        let value = rig.value(&id).await;
        rig.zones.add(&format!("_nameplate-challenge.acme.test. 60 IN TXT \"{value}\"")).unwrap();
        rig.until_active(&id, HOUR).await;
        let routed = || sql("SELECT count(*) AS n FROM routes WHERE redirect_to = 'www.acme.test'");
        assert_eq!(rig.count(routed()).await, 1, "{kind:?}");
        let partner = sql("SELECT linked_domain_id FROM domains WHERE id = $1").bind(id.as_str());
        let partner = rig.app.store.query(partner).await.unwrap()[0].text("linked_domain_id").unwrap();
        let partner: DomainId = partner.parse().unwrap();
        app::remove::remove(&rig.app, &partner, "tenant").await.unwrap();
        rig.pass(Duration::from_secs(60)).await;
        assert_eq!(rig.count(routed()).await, 0, "{kind:?}");
        let told = rig.events(&id).await;
        assert!(["paired", "redirect_set", "partner_gone"].iter().all(|k| told.iter().any(|t| t == k)), "{told:?}");
        rig.check_invariants().await;
        rig.app.store.close().await;
        test.remove().await;
    }
}
