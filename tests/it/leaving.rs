//! Who hears of what after somebody left: a tenant of its own names as long as one rests, and the operators of what lasts.

use std::sync::Arc;
use std::time::Duration;

use nameplate::app::notify::{Notifier, NotifySettings};
use nameplate::app::{self, alerts, alerts::AlertSettings};
use nameplate::model::conclude::FRESH_EDGE;
use nameplate::model::id::{CertificateId, DomainId, TenantId};
use nameplate::store::edges::{self, EdgeStatus, NotServed};
use nameplate::store::retention::{self, Keep};
use nameplate::store::{self, feed, rollout, sql};
use serde_json::json;

use crate::preflight::{OURS, claimed, prove, world};
use crate::support::rig::Rig;
use crate::support::stores::{Kind, TestStore};
use crate::support::told::{Got, Mailbox, OPERATOR, Receivers, Told};
use crate::support::web::Web;

const MINUTE: Duration = Duration::from_secs(60);
const HOUR: Duration = Duration::from_secs(3600);
const DAY: Duration = Duration::from_secs(24 * 3600);

/// API, those who tell, and those who are told, over one rig.
struct World {
    web: Web,
    receivers: Receivers,
    mailbox: Mailbox,
    notifier: Notifier,
    alerts: AlertSettings,
}

impl World {
    async fn on(rig: Rig) -> World {
        rig.zones.add("hooks.acme.test. 60 IN A 192.0.2.99").unwrap();
        let (receivers, mailbox) = (Receivers::new(&rig), Mailbox::default());
        let settings = NotifySettings { operators: vec![OPERATOR.to_owned()], ..NotifySettings::default() };
        let (hooks, mailer) = (Arc::new(receivers.clone()), Arc::new(mailbox.clone()));
        let notifier = Notifier::new(rig.app.clone(), hooks, Some(mailer), settings);
        World { web: Web::on(rig, "").await, receivers, mailbox, notifier, alerts: AlertSettings::default() }
    }

    fn rig(&self) -> &Rig {
        &self.web.rig
    }

    /// A tenant that wants to be told of everything.
    async fn tenant(&self, slug: &str) -> TenantId {
        let id = self.rig().tenant(slug).await;
        let hook = json!({ "tenant": id.as_str(), "url": format!("https://hooks.acme.test/{slug}"), "kinds": ["*"] });
        let made = self.web.api(&self.web.operator, "POST", "/api/v1/webhooks", Some(hook)).await;
        assert_eq!(made.status, 201, "{}", made.body);
        let contact = json!({ "email": format!("dns@{slug}.test") });
        let made = self.web.api(&self.web.operator, "POST", &format!("/api/v1/tenants/{id}/contacts"), Some(contact)).await;
        assert_eq!(made.status, 201, "{}", made.body);
        id
    }

    async fn live(&self, tenant: &TenantId, name: &str) -> DomainId {
        let id = self.rig().claim(tenant, name).await;
        self.rig().publish(&id, name).await;
        self.rig().until_active(&id, HOUR).await;
        id
    }

    /// What waits is told.
    async fn tell(&self) {
        let mut tx = self.rig().app.store.begin().await.unwrap();
        feed::number(&mut tx, "test", self.rig().env.now(), 10_000).await.unwrap();
        tx.commit().await.unwrap();
        self.notifier.round().await.unwrap();
    }

    async fn prune(&self) {
        let now = self.rig().env.now();
        let keep = Keep { deliveries: now - 30 * DAY, alerts: now - 180 * DAY };
        retention::prune(&self.rig().app.store, keep, now).await.unwrap();
    }

    /// What the loops of a process do meanwhile.
    async fn pass(&self, time: Duration) {
        self.rig().stride(4 * HOUR);
        let end = self.rig().env.now() + time;
        while self.rig().env.now() < end {
            self.rig().turn().await;
            app::resting::round(&self.rig().app).await.unwrap();
            alerts::pass(&self.rig().app, &self.alerts).await.unwrap();
            self.tell().await;
            self.prune().await;
        }
    }

