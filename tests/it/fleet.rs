//! The fleet in numbers and lists: what is counted is what the model says, whatever happened before.

use std::collections::BTreeMap;
use std::time::Duration;

use nameplate::app::fleet::{self, Wanted};
use nameplate::app::{claim, remove};
use nameplate::model::claim::Claim;
use nameplate::model::dispatch::{Waiting, dispatch};
use nameplate::model::evidence::Actor;
use nameplate::model::hostname::Hostname;
use nameplate::model::id::{DomainId, TenantId};
use nameplate::model::ledger::Limit;
use nameplate::model::moment::Moment;
use nameplate::model::standing::Standing;
use nameplate::store::fleet::counts;
use nameplate::store::fleet::lists::After;
use nameplate::store::heads::heads;
use nameplate::store::{issuers, ledger, sql};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

use crate::support::fleet_seed;
use crate::support::rig::{Rig, START};
use crate::support::stores::{Kind, TestStore};

/// What the counts must say, from the rows themselves.
async fn counted_by_hand(rig: &Rig) -> BTreeMap<(Claim, Option<Standing>, &'static str), i64> {
    let rows = rig.app.store.query(sql("SELECT claim, standing, acts FROM domains")).await.unwrap();
    let mut counts = BTreeMap::new();
    for row in rows {
        let standing = Standing::from_code(&row.text("standing").unwrap());
        let acts = Actor::from_word(&row.text("acts").unwrap()).unwrap();
        *counts.entry((row.parse("claim").unwrap(), standing, acts.as_str())).or_default() += 1;
    }
    counts
}

async fn compare(rig: &Rig) {
    rig.check_standing().await;
    let mut tx = rig.app.store.read().await.unwrap();
    let counted = counts::fleet(&mut tx).await.unwrap();
    drop(tx);
    let counted: BTreeMap<_, _> = counted.into_iter().map(|c| ((c.claim, c.standing, c.acts.as_str()), c.domains)).collect();
    assert_eq!(counted, counted_by_hand(rig).await);
}

/// One thing that somebody does.
#[derive(Clone, Copy, Debug)]
enum Deed {
    Claim(usize, usize),
    Publish(usize),
    PublishElsewhere(usize),
    Unpublish(usize),
    Check(usize),
    Remove(usize),
    Refuse,
    Turns(u8),
    Days(u8),
    Cut(usize),
}

fn deed() -> impl Strategy<Value = Deed> {
    prop_oneof![
        4 => (0_usize..3, 0_usize..4).prop_map(|(t, n)| Deed::Claim(t, n)),
        4 => (0_usize..12).prop_map(Deed::Publish),
        1 => (0_usize..12).prop_map(Deed::PublishElsewhere),
        1 => (0_usize..12).prop_map(Deed::Unpublish),
        2 => (0_usize..12).prop_map(Deed::Check),
        1 => (0_usize..12).prop_map(Deed::Remove),
        1 => Just(Deed::Refuse),
        6 => (1_u8..12).prop_map(Deed::Turns),
        1 => (1_u8..40).prop_map(Deed::Days),
        1 => (1_usize..20).prop_map(Deed::Cut),
    ]
}

