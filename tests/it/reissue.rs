//! Replacements out of turn: what an operator asks for is done once each, within the budget and after what is due, whoever is killed on
//! the way; what is given up leaves nothing behind.

use std::time::Duration;

use nameplate::app::advance::advance;
use nameplate::app::show::reissues::{self as shown, Progress, State};
use nameplate::app::{dispatch, reissue};
use nameplate::model::id::{DomainId, EventId, OrderId};
use nameplate::model::ledger::Limit;
use nameplate::model::moment::Moment;
use nameplate::model::order::Lane;
use nameplate::model::outcome::{Outcome, Write};
use nameplate::model::renewal::Schedule;
use nameplate::sandbox::ca::Windows;
use nameplate::store::record::{self, Recorded};
use nameplate::store::reissues::{GivenUp, Selection};
use nameplate::store::situation::{self, CountedEdges};
use nameplate::store::{renewals, sql};

use crate::support::renewals::{DAY, HOUR, certificates, down, live, live_names, number, open_orders, serials};
use crate::support::rig::Rig;
use crate::support::seed;
use crate::support::stores::{Kind, TestStore};

/// One order an hour, and five at once.
const SLOW: Limit = Limit { burst: 5, per_secs: 18_000 };

fn all() -> Selection {
    Selection::Issuer("main".to_owned())
}

fn of_serials(texts: &[&str]) -> Selection {
    reissue::of_serials(texts.iter().map(|text| reissue::serial_forms(text).unwrap()))
}

async fn begin(rig: &Rig, selection: &Selection) -> Progress {
    let begun = reissue::begin_now(&rig.app.store, &rig.env, selection, Lane::Bulk, "operator").await.unwrap();
    progress(rig, begun.id.as_str()).await
}

async fn progress(rig: &Rig, id: &str) -> Progress {
    shown::show(&rig.app.store, &rig.env, id).await.unwrap().unwrap()
}

async fn platform_events(rig: &Rig) -> Vec<String> {
    let stmt = sql("SELECT kind FROM events WHERE domain_id IS NULL AND kind LIKE 'reissue%' ORDER BY id");
    rig.app.store.query(stmt).await.unwrap().iter().map(|row| row.text("kind").unwrap()).collect()
}

/// B54 with hands: by serial and by issuer, within the budget, once each, resumed after crashes.
async fn replaced_on_request(rig: Rig) {
    rig.ca.windows(Windows::None);
    let names = live_names(&rig, 12).await;
    rig.pass_quickly(4 * HOUR).await;
    let (store, env) = (&rig.app.store, &rig.env);
    let serial = |n: usize| rig.serial_at_edge(&names[n].1).unwrap();
    assert_eq!(begin(&rig, &of_serials(&["04ff"])).await.certificates, 0);
    let two = of_serials(&[&serial(0), &serial(1), "04ff"]);
    assert_eq!(shown::plan(store, env, &two, Lane::Bulk).await.unwrap().certificates, 2);
    let first = begin(&rig, &two).await;
    assert_eq!(first.certificates, 2);
    rig.hand.advance(Duration::from_secs(1));
    // The rest, by issuer: what is on its way already is left out, and asking twice adds nothing.
    let rest = begin(&rig, &all()).await;
    assert_eq!((rest.certificates, rest.left), (10, 10));
    assert_eq!(begin(&rig, &all()).await.certificates, 0);
    let before = serials(&rig, &names);
    // Workers die on the way; what was asked for is written down.
    for _ in 0..10 {
        rig.scissors.set(usize::try_from(rig.hand.below(20)).unwrap() + 1);
        for _ in 0..6 {
            if rig.turn().await {
                break;
            }
        }
    }
    rig.scissors.set(0);
    rig.pass_quickly(20 * HOUR).await;
    let after = serials(&rig, &names);
    assert_eq!(before.intersection(&after).count(), 0, "all are replaced: {}", rig.story(&names[0].0).await);
    for (id, _) in &names {
        assert_eq!(certificates(&rig, id).await, 2, "once each: {}", rig.story(id).await);
    }
    let told = shown::list(store, env, "", 10).await.unwrap();
    assert!(told.iter().all(|p| p.left == 0 && p.done == p.certificates && p.eta.is_none()), "{told:?}");
    assert!(told.iter().all(|p| p.state == State::Finished && p.finished_at.is_some()), "{told:?}");
    rig.check_invariants().await;
}