    async fn leave(&self, slug: &str) {
        let left = self.web.api(&self.web.operator, "DELETE", &format!("/api/v1/tenants/{slug}"), None).await;
        assert_eq!(left.status, 202, "{}", left.body);
    }

    /// What came to a tenant's own place, tried or taken, after so much before.
    fn came(&self, slug: &str, before: usize) -> Vec<Got> {
        let tries = self.receivers.tries();
        tries.into_iter().skip(before).filter(|got| got.url.ends_with(&format!("/{slug}"))).collect()
    }

    fn kinds(&self, slug: &str, before: usize) -> Vec<String> {
        let mut kinds: Vec<String> = self.came(slug, before).iter().map(|got| got.kind().to_owned()).collect();
        kinds.sort();
        kinds
    }

    fn mail(&self, to: &str, before: usize) -> String {
        let all = self.mailbox.all();
        all.into_iter().skip(before).filter(|m| m.to == to).map(|m| m.text).collect::<Vec<_>>().join("\n")
    }

    /// Places and contacts that there are of a tenant.
    async fn reachable(&self, tenant: &TenantId) -> (i64, i64) {
        let places = sql("SELECT count(*) AS n FROM webhook_endpoints WHERE tenant_id = $1").bind(tenant.as_str());
        let contacts = sql("SELECT count(*) AS n FROM contacts WHERE tenant_id = $1").bind(tenant.as_str());
        (self.rig().count(places).await, self.rig().count(contacts).await)
    }

    fn point_elsewhere(&self, name: &str, slug: &str) {
        self.rig().zones.remove(&format!("{name}. 60 IN CNAME {slug}.app.example.")).unwrap();
    }
}

/// What the platform was told of one condition: the event and the count.
fn of_platform(receivers: &Receivers, kind: &str) -> Vec<(String, i64)> {
    let taken = receivers.taken();
    let ours = taken.iter().filter(|got| got.url.ends_with("/ops") && got.body["data"]["detail"]["kind"] == kind);
    ours.map(|got| (got.kind().to_owned(), got.body["data"]["detail"]["count"].as_i64().unwrap_or_default())).collect()
}