async fn play(seed: u64, deeds: &[Deed]) {
    let rig = Rig::new(seed).await;
    let mut tenants: Vec<TenantId> = Vec::new();
    for slug in ["acme", "other", "third"] {
        tenants.push(rig.tenant(slug).await);
    }
    let mut domains: Vec<(DomainId, String)> = Vec::new();
    for deed in deeds {
        match *deed {
            Deed::Claim(tenant, n) => {
                let name = format!("n{n}.acme.test");
                let id = claim::claim(&rig.app, &tenants[tenant], &Hostname::trusted(&name), "tenant").await.unwrap().id;
                if domains.iter().all(|(known, _)| *known != id) {
                    domains.push((id, name));
                }
            }
            Deed::Publish(i) => {
                if let Some((id, name)) = domains.get(i) {
                    let (target, value) = (rig.domain_text(id, "target").await.unwrap(), rig.value(id).await);
                    // What somebody else published there before may stand in the way.
                    rig.zones.add(&format!("{name}. 60 IN CNAME {target}.")).ok();
                    rig.zones.add(&format!("_nameplate-challenge.{name}. 60 IN TXT \"{value}\"")).ok();
                }
            }
            Deed::PublishElsewhere(i) => {
                if let Some((_, name)) = domains.get(i) {
                    rig.zones.add(&format!("{name}. 60 IN CNAME shops.elsewhere.test.")).ok();
                }
            }
            Deed::Unpublish(i) => {
                if let Some((id, name)) = domains.get(i) {
                    let value = rig.value(id).await;
                    rig.zones.remove(&format!("_nameplate-challenge.{name}. 60 IN TXT \"{value}\"")).ok();
                }
            }
            Deed::Check(i) => {
                if let Some((id, _)) = domains.get(i) {
                    nameplate::app::check::check_now(&rig.app, id, "tenant").await.ok();
                }
            }
            Deed::Remove(i) => {
                if let Some((id, _)) = domains.get(i) {
                    remove::remove(&rig.app, id, "tenant").await.ok();
                }
            }
            Deed::Refuse => rig.ca.refuse([nameplate::acme::AcmeError {
                call: nameplate::acme::Call::NewOrder,
                kind: nameplate::acme::Kind::Refused,
                problem: nameplate::acme::ProblemDoc::new(serde_json::json!({"type":"urn:ietf:params:acme:error:rejectedIdentifier","detail":"no <b>such</b> name"})),
                status: Some(403),
                retry_after: None,
                acted_on: false,
                cause: None,
            }]),
            Deed::Turns(n) => {
                for _ in 0..n {
                    rig.turn().await;
                    compare(&rig).await;
                }
            }
            Deed::Days(n) => rig.hand.advance(Duration::from_secs(86_400) * u32::from(n)),
            Deed::Cut(n) => rig.scissors.set(n),
        }
        compare(&rig).await;
    }
}

#[test]
fn counts_are_what_the_rows_say_after_whatever_happened() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let mut runner = TestRunner::new(Config { cases: 24, failure_persistence: None, ..Config::default() });
    runner
        .run(&(any::<u64>(), proptest::collection::vec(deed(), 5..40)), |(seed, deeds)| {
            runtime.block_on(play(seed, &deeds));
            Ok(())
        })
        .unwrap();
}

#[tokio::test]
async fn the_same_on_postgres() {
    let test = TestStore::blank(Kind::Postgres).await;
    let rig = Rig::on(5, &test.url).await;
    let (acme, other) = (rig.tenant("acme").await, rig.tenant("other").await);
    let served = rig.claim(&acme, "a.acme.test").await;
    rig.publish(&served, "a.acme.test").await;
    let waits = rig.claim(&other, "b.acme.test").await;
    rig.until_active(&served, Duration::from_secs(3600)).await;
    compare(&rig).await;
    remove::remove(&rig.app, &waits, "tenant").await.unwrap();
    compare(&rig).await;
    let taken = fleet::snapshot(&rig.app).await.unwrap();
    assert_eq!(taken.domains(|c| c.standing == Some(Standing::Serving)), 1);
    assert_eq!(taken.domains(|c| c.claim == Claim::Withdrawn), 1);
    assert_eq!(taken.ending.iter().map(|(_, n)| n).sum::<i64>(), 1);
    test.remove().await;
}

/// Rows of an earlier release are judged when the store is brought up to date, and found by their names.
#[tokio::test]
async fn rows_of_an_earlier_release_are_judged() {
    for kind in [Kind::SqliteFile, Kind::Postgres] {
        let test = TestStore::blank(kind).await;
        let rig = Rig::on(6, &test.url).await;
        let acme = rig.tenant("acme").await;
        for n in 0..130 {
            let name = format!("n{n}.acme.test");
            let id = rig.claim(&acme, &name).await;
            if n < 3 {
                rig.publish(&id, &name).await;
            }
        }
        rig.pass(Duration::from_secs(30)).await;
        compare(&rig).await;
        let before = counted_by_hand(&rig).await;
        for stmt in ["UPDATE domains SET standing = '', acts = ''", "DELETE FROM domain_words"] {
            rig.app.store.execute(sql(stmt)).await.unwrap();
        }
        // Before they are judged, they are ours to judge, and nothing breaks.
        let unjudged = fleet::snapshot(&rig.app).await.unwrap();
        assert_eq!(unjudged.domains(|c| c.standing.is_none() && c.acts == Actor::Platform), 130);
        rig.app.store.migrate().await.unwrap();
        compare(&rig).await;
        assert_eq!(counted_by_hand(&rig).await, before);
        let found = fleet::search(&rig.app, "n129", ("", ""), 50).await.unwrap();
        assert_eq!(found.rows.len(), 1);
        test.remove().await;
    }
}

