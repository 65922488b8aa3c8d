//! Claims that meet: who is told what, when a name moves from one tenant to another, and that nothing else moves it.

use std::time::Duration;

use nameplate::app;
use nameplate::dns::world::{Fault, How};
use nameplate::model::claim::Claim;
use nameplate::model::id::{DomainId, TenantId};
use nameplate::store::sql;
use serde_json::json;

use crate::support::rig::Rig;
use crate::support::web::Web;

const NAME: &str = "shop.acme.test";
const HOUR: Duration = Duration::from_secs(3600);
const DAY: Duration = Duration::from_secs(24 * 3600);

/// Two tenants and their claims on one name; the first one is live.
struct Met {
    rig: Rig,
    name: &'static str,
    tenants: [TenantId; 2],
    holder: DomainId,
    next: DomainId,
}

impl Met {
    async fn new(seed: u64, name: &'static str) -> Met {
        Met::on(Rig::new(seed).await, name).await
    }

    async fn on(rig: Rig, name: &'static str) -> Met {
        let tenants = [rig.tenant("acme").await, rig.tenant("beta").await];
        let holder = rig.claim(&tenants[0], name).await;
        let met = Met { next: rig.claim(&tenants[1], name).await, rig, name, tenants, holder };
        met.txt(&met.holder, true).await;
        met.way(&met.holder, true).await;
        met.rig.until_active(&met.holder, HOUR).await;
        met
    }

    async fn txt(&self, id: &DomainId, there: bool) {
        let line = format!("_nameplate-challenge.{}. 60 IN TXT \"{}\"", self.name, self.rig.value(id).await);
        if there {
            self.rig.zones.add(&line).unwrap();
        } else {
            self.rig.zones.remove(&line).unwrap();
        }
    }

    /// The way to us: a CNAME to the claim's target, at an apex our address.
    async fn way(&self, id: &DomainId, there: bool) {
        let target = self.rig.domain_text(id, "target").await.unwrap();
        let line = match self.name {
            "acme.test" => "acme.test. 60 IN A 192.0.2.80".to_owned(),
            name => format!("{name}. 60 IN CNAME {target}."),
        };
        if there {
            self.rig.zones.add(&line).unwrap();
        } else {
            self.rig.zones.remove(&line).unwrap();
        }
    }

    /// The zone's owner hands the name to the other tenant.
    async fn swap(&self) {
        self.txt(&self.holder, false).await;
        self.txt(&self.next, true).await;
        self.way(&self.holder, false).await;
        self.way(&self.next, true).await;
    }

    /// The clock as it stands after 71 hours, without living through them.
    async fn nearly_over(&self) {
        self.rig.pass(Duration::from_secs(1200)).await;
        let counted = i64::try_from((71 * HOUR).as_micros()).unwrap();
        let stmt = sql("UPDATE holdings SET successor_counted = $1 WHERE successor_id = $2");
        assert_eq!(self.rig.app.store.execute(stmt.bind(counted).bind(self.next.as_str())).await.unwrap(), 1);
    }

    async fn state(&self, id: &DomainId) -> String {
        self.rig.domain_text(id, "claim").await.unwrap()
    }

    async fn told(&self, id: &DomainId, kind: &str) -> usize {
        self.rig.events(id).await.iter().filter(|k| *k == kind).count()
    }

    /// Nothing that a tenant can see names the other one.
    async fn nobody_is_named(&self) {
        for (id, other) in [(&self.holder, 1), (&self.next, 0)] {
            let stmt =
                sql("SELECT e.cause, e.detail, e.actor, d.evidence FROM events e JOIN domains d ON d.id = e.domain_id \
                 WHERE d.id = $1");
            for row in self.rig.app.store.query(stmt.bind(id.as_str())).await.unwrap() {
                let said: String =
                    ["cause", "detail", "actor", "evidence"].iter().map(|c| row.text(c).unwrap().to_lowercase()).collect();
                // The host of the other tenant may stand in DNS, which anybody can read.
                let said = said.replace("acme.test", "").replace("acme.app.example", "").replace("beta.app.example", "");
                assert!(!said.contains(self.tenants[other].as_str()), "{said}");
                assert!(!said.contains(["acme", "beta"][other]), "{said}");
                let others = if other == 1 { &self.next } else { &self.holder };
                assert!(!said.contains(others.as_str()), "{said}");
            }
        }
    }

    async fn held_by(&self, id: &DomainId, term: i64) {
        let stmt = sql("SELECT term AS n FROM holdings WHERE hostname = $1 AND domain_id = $2 AND state = 'held'");
        assert_eq!(self.rig.count(stmt.bind(self.name).bind(id.as_str())).await, term);
    }
}