/// A tenant that left hears by webhook and mail of the names it left behind, of nothing else, and of nothing when the last is free; the
/// operators have one alert, once a week.
#[tokio::test]
async fn a_tenant_that_left_hears_of_its_names_until_the_last_is_free() {
    for kind in [Kind::SqliteFile, Kind::Postgres] {
        let test = TestStore::blank(kind).await;
        let world = World::on(Rig::on(501, &test.url).await).await;
        let (acme, globex) = (world.tenant("acme").await, world.tenant("globex").await);
        let ops = json!({ "platform": true, "url": "https://hooks.acme.test/ops", "kinds": ["alert_raised", "alert_resolved", "tenant_removed"] });
        let made = world.web.api(&world.web.operator, "POST", "/api/v1/webhooks", Some(ops)).await;
        assert_eq!(made.status, 201, "{}", made.body);
        for name in ["a.acme.test", "b.acme.test"] {
            world.live(&acme, name).await;
        }
        world.live(&globex, "shop.globex.test").await;
        world.pass(HOUR).await;
        assert!(world.mail("dns@acme.test", 0).contains("a.acme.test"));
        // What waits for it when it leaves is not sent any more.
        world.receivers.answer(|got| Ok(if got.url.ends_with("/acme") { 503 } else { 200 }));
        let third = world.live(&acme, "c.acme.test").await;
        world.tell().await;
        assert!(!world.came("acme", 0).last().unwrap().taken);
        world.leave("acme").await;
        world.receivers.up();
        let (before, mails) = (world.receivers.tries().len(), world.mailbox.all().len());
        world.pass(9 * DAY).await;
        let told = |removed: usize, dangles: usize, gone: usize| {
            let of = |word: &str, n: usize| std::iter::repeat_n(word.to_owned(), n);
            of("name_dangles", dangles).chain(of("name_let_go", gone)).chain(of("removed", removed)).collect::<Vec<_>>()
        };
        assert_eq!(world.kinds("acme", before), told(3, 6, 0), "{kind:?}");
        let mail = world.mail("dns@acme.test", mails);
        let record = "delete the CNAME record of a.acme.test that leads to acme.app.example";
        assert_eq!(mail.matches(record).count(), 2, "{kind:?}: {mail}");
        assert!(mail.contains("when their account ended") && !mail.contains("Whoever manages them"), "{kind:?}: {mail}");
        let served = sql("SELECT cause FROM events WHERE kind = 'active' AND domain_id = $1").bind(third.as_str());
        let served = world.rig().app.store.query(served).await.unwrap()[0].text("cause").unwrap();
        assert!(mail.contains("c.acme.test") && !mail.contains(&served), "{kind:?}: {served} in {mail}");
        assert_eq!(world.kinds("globex", before), Vec::<String>::new(), "{kind:?}: nobody else is told");
        assert_eq!(of_platform(&world.receivers, "names_left_behind").len(), 2, "{kind:?}: after a day, and after a week");
        assert_eq!(of_platform(&world.receivers, "names_left_behind")[1], ("alert_raised".to_owned(), 3), "{kind:?}");
        assert!(world.mail(OPERATOR, mails).contains("3 names were let go of and lead here"), "{kind:?}");
        assert!(world.receivers.kinds().contains(&"tenant_removed".to_owned()), "{kind:?}");
        // One after the other is let go of: as long as one rests, it can be told.
        for name in ["a.acme.test", "c.acme.test"] {
            world.point_elsewhere(name, "acme");
        }
        world.pass(3 * DAY).await;
        assert_eq!(world.kinds("acme", before), told(3, 6, 2), "{kind:?}");
        let free = "SELECT count(*) AS n FROM holdings WHERE state = 'free'";
        assert_eq!(world.rig().count(sql(free)).await, 2, "{kind:?}");
        assert_eq!(world.reachable(&acme).await, (1, 1), "{kind:?}: one rests");
        // The last: what could not be told before it is free is told to nobody.
        world.receivers.answer(|got| Ok(if got.url.ends_with("/acme") { 503 } else { 200 }));
        world.point_elsewhere("b.acme.test", "acme");
        world.pass(3 * DAY).await;
        assert_eq!(world.rig().count(sql(free)).await, 3, "{kind:?}");
        world.receivers.up();
        let (before, mails) = (world.receivers.tries().len(), world.mailbox.all().len());
        world.pass(9 * DAY).await;
        assert_eq!(world.kinds("acme", before), Vec::<String>::new(), "{kind:?}");
        assert_eq!(world.mail("dns@acme.test", mails), "", "{kind:?}");
        assert_eq!(world.reachable(&acme).await, (0, 0), "{kind:?}: secrets and addresses go with the last name");
        assert_eq!(world.reachable(&globex).await, (1, 1), "{kind:?}");
        let last = of_platform(&world.receivers, "names_left_behind");
        assert_eq!(last.last().unwrap().0, "alert_resolved", "{kind:?}: {last:?}");
        world.rig().check_invariants().await;
        world.rig().app.store.close().await;
        test.remove().await;
    }
}

/// A tenant whose names were never served has nothing to hear of, and is forgotten as soon as its claims are withdrawn.
#[tokio::test]
async fn a_tenant_that_had_no_name_is_told_nothing_after_it_left() {
    let world = World::on(Rig::new(502).await).await;
    let acme = world.tenant("acme").await;
    world.rig().claim(&acme, "never.acme.test").await;
    world.pass(HOUR).await;
    let (before, mails) = (world.receivers.tries().len(), world.mailbox.all().len());
    world.leave("acme").await;
    world.pass(DAY).await;
    assert_eq!((world.kinds("acme", before), world.mail("dns@acme.test", mails)), (Vec::new(), String::new()));
    assert_eq!(world.reachable(&acme).await, (0, 0));
}