#[tokio::test]
async fn b54_certificates_are_replaced_on_request_within_the_budget() {
    replaced_on_request(Rig::with_limit(316, "sqlite::memory:", SLOW).await).await;
}

#[tokio::test]
async fn certificates_are_replaced_on_request_on_postgres() {
    let store = TestStore::blank(Kind::Postgres).await;
    replaced_on_request(Rig::with_limit(317, &store.url, SLOW).await).await;
    store.remove().await;
}

/// What was acknowledged is selected by whoever comes next, from where the one before was killed; certificates that came since are none
/// of it.
#[tokio::test]
async fn what_was_asked_for_is_selected_by_whoever_lives() {
    let rig = Rig::new(340).await;
    rig.ca.windows(Windows::None);
    let names = live_names(&rig, 6).await;
    let mut tx = rig.app.store.begin().await.unwrap();
    let begun: Progress = reissue::begin(&mut tx, &rig.env, &all(), Lane::Bulk, "operator").await.unwrap().into();
    tx.commit().await.unwrap();
    assert_eq!((progress(&rig, &begun.id).await.state, begun.certificates), (State::Selecting, 0));
    assert_eq!(platform_events(&rig).await, ["reissue_began"]);
    // The next page begins after the second name: as if that much had been marked before the process was killed.
    let mut ids: Vec<&DomainId> = names.iter().map(|(id, _)| id).collect();
    ids.sort();
    let moved = sql("UPDATE reissues SET marking = $2 WHERE id = $1").bind(begun.id.as_str()).bind(ids[1].as_str());
    rig.app.store.execute(moved).await.unwrap();
    reissue::round(&rig.app).await.unwrap();
    assert_eq!(progress(&rig, &begun.id).await.certificates, 4);
    rig.pass(2 * HOUR).await;
    for (n, id) in ids.iter().enumerate() {
        assert_eq!(certificates(&rig, id).await, if n < 2 { 1 } else { 2 });
    }
    let done = progress(&rig, &begun.id).await;
    assert_eq!((done.done, done.left, done.state), (4, 0, State::Finished));
    assert_eq!(platform_events(&rig).await, ["reissue_began", "reissue_finished"]);
    reissue::round(&rig.app).await.unwrap();
    assert_eq!(platform_events(&rig).await.len(), 2, "told once");
}

/// Turns of everything but the steps that would use a grant: orders are opened, looked at and granted.
async fn until_granted(rig: &Rig, many: i64) {
    let app = rig.new_worker();
    for _ in 0..2_000 {
        if rig.count(sql("SELECT count(*) AS n FROM grants WHERE state = 'open'")).await >= many {
            return;
        }
        dispatch::round(&app).await.unwrap();
        let due = sql("SELECT d.id FROM domains d WHERE d.due_at <= $1 AND NOT EXISTS \
             (SELECT 1 FROM orders o WHERE o.domain_id = d.id AND o.state = 'granted') ORDER BY d.id");
        for row in rig.app.store.query(due.bind(rig.env.now())).await.unwrap() {
            advance(&app, &row.parse("id").unwrap()).await.unwrap();
        }
        rig.edge_follows().await;
        rig.hand.advance(Duration::from_millis(500));
    }
    panic!("{many} were never granted");
}

