//! Field case B54 at its size: a CA revokes 20,000 certificates and gives five days.

use std::time::Duration;

use nameplate::app::reissue;
use nameplate::app::show::reissues as shown;
use nameplate::model::ledger::Limit;
use nameplate::model::moment::Moment;
use nameplate::model::order::Lane;
use nameplate::sandbox::ca::Windows;
use nameplate::store::reissues::{self, Selection};
use nameplate::store::{of_sqlite, sql};

use crate::support::renewals::{DAY, HOUR, certificates, live, live_names};
use crate::support::rig::Rig;

const REVOKED: i64 = 20_000;
/// Renewals that are due and wait for their turn as on any day.
const DUE: i64 = 400;
/// As Let's Encrypt has it.
const LIMIT: Limit = Limit { burst: 300, per_secs: 10_800 };

/// Live names, more of the same as one that went through everything: rows.
async fn multiply(rig: &Rig) {
    let first = live(rig).await;
    for text in [
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < $2) \
         INSERT INTO domains (id, tenant_id, hostname, claim, claim_since, routing_mode, target, attempt_id, evidence, pace_from, nudged, \
           tie, lost_for_us, due_at, lease_until, generation, settled, failures, event_seq, created_at) \
         SELECT 'dom_' || printf('%032d', n.i), d.tenant_id, 'n' || n.i || '.many' || (n.i / 20) || '.test', 'live', d.claim_since, \
           d.routing_mode, d.target, d.attempt_id, d.evidence, d.pace_from, 0, 'held', 0, 9000000000000000, 0, 0, 0, 0, 0, d.created_at FROM n, domains d WHERE d.id = $1",
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < $2) \
         INSERT INTO certificates (id, domain_id, tenant_id, source, issuer_id, serial, fingerprint, chain, not_before, not_after, stored_at) \
         SELECT 'crt_' || printf('%032d', n.i), 'dom_' || printf('%032d', n.i), c.tenant_id, c.source, c.issuer_id, \
           'a' || printf('%031x', n.i), c.fingerprint, '', c.not_before, c.not_after, c.stored_at \
         FROM n, certificates c WHERE c.domain_id = $1",
        "UPDATE domains SET certificate_id = 'crt_' || substr(id, 5) WHERE id <> $1 AND $2 > 0 AND certificate_id IS NULL",
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < $2) \
         INSERT INTO renewals (domain_id, certificate_id, renew_at, poll_at, failures, refused) \
         SELECT 'dom_' || printf('%032d', n.i), 'crt_' || printf('%032d', n.i), r.renew_at, 9000000000000000, 0, 0 \
         FROM n, renewals r WHERE r.domain_id = $1",
    ] {
        rig.app.store.execute(of_sqlite(text).bind(first.as_str()).bind(REVOKED + DUE)).await.unwrap();
    }
    // Those after the revoked ones are due by themselves and stand in line.
    let due = "INSERT INTO orders (id, domain_id, tenant_id, purpose, lane, issuer_id, state, state_since, not_before, created_at) \
         SELECT 'ord_' || substr(d.id, 5), d.id, d.tenant_id, 'renew', 'renewal', (SELECT id FROM issuers), 'waiting', $2, $2, $2 \
         FROM domains d WHERE d.id > 'dom_' || printf('%032d', $1) AND d.hostname LIKE 'n%.many%'";
    rig.app.store.execute(of_sqlite(due).bind(REVOKED).bind(rig.env.now())).await.unwrap();
}

