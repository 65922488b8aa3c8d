//! Renewals and the CA that they wait for: when it is halted, has no room for long, is used no more or comes back, they go where they may
//! go, at once.

use std::sync::Arc;
use std::time::Duration;

use nameplate::app::account;
use nameplate::model::id::{DomainId, IssuerId};
use nameplate::model::ledger::Limit;
use nameplate::model::moment::Moment;
use nameplate::sandbox::ca::{DirectCa, Windows};
use nameplate::store::{issuers, sql};

use crate::support::renewals::{DAY, HOUR, certificates, live_names, number};
use crate::support::rig::Rig;

/// Three live names of the first CA, whose renewals are due now and wait in its queue, for it takes three orders in ten days. A second CA
/// is there.
async fn waiting(seed: u64) -> (Rig, Arc<DirectCa>, Vec<(DomainId, String)>) {
    let mut rig = Rig::with_limit(seed, "sqlite::memory:", Limit { burst: 3, per_secs: 864_000 }).await;
    rig.ca.windows(Windows::None);
    let names = live_names(&rig, 3).await;
    let other = rig.add_issuer("other").await;
    other.windows(Windows::None);
    account::ensure_all(&rig.app).await.unwrap();
    rig.pass(HOUR).await;
    due(&rig).await;
    rig.pass(HOUR / 2).await;
    let waiting = "SELECT count(*) AS n FROM orders o JOIN issuers i ON i.id = o.issuer_id \
         WHERE i.name = 'main' AND o.state = 'waiting' AND o.purpose = 'renew' AND o.not_before < 9223372036854775807";
    assert_eq!(rig.count(sql(waiting)).await, 3, "{}", rig.story(&names[0].0).await);
    assert_eq!(other.ordered_at().len(), 0);
    (rig, other, names)
}

async fn due(rig: &Rig) {
    rig.app.store.execute(sql("UPDATE renewals SET renew_at = $1").bind(rig.env.now())).await.unwrap();
    rig.app.store.execute(sql("UPDATE domains SET due_at = $1").bind(rig.env.now())).await.unwrap();
}

async fn id_of(rig: &Rig, name: &str) -> IssuerId {
    issuers::list(&rig.app.store).await.unwrap().into_iter().find(|issuer| issuer.name == name).unwrap().id
}

async fn renewed_by(rig: &Rig, other: &DirectCa, names: &[(DomainId, String)]) {
    for (id, _) in names {
        assert_eq!(certificates(rig, id).await, 2, "{}", rig.story(id).await);
    }
    assert_eq!(other.ordered_at().len(), names.len());
    rig.check_invariants().await;
}

/// B36: the account is gone at the CA when renewals are due.
#[tokio::test]
async fn b36_renewals_that_wait_for_a_ca_whose_account_is_shut_go_to_the_next() {
    let (rig, other, names) = waiting(350).await;
    let halted = sql("INSERT INTO issuer_health (issuer_id, failures, open_until, halted, halts, check_at) VALUES ($1, 0, 0, 'shut', 1, $2)")
        .bind(id_of(&rig, "main").await.as_str())
        .bind(rig.env.now() + 30 * DAY);
    rig.app.store.execute(halted).await.unwrap();
    rig.pass(HOUR).await;
    renewed_by(&rig, &other, &names).await;
}

#[tokio::test]
async fn renewals_that_wait_for_a_ca_that_is_away_go_to_the_next() {
    let (rig, other, names) = waiting(351).await;
    let open = sql("INSERT INTO issuer_health (issuer_id, failures, open_until, halts) VALUES ($1, 9, $2, 0)")
        .bind(id_of(&rig, "main").await.as_str())
        .bind(rig.env.now() + 5 * HOUR);
    rig.app.store.execute(open).await.unwrap();
    rig.pass(HOUR).await;
    renewed_by(&rig, &other, &names).await;
}