/// What is given up ends where the CA does not know of it yet, whether it waits or has its grant in hand; the grants go back, failures
/// of it are forgotten, and what is served stays.
#[tokio::test]
async fn what_is_given_up_leaves_neither_orders_nor_grants_nor_failures_behind() {
    let rig = Rig::with_limit(341, "sqlite::memory:", SLOW).await;
    rig.ca.windows(Windows::None);
    let names = live_names(&rig, 8).await;
    rig.pass_quickly(6 * HOUR).await;
    let before = serials(&rig, &names);
    let (orders, tat) = (rig.ca.ordered_at().len(), "SELECT max(tat) AS n FROM ledger WHERE key = 'account'");
    let spent = rig.count(sql(tat)).await;
    let begun = begin(&rig, &all()).await;
    until_granted(&rig, 5).await;
    assert_eq!(open_orders(&rig).await, 8);
    let given_up = reissue::cancel(&rig.app.store, &rig.env, &begun.id, "operator").await.unwrap();
    assert_eq!(given_up, GivenUp::Now);
    let again = reissue::cancel(&rig.app.store, &rig.env, &begun.id, "operator").await.unwrap();
    assert_eq!((again, platform_events(&rig).await.len()), (GivenUp::Over, 2));
    // A step that had decided before that writes its order after it.
    let raced = OrderId::mint(rig.env.now(), seed::bytes(1));
    let issuer = nameplate::store::issuers::list(&rig.app.store).await.unwrap().remove(0).id;
    rig.pass(Duration::from_secs(30)).await;
    rig.app.store.execute(seed::order(&raced, &names[0].0, &issuer, "reissue")).await.unwrap();
    rig.app.store.execute(sql("UPDATE domains SET due_at = 0")).await.unwrap();
    rig.pass(2 * HOUR).await;
    assert_eq!(open_orders(&rig).await, 0, "{}", rig.story(&names[0].0).await);
    assert_eq!(rig.count(sql("SELECT count(*) AS n FROM spends")).await, 0, "unused grants went back");
    assert_eq!((rig.ca.ordered_at().len(), rig.count(sql(tat)).await), (orders, spent), "nothing was spent");
    assert_eq!(serials(&rig, &names), before);
    let ended = rig.events(&names[7].0).await;
    assert_eq!(ended.iter().filter(|kind| *kind == "reissue_ended").count(), 1, "{ended:?}");
    let told = progress(&rig, &begun.id).await;
    assert_eq!((told.state, told.given_up, told.left, told.done), (State::Cancelled, 8, 0, 0));
    // One that fails for hours: nobody's next renewal waits for that.
    rig.ca.refuse(std::iter::repeat_n(down(), 10_000));
    let failing = begin(&rig, &all()).await;
    rig.pass(3 * HOUR).await;
    let failed = "SELECT count(*) AS n FROM domains WHERE failures > 0";
    assert!(rig.count(sql(failed)).await > 0, "{}", rig.story(&names[0].0).await);
    reissue::cancel(&rig.app.store, &rig.env, &failing.id, "operator").await.unwrap();
    rig.ca.refuse_nothing();
    rig.pass(HOUR).await;
    assert_eq!((open_orders(&rig).await, rig.count(sql(failed)).await), (0, 0), "{}", rig.story(&names[0].0).await);
    let standing = sql("SELECT count(*) AS n FROM domains WHERE standing <> 'serving'");
    assert_eq!(rig.count(standing).await, 0);
    rig.check_invariants().await;
}

/// What has reached the CA is not given up: it goes its way and is served.
#[tokio::test]
async fn what_is_at_the_ca_when_it_is_given_up_goes_its_way() {
    let rig = Rig::new(342).await;
    rig.ca.windows(Windows::None);
    let id = live(&rig).await;
    let begun = begin(&rig, &all()).await;
    at_the_ca(&rig, &id).await;
    reissue::cancel(&rig.app.store, &rig.env, &begun.id, "operator").await.unwrap();
    rig.pass(2 * HOUR).await;
    assert_eq!(certificates(&rig, &id).await, 2, "{}", rig.story(&id).await);
    assert_eq!((open_orders(&rig).await, rig.count(sql("SELECT count(*) AS n FROM spends")).await), (0, 0));
}

/// Steps until the CA has the order.
async fn at_the_ca(rig: &Rig, id: &DomainId) {
    let app = rig.new_worker();
    let placed = "SELECT count(*) AS n FROM orders WHERE domain_id = $1 AND state IN ('placed', 'authorizing')";
    for _ in 0..1_000 {
        if number(rig, id, placed).await > 0 {
            return;
        }
        dispatch::round(&app).await.unwrap();
        advance(&app, id).await.unwrap();
        rig.edge_follows().await;
        rig.hand.advance(Duration::from_secs(1));
    }
    panic!("never at the CA: {}", rig.story(id).await);
}

/// Whoever asks for replacements because of what the CA did until now does not get a certificate that it was making then.
#[tokio::test]
async fn an_order_that_was_at_the_ca_before_is_no_answer_to_what_is_asked_for_now() {
    let rig = Rig::new(343).await;
    rig.ca.windows(Windows::None);
    let id = live(&rig).await;
    rig.pass_quickly(61 * DAY - HOUR).await;
    let due = sql("UPDATE renewals SET renew_at = $1").bind(rig.env.now());
    rig.app.store.execute(due).await.unwrap();
    rig.app.store.execute(sql("UPDATE domains SET due_at = $1").bind(rig.env.now())).await.unwrap();
    let had = certificates(&rig, &id).await;
    at_the_ca(&rig, &id).await;
    let begun = begin(&rig, &all()).await;
    assert_eq!(begun.certificates, 1);
    rig.pass(6 * HOUR).await;
    assert_eq!(certificates(&rig, &id).await, had + 2, "{}", rig.story(&id).await);
    assert_eq!(progress(&rig, &begun.id).await.left, 0);
    // One that only waits when it is asked for is the answer.
    let begun = begin(&rig, &all()).await;
    until_granted(&rig, 1).await;
    let third = begin(&rig, &all()).await;
    assert_eq!((begun.certificates, third.certificates), (1, 0));
    rig.pass(6 * HOUR).await;
    assert_eq!(certificates(&rig, &id).await, had + 3, "{}", rig.story(&id).await);
}

