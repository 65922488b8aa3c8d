//! Every kind of event that can be selected is made by the program and arrives at a webhook that selected it.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use nameplate::acme::{AcmeError, Kind};
use nameplate::app::expect::Expect;
use nameplate::app::{self, Settings, reissue};
use nameplate::model::alert::kinds::{Heard, KINDS};
use nameplate::model::hostname::Hostname;
use nameplate::model::ledger::Limit;
use nameplate::model::letting_go::{LettingGo, Revoke};
use nameplate::model::order::Lane;
use nameplate::reach::{Answer, Place, Reach, Reply, Served};
use nameplate::sandbox::ca::Windows;
use nameplate::store::reissues::Selection;

use crate::preflight::{OURS, claimed, prove, world};
use crate::support::met::Met;
use crate::support::rig::Rig;
use crate::support::rig::edge_side::EdgeSide;
use crate::support::told::Told;

const DAY: Duration = Duration::from_secs(86_400);
const HOUR: Duration = Duration::from_secs(3600);
const MINUTE: Duration = Duration::from_secs(60);

/// Another certificate is met by the public name.
struct Elsewhere(EdgeSide);

#[async_trait]
impl Reach for Elsewhere {
    async fn served(&self, host: &Hostname, addresses: &[IpAddr]) -> Vec<Answer<Served>> {
        let mut all = self.0.served(host, addresses).await;
        for served in all.iter_mut().filter_map(|answer| answer.outcome.as_mut().ok()) {
            served.serial = "00ff".to_owned();
        }
        all
    }

    async fn ask(&self, place: &Place, addresses: &[IpAddr]) -> Vec<Answer<Reply>> {
        self.0.ask(place, addresses).await
    }
}

/// What happened in a world, as a webhook got it that selected each kind by its name.
async fn arrived(rig: Rig) -> BTreeSet<String> {
    let told = Told::on(rig).await;
    let all: Vec<&str> = KINDS.iter().map(|kind| kind.word).collect();
    told.webhook(None, &all).await;
    told.number().await;
    told.notifier.round().await.unwrap();
    told.receivers.kinds().into_iter().collect()
}

async fn ties() -> Rig {
    let rig = world(361).await;
    let id = claimed(&rig, "acme.test").await;
    rig.zones.add(&format!("acme.test. 60 IN A {OURS}")).unwrap();
    prove(&rig, &id, "acme.test").await;
    rig.until_active(&id, HOUR).await;
    let tenant = rig.tenant("beta").await;
    let shop = rig.claim(&tenant, "shop.acme.test").await;
    rig.publish(&shop, "shop.acme.test").await;
    rig.until_active(&shop, HOUR).await;
    for (id, name) in [(&id, "acme.test"), (&shop, "shop.acme.test")] {
        rig.unpublish_txt(id, name).await;
        app::check::check_now(&rig.app, id, "tenant").await.unwrap();
    }
    rig.pass(2 * MINUTE).await;
    prove(&rig, &id, "acme.test").await;
    app::check::check_now(&rig.app, &id, "tenant").await.unwrap();
    rig.pass(2 * MINUTE).await;
    rig
}

async fn hand_over() -> Rig {
    let met = Met::new(362, "shop.acme.test").await;
    let rig = &met.rig;
    met.txt(&met.next, true).await;
    rig.pass(HOUR).await;
    met.txt(&met.next, false).await;
    rig.pass(HOUR).await;
    met.swap().await;
    rig.pass(HOUR).await;
    met.txt(&met.holder, true).await;
    rig.pass(5 * HOUR).await;
    met.txt(&met.holder, false).await;
    rig.pass(5 * HOUR).await;
    met.nearly_over().await;
    rig.until_active(&met.next, 12 * HOUR).await;
    rig.pass(2 * MINUTE).await;
    met.rig
}

/// Claims that come to nothing: not published, withdrawn, unproven before their first certificate; an order that fails; a name
/// that is let go of.
async fn ends() -> Rig {
    let rig = Rig::with_limit(363, "sqlite::memory:", Limit { burst: 1, per_secs: 864_000 }).await;
    let tenant = rig.tenant("acme").await;
    rig.claim(&tenant, "never.acme.test").await;
    let withdrawn = rig.claim(&tenant, "withdrawn.acme.test").await;
    app::remove::remove(&rig.app, &withdrawn, "tenant").await.unwrap();
    let first = rig.claim(&tenant, "first.acme.test").await;
    rig.publish(&first, "first.acme.test").await;
    rig.until_active(&first, HOUR).await;
    let waits = rig.claim(&tenant, "waits.acme.test").await;
    rig.publish(&waits, "waits.acme.test").await;
    rig.pass(10 * MINUTE).await;
    rig.unpublish_txt(&waits, "waits.acme.test").await;
    app::check::check_now(&rig.app, &waits, "tenant").await.unwrap();
    rig.pass(HOUR).await;
    app::remove::remove(&rig.app, &first, "tenant").await.unwrap();
    rig.pass_quickly(32 * DAY).await;
    rig
}

/// The CA meets no token, and the public name another certificate.
async fn troubles() -> Rig {
    let mut rig = Rig::new(364).await;
    rig.app.reach = Arc::new(Elsewhere(rig.edge_side.clone()));
    let tenant = rig.tenant("acme").await;
    let id = rig.claim(&tenant, "shop.acme.test").await;
    rig.publish(&id, "shop.acme.test").await;
    rig.until_active(&id, HOUR).await;
    rig.ca.fetch_by(Arc::new(|_, _| None));
    let id = rig.claim(&tenant, "fails.acme.test").await;
    rig.publish(&id, "fails.acme.test").await;
    rig.pass(HOUR).await;
    rig
}