/// What is asked for once more reaches nobody who left, unless it is one of the names that rest.
#[tokio::test]
async fn a_replay_reaches_nobody_who_left() {
    let world = World::on(Rig::new(503).await).await;
    let acme = world.tenant("acme").await;
    world.live(&acme, "a.acme.test").await;
    world.pass(HOUR).await;
    world.leave("acme").await;
    world.pass(DAY + 6 * HOUR).await;
    let rows = world.rig().app.store.query(sql("SELECT id FROM webhook_endpoints")).await.unwrap();
    let place = rows[0].parse("id").unwrap();
    let replay = async |word: &'static str| {
        let of = sql("SELECT id FROM events WHERE kind = $1 ORDER BY position LIMIT 1").bind(word);
        let event = world.rig().app.store.query(of).await.unwrap()[0].parse("id").unwrap();
        let stmt = store::deliveries::replay(&place, &event, world.rig().env.now());
        assert_eq!(world.rig().app.store.execute(stmt).await.unwrap(), 1, "{word}");
        let before = world.receivers.tries().len();
        world.tell().await;
        world.kinds("acme", before)
    };
    assert_eq!(replay("active").await, Vec::<String>::new());
    assert_eq!(replay("name_dangles").await, ["name_dangles"]);
}

/// At the top of a zone there is no CNAME to be deleted.
#[tokio::test]
async fn the_reminder_names_the_record_that_was_seen() {
    let rig = world(504).await;
    let id = claimed(&rig, "acme.test").await;
    rig.zones.add(&format!("acme.test. 60 IN A {OURS}")).unwrap();
    prove(&rig, &id, "acme.test").await;
    rig.until_active(&id, HOUR).await;
    app::remove::remove(&rig.app, &id, "tenant").await.unwrap();
    rig.stride(4 * HOUR);
    let end = rig.env.now() + 2 * DAY;
    while rig.env.now() < end {
        rig.turn().await;
        app::resting::round(&rig.app).await.unwrap();
    }
    let told = sql("SELECT cause, detail FROM events WHERE kind = 'name_dangles'");
    let rows = rig.app.store.query(told).await.unwrap();
    assert_eq!(rows.len(), 1);
    let cause = rows[0].text("cause").unwrap();
    assert!(cause.contains(&format!("delete the A record of acme.test with {OURS}")) && !cause.contains("CNAME"), "{cause}");
    let detail: serde_json::Value = rows[0].json("detail").unwrap();
    assert_eq!(detail["records"], json!([format!("A {OURS}")]));
}

/// What an edge says at a heartbeat, through the door that the feed has for it.
async fn heartbeat(rig: &Rig, exceptions: &[(CertificateId, String)]) {
    rig.edge_follows().await;
    let mut tx = rig.app.store.begin().await.unwrap();
    let position = feed::position(&mut tx).await.unwrap();
    let not_served = |(certificate, observed): &(CertificateId, String)| NotServed {
        certificate: certificate.clone(),
        observed: observed.clone(),
        serial: None,
    };
    let exceptions: Vec<NotServed> = exceptions.iter().map(not_served).collect();
    edges::ack(&mut tx, &rig.edge, position, &exceptions, rig.env.now()).await.unwrap();
    tx.commit().await.unwrap();
}