/// What is due is renewed before what is only asked for, of the same tenant too; and what becomes due while it waits is in time with that.
#[tokio::test]
async fn what_is_due_comes_before_what_is_asked_for() {
    let rig = Rig::with_limit(344, "sqlite::memory:", SLOW).await;
    rig.ca.windows(Windows::None);
    let names = live_names(&rig, 14).await;
    rig.pass_quickly(2 * HOUR).await;
    let asked: Vec<String> = names[..13].iter().map(|(_, name)| rig.serial_at_edge(name).unwrap()).collect();
    let asked: Vec<&str> = asked.iter().map(String::as_str).collect();
    begin(&rig, &of_serials(&asked)).await;
    rig.pass(HOUR / 2).await;
    let lanes = "SELECT count(*) AS n FROM orders WHERE state = 'waiting' AND lane = 'bulk' AND purpose = 'reissue'";
    assert!(rig.count(sql(lanes)).await >= 8, "they wait behind whoever is due");
    // One that nobody asked for is due now, and one of those that were asked for as well.
    let mut last: Vec<&DomainId> = names[..13].iter().map(|(id, _)| id).collect();
    last.sort();
    let (other, one) = (&names[13].0, last[12]);
    for id in [other, one] {
        let now = rig.env.now();
        rig.app
            .store
            .execute(sql("UPDATE renewals SET renew_at = $2 WHERE domain_id = $1").bind(id.as_str()).bind(now))
            .await
            .unwrap();
        let due = sql("UPDATE domains SET due_at = $2, nudged = generation WHERE id = $1").bind(id.as_str()).bind(now);
        rig.app.store.execute(due).await.unwrap();
    }
    let begun = rig.env.now();
    rig.pass(3 * HOUR).await;
    assert_eq!(certificates(&rig, other).await, 2, "{}", rig.story(other).await);
    assert_eq!(certificates(&rig, one).await, 2, "{}", rig.story(one).await);
    let since = sql("SELECT count(*) AS n FROM certificates WHERE stored_at > $1").bind(begun);
    let since = rig.count(since).await;
    assert!((2..=4).contains(&since), "{since} were placed in three hours");
    rig.pass_quickly(14 * HOUR).await;
    for (id, _) in &names {
        assert_eq!(certificates(&rig, id).await, 2, "{}", rig.story(id).await);
    }
}

/// When it will be done is told by what hands out the grants, before it begins and while it goes on.
#[tokio::test]
async fn when_it_will_be_done_is_told_and_comes_true() {
    let rig = Rig::with_limit(345, "sqlite::memory:", SLOW).await;
    rig.ca.windows(Windows::None);
    live_names(&rig, 20).await;
    let (store, env) = (&rig.app.store, &rig.env);
    let at = |text: Option<String>| Moment::from_rfc3339(&text.unwrap()).unwrap();
    let planned = at(shown::plan(store, env, &all(), Lane::Bulk).await.unwrap().eta);
    let begun = begin(&rig, &all()).await;
    let at_first = at(begun.eta.clone());
    assert_eq!(begun.certificates, 20);
    rig.pass(4 * HOUR).await;
    let half_way = progress(&rig, &begun.id).await;
    assert!(half_way.done > 2 && half_way.left > 5 && half_way.done + half_way.left == 20, "{half_way:?}");
    let half_way = at(half_way.eta);
    while progress(&rig, &begun.id).await.left > 0 {
        rig.turn().await;
        assert!(rig.env.now() < planned + 5 * HOUR, "it never ends");
    }
    let last = rig.count(sql("SELECT max(granted_at) AS n FROM grants")).await;
    let last = Moment::from_micros(last);
    for told in [planned, at_first, half_way] {
        let off = last.since(told).max(told.since(last));
        assert!(off <= Duration::from_secs(1_200), "told {told}, came {last}");
    }
}