/// Certificates that are replaced out of turn: the CA does not know the one in use, what waits is given up, a tie is lost on the way.
async fn replaced() -> Rig {
    use crate::support::renewals::{live_names, refusal, untie};
    let rig = Rig::new(366).await;
    rig.ca.windows(Windows::None);
    let names = live_names(&rig, 2).await;
    let all = Selection::Issuer("main".to_owned());
    let begin = async || reissue::begin_now(&rig.app.store, &rig.env, &all, Lane::Bulk, "operator").await.unwrap();
    rig.ca.refuse([refusal(409, "alreadyReplaced")]);
    begin().await;
    rig.pass(2 * HOUR).await;
    rig.ca.refuse(std::iter::repeat_n(AcmeError { kind: Kind::Failed, ..refusal(503, "serverInternal") }, 10_000));
    let begun = begin().await;
    rig.pass(HOUR).await;
    reissue::cancel(&rig.app.store, &rig.env, begun.id.as_str(), "operator").await.unwrap();
    rig.pass(HOUR).await;
    begin().await;
    rig.pass(HOUR / 2).await;
    untie(&rig, &names[0].0, &names[0].1).await;
    app::check::check_now(&rig.app, &names[0].0, "tenant").await.unwrap();
    rig.pass(HOUR / 2).await;
    rig
}

/// Names that are let go of: taken back, let go of again and led here for weeks; and one whose release an operator ends.
async fn left() -> Rig {
    let mut rig = Rig::new(367).await;
    let letting_go = LettingGo { revoke: Revoke::Always, ..LettingGo::default() };
    rig.app.settings = Arc::new(Settings { letting_go, ..Settings::clone(&rig.app.settings) });
    let tenant = rig.tenant("acme").await;
    let mut ids = Vec::new();
    for name in ["shop.acme.test", "www.acme.test"] {
        let id = rig.claim(&tenant, name).await;
        rig.publish(&id, name).await;
        rig.until_active(&id, HOUR).await;
        ids.push(id);
    }
    app::remove::remove(&rig.app, &ids[0], "tenant").await.unwrap();
    rig.pass(HOUR).await;
    app::undo::undo(&rig.app, &ids[0], &Expect::ANY, "tenant").await.unwrap();
    rig.until_active(&ids[0], HOUR).await;
    for id in &ids {
        app::remove::remove(&rig.app, id, "tenant").await.unwrap();
    }
    app::undo::force_release(&rig.app, &ids[1], "asked for by its owner", &Expect::ANY, "operator").await.unwrap();
    for leads_here in [true, false] {
        if !leads_here {
            let target = rig.domain_text(&ids[0], "target").await.unwrap();
            rig.zones.remove(&format!("shop.acme.test. 60 IN CNAME {target}.")).unwrap();
        }
        for _ in 0..12 * 6 {
            rig.pass_quickly(4 * HOUR).await;
            app::resting::round(&rig.app).await.unwrap();
            app::revoke::round(&rig.app).await.unwrap();
        }
    }
    rig
}

/// Alerts, and places that are switched off, are made by those who watch and tell.
async fn watched() -> BTreeSet<String> {
    let told = Told::new(365).await;
    let all: Vec<&str> = KINDS.iter().map(|kind| kind.word).collect();
    told.webhook(None, &all).await;
    let (tenant, ids) = told.live("acme", 1).await;
    told.webhook_at(Some(&tenant), "https://hooks.acme.test/gone", &["certificate_ending"]).await;
    told.receivers.answer(|got| Ok(if got.url.ends_with("/gone") { 410 } else { 200 }));
    let hostile = "acme.test. 60 IN CAA 0 issue \"other.example\"";
    for there in [true, false] {
        let changed = if there { told.rig.zones.add(hostile).map(drop) } else { told.rig.zones.remove(hostile) };
        changed.unwrap();
        app::check::check_now(&told.rig.app, &ids[0], "tenant").await.unwrap();
        told.rig.pass(MINUTE).await;
        told.beats(MINUTE).await;
    }
    told.lives(&ids[0], 90 * DAY).await;
    told.rig.hand.advance(90 * DAY * 4 / 5);
    told.beats(HOUR).await;
    told.renewed(&ids[0], 90 * DAY).await;
    told.beats(HOUR).await;
    app::offboard::begin(&told.rig.app.store, &told.rig.env, &tenant, "operator").await.unwrap();
    told.beats(MINUTE).await;
    told.receivers.kinds().into_iter().collect()
}

/// B91: every selectable event has a test that brings it to a receiver. A kind that is added has to be made here.
#[tokio::test]
async fn b91_every_kind_that_can_be_selected_arrives_at_who_selected_it() {
    let mut by: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
    by.insert("ties", arrived(ties().await).await);
    by.insert("hand-over", arrived(hand_over().await).await);
    by.insert("ends", arrived(ends().await).await);
    by.insert("troubles", arrived(troubles().await).await);
    by.insert("replaced", arrived(replaced().await).await);
    by.insert("left", arrived(left().await).await);
    by.insert("watched", watched().await);
    let made: BTreeSet<&str> = by.values().flatten().map(String::as_str).collect();
    let missing: Vec<&str> = KINDS.iter().map(|kind| kind.word).filter(|word| !made.contains(word)).collect();
    assert!(missing.is_empty(), "no test makes {missing:?}; what was made: {by:#?}");
    assert!(KINDS.iter().any(|kind| kind.heard == Heard::Platform));
}