#[tokio::test]
async fn renewals_that_find_no_room_for_their_domain_for_long_go_to_the_next() {
    let (rig, other, names) = waiting(352).await;
    let main = id_of(&rig, "main").await;
    // The account has room again, and others have used up what the registered domain has.
    let room =
        sql("UPDATE ledger SET tat = $2 WHERE issuer_id = $1 AND key = 'account'").bind(main.as_str()).bind(rig.env.now());
    let shut = sql("INSERT INTO ledger (issuer_id, limit_name, key, tat, refusals, closed) \
         VALUES ($1, 'certificates_per_domain', 'acme.test', $2, 1, 'used_up_by_others') \
         ON CONFLICT (issuer_id, key, limit_name) DO UPDATE SET tat = excluded.tat")
    .bind(main.as_str())
    .bind(rig.env.now() + 30 * DAY);
    for stmt in [shut, room] {
        rig.app.store.execute(stmt).await.unwrap();
    }
    rig.pass(HOUR).await;
    renewed_by(&rig, &other, &names).await;
}

/// The CA that CAA allowed is used no more, and CAA allows the one that is left.
#[tokio::test]
async fn renewals_that_wait_for_a_ca_that_was_removed_are_looked_at_anew() {
    let (rig, other, names) = waiting(353).await;
    let other_id = id_of(&rig, "other").await;
    let shut =
        sql("UPDATE issuers SET not_before = $2 WHERE id = $1").bind(other_id.as_str()).bind(rig.env.now() + 30 * DAY);
    rig.app.store.execute(shut).await.unwrap();
    let only = |ca: &str| format!("acme.test. 60 IN CAA 0 issue \"{ca}.test\"");
    rig.zones.add(&only("other")).unwrap();
    for (id, _) in &names {
        nameplate::app::check::check_now(&rig.app, id, "tenant").await.unwrap();
    }
    rig.pass(HOUR / 6).await;
    let there = sql("SELECT count(*) AS n FROM orders WHERE state = 'waiting' AND issuer_id = $1").bind(other_id.as_str());
    assert_eq!(rig.count(there).await, 3, "{}", rig.story(&names[0].0).await);
    rig.zones.remove(&only("other")).unwrap();
    rig.zones.add(&only("ca")).unwrap();
    let room = sql("UPDATE ledger SET tat = $1 WHERE key = 'account'").bind(Moment::from_secs(0));
    rig.app.store.execute(room).await.unwrap();
    let mut tx = rig.app.store.begin().await.unwrap();
    assert!(issuers::remove(&mut tx, &other_id, rig.env.now()).await.unwrap());
    tx.commit().await.unwrap();
    let before = rig.ca.asked();
    rig.pass(HOUR / 2).await;
    for (id, _) in &names {
        assert_eq!(certificates(&rig, id).await, 2, "{}", rig.story(id).await);
    }
    assert_eq!((rig.ca.asked() - before, other.asked()), (3, 0));
}

/// What came due while there was no account is renewed as soon as there is one again.
#[tokio::test]
async fn renewals_wait_for_an_account_and_go_on_when_there_is_one() {
    let rig = Rig::new(354).await;
    rig.ca.windows(Windows::None);
    let names = live_names(&rig, 3).await;
    rig.pass(HOUR).await;
    let gone = sql("UPDATE issuers SET account_url = NULL, lease_until = $1").bind(rig.env.now() + 4 * HOUR);
    rig.app.store.execute(gone).await.unwrap();
    due(&rig).await;
    rig.pass(3 * HOUR).await;
    let held =
        "SELECT count(*) AS n FROM orders WHERE domain_id = $1 AND state = 'waiting' AND not_before = 9223372036854775807";
    assert_eq!(number(&rig, &names[0].0, held).await, 1, "{}", rig.story(&names[0].0).await);
    rig.pass(HOUR + Duration::from_secs(1_200)).await;
    for (id, _) in &names {
        assert_eq!(certificates(&rig, id).await, 2, "{}", rig.story(id).await);
    }
}