/// A name whose checks do not pass is told apart, and nothing is promised of it.
#[tokio::test]
async fn what_is_held_back_is_told_apart() {
    let rig = Rig::new(346).await;
    rig.ca.windows(Windows::None);
    let names = live_names(&rig, 3).await;
    // What was seen right before the first orders is old by then.
    rig.pass(HOUR).await;
    rig.zones.add("acme.test. 60 IN CAA 0 issue \"other.example\"").unwrap();
    let begun = begin(&rig, &all()).await;
    rig.pass(2 * HOUR).await;
    let told = progress(&rig, &begun.id).await;
    assert_eq!((told.left, told.held_back, told.eta), (3, 3, None), "{}", rig.story(&names[0].0).await);
}

/// Marks, steps and what is learnt of windows meet on PostgreSQL: nobody waits for somebody who waits for him.
#[tokio::test]
async fn marks_steps_and_answers_of_cas_never_wait_for_each_other() {
    const NAMES: u16 = 60;
    let test = TestStore::blank(Kind::Postgres).await;
    let rig = Rig::on(347, &test.url).await;
    let store = rig.app.store.clone();
    let first = live(&rig).await;
    // More of the same, as rows.
    store.execute(seed::tenant(&seed::tenant_id(0), "many")).await.unwrap();
    let mut ids = vec![first.clone()];
    for n in 0..NAMES {
        let id = seed::domain_id(n);
        store.execute(seed::domain(&id, &seed::tenant_id(0), &format!("n{n}.acme.test"), Moment::NEVER)).await.unwrap();
        let certificate = format!("crt_{n:032}");
        for stmt in [
            sql(
                "INSERT INTO certificates (id, domain_id, tenant_id, source, issuer_id, serial, fingerprint, chain, not_before, \
                   not_after, stored_at) SELECT $2, $1, tenant_id, source, issuer_id, serial, fingerprint, chain, not_before, not_after, \
                   stored_at FROM certificates WHERE domain_id = $3",
            ),
            sql("UPDATE domains SET claim = 'live', certificate_id = $2, attempt_id = \
                   (SELECT o.attempt_id FROM domains o WHERE o.id = $3) WHERE id = $1"),
            sql("INSERT INTO renewals (domain_id, certificate_id, renew_at, poll_at, failures, refused) \
                 SELECT $1, $2, renew_at, 0, 0, 0 FROM renewals WHERE domain_id = $3"),
        ] {
            store.execute(stmt.bind(id.as_str()).bind(certificate.as_str()).bind(first.as_str())).await.unwrap();
        }
        ids.push(id);
    }
    let now = rig.env.now();
    let marking = async {
        for _ in 0..12 {
            let begun = reissue::begin_now(&store, &rig.env, &all(), Lane::Bulk, "operator").await?;
            reissue::cancel(&store, &rig.env, begun.id.as_str(), "operator").await?;
        }
        Ok::<_, nameplate::store::StoreError>(())
    };
    let learning = async {
        for n in 0..24 {
            let mut asked = renewals::take_to_ask(&store, now, now, 200).await?;
            asked.reverse();
            let sooner =
                |s: &Schedule| Schedule { at: s.at - Duration::from_secs(1), poll_at: Moment::from_micros(n), ..s.clone() };
            let learnt: Vec<_> = asked.into_iter().map(|ask| (ask.clone(), sooner(&ask.schedule))).collect();
            renewals::learnt(&store, &learnt).await?;
        }
        Ok::<_, nameplate::store::StoreError>(())
    };
    let stepping = async {
        for n in 0..600_usize {
            let id = &ids[ids.len() - 1 - n % ids.len()];
            let s = situation::around(&store, id, CountedEdges { heard_since: now, min: 1 }).await?;
            let mut tx = store.begin().await?;
            let out = Outcome::of(&s, Moment::NEVER).write(Write::ReplacesRefused);
            let minted = || nameplate::mint!(rig.env, EventId);
            if record::outcome(&mut tx, &s, &out, None, now, minted).await? == Recorded::Yes {
                tx.commit().await?;
            }
        }
        Ok::<_, nameplate::store::StoreError>(())
    };
    let (marked, learnt, stepped) = tokio::join!(marking, learning, stepping);
    for (who, met) in [("marks", marked), ("answers", learnt), ("steps", stepped)] {
        met.unwrap_or_else(|e| panic!("{who} met somebody: {e}"));
    }
    assert_eq!(rig.count(sql("SELECT count(*) AS n FROM renewals WHERE reissue_id IS NOT NULL")).await, 0);
    test.remove().await;
}