#[tokio::test]
async fn the_longest_stuck_come_first_page_by_page() {
    let rig = Rig::new(7).await;
    let acme = rig.tenant("acme").await;
    let mut ids = Vec::new();
    for n in 0..7 {
        ids.push(rig.claim(&acme, &format!("n{n}.acme.test")).await);
        rig.hand.advance(Duration::from_secs(60));
    }
    let wanted = Wanted::Standing(Standing::NotLookedYet);
    let mut seen = Vec::new();
    let mut after = After::default();
    loop {
        let rows = fleet::list(&rig.app, &wanted, &after, 3).await.unwrap();
        let Some(last) = rows.last() else { break };
        after = After { at: last.since, id: last.id.to_string() };
        seen.extend(rows.into_iter().map(|row| row.id));
    }
    assert_eq!(seen, ids);
    let theirs = fleet::list(&rig.app, &Wanted::Acts(Actor::Tenant), &After::default(), 50).await.unwrap();
    assert_eq!(theirs.into_iter().map(|row| row.id).collect::<Vec<_>>(), ids);
    // Looking again and seeing the same does not make it young.
    rig.pass(Duration::from_secs(120)).await;
    let missing = fleet::list(&rig.app, &Wanted::Acts(Actor::Tenant), &After::default(), 50).await.unwrap();
    let since: Vec<Moment> = missing.iter().map(|row| row.since).collect();
    rig.pass(Duration::from_secs(1200)).await;
    let later = fleet::list(&rig.app, &Wanted::Acts(Actor::Tenant), &After::default(), 50).await.unwrap();
    assert_eq!(later.iter().map(|row| row.since).collect::<Vec<_>>(), since);
    let overview = fleet::overview(&rig.app).await.unwrap();
    assert_eq!(overview.snapshot.stuck.groups.iter().map(|g| g.domains).sum::<i64>(), 7);
    assert!(overview.snapshot.stuck.groups.iter().all(|g| g.worst.windows(2).all(|w| w[0].since <= w[1].since)));
}

#[tokio::test]
async fn positions_are_the_dispatchers() {
    let rig = Rig::with_limit(8, "sqlite::memory:", Limit { burst: 2, per_secs: 600 }).await;
    let (acme, other) = (rig.tenant("acme").await, rig.tenant("other").await);
    for n in 0..9 {
        let name = format!("n{n}.acme.test");
        let id = rig.claim(if n % 3 == 0 { &other } else { &acme }, &name).await;
        rig.publish(&id, &name).await;
    }
    rig.pass(Duration::from_secs(20)).await;
    let now = rig.env.now();
    let taken = fleet::played(&rig.app).await.unwrap();
    let queue = &taken.queues[0];
    assert!(queue.orders.len() >= 5, "{} wait", queue.orders.len());
    let issuer = issuers::list(&rig.app.store).await.unwrap().remove(0);
    let mut tx = rig.app.store.read().await.unwrap();
    let waiting = heads(&mut tx, &issuer.id, now, 100).await.unwrap();
    let spent = ledger::whole(&mut tx, &issuer.id, now).await.unwrap();
    drop(tx);
    let list: Vec<Waiting> = waiting.iter().map(|w| w.waiting.clone()).collect();
    let turn = u64::try_from(issuer.granted).unwrap();
    let served = dispatch(&list, &issuer.limits, &spent, turn, now);
    let want: Vec<_> = served.places.iter().map(|p| (p.order_id.clone(), p.position, Some(p.eta))).collect();
    let told: Vec<_> =
        queue.orders.iter().filter(|o| o.position > 0).map(|o| (o.order_id.clone(), o.position, o.eta)).collect();
    assert_eq!(told, want);
    // What was foretold happens: the next order is granted at the told time.
    let first = queue.orders[0].clone();
    rig.hand.advance_to(first.eta.unwrap());
    nameplate::app::dispatch::round(&rig.app).await.unwrap();
    let stmt = sql("SELECT state FROM orders WHERE id = $1").bind(first.order_id.as_str());
    assert_eq!(rig.app.store.query(stmt).await.unwrap()[0].text("state").unwrap(), "granted");
}