/// B65: a counted edge that goes on with something else is told to operators after ten minutes, whatever else it says meanwhile, and
/// the alert ends when it is healed.
#[tokio::test]
async fn b65_an_edge_that_serves_another_certificate_for_long_is_told_to_operators() {
    for kind in [Kind::SqliteMemory, Kind::Postgres] {
        let test = TestStore::blank(kind).await;
        let told = Told::on(Rig::on(505, &test.url).await).await;
        let (_, ids) = told.live("acme", 2).await;
        told.webhook_at(None, "https://hooks.acme.test/ops", &["alert_raised", "alert_resolved"]).await;
        let mut exceptions = Vec::new();
        for id in &ids {
            let id: CertificateId = told.rig.domain_text(id, "certificate_id").await.unwrap().parse().unwrap();
            exceptions.push((id, "serial 02".to_owned()));
        }
        let beats = async |time: Duration, exceptions: &[(CertificateId, String)]| {
            let end = told.rig.env.now() + time;
            while told.rig.env.now() < end {
                heartbeat(&told.rig, exceptions).await;
                told.beat().await;
            }
        };
        let heard = || of_platform(&told.receivers, "edge_serves_another");
        beats(9 * MINUTE, &exceptions).await;
        assert_eq!(heard(), [], "{kind:?}: a rollout may take so long");
        // It says something else of the one, and nothing more of the other, which begins anew.
        let changed = [(exceptions[0].0.clone(), "the handshake failed".to_owned())];
        beats(2 * MINUTE, &changed).await;
        assert_eq!(heard(), [("alert_raised".to_owned(), 1)], "{kind:?}");
        let said =
            "1 edge has not served 1 certificate of their book for more than ten minutes, but something else: edge-1;";
        assert!(told.receivers.taken().iter().any(|got| got.body.to_string().contains(said)), "{kind:?}");
        beats(HOUR / 2, &exceptions).await;
        assert_eq!(heard().len(), 1, "{kind:?}: once");
        beats(7 * MINUTE, &[]).await;
        assert_eq!(heard().last().unwrap().0, "alert_resolved", "{kind:?}");
        // One that does not count is nobody's trouble.
        let store = &told.rig.app.store;
        store.execute(edges::set_status(&told.rig.edge, EdgeStatus::Drained)).await.unwrap();
        beats(12 * MINUTE, &exceptions).await;
        assert_eq!(heard().len(), 2, "{kind:?}");
        let now = told.rig.env.now();
        assert_eq!(rollout::instead(store, now, now - FRESH_EDGE, 3).await.unwrap(), None, "{kind:?}");
        store.close().await;
        test.remove().await;
    }
}

/// Whatever keeps a renewal from succeeding colours its day long before the certificate ends, and each name counts once.
#[tokio::test]
async fn the_calendar_shows_whose_renewal_is_at_risk() {
    for kind in [Kind::SqliteMemory, Kind::Postgres] {
        let test = TestStore::blank(kind).await;
        let told = Told::on(Rig::on(506, &test.url).await).await;
        let (_, ids) = told.live("acme", 2).await;
        let store = told.rig.app.store.clone();
        let days = async || store::alerts::days_by_cause(&store, told.rig.env.now() + 200 * DAY).await.unwrap();
        let causes = async || days().await.into_iter().map(|(_, cause, n)| (cause, n)).collect::<Vec<_>>();
        assert_eq!(causes().await, []);
        told.rig.zones.add("acme.test. 60 IN CAA 0 issue \"other.example\"").unwrap();
        app::check::check_now(&told.rig.app, &ids[0], "tenant").await.unwrap();
        told.rig.pass(MINUTE).await;
        told.beats(MINUTE).await;
        let at_risk = causes().await;
        assert_eq!(at_risk.len(), 1, "{kind:?}: {at_risk:?}");
        assert!(at_risk[0].0.starts_with("tenant_dns/caa") && at_risk[0].1 == 1, "{kind:?}: {at_risk:?}");
        let end = sql(
            "SELECT c.not_after / 86400000000 AS n FROM certificates c JOIN domains d ON d.certificate_id = c.id WHERE d.id = $1",
        );
        assert_eq!(days().await[0].0, told.rig.count(end.bind(ids[0].as_str())).await, "{kind:?}");
        // Both end soon as well: the one name is still one.
        for id in &ids {
            told.lives(id, 90 * DAY).await;
        }
        told.rig.hand.advance(90 * DAY * 4 / 5);
        told.beats(HOUR).await;
        let both: i64 = causes().await.iter().map(|(_, n)| n).sum();
        assert_eq!(both, 2, "{kind:?}: {:?}", causes().await);
        if kind == Kind::Postgres {
            store.close().await;
            test.remove().await;
            continue;
        }
        test.remove().await;
        let web = Web::on(told.rig, "").await;
        let operator = web.signed_in_operator().await;
        let page = web.page(&operator, "/operator/expiry").await.body;
        assert!(page.contains("<rect class=\"op-fill-link\""), "{page}");
    }
}