#[tokio::test]
async fn b54_twenty_thousand_serials_are_selected_in_pieces_and_the_end_is_told() {
    let rig = Rig::with_limit(350, "sqlite::memory:", LIMIT).await;
    rig.ca.windows(Windows::None);
    multiply(&rig).await;
    // As `serve` does when it starts and every day.
    rig.app.store.optimize(true).await.unwrap();
    // The list as a CA publishes it, with a few that are not ours.
    let serials = (1..=REVOKED).chain(9_000_000..9_000_100).map(|n| reissue::serial_forms(&format!("a{n:031x}")).unwrap());
    let selection = reissue::of_serials(serials);
    assert!(matches!(&selection, Selection::Serials(all) if all.len() > 20_000));
    let (store, env) = (&rig.app.store, &rig.env);
    let plan = shown::plan(store, env, &selection, Lane::Renewal).await.unwrap();
    assert_eq!(plan.certificates, REVOKED);
    // The budget as it is, by hand: all that stands in line is placed one in 36 seconds after the first three hundred.
    let spent = i64::try_from(rig.ca.state().counters().orders_created).unwrap();
    let turns = u64::try_from(REVOKED + DUE + spent - i64::from(LIMIT.burst)).unwrap();
    let by_hand = Duration::from_secs(36) * u32::try_from(turns).unwrap();
    let told = Moment::from_rfc3339(&plan.eta.unwrap()).unwrap().since(env.now());
    let off = told.max(by_hand) - told.min(by_hand);
    assert!(off < by_hand / 50, "told {told:?}, by hand {by_hand:?}");
    assert!(told > 5 * DAY, "that the deadline is missed without the CA's own windows is told before anything begins");

    // Written down, then selected page by page: whoever did so is killed after some, and the next goes on from there.
    let mut tx = store.begin().await.unwrap();
    let begun = reissue::begin(&mut tx, env, &selection, Lane::Renewal, "operator").await.unwrap();
    tx.commit().await.unwrap();
    let mut marked = 0;
    while marked < 3_000 {
        let row = reissues::find(store, begun.id.as_str()).await.unwrap().unwrap();
        let from = row.marking.unwrap();
        let page = reissues::select(store, &selection, row.created_at, &from).await.unwrap();
        assert!(page.these.len() <= 100, "a page at a time, however long the list");
        let due = |(n, s)| (s, reissue::due(row.created_at, marked + n));
        let these: Vec<_> = page.these.into_iter().enumerate().map(due).collect();
        marked += these.len();
        assert!(reissues::mark(store, &begun.id, &from, page.next.as_deref(), &these).await.unwrap());
    }
    reissue::go_on(store, begun.id.as_str()).await.unwrap();
    let progress = shown::show(store, env, begun.id.as_str()).await.unwrap().unwrap();
    assert_eq!((progress.certificates, progress.left, progress.priority), (REVOKED, REVOKED, true));
    let again = Moment::from_rfc3339(&progress.eta.unwrap()).unwrap().since(env.now());
    let off = again.max(by_hand) - again.min(by_hand);
    assert!(off < by_hand / 50, "told {again:?}, by hand {by_hand:?}");
    let marked = sql("SELECT count(*) AS n FROM renewals WHERE reissue_id IS NOT NULL");
    assert_eq!(rig.count(marked).await, REVOKED, "each once, and no other");
}

/// With priority they stand among the renewals that are due, by the end of their certificates; without it behind them.
#[tokio::test]
async fn b54_with_priority_replacements_stand_among_what_is_due() {
    for (seed, lane, wanted) in [(351, Lane::Renewal, "renewal"), (352, Lane::Bulk, "bulk")] {
        let slow = Limit { burst: 5, per_secs: 18_000 };
        let rig = Rig::with_limit(seed, "sqlite::memory:", slow).await;
        rig.ca.windows(Windows::None);
        let names = live_names(&rig, 8).await;
        rig.pass_quickly(2 * HOUR).await;
        let all = Selection::Issuer("main".to_owned());
        let begun = reissue::begin_now(&rig.app.store, &rig.env, &all, lane, "operator").await.unwrap();
        assert_eq!(begun.hurries, lane == Lane::Renewal);
        rig.pass(HOUR / 2).await;
        let lanes = sql("SELECT count(*) AS n FROM orders WHERE state = 'waiting' AND lane = $1").bind(wanted);
        assert!(rig.count(lanes).await >= 4, "they wait in the lane {wanted}");
        rig.pass_quickly(14 * HOUR).await;
        for (id, _) in &names {
            assert_eq!(certificates(&rig, id).await, 2, "{}", rig.story(id).await);
        }
        rig.check_invariants().await;
    }
}