/// Until the claimant's own record is there a held name looks exactly like a free one; then both are told, once.
#[tokio::test]
async fn a_held_name_is_told_of_only_to_whom_has_proved_it() {
    let met = Met::new(1, NAME).await;
    let rig = &met.rig;
    let before = rig.events(&met.holder).await;
    rig.pass(2 * HOUR).await;
    assert_eq!(rig.events(&met.next).await, ["claimed", "evidence_changed"], "{}", rig.story(&met.next).await);
    assert_eq!(rig.events(&met.holder).await, before, "the holder hears of no claim that has proved nothing");
    met.txt(&met.next, true).await;
    rig.pass(2 * HOUR).await;
    assert_eq!(met.told(&met.next, "held_elsewhere").await, 1);
    assert_eq!(met.told(&met.holder, "proved_elsewhere").await, 1, "{}", rig.story(&met.holder).await);
    rig.pass(5 * DAY).await;
    assert_eq!((met.state(&met.holder).await.as_str(), met.state(&met.next).await.as_str()), ("live", "awaiting_dns"));
    assert_eq!(met.told(&met.next, "held_elsewhere").await, 1);
    assert_eq!(met.told(&met.holder, "proved_elsewhere").await, 1);
    met.nobody_is_named().await;
    rig.check_invariants().await;
}

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