#[tokio::test]
async fn a_name_is_found_in_every_spelling() {
    let rig = Rig::new(9).await;
    let acme = rig.tenant("acme").await;
    for name in ["support.acme.test", "shop.xn--bcher-kva.test", "acme-shop.test", "supply.acme.test", "a.b.c.deep.test"] {
        rig.claim(&acme, name).await;
    }
    let found = async |typed: &str| -> Vec<String> {
        let results = fleet::search(&rig.app, typed, ("", ""), 50).await.unwrap();
        let mut names: Vec<String> = results.rows.iter().map(|row| row.hostname.to_string()).collect();
        names.sort();
        names
    };
    for typed in
        ["support.acme.test", "SUPPORT.Acme.Test.", "https://support.acme.test/path?x", "support.acme.test:443", "suppo"]
    {
        assert_eq!(found(typed).await, ["support.acme.test"], "{typed}");
    }
    assert_eq!(found("acme.test").await, ["supply.acme.test", "support.acme.test"]);
    assert_eq!(found("acme").await, ["acme-shop.test", "supply.acme.test", "support.acme.test"]);
    for typed in ["bücher", "BÜCHER.test", "shop.bücher.test", "xn--bcher-kva.test", "xn--bch"] {
        assert_eq!(found(typed).await, ["shop.xn--bcher-kva.test"], "{typed}");
    }
    assert_eq!(found("c.deep").await, ["a.b.c.deep.test"]);
    for typed in ["%", "_", "' OR 1=1 --", "nobody", "", "\u{202e}", "test'", "upport"] {
        assert!(found(typed).await.is_empty(), "{typed:?}");
    }
    // Page by page; a name with two spellings may be on two pages.
    let mut seen = Vec::new();
    let mut next = Some((String::new(), String::new()));
    while let Some((word, id)) = next {
        let page = fleet::search(&rig.app, "s", (&word, &id), 2).await.unwrap();
        seen.extend(page.rows.into_iter().map(|row| row.hostname.to_string()));
        next = page.next;
    }
    seen.sort();
    seen.dedup();
    assert_eq!(seen, ["shop.xn--bcher-kva.test", "supply.acme.test", "support.acme.test"]);
}

/// A large fleet is counted in passing and shown with its age; a count that is too old is shown to nobody.
#[tokio::test]
async fn a_large_fleet_is_counted_once_in_a_while() {
    let rig = Rig::new(10).await;
    let issuer = issuers::list(&rig.app.store).await.unwrap().remove(0);
    fleet_seed::fill(&rig.app.store, &fleet_seed::parts(), (3_000, 10), issuer.id.as_str(), START).await;
    let first = fleet::snapshot(&rig.app).await.unwrap();
    assert_eq!(first.domains(|_| true), 3_000);
    rig.hand.advance(Duration::from_secs(5));
    let again = fleet::snapshot(&rig.app).await.unwrap();
    assert_eq!(again.taken_at, first.taken_at, "young enough");
    rig.hand.advance(Duration::from_secs(20));
    let shown = fleet::snapshot(&rig.app).await.unwrap();
    assert_eq!(shown.taken_at, first.taken_at, "the last count is shown while the next is made");
    crate::support::stores::until("the next count is made", async || {
        let now = rig.env.now();
        fleet::snapshot(&rig.app).await.unwrap().taken_at == now
    })
    .await;
    rig.hand.advance(Duration::from_secs(3_600));
    let fresh = fleet::snapshot(&rig.app).await.unwrap();
    assert_eq!(fresh.taken_at, rig.env.now(), "a count of an hour ago is shown to nobody");
    // The days of the calendar are those of the rows.
    let horizon = START + Duration::from_secs(3_600 + 25 + 86_400 * 90);
    let by_hand = rig.count(sql("SELECT count(*) AS n FROM domains WHERE certificate_until < $1").bind(horizon)).await;
    assert_eq!(fresh.ending.iter().map(|(_, n)| n).sum::<i64>(), by_hand);
}

#[tokio::test]
async fn an_empty_fleet_counts_to_nothing() {
    let rig = Rig::new(11).await;
    let overview = fleet::overview(&rig.app).await.unwrap();
    assert!(
        overview.snapshot.stuck.groups.is_empty() && overview.snapshot.counts.is_empty() && overview.snapshot.ended == 0
    );
    assert_eq!(overview.edges.edges.len(), 1);
}