/// A successor that withdraws, before its time and while its certificate is under way, leaves the holder as it was.
#[tokio::test]
async fn a_successor_that_withdraws_leaves_the_holder_alone() {
    for queued in [false, true] {
        let met = Met::new(8, NAME).await;
        let rig = &met.rig;
        met.swap().await;
        rig.pass(50 * HOUR).await;
        if queued {
            while met.state(&met.next).await != "queued" {
                rig.turn().await;
            }
        }
        app::remove::remove(&rig.app, &met.next, "tenant").await.unwrap();
        rig.pass(5 * DAY).await;
        assert_eq!(met.state(&met.holder).await, "live");
        met.held_by(&met.holder, 1).await;
        assert_eq!(met.told(&met.holder, "handover_ended").await, 1, "{}", rig.story(&met.holder).await);
        assert!(rig.serial_at_edge(NAME).is_some());
        let clocks = sql("SELECT count(*) AS n FROM holdings WHERE successor_id IS NOT NULL");
        assert_eq!(rig.count(clocks).await, 0);
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

/// Whoever holds a name above one that another tenant has proved hears of it, once, by hostname.
#[tokio::test]
async fn a_parents_holder_hears_of_a_claim_beneath() {
    let rig = Rig::new(12).await;
    let (a, b) = (rig.tenant("acme").await, rig.tenant("beta").await);
    rig.zones.add("acme.test. 60 IN A 192.0.2.80").unwrap();
    let apex = rig.claim(&a, "acme.test").await;
    let parent = rig.claim(&a, "support.acme.test").await;
    let value = rig.value(&apex).await;
    rig.zones.add(&format!("_nameplate-challenge.acme.test. 60 IN TXT \"{value}\"")).unwrap();
    rig.publish(&parent, "support.acme.test").await;
    rig.until_active(&apex, HOUR).await;
    rig.until_active(&parent, HOUR).await;
    let own = rig.claim(&a, "y.support.acme.test").await;
    let other = rig.claim(&b, "x.support.acme.test").await;
    rig.publish(&own, "y.support.acme.test").await;
    rig.pass(2 * HOUR).await;
    for id in [&apex, &parent] {
        assert!(!rig.events(id).await.contains(&"claim_beneath".to_owned()), "nothing is proven, and own names are silent");
    }
    let value = rig.value(&other).await;
    let proof = format!("_nameplate-challenge.x.support.acme.test. 60 IN TXT \"{value}\"");
    rig.zones.add(&proof).unwrap();
    rig.pass(2 * HOUR).await;
    for id in [&apex, &parent] {
        let told: Vec<_> = rig.events(id).await.into_iter().filter(|k| k == "claim_beneath").collect();
        assert_eq!(told.len(), 1, "{}", rig.story(id).await);
        let stmt = sql("SELECT cause, detail FROM events WHERE domain_id = $1 AND kind = 'claim_beneath'").bind(id.as_str());
        let rows = rig.app.store.query(stmt).await.unwrap();
        let said = format!("{} {}", rows[0].text("cause").unwrap(), rows[0].text("detail").unwrap());
        assert!(said.contains("x.support.acme.test") && !said.contains("beta") && !said.contains(b.as_str()), "{said}");
    }
    rig.zones.remove(&proof).unwrap();
    rig.pass(6 * HOUR).await;
    rig.zones.add(&proof).unwrap();
    rig.pass(6 * HOUR).await;
    assert_eq!(rig.events(&parent).await.iter().filter(|k| *k == "claim_beneath").count(), 1, "once a claim");
    rig.check_invariants().await;
}

/// A wildcard and an exact name are two names: each has a holder of its own, and neither hears of the other as its double.
#[tokio::test]
async fn wildcards_and_exact_names_are_held_separately() {
    let rig = Rig::new(13).await;
    let (a, b) = (rig.tenant("acme").await, rig.tenant("beta").await);
    let exact = rig.claim(&a, NAME).await;
    let wild = rig.claim(&b, "*.acme.test").await;
    rig.publish(&exact, NAME).await;
    rig.publish(&wild, "*.acme.test").await;
    rig.until_active(&exact, HOUR).await;
    let holding = |name: &str, id: &DomainId| {
        sql("SELECT count(*) AS n FROM holdings WHERE hostname = $1 AND domain_id = $2").bind(name).bind(id.as_str())
    };
    assert_eq!(rig.count(holding(NAME, &exact)).await, 1);
    assert_eq!(rig.count(holding("*.acme.test", &exact)).await, 0);
    let seen = rig.events(&exact).await;
    assert!(!seen.contains(&"proved_elsewhere".to_owned()), "{seen:?}");
    rig.check_invariants().await;
}

/// By no route and no word can a tenant tell a held name from a free one before its own record is seen.
#[tokio::test]
async fn a_held_name_looks_like_a_free_one_through_every_route() {
    let mut seen = Vec::new();
    for held in [false, true] {
        let web = Web::new(81).await;
        let (acme, _) = web.tenant("acme").await;
        let (beta, token) = web.tenant("beta").await;
        let holder = web.rig.claim(&acme, if held { NAME } else { "other.acme.test" }).await;
        web.rig.publish(&holder, if held { NAME } else { "other.acme.test" }).await;
        web.rig.until_active(&holder, HOUR).await;
        let made = web.api(&token, "POST", "/api/v1/domains", Some(json!({ "hostname": NAME }))).await;
        assert_eq!(made.status, 201, "{}", made.body);
        let id: DomainId = made.json()["id"].as_str().unwrap().parse().unwrap();
        let (value, began) = (web.rig.value(&id).await, web.rig.env.now());
        // The same DNS in both worlds, so that what differs is what we say.
        let target = web.rig.domain_text(&holder, "target").await.unwrap();
        if !held {
            web.rig.zones.add(&format!("{NAME}. 60 IN CNAME {target}.")).unwrap();
            let record = format!("_nameplate-challenge.{NAME}. 60 IN TXT \"{}\"", web.rig.value(&holder).await);
            web.rig.zones.add(&record).unwrap();
        }
        web.rig.pass(HOUR).await;
        let cookie = web.admin(&beta).await;
        let mut told = format!("{} {}", made.status, made.body);
        for path in [
            format!("/api/v1/domains/{id}"),
            format!("/api/v1/domains/{id}/evidence"),
            format!("/api/v1/domains?hostname={NAME}"),
            format!("/api/v1/explain?hostname={NAME}"),
            format!("/api/v1/events?domain={id}"),
        ] {
            told += &web.api(&token, "GET", &path, None).await.body;
        }
        told += &web.page(&cookie, &format!("/domains/{id}")).await.body;
        told += &web.page(&cookie, "/domains").await.body;
        let due = web.rig.app.store.query(sql("SELECT due_at FROM domains WHERE id = $1").bind(id.as_str())).await.unwrap();
        let rhythm = due[0].moment("due_at").unwrap().since(began);
        told += &format!(" {rhythm:?} {:?}", web.rig.events(&id).await);
        for (what, with) in [(value.as_str(), "VALUE"), (id.as_str(), "ID"), (&web.rig.value(&holder).await, "THEIRS")] {
            told = told.replace(what, with);
        }
        seen.push(words(&told));
    }
    assert_eq!(seen[0], seen[1]);
}

/// What is said, without what is drawn anew in every world: times, tokens, positions.
fn words(text: &str) -> Vec<String> {
    let drawn = |c: char| c.is_ascii_digit();
    let split = text.split(|c: char| !(c.is_alphanumeric() || c == '_' || c == '-' || c == '.'));
    split.filter(|w| !w.is_empty() && !w.contains(drawn)).map(str::to_owned).collect()
}
